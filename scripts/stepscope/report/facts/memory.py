"""What fills the memory: what is there before a step, what it adds, where the peak is, what to do
about it."""

from dataclasses import dataclass

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.rungs import Rung, alone_gain
from stepscope.report.facts.shape import longest_context
from stepscope.report.kit.data import Data, number, total
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    exact,
    gap,
    is_below,
    minus,
    over,
    plus,
    scaled,
    share,
)

CLOSE = 0.01  # a prediction that is off by less holds
EARLY = 0.25  # of all gradients: while fewer are there, backward is near its beginning
STANDING = ("parameters", "optimizer state")


@dataclass(frozen=True, kw_only=True)
class Alive:
    """A category at the peak, of bytes that tensors asked for: by the closed form, and recorded."""

    category: Name
    predicted: Maybe
    measured: Maybe
    gap: Maybe


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A context: peaks that tensors asked for, and what a block keeps for backward."""

    context: Quantity
    kept: Maybe
    squared: Maybe
    predicted: Maybe
    step: Maybe
    inference: Maybe


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A rung or aside: reserved bytes at the peak beside the closed form of what tensors ask for;
    its price in time."""

    rung: Rung
    saves: Maybe
    time: Maybe


@dataclass(frozen=True, kw_only=True)
class Memory:
    """place: the largest step whose memory was recorded. floor: 16 bytes a parameter; standing:
    before the step."""

    machine: Machine
    place: Place | None = None
    asked: Maybe = None
    allocated: Maybe = None
    reserved: Maybe = None
    unused: Maybe = None
    standing: Maybe = None
    parameters: Maybe = None
    state: Maybe = None
    gradients: Maybe = None
    floor: Maybe = None
    phase: str = ""
    is_early: bool = False
    has_gradients: bool = False
    alive: tuple[Alive, ...] = ()
    all: Alive | None = None
    holds: bool = False
    is_renamed: bool = False
    activations: Maybe = None
    activations_share: Maybe = None
    casts: Maybe = None
    largest: Maybe = None
    largest_formula: Name | None = None
    largest_alive: Maybe = None
    is_largest_squared: bool = False
    growth: tuple[Growth, ...] = ()
    first: Growth | None = None
    last: Growth | None = None
    fp32: Maybe = None
    fp32_change: Maybe = None
    inference: Maybe = None
    inference_share: Maybe = None
    longest: Maybe = None
    longest_fused: Maybe = None
    ladder_place: Place | None = None
    has_graphs: bool = False
    remedies: tuple[Remedy, ...] = ()
    fused: Remedy | None = None
    is_fused_less: bool = False
    least: Remedy | None = None
    checkpoint: Rung | None = None
    checkpoint_plain: Rung | None = None
    checkpoint_place: Place | None = None
    checkpoint_longer: Maybe = None
    is_longer_alone: bool = False


def facts(data: Data) -> Memory | None:
    """Of page one's place if its memory was recorded, else of the largest recorded step, in bf16 if
    there is one."""
    own = machine(data)
    rows = data.series(study="memory", quantity="peak_asked", mode="step", options="")
    places = {row["cell"]: place(data, own, row, row["precision"]) for row in rows}
    order = {cell: _order(where) for cell, where in places.items()}
    if not places:
        return None
    of_page_one = profile.subject(data, own)
    at_place = [
        each for each, where in places.items() if of_page_one and where.key == of_page_one.key
    ]
    cell = max(at_place or order, key=lambda each: order[each])
    where = places[cell]
    of = lambda quantity: data.measured(quantity, study="memory", cell=cell)  # noqa: E731
    asked, phase = of("peak_asked"), next(row["phase"] for row in rows if row["cell"] == cell)
    alive, whole = _alive(data, cell, asked, of("peak_predicted"))
    by_name = {str(each.category): each.measured for each in alive}
    state, standing = (
        by_name.get("optimizer state"),
        plus(*(by_name.get(name) for name in STANDING)),
    )
    largest = max(
        data.dicts("memory_largest", cell=cell, category="activations"), key=_bytes, default={}
    )
    contexts = sorted({each.context for each in places.values() if each.size == where.size})
    growth = (
        tuple(_growth(data, where, context) for context in contexts) if len(contexts) > 1 else ()
    )
    fp32 = _peak(data, where, "fp32") if where.precision != "fp32" else None
    inference = _peak(data, where, where.precision, "inference")
    found = next((each for each in ladders(data, own) if each.place.key == where.key), None)
    return Memory(
        machine=own,
        place=where,
        asked=asked,
        allocated=of("peak_allocated"),
        reserved=of("peak_reserved"),
        unused=minus(of("peak_reserved"), asked) if own.is_gpu else None,
        standing=standing,
        parameters=by_name.get("parameters"),
        state=state,
        gradients=scaled(where.parameters, 4, "B"),
        floor=scaled(where.parameters, 16, "B"),
        phase=_phase(data, cell, phase),
        has_gradients=bool(by_name.get("gradients") and by_name["gradients"].value),
        is_early=is_below(
            by_name.get("gradients") or Quantity(0.0, "B"), scaled(where.parameters, 4, "B"), EARLY
        ),
        alive=(*alive, whole) if whole else (),
        all=whole,
        holds=whole is not None and whole.gap is not None and abs(whole.gap.value) < CLOSE,
        is_renamed=any(each.gap is None or abs(each.gap.value) > CLOSE for each in alive),
        activations=by_name.get("activations"),
        activations_share=share(by_name.get("activations"), asked),
        casts=by_name.get("cast weights") if where.is_mixed else None,
        largest=number(largest, "bytes", "B"),
        largest_formula=Name(largest["formula"]) if largest.get("formula") else None,
        largest_alive=number(largest, "alive", "count"),
        is_largest_squared=_is_squared(largest.get("formula", "")),
        growth=growth,
        first=growth[0] if growth else None,
        last=growth[-1] if growth else None,
        fp32=fp32,
        fp32_change=gap(asked, fp32),
        inference=inference,
        inference_share=share(inference, asked),
        longest=longest_context(data, where, own.memory, "naive") if own.is_gpu else None,
        longest_fused=longest_context(data, where, own.memory, "sdpa") if own.is_gpu else None,
        **(_of_ladder(found) if found and found.plain.peak else {}),
        **next(filter(None, map(_checkpoint, ladders(data, own))), {}),
    )


