"""Kernels and launches: what the GPU's time goes to, what the optimizer moves, and where the host
is too slow."""

from dataclasses import dataclass

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.profile import Profiled, plain_at, profiled, size_of
from stepscope.report.facts.rungs import Rung
from stepscope.report.kit.data import Data, number, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, gap, is_below, minus, over, share

TOP = 6
CLOSE = 0.15


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of kernel: its time in a step in both precisions, and how often it is launched in the
    place's own."""

    name: Name
    fp32: Maybe
    time: Maybe
    calls: Maybe


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One of the kernels, or operators, that take most."""

    name: Name
    kind: Name
    calls: Maybe
    mean: Maybe
    share: Maybe


@dataclass(frozen=True, kw_only=True)
class Limited:
    """A plain step that launches limit: its clock, the GPU's own time, and its launches.

    each, idle: of each launch, the clock's time and what that exceeds the GPU's own by.
    """

    place: Place
    clock: Maybe
    host_free: Maybe
    busy: Maybe
    launches: Maybe
    each: Maybe
    idle: Maybe


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """CUDA graphs at a ladder's place, beside the rung before."""

    place: Place
    rung: Rung
    before: Rung
    had_idle_time: bool


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """own: the largest profiled plain step in 16 bits; fp32: the same place in fp32."""

    machine: Machine
    place: Place | None = None
    own: Profiled | None = None
    fp32: Profiled | None = None
    kinds: tuple[Kind, ...] = ()
    rate: Maybe = None
    of_ceiling: Maybe = None
    fp32_share: Maybe = None
    own_share: Maybe = None
    casts_added: Maybe = None
    is_traffic: bool = False
    optimizer_gap: Maybe = None
    optimizer_share: Maybe = None
    is_optimizer_cached: bool = False
    fused: Rung | None = None
    fused_before: Rung | None = None
    fused_at: Place | None = None
    fused_gap: Maybe = None
    compiled: Rung | None = None
    compiled_before: Rung | None = None
    compiled_at: Place | None = None
    sizes: tuple[Profiled, ...] = ()
    starved: Profiled | None = None
    fed: Profiled | None = None
    limited: tuple[Limited, ...] = ()
    worst: Limited | None = None
    graphs: tuple[Graphs, ...] = ()
    top: tuple[Kernel, ...] = ()
    has_adamw: bool = False
    overhead: Maybe = None


def facts(data: Data) -> Kernels | None:
    """Of the place of page one if it was profiled, else of the largest plain profiled step."""
    machine_ = machine(data)
    found = profiled(data, machine_)
    own = profile.plain_step(found, profile.subject(data, machine_))
    if own is None:
        return None
    plain = [each for each in found if not each.options]
    fp32 = plain_at(plain, own.place, "fp32") if own.place.precision != "fp32" else None
    climbed = ladders(data, machine_)
    rate = over(own.place.flop, own.products, "FLOP/s")
    optimizer_gap = gap(own.optimizer, own.place.optimizer_written)
    sizes = _sizes(plain, own) if machine_.is_gpu else ()
    limited = _limited(data, machine_) if machine_.is_gpu else ()
    return Kernels(
        machine=machine_,
        place=own.place,
        own=own,
        fp32=fp32,
        kinds=_kinds(own, fp32),
        rate=rate,
        of_ceiling=share(rate, machine_.rate(own.place.precision)),
        fp32_share=share(fp32.products, fp32.kernels_time) if fp32 else None,
        own_share=share(own.products, own.kernels_time),
        casts_added=minus(own.casts, fp32.casts) if fp32 else None,
        is_traffic=is_below(own.products, minus(own.kernels_time, own.products)),
        optimizer_gap=optimizer_gap,
        optimizer_share=share(own.optimizer, own.clock),
        is_optimizer_cached=is_below(own.optimizer, own.place.optimizer_written, 1 - CLOSE),
        **_of_ladders(climbed),
        sizes=sizes,
        starved=min(sizes, key=lambda each: each.busy_share.value, default=None),
        fed=max(sizes, key=lambda each: each.busy_share.value, default=None),
        limited=limited,
        worst=max(
            limited,
            key=lambda each: (each.clock.low or each.clock.value) / _least(each).value,
            default=None,
        ),
        graphs=tuple(each for ladder in reversed(climbed) if (each := _graphs(ladder))),
        top=(top := _top(data, own)),
        has_adamw=any(
            name in kernel.name for kernel in top for name in ("addcdiv", "addcmul", "lerp")
        ),
        overhead=over(own.wall, own.clock),
    )


