"""Cells' records and samples: the tables are made of one that is spoilt."""

import functools
import hashlib
import json
import random
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aggregate
import pandas as pd

from attacks.trying import Attempt
from attacks.values import FIELDS, HOSTILE, holder_of, no_file, somewhere, spoilt_bytes

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ("timing", "ladder", "attention", "ceilings")  # whose samples become series
INSTANT, YEAR = 1e-7, 3.2e7  # s between which a time may lie
TIMES = ("time", "host_free_time", "busy_time", "first_step_time")


@dataclass
class Cell:
    """A cell's folder, with its record and samples as they were written."""

    folder: Path

    @property
    def record(self) -> dict:
        return json.loads((self.folder / "record.json").read_text())

    def write_record(self, text: str) -> None:
        (self.folder / "record.json").write_text(text)

    @property
    def samples(self) -> list[list[str]]:
        lines = (self.folder / "samples.csv").read_text().splitlines()
        return [line.split(",") for line in lines]

    def write_samples(self, text: str) -> None:
        """Write samples, with their digest in the record: as if they had been measured."""
        content = text.encode(errors="surrogateescape")
        (self.folder / "samples.csv").write_bytes(content)
        record = self.record
        record["samples_sha256"] = hashlib.sha256(content).hexdigest()
        self.write_record(json.dumps(record))

    def write_rows(self, rows: list[list[str]]) -> None:
        self.write_samples("".join(",".join(row) + "\n" for row in rows))


# Each spoils a cell and says how.
Spoiler = Callable[[Cell, random.Random], str]


def spoil_value(cell: Cell, draw: random.Random) -> str:
    """A part of the record is another value."""
    record = cell.record
    path = somewhere(record, draw)
    text = draw.choice(HOSTILE)
    holder, key = holder_of(record, path), path[-1]
    holder[key] = "@here@"
    cell.write_record(json.dumps(record).replace('"@here@"', text))
    return f"{'.'.join(map(str, path))} = {text[:30]}"


def spoil_key(cell: Cell, draw: random.Random) -> str:
    """A part of the record is gone, or called otherwise, or there twice."""
    record = cell.record
    path = somewhere(record, draw)
    holder, key = holder_of(record, path), path[-1]
    way = draw.choice(("gone", "renamed", "numbers in another unit"))
    if way == "gone":
        del holder[key]
    elif way == "renamed" and isinstance(holder, dict):
        holder[f"{key} "] = holder.pop(key)
    elif isinstance(holder[key], int | float):
        holder[key] = holder[key] * draw.choice((1e-12, 1e6, 1e12, -1))
    cell.write_record(json.dumps(record))
    return f"{'.'.join(map(str, path))} {way}"


def spoil_text(cell: Cell, draw: random.Random) -> str:
    """The bytes of the record are others."""
    path = cell.folder / "record.json"
    how, content = spoilt_bytes(path.read_bytes(), draw)
    path.write_bytes(content)
    return how


def spoil_file(cell: Cell, draw: random.Random) -> str:
    """One of the two files is none."""
    return no_file(cell.folder / draw.choice(("record.json", "samples.csv")), draw)


def spoil_cell(cell: Cell, draw: random.Random) -> str:
    """The record is that of another cell, or of another machine."""
    record = cell.record
    key = draw.choice(("study", "device", "hardware", "spec", "peaks"))
    if key == "study":
        record["study"] = draw.choice(("memory", "timing", "attention", "nothing"))
    elif key == "device":
        record["machine"]["device"] = "cpu"
    elif key == "hardware":
        record["provenance"]["hardware"]["device"] = "cpu"
    elif key == "spec":
        name = draw.choice(sorted(record["spec"]))
        record["spec"][name] = 12345
    else:
        for value in record["summary"]["values"]:
            if value["quantity"].startswith("peak_"):
                value["value"] *= 1000
    cell.write_record(json.dumps(record))
    return f"of another cell: {key}"


def spoil_field(cell: Cell, draw: random.Random) -> str:
    """A few fields of the samples are others."""
    rows = cell.samples
    column = draw.randrange(len(rows[0]))
    field = draw.choice(FIELDS)
    for row in draw.sample(rows[1:], draw.choice((1, 3, len(rows) - 1))):
        row[column] = field
    cell.write_rows(rows)
    return f"{rows[0][column]} = {field[:20]!r}"


