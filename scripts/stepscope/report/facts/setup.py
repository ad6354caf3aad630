"""The model and its baseline: shapes, parameters and arithmetic of every size, and what a model of
one's own is."""

from stepscope.config.studies import OF_MODEL
from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import frozen, made_of
from stepscope.report.kit.quantity import Maybe, Quantity, count, gap, positive, scaled

from .machine import STATE_BYTES, Chapter, Place, largest, place
from .profile import subject

FLOP_A_PARAMETER = 6  # and token: 2 forward, 4 backward (Kaplan et al. 2020)


@frozen
class Setup(Chapter):
    """Of all models that a cell of the machine has; arithmetic of the place of page one.

    sizes: ours, the smallest first, with bytes of weights, gradients and moments; own: models of
    one's own. tokens: of a step; six: 6 × parameters × tokens, and six_gap how far the counted FLOP
    are off that.
    """

    place: Place
    sizes: list[Row]
    own: list[Row]
    tokens: Quantity
    six: Maybe

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
    tokens = where.batch * where.context
    return Setup(
        data=data,
        place=where,
        sizes=_sizes([row for row in models if not row["reference"]]),
        own=[row for row in models if row["reference"]],
        tokens=count(tokens),
        six=scaled(where.parameters, FLOP_A_PARAMETER * tokens, "FLOP"),
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


def _rows(data: Data) -> list[Row]:
    """Models that steps were run of."""
    trained = data.rows("cells", study=list(OF_MODEL))["size"]
    return data.dicts("models", size=set(trained))
