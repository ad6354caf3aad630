"""What fills the memory: what is there before a step, what it adds, where the peak is, what to do
about it."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.memory_alive import Alive, categories
from stepscope.report.facts.memory_savings import Checkpoint, Savings, checkpoint, savings
from stepscope.report.facts.shape import longest_context
from stepscope.report.kit.data import Data, Row, number, total
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    gap,
    is_below,
    minus,
    plus,
    scaled,
    share,
    value_of,
)

EARLY = 0.25  # of all gradients: while fewer are there, backward is near its beginning
NUMBER = 4  # bytes of a weight, gradient or moment
PARAMETER = 4 * NUMBER  # bytes that weight, gradient and two moments take
STANDING = ("parameters", "optimizer state")


@frozen
class Growth:
    """A context: peaks that tensors asked for, what a block keeps for backward, and the share of it
    that grows with the square."""

    context: Quantity
    kept: Maybe
    squared: Maybe
    predicted: Maybe
    step: Maybe
    inference: Maybe


@frozen
class Memory:
    """Of the recorded step at a place, in the place's precision."""

    data: Data
    machine: Machine
    place: Place
    cell: str

    # The step's peak.

    @cached_property
    def asked(self) -> Maybe:
        """What tensors asked for."""
        return self._of("peak_asked")

    @cached_property
    def reserved(self) -> Maybe:
        """What the allocator took from the device."""
        return self._of("peak_reserved")

    @cached_property
    def unused(self) -> Maybe:
        """What of it no tensor asked for."""
        return minus(self.reserved, self.asked) if self.machine.is_gpu else None

    @cached_property
    def phase(self) -> str:
        """The phase in which most is alive in the recorded step; without a recording of it what the
        table says."""
        rows = self.data.dicts("memory_timeline", cell=self.cell)
        if not rows:
            return self._peak_row["phase"]
        return max(rows, key=_all_alive)["phase"]

    @cached_property
    def is_early(self) -> bool:
        """Whether few gradients are there at the peak."""
        there = self._alive.get("gradients") or Quantity(0.0, "B")
        return is_below(there, self.gradients, EARLY)

    @cached_property
    def has_gradients(self) -> bool:
        """Whether any are."""
        return value_of(self._alive.get("gradients")) > 0

    # What is alive there.

    @cached_property
    def alive(self) -> tuple[Alive, ...]:
        """By category, the most first, and in all."""
        return (*self._categories, self.all) if self.all else ()

    @cached_property
    def all(self) -> Alive | None:
        """All of it."""
        if not self._categories:
            return None
        predicted = self._of("peak_predicted")
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

    @cached_property
    def holds(self) -> bool:
        """Whether the closed form gives the peak, with and without what it takes from the
        recording."""
        known = [each for each in (self.all, self.formed) if each]
        return bool(known) and all(each.holds for each in known)

    @cached_property
    def is_renamed(self) -> bool:
        """Whether it does not give a category."""
        return not all(each.holds for each in self._categories)

    @cached_property
    def standing(self) -> Maybe:
        """What is there before the step."""
        return plus(*(self._alive.get(name) for name in STANDING))

    @cached_property
    def parameters(self) -> Maybe:
        """Weights in fp32."""
        return self._alive.get("parameters")

    @cached_property
    def state(self) -> Maybe:
        """The optimizer's."""
        return self._alive.get("optimizer state")

    @cached_property
    def gradients(self) -> Maybe:
        """Bytes of all gradients."""
        return scaled(self.place.parameters, NUMBER, "B")

    @cached_property
    def floor(self) -> Maybe:
        """Weights, gradients and moments."""
        return scaled(self.place.parameters, PARAMETER, "B")

    @cached_property
    def activations(self) -> Maybe:
        """What backward needs."""
        return self._alive.get("activations")

    @cached_property
    def activations_share(self) -> Maybe:
        """Of the peak."""
        return share(self.activations, self.asked)

    @cached_property
    def casts(self) -> Maybe:
        """Copies of the weights in 16 bits."""
        return self._alive.get("cast weights") if self.place.is_mixed else None

    @cached_property
    def largest(self) -> Maybe:
        """Bytes of the largest activation."""
        return number(self._largest, "bytes", "B")

    @cached_property
    def largest_formula(self) -> Name | None:
        """Its size, by the model's shape."""
        return Name(self._largest["formula"]) if self._largest.get("formula") else None

    @cached_property
    def largest_alive(self) -> Maybe:
        """How many such are alive."""
        return number(self._largest, "alive", "count")

    @cached_property
    def is_largest_squared(self) -> bool:
        """Whether it grows with the square of the context."""
        return _is_squared(self._largest.get("formula", ""))

    @cached_property
    def growth(self) -> tuple[Growth, ...]:
        """The size at every context; none of a single one."""
        rows = _peaks(self.data, self.place.size)
        contexts = sorted({row["context"] for row in rows})
        return tuple(map(self._growth, contexts)) if len(contexts) > 1 else ()

    @cached_property
    def first(self) -> Growth | None:
        """At the shortest context."""
        return self.growth[0] if self.growth else None

    @cached_property
    def last(self) -> Growth | None:
        """At the longest."""
        return self.growth[-1] if self.growth else None

    @cached_property
    def fp32(self) -> Maybe:
        """The same step's peak in fp32."""
        if self.place.precision == "fp32":
            return None
        return self._measured("peak_asked", precision="fp32")

    @cached_property
    def fp32_change(self) -> Maybe:
        """How far the peak is off that."""
        return gap(self.asked, self.fp32)

    @cached_property
    def inference(self) -> Maybe:
        """What a forward pass without backward asks for."""
        return self._measured("peak_asked", mode="inference")

    @cached_property
    def inference_share(self) -> Maybe:
        """Of the step's peak."""
        return share(self.inference, self.asked)

    @cached_property
    def longest(self) -> Maybe:
        """The longest context that fits the device by the closed form."""
        return self._longest("naive")

    @cached_property
    def longest_fused(self) -> Maybe:
        """The same with fused attention."""
        return self._longest("sdpa")

    # What to do about it.

    @cached_property
    def savings(self) -> Savings | None:
        """By the place's ladder."""
        return savings(self.data, self.machine, self.place)

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoints that need least."""
        return checkpoint(self.data, self.machine)

    @property
    def _spot(self) -> dict[str, object]:
        same = {"study": "memory", "options": "", "mode": "step"}
        return same | {"precision": self.place.precision} | self.place.where

    def _of(self, quantity: str) -> Maybe:
        return self.data.measured(quantity, study="memory", cell=self.cell)

    def _measured(self, quantity: str, **other: object) -> Maybe:
        """At the place, but for what is named."""
        return self.data.measured(quantity, **(self._spot | other))

    @cached_property
    def _peak_row(self) -> Row:
        return self.data.row("series", study="memory", quantity="peak_asked", cell=self.cell)

    @cached_property
    def _categories(self) -> list[Alive]:
        return categories(self.data, self.cell)

    @cached_property
    def _alive(self) -> dict[str, Maybe]:
        return {str(each.category): each.measured for each in self._categories}

    @cached_property
    def _largest(self) -> Row:
        rows = self.data.dicts("memory_largest", cell=self.cell, category="activations")
        return max(rows, key=lambda row: row["bytes"], default={})

    def _growth(self, context: float) -> Growth:
        step = self._measured("peak_asked", context=context)
        of_block = {"part": "block", "category": "activations"}
        cell = step.cells[0] if step else ""
        saved = self.data.dicts("memory_saved", cell=cell, **of_block)
        kept = total(saved, "bytes", "B")
        squared = total([row for row in saved if _is_squared(row["formula"])], "bytes", "B")
        return Growth(
            context=count(context),
            kept=kept,
            squared=share(squared, kept),
            predicted=self._measured("peak_predicted", context=context),
            step=step,
            inference=self._measured("peak_asked", context=context, mode="inference"),
        )

    def _longest(self, attention: str) -> Maybe:
        if not self.machine.is_gpu:
            return None
        return longest_context(self.data, self.place, self.machine.memory, attention)


def facts(data: Data) -> Memory | None:
    """Of page one's place if its memory was recorded, else of the largest recorded step, in bf16 if
    there is one."""
    own = machine(data)
    places = {}
    for row in _peaks(data):
        where = place(data, own, row, row["precision"])
        if where:
            places[row["cell"]] = where
    if not places:
        return None
    subject = profile.subject(data, own)
    at_subject = [cell for cell, where in places.items() if subject and where.key == subject.key]
    cell = max(at_subject or places, key=lambda each: _order(places[each]))
    return Memory(data=data, machine=own, place=places[cell], cell=cell)


def _peaks(data: Data, *sizes: str) -> list[Row]:
    """The plain steps whose memory was recorded; of these sizes, if any are named."""
    same = {"study": "memory", "quantity": "peak_asked", "mode": "step", "options": ""}
    return data.series(**same, **({"size": sizes} if sizes else {}))


def _order(where: Place) -> tuple[bool, float, int]:
    return where.precision == "bf16", value_of(where.parameters), where.context


def _all_alive(row: Row) -> float:
    kinds = ("parameters", "gradients", "optimizer_state", "activations", "cast_weights", "other")
    return sum(row[kind] for kind in kinds)


def _is_squared(formula: str) -> bool:
    """Whether a tensor's size grows with the square of the context: `batch × heads × context ×
    context × 4 B`."""
    return formula.split(" × ").count("context") > 1
