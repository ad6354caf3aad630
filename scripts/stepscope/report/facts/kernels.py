"""Kernels and launches: what the GPU's time goes to, what the optimizer moves, and where the host
is too slow."""

from functools import cached_property

from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import first_of, frozen, made_of
from stepscope.report.kit.quantity import Maybe, gap, minus, over, share

from . import profile
from .ladders import ladders
from .machine import Chapter, Place, placed
from .profile import Profiled, plain_at, profiled
from .timed import Timed, in_bf16

TOP = 6  # kernels that are listed


@frozen
class Kernels(Chapter):
    """Of `own`, the largest profiled plain step in 16 bits, at `place`.

    fp32: the same place in fp32; kinds: kinds of kernels by their time, which they take in a step
    in both precisions; casts_added: copies that the place's precision adds. rate: what the step's
    products reach. softmax: of the first profile that links kernels of backward to modules: its
    range, with its place. limited: the plain timed steps in bf16 that launches limit and whose GPU
    time is known, the smallest size first. top: the kernels that take most, with the mean of a
    call.
    """

    own: Profiled
    place: Place
    fp32: Profiled | None
    kinds: list[Row]
    softmax: Row
    limited: list[Timed]
    top: list[Row]

    optimizer_gap = made_of(gap, "own.optimizer", "place.optimizer_written")  # off its bytes
    casts_added = made_of(minus, "own.casts", "fp32.casts")
    overhead = made_of(over, "own.wall", "own.clock")  # the profiler's

    @cached_property
    def rate(self) -> Maybe:
        """The products'; None where attention's, which count among the operations, run in kernels
        of their own."""
        return (
            None if self.own.attention.value else over(self.place.flop, self.own.products, "FLOP/s")
        )

    @cached_property
    def of_ceiling(self) -> Maybe:
        """The products' rate, of that of a large product."""
        known = None if self.place.dtype else self.machine.rate(self.place.precision)
        return share(self.rate, known)

    @cached_property
    def graphs(self) -> list[Row]:
        """CUDA graphs in every ladder that has them, the smallest first: its place, and the rung
        beside the one before."""
        rungs = [(each.place, each.rung("graphs")) for each in reversed(ladders(self.data))]
        return [{"place": where, "rung": rung} for where, rung in rungs if rung and rung.before]


def facts(data: Data) -> Kernels | None:
    """Of the place of page one if it was profiled, else of the largest plain profiled step."""
    steps = profiled(data)
    own = profile.plain_step(steps, profile.subject(data))
    if own is None:
        return None
    where = own.place
    plain = [each for each in steps if not each.options]
    is_wide = where.dtype or where.precision == "fp32"
    fp32 = None if is_wide else plain_at(plain, where, "fp32")
    slow = {row["category"]: row["time"] for row in (fp32.parts if fp32 else ())}
    starving = in_bf16(data, limits="launches")
    known = [each for each in starving if each.step and each.gpu]
    limited = sorted(known, key=lambda each: each.place.weight)
    rows = data.dicts("kernels", cell=own.cell, phase="step")
    longest = sorted(rows, key=lambda row: -row["share"])[:TOP]
    top = [shown(row, calls="count") for row in longest]
    return Kernels(
        data=data,
        own=own,
        place=where,
        fp32=fp32,
        kinds=[row | {"fp32": slow.get(row["category"])} for row in own.parts],
        softmax=_softmax(data),
        limited=limited,
        top=[row | {"mean": over(row["time"], row["calls"], "s")} for row in top],
    )


def _softmax(data: Data) -> Row:
    rows = data.dicts("modules", kind="module", module="softmax")
    known = [(where, row) for where, row in placed(data, rows) if row["backward_time"] > 0]
    return first_of(shown(row) | {"place": where} for where, row in known) or {}
