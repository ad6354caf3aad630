"""Kernels and launches: what the GPU's time goes to, what the optimizer moves, and where the host
is too slow."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import Chapter, Place, placed
from stepscope.report.facts.profile import Profiled, plain_at, profiled
from stepscope.report.facts.rungs import Rung
from stepscope.report.facts.timed import Timed, timed
from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import first_of, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    gap,
    least,
    minus,
    most,
    over,
    share,
)

TOP = 6  # kernels that are listed
OF_ADAMW = ("addcdiv", "addcmul", "lerp")  # in names of kernels


@frozen
class OfLadder:
    """A change at a ladder's place, beside the rung before."""

    place: Place
    rung: Rung
    before: Rung


@frozen
class Kernels(Chapter):
    """Of `own`, the largest profiled plain step in 16 bits."""

    own: Profiled

    @property
    def place(self) -> Place:
        """Where that is."""
        return self.own.place

    @cached_property
    def fp32(self) -> Profiled | None:
        """The same place in fp32."""
        is_same = self.place.precision == "fp32"
        return None if is_same else plain_at(self._plain, self.place, "fp32")

    @cached_property
    def kinds(self) -> list[Row]:
        """Kinds of kernels by their time, which they take in a step in both precisions."""
        slow = self.fp32.parts if self.fp32 else []
        times = {row["category"]: row["time"] for row in slow}
        return [row | {"fp32": times.get(row["category"])} for row in self.own.parts]

    # what the step's products reach
    rate = made_of(over, "place.flop", "own.products", unit="FLOP/s")

    @cached_property
    def of_ceiling(self) -> Maybe:
        """That, of the rate of a large product."""
        return share(self.rate, self.machine.rate(self.place.precision))

    @cached_property
    def casts_added(self) -> Maybe:
        """Copies that the place's precision adds."""
        return minus(self.own.casts, self.fp32.casts) if self.fp32 else None

    @cached_property
    def softmax(self) -> Row:
        """Of the first profile that links kernels of backward to modules: its range, with its
        place."""
        rows = self.data.dicts("modules", kind="module", module="softmax")
        known = [(where, row) for where, row in placed(self.data, rows) if row["backward_time"] > 0]
        return next((shown(row) | {"place": where} for where, row in known), {})

    # how far the written-out optimizer is off its bytes
    optimizer_gap = made_of(gap, "own.optimizer", "place.optimizer_written")

    @cached_property
    def fused(self) -> OfLadder | None:
        """The fused AdamW in the largest ladder that has it."""
        return first_of(self.in_ladders("fused"))

    @cached_property
    def fused_gap(self) -> Maybe:
        """How far it is off its bytes."""
        if self.fused is None:
            return None
        return gap(self.fused.rung.optimizer, self.fused.place.optimizer_fused)

    @property
    def is_fused_cached(self) -> bool:
        """Whether it is surely faster than they allow."""
        if self.fused is None or self.fused.rung.optimizer is None:
            return False
        ends = self.fused.rung.optimizer.ends
        bound = self.fused.place.optimizer_fused
        return bool(ends and bound and ends[1] < bound.value)

    @cached_property
    def sizes(self) -> list[Profiled]:
        """The plain profiled steps in one precision at the context of which there are most, the
        smallest size first; on a GPU."""
        precision = self.place.precision
        same = [each for each in self._plain if each.place.precision == precision]
        known = [each for each in same if each.busy_share and self.machine.is_gpu]
        contexts = [each.place.context for each in known]
        context = max(contexts, key=lambda each: (contexts.count(each), each), default=None)
        found = [each for each in reversed(known) if each.place.context == context]
        return found if len(found) > 1 else []

    @cached_property
    def starved(self) -> Profiled | None:
        """Of these, the one whose GPU is busy least."""
        return least(self.sizes, "busy_share")

    @cached_property
    def fed(self) -> Profiled | None:
        """And most."""
        return most(self.sizes, "busy_share")

    @cached_property
    def limited(self) -> list[Timed]:
        """The plain timed steps in bf16 that launches limit and whose GPU time is known, the
        smallest size first."""
        found = timed(self.data, precision="bf16", limits="launches")
        known = [each for each in found if each.step and each.gpu]
        return sorted(known, key=lambda each: each.place.weight)

    @cached_property
    def worst(self) -> Timed | None:
        """Of these, the one whose clock surely exceeds the GPU's own time most."""
        return max(self.limited, key=_excess, default=None)

    @cached_property
    def top(self) -> list[Row]:
        """The kernels that take most, with the mean of a call."""
        rows = self.data.dicts("kernels", cell=self.own.cell, phase="step")
        largest = sorted(rows, key=lambda row: -row["share"])[:TOP]
        told = [shown(row, calls="count") for row in largest]
        return [row | {"mean": over(row["time"], row["calls"], "s")} for row in told]

    @property
    def has_adamw(self) -> bool:
        """Whether one of them is of the written-out AdamW."""
        return any(word in row["name"] for row in self.top for word in OF_ADAMW)

    # the step under the profiler over the one without
    overhead = made_of(over, "own.wall", "own.clock")

    @property
    def _plain(self) -> list[Profiled]:
        return [each for each in profiled(self.data) if not each.options]

    def in_ladders(self, kind: str) -> list[OfLadder]:
        """A change in every ladder that has it, the largest first."""
        rungs = [(ladder.place, ladder.rung(kind)) for ladder in ladders(self.data)]
        return [
            OfLadder(place=where, rung=rung, before=rung.before)
            for where, rung in rungs
            if rung and rung.before
        ]


def _excess(step: Timed) -> float:
    """The clock over the GPU's own time, at least."""
    clock = step.step
    return (clock.low or clock.value) / step.gpu.value if clock and step.gpu else 0.0


def facts(data: Data) -> Kernels | None:
    """Of the place of page one if it was profiled, else of the largest plain profiled step."""
    step = profile.plain_step(profiled(data), profile.subject(data))
    return Kernels(data=data, own=step) if step else None
