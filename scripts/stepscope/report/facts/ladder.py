"""The ladder: each change predicted, measured and its gap; the same changes at other places; what
compiling costs."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, arithmetic, machine
from stepscope.report.facts.rungs import Rung, alone_gain
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, is_below, scaled

PARTS = {
    "products": "matrix products",
    "attention": "fused attention",
    "casts": "casts and copies",
    "others": "other kernels",
    "optimizer": "optimizer",
    "idle": "GPU idle",
}
HELD_BACK = 0.95  # of the highest clock


@frozen
class Aside:
    """A variant of a rung, `before`, at a place."""

    place: Name
    rung: Rung
    before: Rung

    @cached_property
    def alone(self) -> Maybe:
        """Times as fast without the host."""
        return alone_gain(self.before, self.rung)


@frozen
class Reach:
    """What a rung delivers at a context and batch."""

    place: Name
    context: Maybe
    batch: int
    rung: Rung

    @property
    def megahertz(self) -> float:
        """The clock before its steps; 0 where it is not known."""
        return self.rung.sm_clock.value if self.rung.sm_clock else 0.0

    @property
    def tokens(self) -> float:
        """A second; 0 where they are not known."""
        return self.rung.tokens.value if self.rung.tokens else 0.0


@frozen
class Left:
    """A part of the profiled step, plain and at the top rung, and the least that it can take
    there."""

    part: Name
    plain: Maybe
    top: Maybe
    bound: Maybe = None


@frozen
class LadderFacts:
    """Of `ladder`, that of the largest place, and of all others."""

    data: Data
    machine: Machine
    ladder: Ladder

    @cached_property
    def others(self) -> tuple[Rung, ...]:
        """The rungs at the smallest place."""
        return self._smallest.rungs if self._smallest else ()

    @cached_property
    def other(self) -> Name | None:
        """That place."""
        return self._smallest.place.name if self._smallest else None

    @property
    def _smallest(self) -> Ladder | None:
        rest = [each for each in ladders(self.data, self.machine)[1:] if not each.is_part]
        return rest[-1] if rest else None

    @cached_property
    def asides(self) -> tuple[Aside, ...]:
        """Of all ladders."""
        found = ladders(self.data, self.machine)
        return tuple(aside for ladder in found for aside in _asides(ladder))

    @cached_property
    def checkpoint(self) -> Rung | None:
        """The first of them that has checkpoints."""
        rungs = (each.rung for each in self.asides)
        return next((rung for rung in rungs if rung.kind.startswith("checkpoint")), None)

    @cached_property
    def has_turns(self) -> bool:
        """Whether rungs were measured in turns."""
        return any(row["in_turns"] for row in self._compared)

    @cached_property
    def is_apart(self) -> bool:
        """Whether none was."""
        return bool(self._compared) and not self.has_turns

    @property
    def _compared(self) -> list[dict]:
        return self.data.dicts("comparisons", cell=self.ladder.cell, phase="step")

    @cached_property
    def is_other_card(self) -> bool:
        """Whether ceilings were measured on another card than a ladder of the size."""
        return any(each.is_other_card for each in self._of_size)

    @cached_property
    def failed(self) -> tuple[Rung, ...]:
        """What did not run."""
        return self.ladder.failed

    @cached_property
    def failed_elsewhere(self) -> tuple[Rung, ...]:
        """The same at other batches and contexts of the size."""
        return tuple(rung for each in self._elsewhere for rung in each.failed)

    @property
    def _of_size(self) -> list[Ladder]:
        found = ladders(self.data, self.machine)
        return [each for each in found if each.place.size == self.ladder.place.size]

    @property
    def _elsewhere(self) -> list[Ladder]:
        return [each for each in self._of_size if each.is_part]

    @cached_property
    def reach(self) -> tuple[Reach, ...]:
        """What each rung delivers at all places of the size, on a GPU."""
        return tuple(_reach(self._of_size)) if self.machine.is_gpu else ()

    @cached_property
    def has_energy(self) -> bool:
        """Whether joules are known of one of these."""
        return any(each.rung.energy for each in self.reach)

    @cached_property
    def most(self) -> Reach | None:
        """Of these that of the most tokens a second, if that is at a larger batch than the
        ladder's."""
        most = max(_reach(self._elsewhere), key=lambda each: each.tokens, default=None)
        if most is None or most.batch <= self.ladder.place.batch:
            return None
        return None if is_below(most.rung.tokens, self.ladder.top.tokens) else most

    @cached_property
    def without(self) -> Rung | None:
        """The rung before that one, at its place."""
        return self.most.rung.before if self.most else None

    @cached_property
    def held_back(self) -> Reach | None:
        """That of the lowest clock, where the power limit held it."""
        capped = _reach([each for each in self._of_size if each.is_capped])
        most = scaled(self.highest_clock, HELD_BACK)
        slow = [each for each in capped if is_below(each.rung.sm_clock, most)]
        return min(slow, key=lambda each: each.megahertz, default=None)

    @cached_property
    def highest_clock(self) -> Maybe:
        """Of all cells."""
        known = filter(None, map(of_series, self.data.series(quantity="sm_clock")))
        return max(known, key=lambda each: each.value, default=None)

    @cached_property
    def power_limit(self) -> Maybe:
        """Of the card."""
        watts = self.data.row("cells", cell=self.ladder.cell).get("power_limit_w", 0)
        return Quantity(watts, "W") if watts > 0 else None

    @cached_property
    def left(self) -> tuple[Left, ...]:
        """The parts of the step, plain and at the top, if both were profiled."""
        where, top = self.ladder.place, self.ladder.top
        found = profile.profiled(self.data, self.machine)
        start = profile.plain_at(found, where, where.precision)
        end = profile.top_at(found, where)
        if start is None or end is None or end.place.precision != top.precision:
            return ()
        idle = self.ladder.plain.idle, top.idle
        bounds = {
            "products": arithmetic(where, top.precision, self.machine.rates, only_linear=True),
            "optimizer": where.optimizer_fused,
        }
        made = []
        for name, words in PARTS.items():
            before, after = idle if name == "idle" else (getattr(start, name), getattr(end, name))
            if any(each and each.value > 0 for each in (before, after)):
                part = Left(part=Name(words), plain=before, top=after, bound=bounds.get(name))
                made.append(part)
        return tuple(made)


def facts(data: Data) -> LadderFacts | None:
    """Of all ladders of the machine."""
    own = machine(data)
    found = ladders(data, own)
    return LadderFacts(data=data, machine=own, ladder=found[0]) if found else None


def _asides(ladder: Ladder) -> list[Aside]:
    name = ladder.place.name
    pairs = [(rung, rung.before) for rung in ladder.asides]
    return [Aside(place=name, rung=rung, before=before) for rung, before in pairs if before]


def _reach(ladders: list[Ladder]) -> list[Reach]:
    found = []
    for ladder in ladders:
        context, batch = ladder.place.context, ladder.place.batch
        place = Name(f"{context:,}, {batch}")
        for rung in ladder.rungs:
            if rung.tokens:
                found.append(Reach(place=place, context=count(context), batch=batch, rung=rung))
    return found
