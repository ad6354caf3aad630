"""Profiled steps: what kernels' time is made of, what the GPU waits, and what the step takes
without a profiler."""

from functools import cached_property

from stepscope.axes import PLAIN_STEP
from stepscope.report.facts import variants
from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import Machine, Place, place
from stepscope.report.kit.data import Data, number, once
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, minus, over, plus, share

PRODUCTS, ATTENTION, CASTS = "matmul", "fused attention", "copy/cast"
STEP = {"mode": "step", "phase": "step"}


@frozen
class Part:
    """A kind of kernel in a step: its time and launches."""

    name: Name
    time: Maybe
    calls: Maybe
    share: Maybe


@frozen
class Profiled:
    """A profiled step, of the cell `cell`. options: those that are not neutral, as text."""

    data: Data
    place: Place
    cell: str
    options: str

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The kinds of kernels, that of the most time first."""
        return tuple(map(self._part, sorted(self._kinds, key=lambda row: -row["time"])))

    def _part(self, row: dict) -> Part:
        time = number(row, "time", "s")
        return Part(
            name=Name(row["category"]),
            time=time,
            calls=number(row, "calls", "count"),
            share=share(time, self.kernels_time),
        )

    @cached_property
    def kernels_time(self) -> Maybe:
        """Of all of them together."""
        return plus(*(number(row, "time", "s") for row in self._kinds))

    @cached_property
    def products(self) -> Maybe:
        """Kernels of matrix products, outside the optimizer, as the next two."""
        return self._outside_optimizer(PRODUCTS)

    @cached_property
    def attention(self) -> Maybe:
        """Kernels of fused attention."""
        return self._outside_optimizer(ATTENTION)

    @cached_property
    def casts(self) -> Maybe:
        """Copies, and casts between formats."""
        return self._outside_optimizer(CASTS)

    @cached_property
    def optimizer(self) -> Quantity:
        """Kernels of the optimizer, of any kind."""
        spent = plus(*(number(row, "time", "s") for row in self._of_optimizer))
        return spent or Quantity(0.0, "s", cells=(self.cell,))

    @cached_property
    def optimizer_kernels(self) -> Maybe:
        """Their launches."""
        return plus(*(number(row, "calls", "count") for row in self._of_optimizer))

    @cached_property
    def others(self) -> Maybe:
        """All else that the GPU works."""
        known = plus(self.products, self.attention, self.casts, self.optimizer)
        return _at_least_zero(minus(self.busy or self.kernels_time, known))

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

    @cached_property
    def clock(self) -> Maybe:
        """The step without a profiler."""
        return self._without_profiler("time")

    @cached_property
    def gpu(self) -> Maybe:
        """That without the host: host-free, else busy."""
        return self._without_profiler("alone_time")

    @cached_property
    def is_host_free(self) -> bool:
        """Which of both it is."""
        return self._without_profiler("host_free_time") is not None

    @cached_property
    def idle(self) -> Maybe:
        """What the clock exceeds the busy time by."""
        return _at_least_zero(minus(self.clock, self.busy))

    @cached_property
    def busy_share(self) -> Maybe:
        """Busy, of the clock."""
        return share(self.busy, self.clock)

    @cached_property
    def launches(self) -> Maybe:
        """Kernels of the step."""
        row = self.data.row("phases", cell=self.cell, phase="step")
        return number(row, "kernels", "count")

    @cached_property
    def kernel_mean(self) -> Maybe:
        """Busy time for each of them."""
        return over(self.busy, self.launches, "s")

    @cached_property
    def between(self) -> Maybe:
        """The clock's time for each of them."""
        return over(self.clock, self.launches, "s")

    @cached_property
    def _kinds(self) -> list[dict]:
        return self.data.dicts("categories", cell=self.cell, phase="step")

    @cached_property
    def _of_optimizer(self) -> list[dict]:
        return self.data.dicts("categories", cell=self.cell, phase="optimizer")

    @property
    def _gaps(self) -> dict:
        return self.data.row("gaps", cell=self.cell, phase="step")

    def _outside_optimizer(self, kind: str) -> Quantity:
        whole = sum(row["time"] for row in self._kinds if row["category"] == kind)
        spent = sum(row["time"] for row in self._of_optimizer if row["category"] == kind)
        return Quantity(max(whole - spent, 0.0), "s", cells=(self.cell,))

    def _without_profiler(self, quantity: str) -> Maybe:
        if not self._same_step:
            return None
        cell, variant = self._same_step
        return self.data.measured(quantity, cell=cell, variant=variant, **STEP)

    @cached_property
    def _same_step(self) -> tuple[str, str] | None:
        """(cell, variant) that ran the same step: of timing, else the last of a ladder."""
        same = self.place.where | STEP
        precision = self.place.precision
        rows = self.data.series(
            study="timing", precision=precision, options=self.options, **same
        ) or [
            row for row in self.data.series(study="ladder", **same) if row["variant"] in self._equal
        ]
        clocks = [row for row in rows if row["quantity"] == "time"]
        return (clocks[0]["cell"], clocks[0]["variant"]) if clocks else None

    @cached_property
    def _equal(self) -> list[str]:
        """The ladder's variants at the place that are run as this step is."""
        given = dict(word.split("=", 1) for word in self.options.split())
        wanted = {name: str(value) for name, value in PLAIN_STEP.items()}
        wanted |= given | {"precision": self.place.precision}
        rows = self.data.dicts("variants", study="ladder", **self.place.where)
        return [row["variant"] for row in rows if variants.options(row) == wanted]


