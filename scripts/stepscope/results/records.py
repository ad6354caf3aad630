"""Reading a cell's record and samples: refused unless they are whole, as they were written, and
physically possible."""

import functools
import hashlib
import io
import json
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import fastjsonschema
import numpy as np
import pandas as pd

from stepscope.axes import DIRECTIONS, MODES
from stepscope.config.studies import STUDIES

_NONE = pd.DataFrame(columns=["cell"])
YEAR = 3.2e7  # s
INSTANT = 1e-7  # s: no call takes less
TIMES = ("seconds", "event_seconds", "launch_seconds")
NEEDED = {"variant", "process", "kind", "phase", "step", "warmup", "seconds"}  # of samples.csv
LARGEST = 2**29  # bytes of a file that is read
KINDS = ("free", "phased", "host-free", "busy", "burst", "sustained")
# Column of samples.csv -> the words that it knows.
WORDS = {
    "warmup": ("True", "False"),
    "kind": KINDS,
    "mode": ("", *MODES),
    "direction": ("", *DIRECTIONS),
}
# Column of samples.csv -> least and most; of those of the GPU a field may be empty.
BOUNDS = {
    "seconds": (INSTANT, YEAR),
    **dict.fromkeys(TIMES[1:], (0, YEAR)),
    **dict.fromkeys(("process", "round", "step", "length"), (0, 1e9)),
    **{"sm_clock_mhz": (0, 1e5), "power_w": (0, 1e5), "temperature_c": (-273.15, 1e4)},
}


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
    except (ValueError, RecursionError) as error:
        if isinstance(error, Damaged):
            raise
        raise Damaged("record.json is damaged (truncated or edited by hand)") from None


@functools.cache
def _schema() -> Callable[[dict], dict]:
    schema = json.loads(Path(__file__).with_name("record.schema.json").read_text())
    studies = [study.name for study in STUDIES if study.samples_are_series]
    schema["if"]["properties"]["study"] = {"enum": studies}
    return fastjsonschema.compile(schema)


def _no_number(text: str) -> None:
    raise Damaged(f"record.json is damaged: it holds {text}, which is no number")


def check(record: Mapping, name: str, spec: Mapping) -> None:
    """Whether a record is that of the cell of this name and spec, and of one machine. Raises
    Damaged."""
    study, device = name.split("/")[1], spec.get("device")
    if record["study"] != study:
        raise Damaged(f"record.json is of another study: {record['study']}, not {study}")
    hardware = record["provenance"]["hardware"]
    for found in (record["machine"]["device"], hardware.get("device", device)):
        if device and found != device:
            raise Damaged(f"record.json is of another device: {found}, not {device}")
    of_gpu, of_host = (hardware.get(f"{kind}_memory_bytes") for kind in ("gpu", "host"))
    memory = of_gpu if device == "cuda" else of_host
    for one in record["summary"].get("values", []):
        if memory and one["quantity"].startswith("peak_") and one["value"] > memory:
            said = f"{one['quantity']} is {one['value']:.4g} bytes"
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
    grid has thousands.
    """
    by_header: dict[bytes, dict[str, bytes]] = {}
    for cell, text in contents.items():
        by_header.setdefault(text.partition(b"\n")[0], {})[cell] = text
    frames: list[pd.DataFrame] = []
    damaged: dict[str, str] = {}
    for header, alike in by_header.items():
        table, wrong = _together(header, alike)
        frames.append(table)
        damaged |= wrong
    if not frames:
        return _NONE, damaged
    return pd.concat(frames, ignore_index=True), damaged


def _together(header: bytes, contents: dict[str, bytes]) -> tuple[pd.DataFrame, dict[str, str]]:
    """parsed() of files with the same header; each by itself where one of them is not even a
    table."""
    cells = list(contents)
    counts = [text.count(b"\n") - 1 for text in contents.values()]
    bodies = b"".join(text.partition(b"\n")[2] for text in contents.values())
    if lacking := NEEDED - {name.strip('"') for name in header.decode(errors="replace").split(",")}:
        said = f"samples.csv is damaged: it has no column {', '.join(sorted(lacking))}"
        return _NONE, dict.fromkeys(cells, said)
    try:
        table = pd.read_csv(io.BytesIO(header + b"\n" + bodies), low_memory=False)
        if not isinstance(table.index, pd.RangeIndex):  # pandas takes the first ones for labels
            raise ValueError("there are more fields in a line than columns")
        owners = np.repeat(np.arange(len(cells)), counts)
        table = table.assign(cell=owners)
    except (ValueError, OverflowError) as error:  # a whole number may be too large for pandas
        if len(cells) > 1:
            return _apart(header, contents)
        return _NONE, {cells[0]: f"samples.csv is damaged: {str(error).splitlines()[0]}"}
    starts = np.cumsum([0, *counts])
    damaged: dict[str, str] = {}
    for row, name in _impossible(table):
        number = int(owners[row])
        line = row - starts[number] + 2  # the first is the header
        said = f"samples.csv is damaged: in line {line} {name} is {table[name][row]}"
        damaged.setdefault(cells[number], said)
    return table.assign(cell=pd.Categorical.from_codes(owners, pd.Index(cells))), damaged


def _apart(header: bytes, contents: dict[str, bytes]) -> tuple[pd.DataFrame, dict[str, str]]:
    found = [_together(header, {cell: text}) for cell, text in contents.items()]
    damaged = {cell: why for _, wrong in found for cell, why in wrong.items()}
    return pd.concat([table for table, _ in found], ignore_index=True), damaged


def _impossible(table: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """(row, column) of the first field of each file and column that is beyond its BOUNDS, or none
    of its WORDS."""
    for name, words in WORDS.items():
        if name in table:
            column = table[name].fillna("").astype(str)
            wrong = table[~column.isin(words)]
            for row in wrong.drop_duplicates("cell").index:
                yield row, name
    for name, (least, most) in BOUNDS.items():
        if name not in table:
            continue
        column = table[name]
        is_numeric = column.dtype.kind in "if"
        numbers = column if is_numeric else pd.to_numeric(column, errors="coerce")
        # Only what was timed may not be missing.
        is_given = column.notna() | (name == "seconds")
        wrong = table[~numbers.between(least, most) & is_given]
        for row in wrong.drop_duplicates("cell").index:
            yield row, name


def _content(path: Path) -> bytes:
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
