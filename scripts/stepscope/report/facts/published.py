"""Against published figures: by source, how many can be compared, and how far they are from what
was measured here."""

import math
from statistics import median

from stepscope.report.facts.machine import Machine, machine
from stepscope.report.kit.data import Data, Row, grouped, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count

TIMES = ("time", "rate", "tokens_per_second")
MOST = 12


@frozen
class Source:
    """A publication and a study of it: its figures, those in doubt, and published over ours of
    those compared."""

    source: Name
    gpu: Name
    study: Name
    figures: Maybe
    doubted: Maybe
    compared: Maybe
    low: Maybe
    middle: Maybe
    high: Maybe


@frozen
class Figure:
    """A figure of the same GPU beside ours."""

    source: Name
    what: Name
    published: Maybe
    measured: Maybe
    ratio: Maybe


@frozen
class Published:
    """same: figures of a GPU of this name."""

    machine: Machine
    publications: Maybe = None
    figures: Maybe = None
    compared: Maybe = None
    doubted: Maybe = None
    sources: tuple[Source, ...] = ()
    same: tuple[Figure, ...] = ()


def facts(data: Data) -> Published | None:
    """Of all published figures; those without a cell of this machine stand in the counts."""
    own = machine(data)
    every = Data(data.folder).dicts("published")
    rows = [row for row in every if row["machine"] in ("", data.machine)]
    compared = [row for row in rows if _is_compared(row)]
    if not compared:
        return None
    sources = []
    for group in grouped(rows, "source", "gpu", "study").values():
        ratios = [row["ratio"] for row in group if _is_compared(row)]
        if ratios:
            sources.append(_source(group, ratios))
    gpu = own.name.removeprefix("NVIDIA ")
    same = [row for row in compared if row["gpu"] and row["gpu"] == gpu]
    return Published(
        machine=own,
        publications=count(len({row["source"] for row in rows})),
        figures=count(len(rows)),
        compared=count(len(compared)),
        doubted=count(_doubted(rows)),
        sources=tuple(sources),
        same=tuple(map(_figure, same[:MOST])),
    )


def _is_compared(row: Row) -> bool:
    is_known = not math.isnan(row["ratio"]) and not math.isnan(row["measured"])
    is_middle = row["statistic"] in ("mean", "median", "")
    return is_known and is_middle and not row["doubt"] and row["quantity"] in TIMES


def _doubted(rows: list[Row]) -> int:
    return sum(bool(row["doubt"]) for row in rows)


def _source(rows: list[Row], ratios: list[float]) -> Source:
    one = rows[0]
    return Source(
        source=Name(one["source"]),
        gpu=Name(one["gpu"]),
        study=Name(one["study"]),
        figures=count(len(rows)),
        doubted=count(_doubted(rows)),
        compared=count(len(ratios)),
        low=Quantity(min(ratios), "1"),
        middle=Quantity(median(ratios), "1"),
        high=Quantity(max(ratios), "1"),
    )


def _figure(row: Row) -> Figure:
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
    return Figure(
        source=Name(row["source"]),
        what=Name(" ".join(filter(None, words))),
        published=number(row, "value", row["unit"]),
        measured=number(row, "measured", row["unit"]),
        ratio=number(row, "ratio", "1"),
    )