def _order(where: Place) -> tuple:
    return (
        where.precision == "bf16",
        where.parameters.value if where.parameters else 0,
        where.context,
    )


def _phase(data: Data, cell: str, said: str) -> str:
    """The phase in which most is alive in the recorded step; without a recording of it what the
    table says."""
    rows = data.rows("memory_timeline", cell=cell)
    if rows.empty:
        return said
    alive = rows[
        ["parameters", "gradients", "optimizer_state", "activations", "cast_weights", "other"]
    ].sum(axis=1)
    return str(rows["phase"][alive.idxmax()])


def _bytes(row: dict) -> float:
    return row["bytes"]


def _alive(
    data: Data, cell: str, asked: Maybe, predicted: Maybe
) -> tuple[list[Alive], Alive | None]:
    """By category, the most first, and in all."""
    found = []
    for row in data.dicts("memory_peak", cell=cell):
        measured, foreseen = number(row, "bytes", "B"), number(row, "predicted", "B")
        if measured.value or (foreseen and foreseen.value):
            off = gap(measured, foreseen)
            found.append(
                Alive(
                    category=Name(row["category"]), predicted=foreseen, measured=measured, gap=off
                )
            )
    found.sort(key=lambda each: -each.measured.value)
    if not found:
        return [], None
    return found, Alive(
        category=Name("all"), predicted=predicted, measured=asked, gap=gap(asked, predicted)
    )


def _peak(
    data: Data, where: Place, precision: str, mode: str = "step", context: int | None = None
) -> Maybe:
    spot = {**where.where, "context": context or where.context}
    return data.measured(
        "peak_asked", study="memory", options="", precision=precision, mode=mode, **spot
    )


def _growth(data: Data, where: Place, context: int) -> Growth:
    spot = {**where.where, "context": context}
    predicted = data.measured(
        "peak_predicted", study="memory", options="", precision=where.precision, mode="step", **spot
    )
    step = _peak(data, where, where.precision, context=context)
    saved = (
        data.dicts("memory_saved", cell=step.cells[0], part="block", category="activations")
        if step
        else []
    )
    kept = total(saved, "bytes", "B")
    return Growth(
        context=count(context),
        kept=kept,
        squared=share(
            total([row for row in saved if _is_squared(row["formula"])], "bytes", "B"), kept
        ),
        predicted=predicted,
        step=step,
        inference=_peak(data, where, where.precision, "inference", context),
    )


def _is_squared(formula: str) -> bool:
    """Whether a tensor's size grows with the square of the context: `batch × heads × context ×
    context × 4 B`."""
    return formula.split(" × ").count("context") > 1


def _of_ladder(ladder: Ladder) -> dict:
    """Every change after the plain rung, by reserved bytes."""
    plain = ladder.plain
    after = [rung for rung in (plain, *ladder.after_plain, *ladder.asides) if rung.peak]
    remedies = [
        Remedy(rung=rung, saves=minus(plain.peak, rung.peak), time=rung.step) for rung in after
    ]
    by_kind = {each.rung.kind: each for each in remedies}
    return {
        "ladder_place": ladder.place,
        "has_graphs": ladder.rung("graphs") is not None,
        "remedies": tuple(remedies) if len(remedies) > 1 else (),
        "fused": (fused := by_kind.get("sdpa") or by_kind.get("triton")),
        "is_fused_less": bool(fused) and is_below(fused.rung.peak, plain.peak, 1 - CLOSE),
        "least": min(remedies, key=lambda each: each.rung.peak.value),
    }


def _checkpoint(ladder: Ladder) -> dict:
    """The checkpoints on the plain step that need least, by allocated bytes: rungs in turns share
    what is reserved."""
    plain = ladder.plain
    tried = [
        rung
        for rung in ladder.asides
        if rung.kind.startswith("checkpoint") and rung.after == plain.variant
    ]
    best = min(
        (rung for rung in tried if rung.allocated),
        key=lambda each: each.allocated.value,
        default=None,
    )
    if best is None or not is_below(best.allocated, plain.allocated):
        return {}
    alone = alone_gain(best, plain)
    is_judged = best.verdict in ("faster", "slower", "same")
    return {
        "checkpoint": best,
        "checkpoint_plain": plain,
        "checkpoint_place": ladder.place,
        "checkpoint_longer": exact(alone or (over(best.step, plain.step) if is_judged else None)),
        "is_longer_alone": alone is not None,
    }
