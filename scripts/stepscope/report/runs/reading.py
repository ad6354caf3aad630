"""A results folder, anybody's, read from its records; nothing of it is run, and what is damaged is named."""

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from stepscope.archive import OTHER_FOLDERS
from stepscope.config.studies import STUDIES
from stepscope.recordings.text import plain
from stepscope.report.data.control import control_pairs_of, floors_of
from stepscope.report.kit.compare import Floors
from stepscope.report.runs.series import label_of
from stepscope.tables import attention, ceilings, ladder, timing
from stepscope.tables.cells import CellResult, read_measured
from stepscope.tables.columns import NO_CONTROL, BetweenCells
from stepscope.tables.control import between_cells_of
from stepscope.tables.reader import Tables

# Study whose times are compared → the rows of its cells, with intervals.
ROWS: dict[str, Callable[[list[CellResult], BetweenCells], list[dict]]] = {
    "timing": lambda cells, _: timing.rows_of(cells),
    "ladder": ladder.timed_rows,
    "attention": attention.timed_rows,
    "ceilings": ceilings.timed_rows,
}
RECORDED = ("profile_kernels", "profile_phases", "memory_peak")  # which kernels ran, and what filled the memory
MOST_BYTES = 64 * 2**20  # of a record: a thousand times what one has
_RAW = ("trace", "snapshot", "analysis")  # beside a record
TIMES = (1e-9, 1e7)  # seconds
_NUMBERS = ("summary", "telemetry", "provenance")  # parts of a record that times and clocks stand in
_OF_HOSTS = ("host_python_ms", "host_launches_ms", "sm_clock_median_mhz")


class ResultsError(Exception):
    """There are no results to compare; the message is one line."""


@dataclass(frozen=True)
class Results:
    """What a results folder holds.

    name: as the user gave it. records: cell → its record, of every study. rows: of each study whose times are
    compared, with intervals. left_out: cell → why it is not among them. tables: those of RECORDED that are there.
    """

    name: str
    records: Mapping[str, dict]
    rows: Mapping[str, list[dict]]
    left_out: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """Its machines, each once."""
        return list(dict.fromkeys(map(label_of, self.records)))

    @functools.cached_property
    def floors(self) -> Floors:
        """What its unchanged cells differ by."""
        return floors_of(control_pairs_of(self.rows["timing"]))


def read(folder: Path, name: str) -> Results:
    """What is in a folder `results`, or in one that holds one. Raises ResultsError if there is no cell in it."""
    inside = folder / "results"
    folder = inside if inside.is_dir() and not any(_names(folder)) else folder
    cells, left_out = [], {}
    for cell in _names(folder):
        try:
            cells.append(_checked(folder, cell))
        except (ValueError, OSError) as error:
            left_out[plain(cell)] = plain(error)
    if not cells:
        damaged = f" ({next(iter(left_out))}: {next(iter(left_out.values()))})" if left_out else ""
        raise ResultsError(
            f"{name}: there are no results{damaged}; give a folder with LABEL/STUDY/…/record.json, one that holds it "
            "as results, or an archive"
        )
    return results_of(cells, name, left_out, _recorded(folder / "tables"))


def results_of(
    cells: list[CellResult],
    name: str,
    left_out: Mapping[str, str] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> Results:
    """These cells as results."""
    own = {study: [cell for cell in cells if cell.record["spec"]["study"] == study] for study in ROWS}
    rows = {"timing": ROWS["timing"](own["timing"], NO_CONTROL)}
    control = between_cells_of(rows["timing"])
    rows |= {study: make(own[study], control) for study, make in ROWS.items() if study != "timing"}
    return Results(name, {cell.name: cell.record for cell in cells}, rows, left_out or {}, tables or {})


def _recorded(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of RECORDED that are in a folder and can be read."""
    tables, found = Tables(folder, [study.name for study in STUDIES]), {}
    for name in RECORDED:
        with contextlib.suppress(OSError, ValueError):
            found[name] = tables[name]
    return found


def _names(folder: Path) -> Iterator[str]:
    """The cells below a folder by their names, sorted. No link is followed."""
    studies = {study.name for study in STUDIES}
    for label in sorted(_folders(folder)):
        for study in sorted(studies.intersection(_folders(folder / label)) if label not in OTHER_FOLDERS else ()):
            for where, inside, files in os.walk(folder / label / study):
                inside[:] = sorted(set(inside).difference(_RAW))  # a cell with options lies within the one without
                if "record.json" in files and where != str(folder / label / study):
                    yield Path(where).relative_to(folder).as_posix()


def _folders(folder: Path) -> list[str]:
    try:
        return [each.name for each in os.scandir(folder) if each.is_dir()]
    except OSError:
        return []


def _checked(folder: Path, name: str) -> CellResult:
    """A cell that tables can be made of. Raises ValueError, or OSError, with one line."""
    if (folder / name / "record.json").stat().st_size > MOST_BYTES:
        raise ValueError(f"record.json has more than {MOST_BYTES >> 20} MiB; it is none of ours")
    cell = replace(read_measured(folder, name), samples=())
    study = name.split("/")[1]
    try:
        if cell.record["spec"]["study"] != study or not all(
            _is_plausible(part, cell.record[part]) for part in _NUMBERS
        ):
            raise ValueError
        rows = ROWS[study]([cell], NO_CONTROL) if study in ROWS else []
        if not all(_is_possible(*item) for row in rows for item in row.items()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError):
        raise ValueError("record.json is damaged (its spec or summary is not one of this study)") from None
    return cell


def _is_plausible(key: str, value: object) -> bool:
    """Whether all numbers below a key of a record are finite, and all medians are times that anything can take."""
    if isinstance(value, dict):
        return all(_is_plausible(*item) for item in value.items())
    if isinstance(value, list):
        return all(_is_plausible(key, each) for each in value)
    if not isinstance(value, int | float):
        return True
    return TIMES[0] < value < TIMES[1] if key == "median" else math.isfinite(value)


def _is_possible(column: str, value: object) -> bool:
    """Whether a column's value can be: a time, or a clock, that is known is a number above 0."""
    if value is None or not (column.endswith("median_ms") or column in _OF_HOSTS):
        return True
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
