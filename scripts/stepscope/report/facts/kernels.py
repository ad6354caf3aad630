"""Kernels and launches: what the GPU's time goes to, what the optimizer moves, and where the host
is too slow."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.profile import Profiled, plain_at, profiled, size_of
from stepscope.report.facts.rungs import Rung
from stepscope.report.kit.data import Data, number, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, gap, is_below, minus, over, share

TOP = 6  # kernels that are listed
CLOSE = 0.15  # a prediction that is off by less explains the time
SLOWER = 0.1  # one that is off by more is worth a word
OF_ADAMW = ("addcdiv", "addcmul", "lerp")  # in names of kernels


@frozen
class Kind:
    """A kind of kernel: its time in a step in both precisions, and how often it is launched in the
    place's own."""

    name: Name
    fp32: Maybe
    time: Maybe
    calls: Maybe


@frozen
class Kernel:
    """One of the kernels, or operators, that take most."""

    name: Name
    kind: Name
    calls: Maybe
    mean: Maybe
    share: Maybe


@frozen
class Limited:
    """A plain step that launches limit: its clock, the GPU's own time, and its launches.

    idle: what the clock exceeds the GPU's own time by, for each launch.
    """

    place: Place
    clock: Quantity
    alone: Quantity
    host_free: Maybe
    busy: Maybe
    launches: Maybe
    idle: Maybe

    @cached_property
    def each(self) -> Maybe:
        """The clock's time for each launch."""
        return over(self.clock, self.launches, "s")

    @property
    def excess(self) -> float:
        """The clock over the GPU's own time, at least."""
        return (self.clock.low or self.clock.value) / self.alone.value


@frozen
class OfLadder:
    """A change at a ladder's place, beside the rung before."""

    place: Place
    rung: Rung
    before: Rung

    @property
    def had_idle_time(self) -> bool:
        """Whether launches limited the step before."""
        return self.before.limits == "launches"


