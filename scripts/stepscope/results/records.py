"""Reading a cell's record, samples and analysis: refused unless they are whole, as they were
written, and physically possible."""

import functools
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import fastjsonschema
import pandas as pd

from stepscope.axes import DIRECTIONS, MODES
from stepscope.config.studies import STUDIES

from . import tables
from .schema import TABLES

# A profile's are times, too, if not those of a step without a profiler.
SAMPLED = ["profile", *(study.name for study in STUDIES if study.samples_are_series)]
YEAR = 3.2e7  # s
INSTANT = 1e-7  # s: no call takes less
MOST = 1e9  # of what is counted
NEEDED = {"variant", "process", "kind", "phase", "step", "warmup", "seconds"}  # of samples.csv
LARGEST = 2**29  # bytes of a file that is read
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
WHOLE_NUMBERS = ["length", "round", "process", "step"]


class Damaged(Exception):
    """Why a cell's files are not those that were written, in one line."""


def read_record(folder: Path) -> dict:
    """A cell's record, by record.schema.json. Raises FileNotFoundError if there is none,
    Damaged."""
    try:
        record = json.loads(_content(folder / "record.json"), parse_constant=_no_number)
        return _schema()(record)
    except fastjsonschema.JsonSchemaValueException as error:
        raise Damaged(f"record.json is damaged: {complaint(error)}") from None
    except (ValueError, RecursionError):
        raise Damaged("record.json is damaged (truncated or edited by hand)") from None


def complaint(error: fastjsonschema.JsonSchemaValueException) -> str:
    """What does not conform, and to what, in one line."""
    said = error.message.removeprefix("data.").replace("data ", "it ", 1)
    is_part = isinstance(error.value, dict | list)
    return said if is_part else f"{said}, not {json.dumps(error.value)[:60]}"


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
    """(samples of many cells in one DataFrame, those that cannot be: why).

    contents: cell: its samples.csv. Columns: `cell`, TEXT and `kind` ("" where it is missing),
    `warmup` (a flag), and BOUNDS (a missing whole number is 0, any other NaN); of what cannot be no
    row is given.
    """
    columns = ["cell", *dict.fromkeys([*TEXT, *WORDS]), *BOUNDS]
    frames = [pd.DataFrame(columns=columns, dtype="str")]
    damaged: dict[str, str] = {}
    for cell, text in contents.items():
        try:
            frames.append(_table(text).assign(cell=cell))
        except ValueError as error:
            damaged[cell] = f"samples.csv is damaged: {str(error).splitlines()[0]}"
    texts = pd.concat(frames, ignore_index=True)[columns].fillna("")
    numbers = texts[[*BOUNDS]].apply(pd.to_numeric, errors="coerce").astype(float)
    wrong = pd.DataFrame({name: ~texts[name].isin(words) for name, words in WORDS.items()})
    for name, bounds in BOUNDS.items():
        # Only what was timed may not be missing.
        is_given = (texts[name] != "") | (name == "seconds")
        wrong[name] = ~numbers[name].between(*bounds) & is_given
    texts["line"] = texts.groupby("cell").cumcount() + 2  # the first is the header
    texts["field"] = wrong.idxmax(axis=1)
    for row in texts[wrong.any(axis=1)].drop_duplicates("cell").to_dict("records"):
        said = f"in line {row['line']} {row['field']} is {row[row['field']][:60]}"
        damaged[row["cell"]] = f"samples.csv is damaged: {said}"
    found = texts.assign(**numbers, warmup=texts["warmup"] == "True")
    found = found[~found["cell"].isin([*damaged])].fillna(dict.fromkeys(WHOLE_NUMBERS, 0))
    return found.astype(dict.fromkeys(WHOLE_NUMBERS, int)), damaged


def analysis(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables that an analysis left beside a cell's record, by their names; what is no table of
    the schema is for readers. Raises Damaged."""
    found = {}
    for path in folder.glob("analysis/*.csv"):
        if path.stem in TABLES:
            try:
                found[path.stem] = tables.read(path, path.stem)
            except (OSError, ValueError) as error:
                said = f"analysis/{path.name} is damaged: {error}"
                raise Damaged(f"{said}; delete that folder and run again") from None
    return found


def _table(text: bytes) -> pd.DataFrame:
    """A file of samples as text. Raises ValueError."""
    table = pd.read_csv(io.BytesIO(text), dtype="str", keep_default_na=False)
    lacking = sorted(NEEDED - {*table})
    if lacking:
        raise ValueError(f"it has no column {', '.join(lacking)}")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes the first ones for labels
        raise ValueError("there are more fields in a line than columns")
    return table


def _content(path: Path) -> bytes:
    """A file's bytes. Raises FileNotFoundError, Damaged for what is no plain file of some size."""
    try:
        if path.exists() and not path.is_file():
            # To read a pipe, or a device, may never end.
            raise Damaged(f"{path.name} is no file")
        size = path.stat().st_size
        if size > LARGEST:
            raise Damaged(f"{path.name} has {size:,} bytes, which no cell writes")
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}") from None
