"""What is alive at a recorded peak, by what it is for."""

from functools import cached_property

from stepscope.report.kit.data import Data, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, gap, value_of

HOLDS_WITHIN = 0.01  # a prediction that is off by less holds


@frozen
class Alive:
    """A category at the peak, of bytes that tensors asked for: by the closed form, and recorded."""

    category: Name
    predicted: Maybe
    measured: Maybe

    @cached_property
    def gap(self) -> Maybe:
        """How far what was recorded is off."""
        return gap(self.measured, self.predicted)

    @property
    def holds(self) -> bool:
        """Whether that is next to nothing."""
        return self.gap is not None and abs(self.gap.value) < HOLDS_WITHIN


def categories(data: Data, cell: str) -> list[Alive]:
    """Each with what is predicted, the most first; those alone of which there is anything."""
    found = []
    for row in data.dicts("memory_peak", cell=cell):
        measured, predicted = number(row, "bytes", "B"), number(row, "predicted", "B")
        if value_of(measured) or value_of(predicted):
            name = Name(row["category"])
            found.append(Alive(category=name, predicted=predicted, measured=measured))
    return sorted(found, key=lambda each: -value_of(each.measured))
