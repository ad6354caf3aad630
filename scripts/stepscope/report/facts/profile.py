"""Profiled steps: what kernels' time is made of, what the GPU waits, and what the step takes
without a profiler."""

from functools import cached_property

from stepscope.axes import PLAIN_STEP
from stepscope.report.kit.data import Data, Row, number, of_series, once, shown, total
from stepscope.report.kit.named import first_of, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    least,
    minus,
    plus,
    share,
)

from .ladders import Ladder, ladders
from .machine import Place, largest, placed
from .rungs import options
from .timed import timed

PRODUCTS, ATTENTION, CASTS = "matmul", "fused attention", "copy/cast"
STEP = {"mode": "step", "phase": "step"}


def _outside_optimizer(kind: str) -> cached_property[Quantity]:
    """The fact that is the time of a kind of kernels in forward and backward."""

    def spent(step: "Profiled") -> Quantity:
        whole, of_optimizer = (
            sum(row["time"] for row in step.kinds_in(phase) if row["category"] == kind)
            for phase in ("step", "optimizer")
        )
        return Quantity(max(whole - of_optimizer, 0.0), "s", cells=(step.cell,))

    return cached_property(spent)


@frozen
class Profiled:
    """A profiled step, of the cell `cell`. options: those that are not neutral, as text."""

    data: Data
    place: Place
    cell: str
    options: str

    products = _outside_optimizer(PRODUCTS)
    attention = _outside_optimizer(ATTENTION)
    casts = _outside_optimizer(CASTS)  # between formats, and copies

    def kinds_in(self, phase: str) -> list[Row]:
        """The kinds of kernels in a phase."""
        return self.data.dicts("categories", cell=self.cell, phase=phase)

    @cached_property
    def parts(self) -> list[Row]:
        """The kinds of kernels of the step, that of the most time first.

        Rows of the table `categories`: time (s) and calls of a step, optimizer included.
        """
        rows = sorted(self.kinds_in("step"), key=lambda row: -row["time"])
        return [shown(row, calls="count") for row in rows]

    @cached_property
    def kernels_time(self) -> Maybe:
        """Of all of them together."""
        return total(self.kinds_in("step"), "time", "s")

    @cached_property
    def optimizer(self) -> Quantity:
        """Kernels of the optimizer, of any kind."""
        spent = total(self.kinds_in("optimizer"), "time", "s")
        return spent or Quantity(0.0, "s", cells=(self.cell,))

    @cached_property
    def optimizer_kernels(self) -> Maybe:
        """Their launches."""
        return total(self.kinds_in("optimizer"), "calls", "count")

    @cached_property
    def others(self) -> Maybe:
        """All else that the GPU works."""
        known = plus(self.products, self.attention, self.casts, self.optimizer)
        return _at_least_zero(minus(self.busy or self.kernels_time, known))

    # of all kernels' time, as the next two
    products_share = made_of(share, "products", "kernels_time")

    optimizer_share = made_of(share, "optimizer", "kernels_time")  # the optimizer's

    @cached_property
    def rest_share(self) -> Maybe:
        """What is neither."""
        rest = minus(self.kernels_time, plus(self.products, self.optimizer))
        return share(rest, self.kernels_time)

    @property
    def not_products(self) -> Maybe:
        """All kernels but matrix products and fused attention, outside the optimizer."""
        return minus(self.kernels_time, plus(self.products, self.attention, self.optimizer))

    @cached_property
    def busy(self) -> Maybe:
        """The union of the kernels' intervals."""
        of_profile = number(self._gaps, "busy", "s")
        return of_profile or self.data.measured("busy_time", cell=self.cell)

    @cached_property
    def wall(self) -> Maybe:
        """The step under the profiler."""
        return number(self._gaps, "wall", "s")

    @property
    def _gaps(self) -> Row:
        return self.data.row("gaps", cell=self.cell, phase="step")

    @cached_property
    def idle(self) -> Maybe:
        """What the clock exceeds the busy time by."""
        return _at_least_zero(minus(self.clock, self.busy))

    busy_share = made_of(share, "busy", "clock")  # busy, of the clock

    @cached_property
    def clock(self) -> Maybe:
        """The step without a profiler: of the timing study, else of the last ladder that ran it."""
        clocks = {"quantity": "time"} | self.place.where | STEP
        same = {"precision": self.place.precision, "options": self.options}
        rows = self.data.series(study="timing", **same, **clocks)
        if not rows:
            rows = self.data.series(study="ladder", variant=self.variants, **clocks)
        return of_series(rows[0]) if rows else None

    @property
    def variants(self) -> list[str]:
        """The ladders' variants at the place that are run as this step is."""
        given = dict(word.split("=", 1) for word in self.options.split())
        wanted = PLAIN_STEP | {"precision": self.place.precision} | given
        wanted["checkpoint"] = int(wanted["checkpoint"])
        rows = self.data.dicts("variants", study="ladder", **self.place.where)
        return [row["variant"] for row in rows if options(row) == wanted]


def _at_least_zero(time: Maybe) -> Maybe:
    return time and Quantity(max(time.value, 0.0), time.unit, cells=time.cells)


@once
def profiled(data: Data) -> list[Profiled]:
    """All profiled whole steps without more detail than kernels, that of the most parameters and
    context first."""
    found = []
    cells = data.dicts("cells", study="profile", status="ok", mode=["step", ""])
    for where, row in placed(data, cells):
        has_more = any(word in row["options"] for word in ("detail=", "start="))
        made = Profiled(data=data, place=where, cell=row["cell"], options=row["options"])
        if made.kernels_time and not has_more:
            found.append(made)
    return sorted(found, key=lambda each: each.place.weight, reverse=True)


def plain_at(found: list[Profiled], where: Place | None, precision: str) -> Profiled | None:
    """The step with nothing changed at a place."""
    plain = [each for each in _at(found, where) if not each.options]
    return first_of(each for each in plain if each.place.precision == precision)


def plain_step(found: list[Profiled], where: Place | None) -> Profiled | None:
    """The step with nothing changed at a place, else in another format there, else at the largest
    one, in bf16 before others."""
    plain = [each for each in found if not each.options]
    at_place = plain_at(plain, where, where.precision) if where else None
    at_place = at_place or first_of(_at(plain, where))
    return at_place or max(plain, key=lambda each: each.place.precision == "bf16", default=None)


def start_at(found: list[Profiled], where: Place, ladder: Ladder | None) -> Profiled | None:
    """The step that all changes begin with at a place, a ladder's baseline if there is one."""
    if ladder is None or not ladder.is_tuned:
        return plain_at(found, where, where.precision)
    same = [each for each in _at(found, where) if ladder.plain.variant in each.variants]
    return first_of(same)


def top_at(found: list[Profiled], start: Profiled | None) -> Profiled | None:
    """The fastest profiled step with more changes at the place of this one."""
    others = _at(found, start.place) if start else []
    return least([each for each in others if each.options and each is not start], "clock")


def _at(found: list[Profiled], where: Place | None) -> list[Profiled]:
    return [each for each in found if where and each.place.key == where.key]


@once
def subject(data: Data) -> Place | None:
    """The place of all chapters that have a choice: that of the largest ladder from the plain step,
    else of page one's, else the largest timed."""
    found = sorted(ladders(data), key=lambda each: each.is_tuned)
    return found[0].place if found else largest(each.place for each in timed(data))
