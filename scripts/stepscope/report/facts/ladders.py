"""Ladders: changes made one after another at a place, and which of them helped."""

from functools import cached_property

from stepscope.axes import PLAIN_STEP
from stepscope.figures.ladder import TODAYS
from stepscope.report.kit.data import Data, once
from stepscope.report.kit.named import first_of, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    exact,
    least,
    minus,
    over,
    plus,
    positive,
    value_of,
)

from .machine import Place, arithmetic, place
from .rungs import Measured, Rung

SIXTEEN = ("bf16", "fp16")


@frozen
class Ladder:
    """The rungs of a cell. throttle: why the card lowered its clock. is_part: its first variant is
    another ladder's later rung."""

    data: Measured
    throttle: str
    is_part: bool

    @property
    def place(self) -> Place:
        """Where its variants ran."""
        return self.data.place

    @cached_property
    def rungs(self) -> list[Rung]:
        """Those that ran, in their order."""
        return [rung for rung in self._ran if not rung.is_aside]

    @cached_property
    def asides(self) -> list[Rung]:
        """Those that vary a rung, and are compared with it."""
        return [rung for rung in self._ran if rung.is_aside]

    @cached_property
    def failed(self) -> list[Rung]:
        """Those of both that did not run."""
        return [rung for rung in self.data.rungs.values() if rung.step is None]

    @property
    def _ran(self) -> list[Rung]:
        return [rung for rung in self.data.rungs.values() if rung.step]

    @property
    def start(self) -> Rung:
        """The first rung."""
        return self.rungs[0]

    @property
    def is_tuned(self) -> bool:
        """Whether its first variant changes more of the plain step than the precision."""
        same = {"precision": PLAIN_STEP["precision"]}
        return self.data.first.options | same != PLAIN_STEP

    @property
    def is_todays(self) -> bool:
        """Whether it begins at what people run, and goes on from there."""
        return self.is_tuned and not self.is_part and len(self.rungs) >= TODAYS

    @property
    def plain(self) -> Rung:
        """The baseline of page one: 16 bits, nothing else changed."""
        return next((rung for rung in self.rungs if rung.kind in SIXTEEN), self.start)

    @property
    def top(self) -> Rung:
        """The fastest rung."""
        return _fastest(self.rungs)

    @property
    def after_plain(self) -> list[Rung]:
        """The rungs above the baseline."""
        return self.rungs[self._place(self.plain) + 1 :]

    def _place(self, rung: Rung) -> int:
        return self.rungs.index(rung)

    @property
    def gains(self) -> list[Rung]:
        """Those of them that were judged faster, by the clock or without the host."""
        return [rung for rung in self.after_plain if rung.is_gain]

    @property
    def wrong(self) -> list[Rung]:
        """Those with which the step computes something else."""
        return [rung for rung in (*self.after_plain, *self.asides) if rung.is_wrong]

    @property
    def without_gain(self) -> list[Rung]:
        """Those that were judged and were not."""
        told = self.gains + self.wrong
        return [rung for rung in self.after_plain if rung.has_verdict and rung not in told]

    def said(self, word: str) -> list[Rung]:
        """Those of which this is said."""
        return [rung for rung in self.without_gain if rung.said == word]

    @property
    def unjudged(self) -> list[Rung]:
        """Those whose gain has no interval."""
        return [rung for rung in self.after_plain if rung.gain and not rung.has_verdict]

    @property
    def is_union(self) -> bool:
        """Whether `gpu` of the rungs is the time in which kernels run, since some has no replay."""
        return any(rung.gpu and not rung.host_free for rung in self.rungs)

    @property
    def slowest(self) -> Rung | None:
        """The rung of the lowest SM clock."""
        return least(self.rungs, "sm_clock")

    @property
    def is_starved(self) -> bool:
        """Whether launches limit the baseline and the step without the host is known, here and at
        the top."""
        return self.plain.limits == "launches" and bool(self.plain.gpu and self.top.gpu)

    @property
    def is_cast(self) -> bool:
        """Whether the baseline is the first rung in 16 bits instead."""
        return self.plain.kind in SIXTEEN and not self.place.dtype

    @cached_property
    def most_different(self) -> Maybe:
        """How far gradients of a rung are off the first rung's at most, of those that round alike;
        None where one was not checked."""
        return _largest([rung.difference for rung in self._alike])

    @cached_property
    def loss_most_different(self) -> Maybe:
        """The same of the loss."""
        return _largest([rung.loss_difference for rung in self._alike])

    @property
    def _alike(self) -> list[Rung]:
        return [rung for rung in self.rungs[1:] if rung.is_rounding]

    @property
    def differing(self) -> list[Rung]:
        """Rungs whose loss or gradients differ by more than rounding."""
        return [rung for rung in (*self.rungs, *self.asides) if rung.differs]

    @property
    def coarse(self) -> Rung | None:
        """The first rung that rounds more than 16 bits do: it computes something else."""
        return first_of(rung for rung in self.rungs if not rung.is_rounding and rung.difference)

    @property
    def top_is_coarse(self) -> bool:
        """Whether the fastest rung has that one's format."""
        return self.coarse is not None and self.top.precision == self.coarse.precision

    @property
    def top_but_coarse(self) -> Rung:
        """The fastest of those that round as 16 bits do."""
        return _fastest([rung for rung in self.rungs if rung.is_rounding])

    def rung(self, kind: str) -> Rung | None:
        """The rung or aside that makes this change and ran."""
        ran = (*self.rungs, *self.asides)
        return first_of(rung for rung in ran if rung.kind == kind)

    def beyond(self, rung: Rung) -> Quantity:
        """What a rung takes less than the fastest below it, from the baseline on."""
        below = self.rungs[self._place(self.plain) : self._place(rung)]
        won = minus(_fastest(below).step, rung.step)
        assert won is not None, "both ran"
        return won

    @property
    def top_is_gain(self) -> bool:
        """Whether the fastest rung was judged faster than the first one, or than the one before
        it."""
        verdict = self.top.total_verdict or self.top.verdict
        return self.top is not self.start and verdict == "faster"

    @cached_property
    def over_plain(self) -> Maybe:
        """The top rung's gain over the baseline."""
        if self.top is self.plain:
            return None
        return over(self.plain.step, self.top.step)

    @cached_property
    def alone_over_plain(self) -> Maybe:
        """The same without the host."""
        if self.top is self.plain:
            return None
        return exact(over(self.plain.gpu, self.top.gpu))

    @property
    def recommended(self) -> Rung | None:
        """The variant that has all the gains and nothing else, if it ran."""
        wanted = self.plain.options
        for rung in self.gains:
            wanted[rung.option] = rung.options[rung.option]
        same = (rung for rung in self._ran if rung.options == wanted)
        return first_of(rung for rung in same if not rung.differs)

    @property
    def advised(self) -> Rung:
        """That one, where it has the fastest rung's precision; else the fastest."""
        found = self.recommended
        if found is None or found is self.plain or found.precision != self.top.precision:
            return self.top
        return found

    @property
    def has_turns(self) -> bool:
        """Whether rungs took turns in a process."""
        return any(row["in_turns"] for row in self.data.comparisons.values())

    @property
    def is_other_card(self) -> bool:
        """Whether ceilings were measured on another card than it."""
        data = self.place.data
        formats = [rung.precision for rung in self._ran]
        ceilings = data.dicts("cells", study="ceilings")
        known = [row for row in ceilings if row["size"] == "copy" or row["precision"] in formats]
        return not data.cards(row["cell"] for row in known) <= data.cards([self.data.cell])

    @cached_property
    def left(self) -> Maybe:
        """What the top rung takes beyond its arithmetic and the optimizer's bytes."""
        bounds = plus(self.top.arithmetic, self.place.optimizer_fused)
        return positive(minus(self.top.step, bounds))

    @cached_property
    def sustained(self) -> Maybe:
        """The top rung's arithmetic at the rates that large products sustain."""
        return arithmetic(self.place, self.top.precision, "sustained")