def spoil_column(cell: Cell, draw: random.Random) -> str:
    """A column of the samples is gone, called otherwise, or there twice."""
    rows = cell.samples
    column = draw.randrange(len(rows[0]))
    name = rows[0][column]
    way = draw.choice(("gone", "renamed", "twice", "a field more"))
    for row in rows[:1] if way == "renamed" else rows:
        if way == "gone":
            del row[column]
        elif way == "renamed":
            row[column] = name.upper()
        elif way == "twice":
            row.append(row[column])
        elif row is not rows[0]:
            row.append("1")
    cell.write_rows(rows)
    return f"column {name}: {way}"


def spoil_number(cell: Cell, draw: random.Random) -> str:
    """There are fewer samples than were asked for, or their times are others."""
    header, *rows = cell.samples
    where = {name: place for place, name in enumerate(header)}
    way = draw.choice(("none", "one", "one process", "all warm-up", "a thousandth", "a picosecond"))
    if way == "none":
        rows = []
    elif way == "one":
        rows = rows[:1]
    elif way == "one process":
        rows = [row for row in rows if row[where["process"]] == "1"]
    elif way == "all warm-up":
        for row in rows:
            row[where["warmup"]] = "True"
    else:
        factor = 1e-3 if way == "a thousandth" else 1e-12
        for row in rows:
            row[where["seconds"]] = repr(factor * float(row[where["seconds"]]))
    cell.write_rows([header, *rows])
    return f"samples: {way}"


RECORDS = (spoil_value, spoil_value, spoil_value, spoil_key, spoil_text, spoil_cell)
SAMPLES = (spoil_field, spoil_field, spoil_column, spoil_number, spoil_file)


class Good:
    """The cells of some studies of a committed report, of which one at a time is taken."""

    def __init__(
        self, place: Path, example: str = "llama", studies: tuple[str, ...] = STUDIES
    ) -> None:
        self.place = place
        with zipfile.ZipFile(ROOT / f"report/example/{example}/cells.zip") as cells:
            cells.extractall(place)
        self.plan = json.loads((place / "plan.json").read_text())
        self.names = [
            one["cell"] for study in studies for one in self.plan["studies"][study]["cells"]
        ]

    def one(self, name: str, work: Path) -> Cell:
        """A copy of a cell in a results folder, with a plan of it alone."""
        study = name.split("/")[1]
        planned = self.plan["studies"][study]
        (cell,) = (one for one in planned["cells"] if one["cell"] == name)
        plan = self.plan | {"studies": {study: planned | {"cells": [cell]}}}
        shutil.copytree(self.place / name, work / "results" / name)
        (work / "results/plan.json").write_text(json.dumps(plan))
        return Cell(work / "results" / name)


def spoiling(
    spoilers: tuple[Spoiler, ...],
    place: Path,
    *,
    example: str = "llama",
    studies: tuple[str, ...] = STUDIES,
    wrong: Callable[[Path], str] | None = None,
) -> Callable:
    """A function that makes an attempt in a folder, by a draw. wrong: names a number of the tables
    that nothing can have."""
    good = Good(place, example, studies)
    named = wrong or impossible_number

    def attempt(work: Path, draw: random.Random) -> Attempt:
        name = draw.choice(good.names)
        cell = good.one(name, work)
        how = draw.choice(spoilers)(cell, draw)
        return Attempt(
            how=f"{name}: {how}",
            run=tabulate,
            wrong=functools.partial(named, work / "tables"),
            stops=False,  # a cell that cannot be used keeps no other from the tables
        )

    return attempt


def tabulate(*published: str) -> None:
    """Make the tables of the results folder here."""
    sys.argv = ["aggregate.py", "--plan", "results/plan.json", "--results", "results"]
    sys.argv += ["--out", "tables", "--published", *published]
    aggregate.main()


def impossible_number(tables: Path) -> str:
    """A number of the tables that nothing can have; empty where there is none."""
    series = pd.read_csv(tables / "series.csv", keep_default_na=False, na_values=[""])
    for row in series[series["status"] == "ok"].to_dict("records"):
        value = row["median"]
        said = f"{row['quantity']} of {row['cell']} is {value}"
        if value != value or not 0 <= value < float("inf"):
            return said
        if row["quantity"] in TIMES and value and not INSTANT <= value <= YEAR:
            return said
        if row["quantity"] == "mfu" and value > 1:
            return said
    return ""
