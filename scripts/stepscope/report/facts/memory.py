"""What fills the memory: what is there before a step, what it adds, where the peak is, what to do
about it."""

from functools import cached_property

from stepscope.report.kit.data import Data, Row, number, shown, total
from stepscope.report.kit.named import Name, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    count,
    gap,
    minus,
    plus,
    scaled,
    share,
    value_of,
)

from . import profile
from .ladders import Ladder, ladder_at
from .machine import Chapter, Place, largest, placed

NUMBER = 4  # bytes of a weight, gradient or moment
HOLDS_WITHIN = 0.01  # a prediction that is off by less holds


@frozen
class Alive:
    """A category at the peak, of bytes that tensors asked for: by the closed form, and recorded."""

    category: Name
    predicted: Maybe
    measured: Maybe

    gap = made_of(gap, "measured", "predicted")  # how far what was recorded is off

    @property
    def holds(self) -> bool:
        """Whether that is next to nothing."""
        return self.gap is not None and abs(self.gap.value) < HOLDS_WITHIN


@frozen
class Memory(Chapter):
    """Of the recorded step at a place, in the place's precision.

    asked, reserved: by tensors at the step's peak, and what the allocator took from the device;
    inference: asked by a forward pass without backward; fp32: by the same step in fp32. phase: that
    in which most is alive. categories: Alive, each of which there is anything, recorded or
    predicted, the most first; all: all of it. gradients: bytes of all of them. largest: the largest
    activation. growth: the size at every context, the shortest first, as _growth has it; none of a
    single one.
    """

    place: Place
    cell: str
    asked: Maybe
    reserved: Maybe
    inference: Maybe
    fp32: Maybe
    phase: str
    categories: list[Alive]
    all: Alive | None
    gradients: Maybe
    largest: Row
    growth: list[Row]

    fp32_change = made_of(gap, "asked", "fp32")  # how far the peak is off that
    inference_share = made_of(share, "inference", "asked")  # of the step's peak
    # what is there before the step
    standing = made_of(plus, "of_category.parameters", "of_category.optimizer state")

    @cached_property
    def unused(self) -> Maybe:
        """What of the reserved no tensor asked for."""
        return minus(self.reserved, self.asked) if self.machine.is_gpu else None

    @cached_property
    def alive(self) -> list[Alive]:
        """By category, the most first, and in all."""
        return [*self.categories, self.all] if self.all else []

    @cached_property
    def of_category(self) -> dict[str, Maybe]:
        """Category → what of it is alive."""
        return {str(each.category): each.measured for each in self.categories}

    @cached_property
    def activations_share(self) -> Maybe:
        """What backward needs, of the peak."""
        return share(self.of_category.get("activations"), self.asked)

    @property
    def is_computable(self) -> bool:
        """Whether the closed form gives the peak, and each category of it but for the workspace."""
        known = [each for each in self.alive if each.category != "workspace"]
        return bool(known) and all(each.holds for each in known)

    @property
    def ladder(self) -> Ladder | None:
        """That at the place."""
        return ladder_at(self.data, self.place)

    @cached_property
    def savings(self) -> list[Row]:
        """The ladder's plain rung and every change after it, and what less each reserves; none of
        the plain rung alone."""
        ladder = self.ladder
        if ladder is None or ladder.plain.peak is None:
            return []
        rungs = (ladder.plain, *ladder.after_plain, *ladder.asides)
        saved = [(rung, minus(ladder.plain.peak, rung.peak)) for rung in rungs]
        every = [{"rung": rung, "saves": saves} for rung, saves in saved if saves]
        return every if len(every) > 1 else []

    @property
    def is_largest_squared(self) -> bool:
        """Whether the largest activation grows with the square of the context."""
        return _is_squared(self.largest.get("formula") or "")