@once
def ladders(data: Data) -> list[Ladder]:
    """All ladders: the longest that begins at what people run; those that begin at the plain step,
    that of the most arithmetic first; other tuned ones; those that begin at another's later rung.
    """
    cells = dict.fromkeys(row["cell"] for row in data.dicts("series", study="ladder"))
    measured = [made for cell in cells if (made := _measured(data, cell))]
    found = []
    for made in measured:
        throttle = data.row("cells", cell=made.cell).get("throttle", "")
        is_part = starts_later(made, measured)
        found.append(Ladder(data=made, throttle=throttle, is_part=is_part))
    found.sort(key=lambda one: (one.is_part, one.is_tuned, -value_of(one.place.flop)))
    todays = max(
        (one for one in found if one.is_todays), key=lambda one: len(one.rungs), default=None
    )
    return sorted(found, key=lambda one: one is not todays)


def ladder_at(data: Data, where: Place) -> Ladder | None:
    """The first ladder at a place."""
    return first_of(each for each in ladders(data) if each.place.key == where.key)


def starts_later(made: Measured, ladders: list[Measured]) -> bool:
    """Whether its first variant, run or not, is a later rung of one of the ladders."""
    same = (each.rungs.get(made.first.variant) for each in ladders)
    return any(rung.after for rung in same if rung)


def _measured(data: Data, cell: str) -> Measured | None:
    """A cell of which a variant ran."""
    declared = {row["variant"]: row for row in data.dicts("variants", cell=cell)}
    clocks = data.series(cell=cell, quantity="time", phase="step")
    ran = {row["variant"] for row in clocks}
    formats = [row["precision"] for name, row in declared.items() if name in ran]
    if not formats:
        return None
    # The place's own precision is that of page one's baseline.
    sixteen = [precision for precision in formats if precision in SIXTEEN]
    first = next(iter(declared.values()))["precision"]
    where = place(data, clocks[0], (sixteen or [first])[0])
    assert where is not None, "a ladder has a context"
    return Measured(cell=cell, place=where, declared=declared)


def _fastest(rungs: list[Rung]) -> Rung:
    return min(rungs, key=lambda rung: rung.seconds)


def _largest(known: list[Maybe]) -> Maybe:
    """None where one is not known."""
    return max(known, key=value_of, default=None) if all(known) else None
