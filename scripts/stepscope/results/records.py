"""Reading a cell's record and samples: refused unless they are whole, as they were written, and
physically possible."""

import functools
import hashlib
import io
import json
import math
from collections.abc import Iterator
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
    """A cell's record, by record.schema.json. Raises FileNotFoundError if there is none,
    Damaged."""
    import fastjsonschema

    try:
        record = json.loads(_content(folder / "record.json"), parse_constant=_no_number)
        return _schema()(record)
    except fastjsonschema.JsonSchemaValueException as error:
        said = error.message.removeprefix("data.").replace("data ", "it ", 1)
        value = (
            "" if isinstance(error.value, dict | list) else f", not {json.dumps(error.value)[:60]}"
        )
        raise Damaged(f"record.json is damaged: {said}{value}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, Damaged):
            raise
        raise Damaged("record.json is damaged (truncated or edited by hand)") from None


@functools.cache
def _schema():
    import fastjsonschema

    return fastjsonschema.compile(
        json.loads(Path(__file__).with_name("record.schema.json").read_text())
    )


def _no_number(text: str) -> None:
    raise Damaged(f"record.json is damaged: it holds {text}, which is no number")


def read_samples(folder: Path, digest: str):
    """A cell's samples as a DataFrame, if they are those that its record was written with. Raises
    Damaged."""
    samples, damaged = parsed({folder: content(folder, digest)})
    for why in damaged.values():
        raise Damaged(why)
    return samples.drop(columns="cell")


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


def parsed(contents: dict):
    """(samples of many cells in one DataFrame, with what names each as `cell`; those that cannot
    be: why).

    contents: what names a cell -> its samples.csv. Files with the same columns are parsed at once,
    since a large grid has thousands.
    """
    import pandas as pd

    by_header: dict[bytes, list] = {}
    for cell, text in contents.items():
        by_header.setdefault(text.partition(b"\n")[0], []).append(cell)
    found = [
        _together(header, {cell: contents[cell] for cell in cells})
        for header, cells in by_header.items()
    ]
    frames = [table for table, _ in found]
    damaged = {cell: why for _, wrong in found for cell, why in wrong.items()}
    return (
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["cell"])
    ), damaged


def _together(header: bytes, contents: dict):
    """parsed() of files with the same header; each by itself where one of them is not even a
    table."""
    import numpy as np
    import pandas as pd

    cells = list(contents)
    counts = [text.count(b"\n") - 1 for text in contents.values()]
    bodies = b"".join(text.partition(b"\n")[2] for text in contents.values())
    try:
        table = pd.read_csv(io.BytesIO(header + b"\n" + bodies), low_memory=False)
        table = table.assign(cell=np.repeat(np.arange(len(cells)), counts))
    except ValueError as error:
        if len(cells) == 1:
            return pd.DataFrame(columns=["cell"]), {
                cells[0]: f"samples.csv is damaged: {str(error).splitlines()[0]}"
            }
        apart = [_together(header, {cell: text}) for cell, text in contents.items()]
        wrong = {cell: why for _, found in apart for cell, why in found.items()}
        return pd.concat([table for table, _ in apart], ignore_index=True), wrong
    starts, damaged = np.cumsum([0, *counts]), {}
    for row, name in _impossible(table):
        number = table["cell"][row]
        said = (
            f"samples.csv is damaged: in line {row - starts[number] + 2} {name} is"
            f" {table[name][row]}"
        )
        damaged.setdefault(cells[number], said)
    return table.assign(cell=pd.Categorical.from_codes(table["cell"], cells)), damaged


def _impossible(table) -> Iterator[tuple[int, str]]:
    """(row, column) of the first number of each file and column that is beyond its BOUNDS."""
    import pandas as pd

    for name, (least, most) in BOUNDS.items():
        if name in table:
            column = table[name]
            numbers = (
                column if column.dtype.kind in "if" else pd.to_numeric(column, errors="coerce")
            )
            wrong = ~numbers.between(least, most) & (column.notna() | (name == "seconds"))
            yield from ((row, name) for row in table[wrong].drop_duplicates("cell").index)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}") from None
