"""Reading a cell's record and samples: refused unless they are whole, as they were written, and
physically possible."""

import functools
import hashlib
import io
import json
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import fastjsonschema
import numpy as np
import pandas as pd

from stepscope.axes import DIRECTIONS, MODES
from stepscope.config.studies import STUDIES

# A profile's are times, too, if not those of a step without a profiler.
SAMPLED = ["profile", *(study.name for study in STUDIES if study.samples_are_series)]
YEAR = 3.2e7  # s
INSTANT = 1e-7  # s: no call takes less
MOST = 1e9  # of what is counted
NEEDED = {"variant", "process", "kind", "phase", "step", "warmup", "seconds"}  # of samples.csv
LARGEST = 2**29  # bytes of a file that is read
MOST_DIGITS = 100  # and letters of a number
# Column of samples.csv -> the words that it knows.
WORDS = {
    "warmup": ("True", "False"),
    "kind": ("free", "phased", "host-free", "busy", "burst", "sustained"),
    "mode": ("", *MODES),
    "direction": ("", *DIRECTIONS),
}
# Column of samples.csv -> least and most; of those of the GPU a field may be empty.
BOUNDS = {
    "seconds": (INSTANT, YEAR),
    "event_seconds": (0, YEAR),
    "launch_seconds": (0, YEAR),
    "process": (0, MOST),
    "round": (0, MOST),
    "step": (0, MOST),
    "length": (0, MOST),
    "sm_clock_mhz": (0, 1e5),
    "power_w": (0, 1e5),
    "temperature_c": (-273.15, 1e4),
}
TEXT = ["variant", "mode", "phase", "direction"]  # of samples and of values
# Columns that all samples have once they are prepared.
WHOLE_NUMBERS = ["length", "round", "process", "step"]
NUMBERS = ["seconds", "sm_clock_mhz"]


class Damaged(ValueError):
    """Why a cell's files are not those that were written, in one line."""


def read_record(folder: Path) -> dict:
    """A cell's record, by record.schema.json. Raises FileNotFoundError if there is none,
    Damaged."""
    try:
        record = json.loads(_content(folder / "record.json"), parse_constant=_no_number)
        return _schema()(record)
    except fastjsonschema.JsonSchemaValueException as error:
        said = error.message.removeprefix("data.").replace("data ", "it ", 1)
        is_part = isinstance(error.value, dict | list)
        value = "" if is_part else f", not {json.dumps(error.value)[:60]}"
        raise Damaged(f"record.json is damaged: {said}{value}") from None
    except Damaged:
        raise
    except (ValueError, RecursionError):
        raise Damaged("record.json is damaged (truncated or edited by hand)") from None


@functools.cache
def _schema() -> Callable[[dict], dict]:
    """What checks a record by record.schema.json, compiled once."""
    schema = json.loads(Path(__file__).with_name("record.schema.json").read_text())
    schema["if"]["properties"]["study"] = {"enum": SAMPLED}
    return fastjsonschema.compile(schema)


def _no_number(text: str) -> None:
    """For NaN and the infinities, which JSON does not have. Raises Damaged."""
    raise Damaged(f"record.json is damaged: it holds {text}, which is no number")


def check(record: Mapping, name: str, spec: Mapping) -> None:
    """Whether a record is that of the cell of this name and spec, and of one machine. Raises
    Damaged."""
    study, device = name.split("/")[1], spec.get("device")
    if record["study"] != study:
        raise Damaged(f"record.json is of another study: {record['study']!r:.60}, not {study}")
    hardware = record["provenance"]["hardware"]
    for found in (record["machine"]["device"], hardware.get("device", device)):
        if device and found != device:
            raise Damaged(f"record.json is of another device: {found}, not {device}")
    memory = hardware.get("gpu_memory_bytes" if device == "cuda" else "host_memory_bytes")
    for one in record["summary"].get("values", []):
        if memory and one["quantity"].startswith("peak_") and one["value"] > memory:
            said = f"{one['quantity']:.60} is {one['value']:.4g} bytes"
            raise Damaged(f"record.json is damaged: {said}, more than the machine's {memory:.4g}")


def content(folder: Path, digest: str) -> bytes:
    """A cell's samples as they were written, by their digest in the record. Raises Damaged."""
    try:
        text = _content(folder / "samples.csv")
    except FileNotFoundError:
        raise Damaged("samples.csv is missing") from None
    if hashlib.sha256(text).hexdigest() != digest:
        raise Damaged(
            "samples.csv is not the file that record.json was written with (truncated or edited by"
            " hand)"
        )
    return text


