"""Against published figures: by source, how many can be compared, and how far they are from what
was measured here."""

from dataclasses import dataclass
from statistics import median

from stepscope.report.facts.machine import Machine, machine
from stepscope.report.kit.data import Data, number
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, count

TIMES = ("time", "rate", "tokens_per_second")
MOST = 12


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the same GPU beside ours."""

    source: Name
    what: Name
    published: Maybe
    measured: Maybe
    ratio: Maybe


@dataclass(frozen=True, kw_only=True)
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
    rows = [
        row for row in Data(data.folder).dicts("published") if row["machine"] in ("", data.machine)
    ]
    compared = [row for row in rows if _is_compared(row)]
    if not compared:
        return None
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["source"], row["gpu"], row["study"]), []).append(row)
    made = [_source(key, group) for key, group in groups.items() if any(map(_is_compared, group))]
    same = [
        row for row in compared if row["gpu"] and row["gpu"] == own.name.removeprefix("NVIDIA ")
    ]
    return Published(
        machine=own,
        publications=count(len({row["source"] for row in rows})),
        figures=count(len(rows)),
        compared=count(len(compared)),
        doubted=count(len([row for row in rows if row["doubt"]])),
        sources=tuple(made),
        same=tuple(map(_figure, same[:MOST])),
    )


def _is_compared(row: dict) -> bool:
    is_known = row["ratio"] == row["ratio"] and row["measured"] == row["measured"]
    return (
        is_known
        and not row["doubt"]
        and row["quantity"] in TIMES
        and row["statistic"] in ("mean", "median", "")
    )


def _source(key: tuple, rows: list[dict]) -> Source:
    ratios = [row["ratio"] for row in rows if _is_compared(row)]
    source, gpu, study = key
    return Source(
        source=Name(source),
        gpu=Name(gpu),
        study=Name(study),
        figures=count(len(rows)),
        doubted=count(len([row for row in rows if row["doubt"]])),
        compared=count(len(ratios)),
        low=Quantity(min(ratios), "1"),
        middle=Quantity(median(ratios), "1"),
        high=Quantity(max(ratios), "1"),
    )


def _figure(row: dict) -> Figure:
    shape = row["size"] or (row["cell"].split("/")[2] if row["study"] == "attention" else "")
    words = [
        row["study"],
        shape,
        row["variant"],
        row["precision"],
        row["direction"] or row["phase"],
    ]
    at = row["length"] if row["length"] == row["length"] else row["context"]
    return Figure(
        source=Name(row["source"]),
        what=Name(" ".join([*filter(None, words), f"at {at:,.0f}"])),
        published=number(row, "value", row["unit"]),
        measured=number(row, "measured", row["unit"]),
        ratio=number(row, "ratio", "1"),
    )
