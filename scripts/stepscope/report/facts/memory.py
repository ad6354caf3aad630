"""What fills the memory: what is there before a step, what it adds, where the peak is, what to do
about it."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.machine import Chapter, Place, largest, placed
from stepscope.report.facts.memory_savings import Checkpoint, Savings, checkpoint, savings
from stepscope.report.facts.shape import longest_context
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

EARLY = 0.25  # of all gradients: while fewer are there, backward is near its beginning
NUMBER = 4  # bytes of a weight, gradient or moment
STANDING = ("parameters", "optimizer state")


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


def _peak(quantity: str, **other: object) -> cached_property[Maybe]:
    """The fact that is a peak of the recorded step, or of one that differs in what is named."""

    return cached_property(lambda facts: facts.measured(quantity, **other))


@frozen
class Memory(Chapter):
    """Of the recorded step at a place, in the place's precision."""

    place: Place
    cell: str

    # The step's peak.

    asked = _peak("peak_asked")  # by tensors
    reserved = _peak("peak_reserved")  # what the allocator took from the device

    @cached_property
    def unused(self) -> Maybe:
        """What of that no tensor asked for."""
        return minus(self.reserved, self.asked) if self.machine.is_gpu else None

    @cached_property
    def phase(self) -> str:
        """The phase in which most is alive in the recorded step; without a recording of it what the
        table says."""
        rows = self.data.dicts("memory_timeline", cell=self.cell)
        if rows:
            return max(rows, key=_all_alive)["phase"]
        return self.data.row("series", quantity="peak_asked", cell=self.cell)["phase"]

    @property
    def is_early(self) -> bool:
        """Whether few gradients are there at the peak."""
        there = value_of(self.of_category.get("gradients"))
        return there < EARLY * value_of(self.gradients)

    # What is alive there.

    @cached_property
    def alive(self) -> list[Alive]:
        """By category, the most first, and in all."""
        return [*self._categories, self.all] if self.all else []

    @cached_property
    def all(self) -> Alive | None:
        """All of it."""
        if not self._categories:
            return None
        predicted = self.measured("peak_predicted")
        return Alive(category=Name("all"), predicted=predicted, measured=self.asked)

    @cached_property
    def formed(self) -> Alive | None:
        """All but the workspace, of which the form takes libraries' buffers from the recording."""
        own = [each for each in self._categories if each.category != "workspace"]
        if not own or len(own) == len(self._categories):
            return None
        predicted = plus(*(each.predicted for each in own))
        measured = plus(*(each.measured for each in own))
        return Alive(category=Name("all but workspace"), predicted=predicted, measured=measured)

    @property
    def holds(self) -> bool:
        """Whether the closed form gives the peak, with and without what it takes from the
        recording."""
        known = [each for each in (self.all, self.formed) if each]
        return bool(known) and all(each.holds for each in known)

    @cached_property
    def of_category(self) -> dict[str, Maybe]:
        """Category → what of it is alive."""
        return {str(each.category): each.measured for each in self._categories}

    @cached_property
    def standing(self) -> Maybe:
        """What is there before the step."""
        return plus(*(self.of_category.get(name) for name in STANDING))

    @cached_property
    def gradients(self) -> Maybe:
        """Bytes of all gradients."""
        return scaled(self.place.parameters, NUMBER, "B")

    @cached_property
    def activations_share(self) -> Maybe:
        """What backward needs, of the peak."""
        return share(self.of_category.get("activations"), self.asked)

    @cached_property
    def largest(self) -> Row:
        """The largest activation."""
        rows = self.data.dicts("memory_largest", cell=self.cell, category="activations")
        return shown(max(rows, key=lambda row: row["bytes"])) if rows else {}

    @property
    def is_largest_squared(self) -> bool:
        """Whether it grows with the square of the context."""
        return _is_squared(self.largest.get("formula") or "")

    @cached_property
    def growth(self) -> list[Row]:
        """The size at every context, the shortest first; none of a single one.

        step, inference: bytes that tensors ask for at the peak; predicted: of the step, in closed
        form. kept: bytes that a block keeps for backward; squared: the share of them that grows
        with the square of the context.
        """
        rows = _peaks(self.data, size=self.place.size)
        contexts = sorted({row["context"] for row in rows})
        return list(map(self._growth, contexts)) if len(contexts) > 1 else []

    def _growth(self, context: float) -> Row:
        step = self.measured("peak_asked", context=context)
        of_block = {"part": "block", "category": "activations"}
        cell = step.cells[0] if step else ""
        saved = self.data.dicts("memory_saved", cell=cell, **of_block)
        kept = total(saved, "bytes", "B")
        squared = total([row for row in saved if _is_squared(row["formula"])], "bytes", "B")
        return {
            "context": count(context),
            "kept": kept,
            "squared": share(squared, kept),
            "predicted": self.measured("peak_predicted", context=context),
            "step": step,
            "inference": self.measured("peak_asked", context=context, mode="inference"),
        }

    @cached_property
    def fp32(self) -> Maybe:
        """The same step's peak in fp32."""
        is_same = self.place.precision == "fp32"
        return None if is_same else self.measured("peak_asked", precision="fp32")

    fp32_change = made_of(gap, "asked", "fp32")  # how far the peak is off that

    inference = _peak("peak_asked", mode="inference")  # of a forward pass without backward

    inference_share = made_of(share, "inference", "asked")  # of the step's peak

    @cached_property
    def longest(self) -> Maybe:
        """The longest context that fits the device by the closed form."""
        return longest_context(self.place, "naive")

    @cached_property
    def longest_fused(self) -> Maybe:
        """The same with fused attention."""
        return longest_context(self.place, "sdpa")

    # What to do about it.

    @cached_property
    def savings(self) -> Savings | None:
        """By the place's ladder."""
        return savings(self.data, self.place)

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoints that need least."""
        return checkpoint(self.data)

    def measured(self, quantity: str, **other: object) -> Maybe:
        """At the place, but for what is named."""
        same = {"study": "memory", "options": "", "mode": "step"}
        place = {"precision": self.place.precision} | self.place.where
        return self.data.measured(quantity, **(same | place | other))

    @cached_property
    def _categories(self) -> list[Alive]:
        """Each of which there is anything, recorded or predicted, the most first."""
        found = []
        for row in self.data.dicts("memory_peak", cell=self.cell):
            measured, predicted = (number(row, name, "B") for name in ("bytes", "predicted"))
            if value_of(measured) or value_of(predicted):
                name = Name(row["category"])
                found.append(Alive(category=name, predicted=predicted, measured=measured))
        return sorted(found, key=lambda each: -value_of(each.measured))


def facts(data: Data) -> Memory | None:
    """Of page one's place if its memory was recorded, else of the largest recorded step, in bf16 if
    there is one."""
    cells = {where: row["cell"] for where, row in placed(data, _peaks(data))}
    subject = profile.subject(data)
    at_subject = [where for where in cells if subject and where.key == subject.key]
    where = largest(at_subject or cells)
    return Memory(data=data, place=where, cell=cells[where]) if where else None


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
