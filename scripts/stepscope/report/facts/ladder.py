"""The ladder: each change predicted, measured and its gap; the same changes at other places; what
compiling costs."""

from dataclasses import dataclass

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, arithmetic, machine
from stepscope.report.facts.rungs import Rung, alone_gain
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, count, exact, is_below, minus

PARTS = {
    **{"products": "matrix products", "attention": "fused attention", "casts": "casts and copies"},
    **{"others": "other kernels", "optimizer": "optimizer", "idle": "GPU idle"},
}
HELD_BACK = 0.95  # of the highest clock


@dataclass(frozen=True, kw_only=True)
class Aside:
    """A variant of a rung, `before`, at a place; alone: times as fast without the host."""

    place: Name
    rung: Rung
    before: Rung
    alone: Maybe


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a rung delivers at a context and batch."""

    place: Name
    context: Maybe
    batch: int
    rung: Rung
    reserved: Maybe


@dataclass(frozen=True, kw_only=True)
class Left:
    """A part of the profiled step, plain and at the top rung, and the least that it can take
    there."""

    part: Name
    plain: Maybe
    top: Maybe
    bound: Maybe = None


@dataclass(frozen=True, kw_only=True)
class LadderFacts:
    """ladder: of the largest place; others: of the smallest, `other`. reach: at all places of its
    size; most: of these that of the most tokens a second at a larger batch, and `without`, the rung
    before it there. failed_elsewhere: rungs that did not run at those places. held_back: of the
    lowest clock, where the power limit held it.
    """

    machine: Machine
    ladder: Ladder | None = None
    others: tuple[Rung, ...] = ()
    other: Name | None = None
    asides: tuple[Aside, ...] = ()
    checkpoint: Rung | None = None
    has_turns: bool = False
    is_apart: bool = False
    failed: tuple[Rung, ...] = ()
    failed_elsewhere: tuple[Rung, ...] = ()
    reach: tuple[Reach, ...] = ()
    most: Reach | None = None
    without: Rung | None = None
    held_back: Reach | None = None
    has_energy: bool = False
    highest_clock: Maybe = None
    power_limit: Maybe = None
    left: tuple[Left, ...] = ()


def facts(data: Data) -> LadderFacts | None:
    """Of all ladders of the machine."""
    own = machine(data)
    found = ladders(data, own)
    if not found:
        return None
    ladder, rest = found[0], [each for each in found[1:] if not each.is_part]
    of_size = [each for each in found if each.place.size == ladder.place.size]
    elsewhere = [each for each in of_size if each.is_part]
    reached = [reach for each in elsewhere for reach in _reach(each)]
    most = max(reached, key=lambda each: each.rung.tokens.value, default=None)
    if most and (most.batch <= ladder.place.batch or is_below(most.rung.tokens, ladder.top.tokens)):
        most = None
    without = next(
        (most.rung.before for each in elsewhere if most and most.rung in each.rungs), None
    )
    reach = tuple(reach for each in of_size for reach in _reach(each)) if own.is_gpu else ()
    highest = max(
        map(of_series, data.series(quantity="sm_clock")), key=lambda one: one.value, default=None
    )
    limit = max(
        (row["power_limit_w"] or 0 for row in data.dicts("cells", cell=ladder.cell)), default=0
    )
    capped = [each for one in of_size if one.is_capped for each in _reach(one)]
    slow = [each for each in capped if is_below(each.rung.sm_clock, highest, HELD_BACK)]
    judged = data.dicts("comparisons", cell=ladder.cell, phase="step")
    return LadderFacts(
        machine=own,
        ladder=ladder,
        others=rest[-1].rungs if rest else (),
        other=rest[-1].place.name if rest else None,
        asides=(asides := tuple(aside for each in found for aside in _asides(each))),
        checkpoint=next(
            (each.rung for each in asides if each.rung.kind.startswith("checkpoint")), None
        ),
        has_turns=any(row["in_turns"] for row in judged),
        is_apart=bool(judged) and not any(row["in_turns"] for row in judged),
        failed=ladder.failed,
        failed_elsewhere=tuple(rung for each in elsewhere for rung in each.failed),
        reach=reach,
        most=most,
        without=without,
        held_back=min(slow, key=lambda each: each.rung.sm_clock.value, default=None),
        highest_clock=highest,
        has_energy=any(each.rung.energy for each in reach),
        power_limit=Quantity(limit, "W") if limit > 0 else None,
        left=_left(ladder, own, profile.profiled(data, own)),
    )


def _left(ladder: Ladder, own: Machine, profiled: list[profile.Profiled]) -> tuple[Left, ...]:
    where = ladder.place
    start, end = profile.plain_at(profiled, where, where.precision), profile.top_at(profiled, where)
    if start is None or end is None or end.place.precision != ladder.top.precision:
        return ()
    idle = (minus(ladder.plain.step, start.busy), minus(ladder.top.step, end.busy))
    linear = arithmetic(where, ladder.top.precision, own.rates, only_linear=True)
    bounds = {"products": linear, "optimizer": where.optimizer_fused}
    found = []
    for name, words in PARTS.items():
        before, after = idle if name == "idle" else (getattr(start, name), getattr(end, name))
        if any(each and each.value > 0 for each in (before, after)):
            found.append(Left(part=Name(words), plain=before, top=after, bound=bounds.get(name)))
    return tuple(found)


def _asides(ladder: Ladder) -> list[Aside]:
    pairs = [(rung, rung.before) for rung in ladder.asides if rung.step]
    name = ladder.place.name
    return [
        Aside(place=name, rung=rung, before=one, alone=alone_gain(one, rung))
        for rung, one in pairs
        if one
    ]


def _reach(ladder: Ladder) -> list[Reach]:
    ran = [rung for rung in ladder.rungs if rung.tokens]
    context, batch = ladder.place.context, ladder.place.batch
    place = {"place": Name(f"{context:,}, {batch}"), "context": count(context), "batch": batch}
    return [Reach(**place, rung=rung, reserved=exact(rung.peak)) for rung in ran]
