"""The model and its baseline: shapes, parameters and arithmetic of every size, and what a model of
one's own is."""

import math

from stepscope.config.studies import OF_MODEL
from stepscope.report.facts.machine import STATE_BYTES, Chapter, Place, largest, place
from stepscope.report.facts.profile import subject
from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import frozen, made_of
from stepscope.report.kit.quantity import Maybe, Quantity, count, gap, positive, scaled

AXES = ("size", "context", "batch", "precision")
FLOP_A_PARAMETER = 6  # and token: 2 forward, 4 backward (Kaplan et al. 2020)


@frozen
class Setup(Chapter):
    """Of all models that a cell of the machine has; arithmetic of the place of page one.

    sizes: ours, the smallest first, with bytes of weights, gradients and moments; own: models of
    one's own. tokens: of a step; six: 6 × parameters × tokens, and six_gap how far the counted FLOP
    are off that. contexts, batches, precisions: that were timed; is_partial: whether not all
    combinations of these were. has_tokens: whether all models take tokens.
    """

    place: Place
    sizes: list[Row]
    own: list[Row]
    tokens: Quantity
    six: Maybe
    contexts: str | None
    batches: str | None
    precisions: str | None
    is_partial: bool
    has_tokens: bool

    six_gap = made_of(gap, "place.flop", "six")


def facts(data: Data) -> Setup | None:
    """Of the place of page one, else of the largest."""
    rows = _rows(data)
    places = (place(data, row, "fp32") for row in rows)
    where = subject(data) or largest(filter(None, places))
    if not rows or where is None:
        return None
    first = {row["size"]: row for row in reversed(rows)}
    by_size = sorted(first.values(), key=lambda row: row["parameters"])
    models = [shown(row, parameters="parameters") for row in by_size]
    timed = data.series(study="timing", quantity="time")
    combined = {tuple(row[name] for name in AXES) for row in timed}
    values = [set(each) for each in zip(*combined, strict=True)]
    steps = filter(None, (place(data, row, row["precision"]) for row in timed))
    tokens = where.batch * where.context
    return Setup(
        data=data,
        place=where,
        sizes=_sizes([row for row in models if not row["reference"]]),
        own=[row for row in models if row["reference"]],
        tokens=count(tokens),
        six=scaled(where.parameters, FLOP_A_PARAMETER * tokens, "FLOP"),
        contexts=_values(timed, "context"),
        batches=_values(timed, "batch"),
        precisions=", ".join(dict.fromkeys(each.number_type for each in steps)) or None,
        is_partial=len(combined) < math.prod(map(len, values)),
        has_tokens={row["item"] for row in rows} <= {"", "tokens"},
    )


def _sizes(rows: list[Row]) -> list[Row]:
    """With the bytes of their state; with heads of keys and values where a size has fewer."""
    is_grouped = any(positive(row["key_value_heads"]) for row in rows)
    sizes = []
    for row in rows:
        state = scaled(row["parameters"], STATE_BYTES, "B")
        heads = positive(row["key_value_heads"]) or row["num_heads"]  # 0: as many as heads
        sizes.append(row | {"state": state, "key_value_heads": heads if is_grouped else None})
    return sizes


def _values(rows: list[Row], column: str) -> str | None:
    known = sorted({row[column] for row in rows if not math.isnan(row[column])})
    return ", ".join(f"{value:,.0f}" for value in known) or None


def _rows(data: Data) -> list[Row]:
    """Models that steps were run of."""
    trained = data.rows("cells", study=list(OF_MODEL))["size"]
    return data.dicts("models", size=set(trained))
