"""Reading a cell's record and samples: refused unless they are whole, as they were written, and physically possible."""

import functools
import hashlib
import io
import json
import math
from pathlib import Path

YEAR = 3.2e7  # s
TIMES = ("seconds", "event_seconds", "launch_seconds")
# Column of samples.csv -> least and most; of those of the GPU a field may be empty.
BOUNDS = {
    "seconds": (math.ulp(0), YEAR),
    **dict.fromkeys(TIMES[1:], (0, YEAR)),
    **dict.fromkeys(("process", "round", "step", "length"), (0, 1e9)),
    **{"sm_clock_mhz": (0, 1e5), "power_w": (0, 1e5), "temperature_c": (-273.15, 1e4)},
}


class Damaged(ValueError):
    """Why a cell's files are not those that were written, in one line."""


def read_record(folder: Path) -> dict:
    """A cell's record, by record.schema.json. Raises FileNotFoundError if there is none, Damaged."""
    import fastjsonschema

    try:
        record = json.loads(_content(folder / "record.json"), parse_constant=_no_number)
        return _schema()(record)
    except fastjsonschema.JsonSchemaValueException as error:
        said = error.message.removeprefix("data.").replace("data ", "it ", 1)
        value = "" if isinstance(error.value, dict | list) else f", not {json.dumps(error.value)[:60]}"
        raise Damaged(f"record.json is damaged: {said}{value}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, Damaged):
            raise
        raise Damaged("record.json is damaged (truncated or edited by hand)") from None


@functools.cache
def _schema():
    import fastjsonschema

    return fastjsonschema.compile(json.loads(Path(__file__).with_name("record.schema.json").read_text()))


def _no_number(text: str) -> None:
    raise Damaged(f"record.json is damaged: it holds {text}, which is no number")


def read_samples(folder: Path, digest: str):
    """A cell's samples as a DataFrame, if they are those that its record was written with. Raises Damaged."""
    import pandas as pd

    try:
        content = _content(folder / "samples.csv")
    except FileNotFoundError:
        raise Damaged("samples.csv is missing") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise Damaged("samples.csv is not the file that record.json was written with (truncated or edited by hand)")
    try:
        table = pd.read_csv(io.BytesIO(content))
        if not isinstance(table.index, pd.RangeIndex):
            raise ValueError("it has more fields than columns")
    except ValueError as error:
        raise Damaged(f"samples.csv is damaged: {str(error).splitlines()[0]}") from None
    for name, (least, most) in BOUNDS.items():
        if name in table:
            column = table[name]
            numbers = column if column.dtype.kind in "if" else pd.to_numeric(column, errors="coerce")
            wrong = ~numbers.between(least, most) & (column.notna() | (name == "seconds"))
            if wrong.any():
                row = wrong.idxmax()
                raise Damaged(f"samples.csv is damaged: in line {row + 2} {name} is {column[row]}")
    return table


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}") from None
