"""The model and its baseline: shapes, parameters and arithmetic of every size, and what a model of
one's own is."""

import math
from dataclasses import dataclass

from stepscope.config.studies import OF_MODEL
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.profile import subject
from stepscope.report.kit.data import Data, number
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, gap, over

AXES = ("size", "context", "batch", "precision")


@dataclass(frozen=True, kw_only=True)
class Size:
    """A named shape."""

    size: Name
    width: Maybe
    hidden: Maybe
    blocks: Maybe
    heads: Maybe
    vocabulary: Maybe
    parameters: Maybe
    state: Maybe


@dataclass(frozen=True, kw_only=True)
class Own:
    """A model of one's own."""

    size: Name
    reference: Name
    kind: Name
    parameters: Maybe
    inputs: Name
    loss: Name
    unknown: Name


@dataclass(frozen=True, kw_only=True)
class Setup:
    """six: 6 × parameters × tokens of the place; six_gap: how far the counted FLOP are above it.
    is_partial: not all combinations were timed.
    """

    machine: Machine
    sizes: tuple[Size, ...] = ()
    own: tuple[Own, ...] = ()
    place: Place | None = None
    tokens: Maybe = None
    six: Maybe = None
    six_gap: Maybe = None
    contexts: str | None = None
    batches: str | None = None
    precisions: str | None = None
    is_partial: bool = False


def facts(data: Data) -> Setup | None:
    """Of all models that a cell of the machine has."""
    trained = data.rows("cells", study=list(OF_MODEL))["size"]
    rows = data.dicts("models", size=set(trained))
    if not rows:
        return None
    own = machine(data)
    first = {row["size"]: row for row in reversed(rows)}
    known = sorted(first.values(), key=lambda row: row["parameters"])
    where = subject(data, own) or place(data, own, rows[0], "fp32")
    tokens = Quantity(where.batch * where.context, "count")
    six = over(
        Quantity(6 * where.parameters.value * tokens.value, "FLOP"), Quantity(1.0, "1"), "FLOP"
    )
    timed = data.series(study="timing", quantity="time")
    return Setup(
        machine=own,
        sizes=tuple(_size(row) for row in known if not row["reference"]),
        own=tuple(_own(row) for row in known if row["reference"]),
        place=where,
        tokens=tokens,
        six=six,
        six_gap=gap(where.flop, six),
        contexts=_values(timed, "context"),
        batches=_values(timed, "batch"),
        is_partial=len({tuple(row[key] for key in AXES) for row in timed})
        < math.prod(len({row[key] for row in timed}) for key in AXES),
        precisions=", ".join(dict.fromkeys(row["precision"] for row in timed)) or None,
    )


def _size(row: dict) -> Size:
    of = lambda column, unit="count", factor=1.0: number(row, column, unit, factor)  # noqa: E731
    return Size(
        size=Name(row["size"]),
        width=of("d_model"),
        hidden=of("d_ff"),
        blocks=of("num_layers"),
        heads=of("num_heads"),
        vocabulary=of("vocab_size"),
        parameters=of("parameters", "parameters"),
        state=of("parameters", "B", 16),
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


def _values(rows: list[dict], column: str) -> str | None:
    """The values of a column, the smallest first; None without any."""
    known = sorted({row[column] for row in rows if row[column] == row[column]})
    return ", ".join(f"{value:,.0f}" for value in known) or None