def _at_least_zero(time: Maybe) -> Maybe:
    return time and Quantity(max(time.value, 0.0), time.unit, cells=time.cells)


@once
def profiled(data: Data, own: Machine) -> list[Profiled]:
    """All profiled whole steps without more detail than kernels, that of the most parameters and
    context first."""
    found = []
    for row in data.dicts("cells", study="profile", status="ok", mode=["step", ""]):
        has_more = any(word in row["options"] for word in ("detail=", "start="))
        where = place(data, own, row, row["precision"])
        made = where and Profiled(data=data, place=where, cell=row["cell"], options=row["options"])
        if made and made.kernels_time and not has_more:
            found.append(made)
    return sorted(found, key=lambda each: size_of(each.place), reverse=True)


def plain_at(found: list[Profiled], where: Place | None, precision: str) -> Profiled | None:
    """The step with nothing changed at a place."""
    for each in found:
        is_there = where is not None and each.place.key == where.key
        if is_there and each.place.precision == precision and not each.options:
            return each
    return None


def plain_step(found: list[Profiled], where: Place | None) -> Profiled | None:
    """The step with nothing changed at a place, else at the largest one, in bf16 before others."""
    plain = [each for each in found if not each.options]
    at_place = plain_at(plain, where, where.precision) if where else None
    return at_place or max(plain, key=lambda each: each.place.precision == "bf16", default=None)


def top_at(found: list[Profiled], where: Place | None) -> Profiled | None:
    """The fastest profiled step with changes at a place."""

    def clock(each: Profiled) -> float:
        return each.clock.value if each.clock else float("inf")

    changed = [each for each in found if where and each.place.key == where.key and each.options]
    return min((each for each in changed if each.clock), key=clock, default=None)


def size_of(where: Place) -> tuple[float, int, int]:
    """Its parameters, context and batch, by which places are sorted."""
    return where.parameters.value if where.parameters else 0.0, where.context, where.batch


@once
def subject(data: Data, own: Machine) -> Place | None:
    """The place of page one and of all chapters that have a choice: the largest ladder's, else the
    largest timed."""
    found = ladders(data, own)
    if found:
        return found[0].place
    rows = data.series(study="timing", quantity="time", options="", **STEP)
    places = filter(None, (place(data, own, row, row["precision"]) for row in rows))
    return max(places, key=lambda each: (each.precision == "bf16", *size_of(each)), default=None)