def facts(data: Data) -> Memory | None:
    """Of page one's place if its memory was recorded, else of the largest recorded step, in bf16 if
    there is one."""
    cells = {where: row["cell"] for where, row in placed(data, _peaks(data))}
    subject = profile.subject(data)
    at_subject = [where for where in cells if subject and where.key == subject.key]
    where = largest(at_subject or cells)
    if where is None:
        return None
    cell = cells[where]
    asked = _peak(where, "peak_asked")
    categories = _categories(data, cell)
    predicted = _peak(where, "peak_predicted")
    activations = data.dicts("memory_largest", cell=cell, category="activations")
    most = max(activations, key=lambda row: row["bytes"], default=None)
    contexts = sorted({row["context"] for row in _peaks(data, size=where.size)})
    is_fp32 = where.precision == "fp32"
    return Memory(
        data=data,
        place=where,
        cell=cell,
        asked=asked,
        reserved=_peak(where, "peak_reserved"),
        inference=_peak(where, "peak_asked", mode="inference"),
        fp32=None if is_fp32 else _peak(where, "peak_asked", precision="fp32"),
        phase=_phase(data, cell),
        categories=categories,
        all=_whole("all", predicted, asked) if categories else None,
        gradients=scaled(where.parameters, NUMBER, "B"),
        largest=shown(most) if most else {},
        growth=[_growth(where, each) for each in contexts] if len(contexts) > 1 else [],
    )


def _peak(where: Place, quantity: str, **other: object) -> Maybe:
    """At the place, but for what is named."""
    same = {"study": "memory", "options": "", "mode": "step", "precision": where.precision}
    return where.data.measured(quantity, **(same | where.where | other))


def _whole(name: str, predicted: Maybe, measured: Maybe) -> Alive:
    return Alive(category=Name(name), predicted=predicted, measured=measured)


def _categories(data: Data, cell: str) -> list[Alive]:
    found = []
    for row in data.dicts("memory_peak", cell=cell):
        measured, predicted = (number(row, name, "B") for name in ("bytes", "predicted"))
        if value_of(measured) or value_of(predicted):
            found.append(_whole(row["category"], predicted, measured))
    return sorted(found, key=lambda each: -value_of(each.measured))


def _phase(data: Data, cell: str) -> str:
    """In the recorded step; without a recording of it what the table says."""
    rows = data.dicts("memory_timeline", cell=cell)
    if rows:
        return max(rows, key=_all_alive)["phase"]
    return data.row("series", quantity="peak_asked", cell=cell)["phase"]


def _growth(where: Place, context: float) -> Row:
    """step, inference: bytes that tensors ask for at the peak; predicted: of the step, in closed
    form. kept: bytes that a block keeps for backward; squared: the share of them that grows with
    the square of the context."""
    step = _peak(where, "peak_asked", context=context)
    of_block = {"part": "block", "category": "activations"}
    cell = step.cells[0] if step else ""
    saved = where.data.dicts("memory_saved", cell=cell, **of_block)
    kept = total(saved, "bytes", "B")
    squared = total([row for row in saved if _is_squared(row["formula"])], "bytes", "B")
    return {
        "context": count(context),
        "kept": kept,
        "squared": share(squared, kept),
        "predicted": _peak(where, "peak_predicted", context=context),
        "step": step,
        "inference": _peak(where, "peak_asked", context=context, mode="inference"),
    }


def _peaks(data: Data, **where: object) -> list[Row]:
    """The plain steps whose memory was recorded."""
    same = {"study": "memory", "quantity": "peak_asked", "mode": "step", "options": ""}
    return data.series(**same, **where)


def _all_alive(row: Row) -> float:
    kinds = ("parameters", "gradients", "optimizer_state", "activations", "cast_weights", "other")
    return sum(row[kind] for kind in kinds)


def _is_squared(formula: str) -> bool:
    """Whether a tensor's size grows with the square of the context: `batch × heads × context ×
    context × 4 B`."""
    return formula.split(" × ").count("context") > 1
