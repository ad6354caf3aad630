"""The model and its baseline: shapes, parameters and arithmetic of every size, and what a model of
one's own is."""

import math
from functools import cached_property

from stepscope.config.studies import OF_MODEL
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.profile import subject
from stepscope.report.kit.data import Data, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, gap, scaled

AXES = ("size", "context", "batch", "precision")
STATE_BYTES = 4 * 4  # of a parameter in fp32, its gradient and two moments
LARGE = 0.2  # of the arithmetic
FLOP_A_PARAMETER = 6  # and token: 2 forward, 4 backward (Kaplan et al. 2020)


@frozen
class Size:
    """A named shape."""

    size: Name
    width: Maybe
    hidden: Maybe
    blocks: Maybe
    heads: Maybe
    vocabulary: Maybe
    parameters: Maybe

    @cached_property
    def state(self) -> Maybe:
        """Bytes of weights, gradients and moments."""
        return scaled(self.parameters, STATE_BYTES, "B")


@frozen
class Own:
    """A model of one's own."""

    size: Name
    reference: Name
    kind: Name
    parameters: Maybe
    inputs: Name
    loss: Name
    unknown: Name


@frozen
class Setup:
    """Of all models that a cell of the machine has; arithmetic of the place of page one."""

    data: Data
    machine: Machine
    place: Place

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """Ours, the smallest first."""
        return tuple(_size(row) for row in self._models if not row["reference"])

    @cached_property
    def own(self) -> tuple[Own, ...]:
        """Models of one's own."""
        return tuple(_own(row) for row in self._models if row["reference"])

    @property
    def _models(self) -> list[dict]:
        first = {row["size"]: row for row in reversed(_rows(self.data))}
        return sorted(first.values(), key=lambda row: row["parameters"])

    @cached_property
    def tokens(self) -> Quantity:
        """Of a step."""
        return Quantity(self.place.batch * self.place.context, "count")

    @cached_property
    def six(self) -> Maybe:
        """6 × parameters × tokens."""
        return scaled(self.place.parameters, FLOP_A_PARAMETER * self.tokens.value, "FLOP")

    @cached_property
    def six_gap(self) -> Maybe:
        """How far the counted FLOP are off that."""
        return gap(self.place.flop, self.six)

    @property
    def has_large_embedding(self) -> bool:
        """Whether the rule counts much that multiplies nothing."""
        return self.six_gap is not None and self.six_gap.value < -LARGE

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
    def _timed(self) -> list[dict]:
        return self.data.series(study="timing", quantity="time")

    def _values(self, column: str) -> str | None:
        known = sorted({row[column] for row in self._timed if not math.isnan(row[column])})
        return ", ".join(f"{value:,.0f}" for value in known) or None


def facts(data: Data) -> Setup | None:
    """Of the place of page one, else of the first model."""
    rows = _rows(data)
    if not rows:
        return None
    own = machine(data)
    where = subject(data, own) or place(data, own, rows[0], "fp32")
    return Setup(data=data, machine=own, place=where) if where else None


def _rows(data: Data) -> list[dict]:
    """Models that steps were run of."""
    trained = data.rows("cells", study=list(OF_MODEL))["size"]
    return data.dicts("models", size=set(trained))


def _size(row: dict) -> Size:
    return Size(
        size=Name(row["size"]),
        width=number(row, "d_model", "count"),
        hidden=number(row, "d_ff", "count"),
        blocks=number(row, "num_layers", "count"),
        heads=number(row, "num_heads", "count"),
        vocabulary=number(row, "vocab_size", "count"),
        parameters=number(row, "parameters", "parameters"),
    )


def _own(row: dict) -> Own:
    return Own(
        size=Name(row["size"]),
        reference=Name(row["reference"]),
        kind=Name(row["class"]),
        parameters=number(row, "parameters", "parameters"),
        inputs=Name(row["inputs"]),
        loss=Name(row["loss"]),
        unknown=Name(row["unknown"]),
    )