def _kinds(own: Profiled, fp32: Profiled | None) -> tuple[Kind, ...]:
    """Kinds of kernels by their time."""
    other = {part.name: part.time for part in fp32.parts} if fp32 else {}
    return tuple(
        Kind(name=part.name, fp32=other.get(part.name), time=part.time, calls=part.calls)
        for part in own.parts
    )


def _sizes(plain: list[Profiled], own: Profiled) -> tuple[Profiled, ...]:
    """The plain profiled steps in one precision at the context of which there are most, the
    smallest size first."""
    same = [
        each for each in plain if each.place.precision == own.place.precision and each.busy_share
    ]
    contexts = [each.place.context for each in same]
    context = max(contexts, key=lambda each: (contexts.count(each), each), default=None)
    found = [each for each in reversed(same) if each.place.context == context]
    return tuple(found) if len(found) > 1 else ()


def _limited(data: Data, own: Machine) -> tuple[Limited, ...]:
    """The plain timed steps in bf16 that launches limit and whose GPU time is known, the smallest
    size first."""
    rows = data.series(
        study="timing",
        quantity="time",
        mode="step",
        phase="step",
        precision="bf16",
        limits="launches",
    )
    made = []
    for row in rows:
        same = {"cell": row["cell"], "mode": "step", "phase": "step"}
        host_free, busy = (data.measured(name, **same) for name in ("host_free_time", "busy_time"))
        launches, clock = data.measured("launches", **same), of_series(row)
        if not row["options"] and (host_free or busy):
            where = place(data, own, row, row["precision"])
            made.append(
                Limited(
                    place=where,
                    clock=clock,
                    host_free=host_free,
                    busy=busy,
                    launches=launches,
                    each=over(clock, launches, "s"),
                    idle=data.measured("launch_gap", **same),
                )
            )
    return tuple(sorted(made, key=lambda each: size_of(each.place)))


def _least(limited: Limited) -> Quantity:
    return limited.host_free or limited.busy


def _of_ladders(climbed: list[Ladder]) -> dict:
    """The rungs that fuse: of the largest ladder that has them."""
    made: dict = {}
    for kind, name in (("fused", "fused"), ("block", "compiled")):
        ladder = next((each for each in climbed if each.rung(kind)), None)
        rung = ladder.rung(kind) if ladder else None
        if rung and rung.before:
            made |= {name: rung, f"{name}_before": rung.before, f"{name}_at": ladder.place}
    if "fused" in made:
        made["fused_gap"] = gap(made["fused"].optimizer_alone, made["fused_at"].optimizer_fused)
    return made


def _graphs(ladder: Ladder) -> Graphs | None:
    rung = ladder.rung("graphs")
    before = rung.before if rung else None
    return before and Graphs(
        place=ladder.place, rung=rung, before=before, had_idle_time=before.limits == "launches"
    )


def _top(data: Data, own: Profiled) -> tuple[Kernel, ...]:
    rows = sorted(data.dicts("kernels", cell=own.cell, phase="step"), key=lambda row: -row["share"])
    return tuple(
        Kernel(
            name=Name(row["name"]),
            kind=Name(row["category"]),
            calls=number(row, "calls", "count"),
            mean=Quantity(row["time"] / row["calls"], "s", cells=(own.cell,)),
            share=number(row, "share", "share"),
        )
        for row in rows[:TOP]
    )
