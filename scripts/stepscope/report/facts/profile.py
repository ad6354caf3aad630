"""Profiled steps: what kernels' time is made of, what the GPU waits, and what the step takes
without a profiler."""

from dataclasses import dataclass

from stepscope.report.facts import variants
from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import Machine, Place, place
from stepscope.report.kit.data import Data, number, once
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, minus, over, plus, share

PRODUCTS = ("matmul",)
ATTENTION = ("fused attention",)
CASTS = ("copy/cast",)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A kind of kernel in a step: its time and launches."""

    name: Name
    time: Maybe
    calls: Maybe
    share: Maybe


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """A profiled step. clock: by the clock without a profiler; gpu: host-free, else busy time;
    busy: by the profiler.

    products, attention, casts: kernels' time outside the optimizer; others: all else outside it.
    idle: clock less busy. kernel_mean: of one kernel; between: the clock's time for each launch.
    """

    place: Place
    cell: str
    options: str
    parts: tuple[Part, ...]
    clock: Maybe
    gpu: Maybe
    is_host_free: bool
    busy: Maybe
    launches: Maybe
    products: Maybe
    attention: Maybe
    casts: Maybe
    optimizer: Maybe
    optimizer_kernels: Maybe
    others: Maybe
    kernels_time: Maybe
    idle: Maybe
    busy_share: Maybe
    kernel_mean: Maybe
    between: Maybe
    wall: Maybe

    @property
    def not_products(self) -> Maybe:
        """All kernels but matrix products and fused attention, outside the optimizer."""
        return minus(minus(minus(self.kernels_time, self.products), self.attention), self.optimizer)


@once
def profiled(data: Data, own: Machine) -> list[Profiled]:
    """All profiled whole steps without more detail than kernels, that of the most parameters and
    context first."""
    rows = [
        row
        for row in data.dicts("cells", study="profile", status="ok")
        if row["mode"] in ("step", "")
    ]
    kept = [
        row for row in rows if not any(word in row["options"] for word in ("detail=", "start="))
    ]
    found = [made for row in kept if (made := _profiled(data, own, row))]
    return sorted(found, key=lambda each: size_of(each.place), reverse=True)


def plain_at(found: list[Profiled], where: Place | None, precision: str) -> Profiled | None:
    """The step with nothing changed at a place."""
    return next(
        (each for each in found if where and _is(each, where.key, precision) and not each.options),
        None,
    )


def plain_step(found: list[Profiled], where: Place | None) -> Profiled | None:
    """The step with nothing changed at a place, else at the largest one, in bf16 before others."""
    plain = [each for each in found if not each.options]
    at_place = plain_at(plain, where, where.precision) if where else None
    return at_place or max(plain, key=lambda each: each.place.precision == "bf16", default=None)


def _is(each: Profiled, key: tuple, precision: str) -> bool:
    return each.place.key == key and each.place.precision == precision


def top_at(found: list[Profiled], where: Place | None) -> Profiled | None:
    """The fastest profiled step with changes at a place."""
    changed = [
        each
        for each in found
        if where and each.place.key == where.key and each.options and each.clock
    ]
    return min(changed, key=lambda each: each.clock.value, default=None)


def size_of(where: Place) -> tuple:
    return (where.parameters.value if where.parameters else 0, where.context, where.batch)


def _profiled(data: Data, own: Machine, cell: dict) -> Profiled | None:
    rows = data.dicts("categories", cell=cell["cell"])
    step = [row for row in rows if row["phase"] == "step"]
    where = place(data, own, cell, cell["precision"])
    if not step or where is None:
        return None
    optimizer = [row for row in rows if row["phase"] == "optimizer"]
    apart = {row["category"]: row["time"] for row in optimizer}

    def of(kinds: tuple[str, ...]) -> Quantity:
        value = sum(
            row["time"] - apart.get(row["category"], 0.0)
            for row in step
            if row["category"] in kinds
        )
        return Quantity(max(value, 0.0), "s", cells=(cell["cell"],))

    whole = plus(*(number(row, "time", "s") for row in step))
    spent = plus(*(number(row, "time", "s") for row in optimizer)) or Quantity(
        0.0, "s", cells=(cell["cell"],)
    )
    known = [of(kinds) for kinds in (PRODUCTS, ATTENTION, CASTS)]
    clock, gpu, is_host_free = _without_profiler(data, own, cell, where)
    gaps = data.row("gaps", cell=cell["cell"], phase="step")
    busy = number(gaps, "busy", "s") or data.measured("busy_time", cell=cell["cell"])
    launches = number(data.row("phases", cell=cell["cell"], phase="step"), "kernels", "count")
    parts = tuple(
        Part(
            name=Name(row["category"]),
            time=number(row, "time", "s"),
            calls=number(row, "calls", "count"),
            share=share(number(row, "time", "s"), whole),
        )
        for row in sorted(step, key=lambda row: -row["time"])
    )
    return Profiled(
        place=where,
        cell=cell["cell"],
        options=cell["options"],
        parts=parts,
        clock=clock,
        gpu=gpu,
        is_host_free=is_host_free,
        busy=busy,
        launches=launches,
        products=known[0],
        attention=known[1],
        casts=known[2],
        optimizer=spent,
        optimizer_kernels=plus(*(number(row, "calls", "count") for row in optimizer)),
        others=_at_least_zero(minus(busy or whole, plus(*known, spent))),
        kernels_time=whole,
        idle=_at_least_zero(minus(clock, busy)),
        busy_share=share(busy, clock),
        kernel_mean=over(busy, launches, "s"),
        between=over(clock, launches, "s"),
        wall=number(gaps, "wall", "s"),
    )


def _at_least_zero(time: Maybe) -> Maybe:
    return time and Quantity(max(time.value, 0.0), time.unit, cells=time.cells)


def _without_profiler(
    data: Data, own: Machine, cell: dict, where: Place
) -> tuple[Maybe, Maybe, bool]:
    """(clock, host-free or busy time, whether the latter is host-free) of the same step, from
    timing, else a ladder."""
    same = {**where.where, "mode": "step", "phase": "step"}
    rows = data.series(study="timing", precision=where.precision, options=cell["options"], **same)
    if not rows:
        rows = [
            row
            for row in data.series(study="ladder", **same)
            if row["variant"] in _equal(data, cell, where)
        ]
    by_name = {row["quantity"]: row for row in reversed(rows)}
    made = {
        name: data.measured(
            name, cell=row["cell"], variant=row["variant"], mode="step", phase="step"
        )
        # fmt: skip
        for name, row in by_name.items()
        if name in ("time", "host_free_time", "busy_time")
    }
    return (
        made.get("time"),
        made.get("host_free_time") or made.get("busy_time"),
        "host_free_time" in made,
    )


def _equal(data: Data, cell: dict, where: Place) -> list[str]:
    """The ladder's variants at a place that are run as a cell is."""
    options = dict(word.split("=", 1) for word in cell["options"].split())
    wanted = {
        "precision": where.precision,
        "attention": "naive",
        "compile": "none",
        "optimizer": "own",
    } | options
    found = []
    for row in data.dicts("cells", study="ladder", **where.where):
        for each in variants.declared(row["command"]):
            full = {
                "attention": "naive",
                "compile": "none",
                "optimizer": "own",
                "checkpoint": 0,
            } | each
            if all(str(full.get(key)) == str(value) for key, value in wanted.items()):
                found.append(each["name"])
    return found


@once
def subject(data: Data, own: Machine) -> Place | None:
    """The place of page one and of all chapters that have a choice: the largest ladder's, else the
    largest timed."""
    found = ladders(data, own)
    if found:
        return found[0].place
    rows = data.series(study="timing", quantity="time", mode="step", phase="step", options="")
    places = [place(data, own, row, row["precision"]) for row in rows]
    return max(places, key=lambda each: (each.precision == "bf16", *size_of(each)), default=None)