def parsed(contents: Mapping[str, bytes]) -> tuple[pd.DataFrame, dict[str, str]]:
    """(samples of many cells in one DataFrame, with the name of each as `cell`; those that cannot
    be: why).

    contents: cell: its samples.csv. Files with the same columns are parsed at once, since a large
    grid has thousands; each by itself where one of them is not even a table.
    """
    by_header: dict[bytes, dict[str, bytes]] = {}
    for cell, text in contents.items():
        by_header.setdefault(text.partition(b"\n")[0], {})[cell] = text
    frames = [pd.DataFrame(columns=["cell"], dtype=str)]
    damaged: dict[str, str] = {}
    groups = list(by_header.values())
    for alike in groups:  # and those that follow below
        try:
            frames.append(_table(alike))
        except (ValueError, OverflowError) as error:  # a whole number may be too large for pandas
            if len(alike) > 1:
                groups += [{cell: text} for cell, text in alike.items()]
            else:
                why = f"samples.csv is damaged: {str(error).splitlines()[0]}"
                damaged |= dict.fromkeys(alike, why)
        else:
            damaged |= _impossible(frames[-1])
    return pd.concat(frames, ignore_index=True), damaged


def _table(contents: dict[str, bytes]) -> pd.DataFrame:
    """The samples of files that have the same header. Raises ValueError, OverflowError."""
    header = next(iter(contents.values())).partition(b"\n")[0]
    columns = {name.strip('"') for name in header.decode(errors="replace").split(",")}
    lacking = sorted(NEEDED - columns)
    if lacking:
        raise ValueError(f"it has no column {', '.join(lacking)}")
    bodies = b"".join(text.partition(b"\n")[2] for text in contents.values())
    table = pd.read_csv(io.BytesIO(header + b"\n" + bodies), low_memory=False)
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes the first ones for labels
        raise ValueError("there are more fields in a line than columns")
    lines = [text.count(b"\n") - 1 for text in contents.values()]
    return table.assign(cell=np.repeat(list(contents), lines))


def _impossible(table: pd.DataFrame) -> dict[str, str]:
    """Cells with a field that is none of its WORDS or beyond its BOUNDS: the first one."""
    lines = table.groupby("cell").cumcount() + 2  # the first is the header
    found: dict[str, str] = {}
    for name in (*WORDS, *BOUNDS):
        if name not in table:
            continue
        wrong = table[_is_wrong(name, table[name])].drop_duplicates("cell")
        for row, cell, value in zip(wrong.index, wrong["cell"], wrong[name], strict=True):
            said = f"in line {lines[row]} {name} is {str(value)[:60]}"
            found.setdefault(cell, f"samples.csv is damaged: {said}")
    return found


def _is_wrong(name: str, column: pd.Series) -> pd.Series:
    """Of each field of a column."""
    if name in WORDS:
        return ~column.astype(str).fillna("").isin(WORDS[name])
    numbers = column
    if column.dtype.kind not in "if":
        # As text, since a whole number of hundreds of digits has no other form here.
        texts = column.astype(str)
        numbers = pd.to_numeric(texts.where(texts.str.len() < MOST_DIGITS), errors="coerce")
    # Only what was timed may not be missing.
    is_given = column.notna() | (name == "seconds")
    return ~numbers.between(*BOUNDS[name]) & is_given


def prepared(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples of parsed(), less what was refused, with all the columns that series are told apart
    by: missing text is "", a missing whole number 0."""
    # What was refused may have made text of a column.
    types = dict.fromkeys([*TEXT, "kind"], "str") | dict.fromkeys(NUMBERS, "float")
    types |= dict.fromkeys(WHOLE_NUMBERS, "int")
    found = samples.reindex(columns=["cell", "warmup", *types])
    found = found.fillna(dict.fromkeys(WHOLE_NUMBERS, 0)).astype(types)
    found = found.fillna(dict.fromkeys([*TEXT, "kind"], ""))
    return found.assign(warmup=found["warmup"].astype(str) == "True")


def _content(path: Path) -> bytes:
    """A file's bytes. Raises FileNotFoundError, Damaged for what is no plain file of some size."""
    try:
        state = path.stat()
        if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
            # To read a pipe, or a device, may never end.
            raise Damaged(f"{path.name} is no file")
        if state.st_size > LARGEST:
            raise Damaged(f"{path.name} has {state.st_size:,} bytes, which no cell writes")
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}") from None