@frozen
class Kernels:
    """Of `own`, the largest profiled plain step in 16 bits."""

    data: Data
    machine: Machine
    own: Profiled

    @property
    def place(self) -> Place:
        """Where that is."""
        return self.own.place

    @cached_property
    def fp32(self) -> Profiled | None:
        """The same place in fp32."""
        if self.place.precision == "fp32":
            return None
        return plain_at(self._plain, self.place, "fp32")

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of kernels by their time."""
        other = {part.name: part.time for part in self.fp32.parts} if self.fp32 else {}
        return tuple(
            Kind(name=part.name, fp32=other.get(part.name), time=part.time, calls=part.calls)
            for part in self.own.parts
        )

    @cached_property
    def rate(self) -> Maybe:
        """What the step's products reach."""
        return over(self.place.flop, self.own.products, "FLOP/s")

    @cached_property
    def of_ceiling(self) -> Maybe:
        """That, of the rate of a large product."""
        return share(self.rate, self.machine.rate(self.place.precision))

    @cached_property
    def fp32_share(self) -> Maybe:
        """Products, of the kernels' time in fp32."""
        return share(self.fp32.products, self.fp32.kernels_time) if self.fp32 else None

    @cached_property
    def own_share(self) -> Maybe:
        """The same in the place's precision."""
        return share(self.own.products, self.own.kernels_time)

    @cached_property
    def casts_added(self) -> Maybe:
        """Copies that the place's precision adds."""
        return minus(self.own.casts, self.fp32.casts) if self.fp32 else None

    @cached_property
    def is_traffic(self) -> bool:
        """Whether most kernel time is not products."""
        return is_below(self.own.products, minus(self.own.kernels_time, self.own.products))

    @cached_property
    def optimizer_gap(self) -> Maybe:
        """How far the written-out optimizer is off its bytes."""
        return gap(self.own.optimizer, self.place.optimizer_written)

    @cached_property
    def is_optimizer_cached(self) -> bool:
        """Whether it is clearly faster than they allow."""
        return is_below(self.own.optimizer, self.place.optimizer_written, 1 - CLOSE)

    @cached_property
    def fused(self) -> OfLadder | None:
        """The fused AdamW in the largest ladder that has it."""
        return self._largest("fused")

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

    @property
    def is_fused_slower(self) -> bool:
        """Whether it is clearly slower."""
        return self.fused_gap is not None and self.fused_gap.value > SLOWER

    @cached_property
    def compiled(self) -> OfLadder | None:
        """Compiled blocks in the largest ladder that has them."""
        return self._largest("block")

    @cached_property
    def sizes(self) -> tuple[Profiled, ...]:
        """The plain profiled steps in one precision at the context of which there are most, the
        smallest size first; on a GPU."""
        precision = self.place.precision
        same = [each for each in self._plain if each.place.precision == precision]
        known = [each for each in same if each.busy_share and self.machine.is_gpu]
        contexts = [each.place.context for each in known]
        context = max(contexts, key=lambda each: (contexts.count(each), each), default=None)
        found = [each for each in reversed(known) if each.place.context == context]
        return tuple(found) if len(found) > 1 else ()

    @cached_property
    def starved(self) -> Profiled | None:
        """Of these, the one whose GPU is busy least."""
        return min(self.sizes, key=_busy_share, default=None)

    @cached_property
    def fed(self) -> Profiled | None:
        """And most."""
        return max(self.sizes, key=_busy_share, default=None)

    @cached_property
    def limited(self) -> tuple[Limited, ...]:
        """The plain timed steps in bf16 that launches limit and whose GPU time is known, the
        smallest size first."""
        same = {"study": "timing", "precision": "bf16", "options": "", "limits": "launches"}
        rows = self.data.series(quantity="time", mode="step", phase="step", **same)
        found = [made for row in rows if (made := self._limited(row))]
        return tuple(sorted(found, key=lambda each: size_of(each.place)))

    def _limited(self, row: dict) -> Limited | None:
        same = {"cell": row["cell"], "mode": "step", "phase": "step"}
        where, clock = place(self.data, self.machine, row, "bf16"), of_series(row)
        alone = self.data.measured("alone_time", **same)
        if where is None or clock is None or alone is None:
            return None
        return Limited(
            place=where,
            clock=clock,
            alone=alone,
            host_free=self.data.measured("host_free_time", **same),
            busy=self.data.measured("busy_time", **same),
            launches=self.data.measured("launches", **same),
            idle=self.data.measured("launch_gap", **same),
        )

    @cached_property
    def worst(self) -> Limited | None:
        """Of these, the one whose clock exceeds the GPU's own time most."""
        return max(self.limited, key=lambda each: each.excess, default=None)

    @cached_property
    def graphs(self) -> tuple[OfLadder, ...]:
        """CUDA graphs in every ladder, the smallest first."""
        found = (_of_ladder(ladder, "graphs") for ladder in reversed(self._ladders))
        return tuple(filter(None, found))

    @cached_property
    def top(self) -> tuple[Kernel, ...]:
        """The kernels that take most."""
        rows = self.data.dicts("kernels", cell=self.own.cell, phase="step")
        return tuple(map(_kernel, sorted(rows, key=lambda row: -row["share"])[:TOP]))

    @cached_property
    def has_adamw(self) -> bool:
        """Whether one of them is of the written-out AdamW."""
        return any(word in kernel.name for kernel in self.top for word in OF_ADAMW)

    @cached_property
    def overhead(self) -> Maybe:
        """The step under the profiler over the one without."""
        return over(self.own.wall, self.own.clock)

    @property
    def _plain(self) -> list[Profiled]:
        return [each for each in profiled(self.data, self.machine) if not each.options]

    @property
    def _ladders(self) -> list[Ladder]:
        return ladders(self.data, self.machine)

    def _largest(self, kind: str) -> OfLadder | None:
        return next(filter(None, (_of_ladder(ladder, kind) for ladder in self._ladders)), None)


def facts(data: Data) -> Kernels | None:
    """Of the place of page one if it was profiled, else of the largest plain profiled step."""
    own = machine(data)
    step = profile.plain_step(profiled(data, own), profile.subject(data, own))
    return Kernels(data=data, machine=own, own=step) if step else None


def _busy_share(each: Profiled) -> float:
    return each.busy_share.value if each.busy_share else 0.0


def _of_ladder(ladder: Ladder, kind: str) -> OfLadder | None:
    rung = ladder.rung(kind)
    if rung is None or rung.before is None:
        return None
    return OfLadder(place=ladder.place, rung=rung, before=rung.before)


def _kernel(row: dict) -> Kernel:
    return Kernel(
        name=Name(row["name"]),
        kind=Name(row["category"]),
        calls=number(row, "calls", "count"),
        mean=Quantity(row["time"] / row["calls"], "s", cells=(row["cell"],)),
        share=number(row, "share", "share"),
    )
