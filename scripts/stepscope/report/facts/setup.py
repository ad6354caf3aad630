"""The model and its baseline: shapes, parameters and arithmetic of every size, and what a model of
one's own is."""

import math
from functools import cached_property

from stepscope.config.studies import OF_MODEL
from stepscope.report.facts.machine import STATE_BYTES, Chapter, Place, largest, place
from stepscope.report.facts.profile import subject
from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import frozen, made_of
from stepscope.report.kit.quantity import Maybe, Quantity, gap, scaled

AXES = ("size", "context", "batch", "precision")
FLOP_A_PARAMETER = 6  # and token: 2 forward, 4 backward (Kaplan et al. 2020)


@frozen
class Setup(Chapter):
    """Of all models that a cell of the machine has; arithmetic of the place of page one."""

    place: Place

    @cached_property
    def sizes(self) -> list[Row]:
        """Ours, the smallest first, with bytes of weights, gradients and moments."""
        found = []
        for row in self._models:
            if not row["reference"]:
                state = scaled(row["parameters"], STATE_BYTES, "B")
                found.append(row | {"state": state})
        return found

    @cached_property
    def own(self) -> list[Row]:
        """Models of one's own."""
        return [row for row in self._models if row["reference"]]

    @property
    def _models(self) -> list[Row]:
        first = {row["size"]: row for row in reversed(_rows(self.data))}
        rows = sorted(first.values(), key=lambda row: row["parameters"])
        return [shown(row, parameters="parameters") for row in rows]

    @cached_property
    def tokens(self) -> Quantity:
        """Of a step."""
        return Quantity(self.place.batch * self.place.context, "count")

    @cached_property
    def six(self) -> Maybe:
        """6 × parameters × tokens."""
        return scaled(self.place.parameters, FLOP_A_PARAMETER * self.tokens.value, "FLOP")

    six_gap = made_of(gap, "place.flop", "six")  # how far the counted FLOP are off that

    @cached_property
    def contexts(self) -> str | None:
        """That were timed."""
        return self._values("context")

    @cached_property
    def batches(self) -> str | None:
        """Likewise."""
        return self._values("batch")

    @cached_property
    def precisions(self) -> str | None:
        """Likewise, in the order of the cells."""
        return ", ".join(dict.fromkeys(row["precision"] for row in self._timed)) or None

    @cached_property
    def is_partial(self) -> bool:
        """Whether not all combinations of these were."""
        combined = {tuple(row[name] for name in AXES) for row in self._timed}
        return len(combined) < math.prod(len(set(values)) for values in zip(*combined, strict=True))

    @property
    def _timed(self) -> list[Row]:
        return self.data.series(study="timing", quantity="time")

    def _values(self, column: str) -> str | None:
        known = sorted({row[column] for row in self._timed if not math.isnan(row[column])})
        return ", ".join(f"{value:,.0f}" for value in known) or None


def facts(data: Data) -> Setup | None:
    """Of the place of page one, else of the largest."""
    rows = _rows(data)
    if not rows:
        return None
    places = (place(data, row, "fp32") for row in rows)
    where = subject(data) or largest(filter(None, places))
    return Setup(data=data, place=where) if where else None


def _rows(data: Data) -> list[Row]:
    """Models that steps were run of."""
    trained = data.rows("cells", study=list(OF_MODEL))["size"]
    return data.dicts("models", size=set(trained))
