"""Against published figures: how many can be compared, and those of the same type of GPU beside
what was measured here."""

import math
from functools import cached_property

from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Quantity, count, most

from .ladders import ladders
from .machine import Chapter
from .rungs import Rung

TIMES = ("time", "rate", "tokens_per_second")
MOST = 12


@frozen
class Published(Chapter):
    """Of all published figures; those without a cell of this machine stand in the counts."""

    @cached_property
    def _rows(self) -> list[Row]:
        every = Data(self.data.folder).dicts("published")
        return [row for row in every if row["machine"] in ("", self.data.machine)]

    @cached_property
    def publications(self) -> Quantity:
        """How many they are of."""
        return count(len({row["source"] for row in self._rows}))

    @cached_property
    def counts(self) -> dict[str, Quantity]:
        """Of the figures."""
        rows = self._rows
        return {
            "figures": count(len(rows)),
            "doubted": count(sum(bool(row["doubt"]) for row in rows)),
            "compared": count(sum(map(_is_compared, rows))),
        }

    @cached_property
    def same(self) -> list[Row]:
        """Figures of a GPU of this name, beside ours."""
        gpu = self.machine.name.removeprefix("NVIDIA ")
        compared = [row for row in self._rows if _is_compared(row) and gpu]
        return [_figure(row) for row in compared if row["gpu"] == gpu][:MOST]

    @cached_property
    def steps(self) -> list[Row]:
        """Training steps on GPUs, each with its MFU as ours is counted."""
        rows = [row for row in self._rows if not math.isnan(row["mfu"]) and row["note"]]
        told = [shown(row, value=row["unit"]) for row in rows if self.machine.is_gpu]
        return [row | {"source": Name(row["source"])} for row in told]

    @cached_property
    def best(self) -> Rung | None:
        """Here the rung of the largest MFU."""
        rungs = [rung for each in ladders(self.data) for rung in each.rungs]
        return most(rungs, "mfu")


def facts(data: Data) -> Published | None:
    """None where nothing is compared."""
    found = Published(data=data)
    return found if found.counts["compared"].value or found.steps else None


def _is_compared(row: Row) -> bool:
    is_known = not math.isnan(row["ratio"]) and not math.isnan(row["measured"])
    is_middle = row["statistic"] in ("mean", "median", "")
    return is_known and is_middle and not row["doubt"] and row["quantity"] in TIMES


def _figure(row: Row) -> Row:
    """A figure, ours beside it, and what it is of in words."""
    shape = row["cell"].split("/")[2] if row["study"] == "attention" else ""
    at = row["context"] if math.isnan(row["length"]) else row["length"]
    words = [
        row["study"],
        row["size"] or shape,
        row["variant"],
        row["precision"],
        row["direction"] or row["phase"],
        f"at {at:,.0f}",
    ]
    told = shown(row, value=row["unit"], measured=row["unit"])
    return told | {"what": Name(" ".join(filter(None, words)))}
