"""Attention at other shapes and in other precisions: the best implementation of each cell."""

import math

from stepscope.report.kit.data import Data, Row, grouped, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, count


@frozen
class Shape:
    """Another cell at its longest length, by the best of so many ways."""

    what: Name
    fastest: Name
    ways: Maybe
    length: Maybe
    forward: Maybe
    backward: Maybe
    rate: Maybe


def shapes(data: Data, shown: str) -> tuple[Shape, ...]:
    """Each other cell at its longest length, by the implementation whose passes take least
    together."""
    rows = [row for row in data.series(study="attention") if row["cell"] != shown]
    found = [_shape(data, own) for own in grouped(rows, "cell").values()]
    return tuple(shape for shape in found if shape)


def _shape(data: Data, rows: list[Row]) -> Shape | None:
    """Of a cell's rows."""
    longest = max(row["length"] for row in rows)
    times = [row for row in rows if row["quantity"] == "time" and row["length"] == longest]
    of_variant = grouped(times, "variant")

    def order(row: Row) -> tuple[float, float]:
        own = of_variant[(row["variant"],)]
        has_both = any(each["direction"] == "backward" for each in own)
        both = sum(each["median"] for each in own) if has_both else math.inf
        return both, row["median"]

    forward = [row for row in times if row["direction"] == "forward"]
    fastest = min(forward, key=order, default=None)
    if fastest is None:
        return None
    same = {"cell": fastest["cell"], "variant": fastest["variant"], "length": longest}
    words = [fastest["size"], fastest["precision"], *map(_words, fastest["options"].split())]
    return Shape(
        what=Name(", ".join(words)),
        fastest=Name(fastest["variant"]),
        ways=count(len(forward)),
        length=count(longest),
        forward=of_series(fastest),
        backward=data.measured("time", direction="backward", **same),
        rate=data.measured("rate", direction="forward", **same),
    )


def _words(option: str) -> str:
    key, _, value = option.partition("=")
    return value if key == "mask" else f"{key.replace('_', ' ')} {int(value):,}"
