"""Figures that others published, from CSV files with the columns of our tables: read, checked, and put together.

A row is one printed number as it was printed, slips included: `note` quotes them, `doubt` says why a row is not
compared. Standard library only.
"""

import csv
import math
from pathlib import Path

from stepscope.axes import DIRECTIONS, PHASES, PRECISIONS
from stepscope.tables.attention import LENGTH
from stepscope.tables.columns import WARMUP
from stepscope.tables.schema import FLAG, NUMBER, Field, Table, count, flag, number, text
from stepscope.tables.training import CONTEXT, SHAPE, SIZE
from stepscope.tables.writer import write_table

# Unit of a published value → the unit that it is compared in, and how many of that it is.
UNITS = {
    "s": ("ms", 1e3),
    "ms": ("ms", 1.0),
    "us": ("ms", 1e-3),
    "ns": ("ms", 1e-6),
    "bytes": ("bytes", 1.0),
    "MB": ("bytes", 1e6),
    "MiB": ("bytes", 2.0**20),
    "GB": ("bytes", 1e9),
    "GiB": ("bytes", 2.0**30),
    "TFLOP/s": ("TFLOP/s", 1.0),
    "tokens/s": ("tokens/s", 1.0),
    "%": ("share", 0.01),
    "share": ("share", 1.0),
    "ratio": ("ratio", 1.0),
    "count": ("count", 1.0),
    "": ("", 1.0),
}
STATISTICS = ("mean", "median", "std", "min", "max", "total", "value")
STUDIES = ("timing", "warmup", "profile", "memory", "attention", "precision")
STATUSES = ("ok", "oom", "unsupported", "failed")

TABLE = Table(
    "published",
    "a number that somebody published",
    (
        text("source", "who published it"),
        text("title", "title or place of the publication, where known"),
        text("item", "which of its tables or texts it stands in"),
        text("date", "when, as far as known"),
        text("gpu", "name of the GPU as its driver gives it, without the brand; empty where it is not named"),
        text("framework", "software and its version, where known"),
        text("study", "which study of ours measures such: " + ", ".join(f"`{each}`" for each in STUDIES)),
        *(SIZE, *SHAPE, CONTEXT),
        count("batch", "sequences of a batch"),
        text("precision", "precision of matrix products"),
        text("mode", "how far a step goes: `inference`, `forward`, `forward-backward` or `step`"),
        text("phase", "what of a step: " + ", ".join(f"`{each}`" for each in PHASES)),
        text("implementation", "implementation of attention"),
        count("d_head", "width of a head"),
        count("heads", "heads; empty or 0: no dimension of heads"),
        count("kv_heads", "heads of keys and values, where they are fewer"),
        text("causal", "`yes` or `no`: whether a position only sees those before it"),
        LENGTH,
        text("direction", "`forward` or `backward`"),
        text("name", "the kernel, category, operation or part that it is of"),
        text("quantity", "what is given: `time`, `peak allocated`, `rate`, `instances` …"),
        text("statistic", ", ".join(f"`{each}`" for each in STATISTICS)),
        text("status", "`ok`, or why there is no value: `oom`, `unsupported`, `failed`"),
        number("value", "", "the number as it was printed, in `unit`"),
        text("unit", ", ".join(f"`{each}`" for each in UNITS if each)),
        WARMUP,
        count("samples", "measured steps or passes"),
        flag("impossible", "it cannot be true; `doubt` says why"),
        text("note", "what else is to know of it; a slip is quoted"),
        text("doubt", "why it is not to be compared"),
        text("file", "the file that it was read from"),
    ),
)
REQUIRED = ("source", "gpu", "study", "quantity", "value", "unit")
_ADDED = "file"  # by the reader
_CHOICES = {
    "study": STUDIES,
    "statistic": ("", *STATISTICS),
    "status": ("", *STATUSES),
    "unit": tuple(UNITS),
    "precision": ("", *PRECISIONS),
    "phase": ("", *PHASES),
    "direction": ("", *DIRECTIONS),
    "causal": ("", "yes", "no"),
}
_FLAGS = {"": False, "false": False, "true": True}


class PublishedError(ValueError):
    """A file of published figures is wrong; the message is one line that names file, line and column."""


def read(path: Path) -> list[dict]:
    """The rows of a file, every column of TABLE in each; what the file leaves out is None.

    Raises PublishedError for what cannot be read, a column that is missing, unknown or there twice, or a value that
    its column does not allow.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            _check_header(path, reader.fieldnames or [])
            return [_row(path, reader.line_num, values) for values in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PublishedError(f"{path}: no CSV file of published figures: {error}") from None


def write(paths: list[Path], folder: Path) -> None:
    """published.csv in a folder: the rows of all files, in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder, TABLE, [row for path in paths for row in read(path)])


def _check_header(path: Path, names: list[str]) -> None:
    known = [each for each in TABLE.columns if each != _ADDED]
    problems = {
        "column {} is missing": [each for each in REQUIRED if each not in names],
        "column {} is not known; docs/tables.md lists those that are": [each for each in names if each not in known],
        "column {} is there twice": [each for each in names if names.count(each) > 1],
    }
    for words, found in problems.items():
        if found:
            raise PublishedError(f"{path}, line 1: {words.format(repr(found[0]))}")


def _row(path: Path, line: int, values: dict) -> dict:
    if None in values or None in values.values():
        raise PublishedError(f"{path}, line {line}: has not as many fields as the first line")
    row = {field.name: _value(path, line, field, values.get(field.name, "").strip()) for field in TABLE.fields}
    row["statistic"] = row["statistic"] or "value"
    row["status"] = row["status"] or "ok"
    if (row["status"] == "ok") != (row["value"] is not None):
        raise PublishedError(f"{path}, line {line}: value: a number for the status ok, and none for any other")
    return row | {_ADDED: Path(path).name}


def _value(path: Path, line: int, field: Field, given: str) -> object:
    where = f"{path}, line {line}: {field.name}"
    if field.name in _CHOICES and given not in _CHOICES[field.name]:
        raise PublishedError(f"{where}: {given!r} is none of {', '.join(filter(None, _CHOICES[field.name]))}")
    if field.kind == FLAG:
        if given.lower() not in _FLAGS:
            raise PublishedError(f"{where}: {given!r} is neither True nor False")
        return _FLAGS[given.lower()]
    if field.kind == NUMBER and given:
        return _number(where, given, field.name)
    return given or None


def _number(where: str, given: str, name: str) -> float:
    try:
        found = float(given)
    except ValueError:
        raise PublishedError(f"{where}: {given!r} is no number") from None
    if not math.isfinite(found) or (found < 0 and name != "value"):
        raise PublishedError(f"{where}: {given!r} is no number that it can have")
    return int(found) if found.is_integer() and name != "value" else found
