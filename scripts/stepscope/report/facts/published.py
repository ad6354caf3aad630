"""Against published figures: by source, how many can be compared, and how far they are from what
was measured here."""

import math
from functools import cached_property
from statistics import median

from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import Chapter
from stepscope.report.facts.rungs import Rung
from stepscope.report.kit.data import Data, Row, grouped, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Quantity, count, most

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
        return _counts(self._rows)

    @cached_property
    def sources(self) -> list[Row]:
        """Publications and their studies: published over ours of what is compared."""
        groups = grouped(self._rows, "source", "gpu", "study").values()
        return list(filter(None, map(_source, groups)))

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
    return found if found.sources or found.steps else None


def _is_compared(row: Row) -> bool:
    is_known = not math.isnan(row["ratio"]) and not math.isnan(row["measured"])
    is_middle = row["statistic"] in ("mean", "median", "")
    return is_known and is_middle and not row["doubt"] and row["quantity"] in TIMES


def _counts(rows: list[Row]) -> dict[str, Quantity]:
    return {
        "figures": count(len(rows)),
        "doubted": count(sum(bool(row["doubt"]) for row in rows)),
        "compared": count(sum(map(_is_compared, rows))),
    }


def _source(rows: list[Row]) -> Row:
    """A publication's study: its counts, and published over ours of what is compared, at least, in
    the middle and at most; empty where nothing is."""
    ratios = [row["ratio"] for row in rows if _is_compared(row)]
    if not ratios:
        return {}
    one = rows[0]
    told: Row = {name: Name(one[name]) for name in ("source", "gpu", "study")}
    return (
        told
        | _counts(rows)
        | {
            "low": Quantity(min(ratios), "1"),
            "middle": Quantity(median(ratios), "1"),
            "high": Quantity(max(ratios), "1"),
        }
    )


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
