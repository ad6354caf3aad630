"""Attention at other shapes and in other precisions: the best implementation of each cell."""

import math
from dataclasses import dataclass

from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, count


@dataclass(frozen=True, kw_only=True)
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
    made = []
    for cell in dict.fromkeys(row["cell"] for row in rows):
        own = [row for row in rows if row["cell"] == cell]
        length = max(row["length"] for row in own)
        times = [row for row in own if row["quantity"] == "time" and row["length"] == length]
        both = {row["variant"]: sum(one["median"] for one in times if one["variant"] == row["variant"]) for row in times
                if row["direction"] == "backward"}  # fmt: skip
        ran = [row for row in times if row["direction"] == "forward"]
        fast = min(
            ran, key=lambda row: (both.get(row["variant"], math.inf), row["median"]), default=None
        )
        if fast:
            same = {"cell": cell, "variant": fast["variant"], "length": length}
            made.append(
                Shape(
                    what=Name(
                        ", ".join(
                            [fast["size"], fast["precision"], *map(_words, fast["options"].split())]
                        )
                    ),
                    fastest=Name(fast["variant"]),
                    ways=count(len(ran)),
                    length=count(length),
                    forward=of_series(fast),
                    backward=data.measured("time", direction="backward", **same),
                    rate=data.measured("rate", direction="forward", **same),
                )
            )
    return tuple(made)


def _words(option: str) -> str:
    key, _, value = option.partition("=")
    return value if key == "mask" else f"{key.replace('_', ' ')} {int(value):,}"
