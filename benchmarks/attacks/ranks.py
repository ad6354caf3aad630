"""The parallel study: records that hold what ranks did, its own flags, and traces of several
ranks."""

import contextlib
import functools
import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import analyze_nsys
import pandas as pd
import time_parallel
from stepscope.results.schema import NUMBER, TABLES

from attacks import cells, recordings
from attacks.cells import Cell
from attacks.trying import Attempt
from attacks.values import HOSTILE, holder_of, no_file, one_line_usage, somewhere, spoilt_bytes

MADE = ("ranks", "rank_memory", "collectives", "parallel_predicted")  # of the study's records
SIGNED = ("slowed", "apart", "extra", "gone", "at_once", "residual", "lost")  # parts of a step
MOST = {"s": 3.2e7, "B": 2**53, "B/s": 1e14, "1": 1e12}
TRACES = [recordings.RECORDED / f"ddp_gloo_rank{rank}.json.gz" for rank in range(2)]
VARIANT = {"name": "a", "strategy": "flat"}
# Values of flags, as JSON has them or not.
SPECS = (
    *("", "[]", "{}", "[[]]", "[1]", "null", "NaN", "[" * 5000, '[{"name": "a"}]', "x" * 300),
    *('[{"name": "a/../b", "strategy": "flat"}]', '[{"name": "", "strategy": "flat"}]'),
    *('[{"name": "a", "strategy": ["flat"]}]', '[{"name": "a", "strategy": {"a": 1}}]'),
    *('[{"name": ["a"], "strategy": "flat"}]', '[{"name": "a", "strategy": "flat", "": 1}]'),
)
KEYS = ("strategy", "gradients", "ctas", "attention", "compile", "loss", "checkpoint", "name", "no")
VALUES = (None, True, 0, -1, 2.5, 1e308, 10**30, "", "bf16", "no", "x" * 300, [], ["bf16"], {})
FLAGS = ("devices", "processes", "batch", "context", "steps", "max_steps", "max_seconds", "seed")
NUMBERS = (
    "0",
    "-1",
    "1e3",
    "nan",
    "inf",
    "-inf",
    "9" * 400,
    "",
    " ",
    "½",
    "0x10",
    "1_0",
    "\0",
    "٣",
)


def spoil_told(cell: Cell, draw: random.Random) -> str:
    """A part of what the record tells of ranks and collectives is another, or gone."""
    record = cell.record
    rows = record["summary"]["tables"]
    path = somewhere(rows, draw)
    holder, key = holder_of(rows, path), path[-1]
    way = draw.choice(("another", "another", "gone", "scaled", "twice"))
    text = draw.choice(HOSTILE)
    if way == "gone":
        del holder[key]
    elif way == "twice" and isinstance(holder, list):
        holder.append(holder[key])
    elif way == "scaled" and isinstance(holder[key], int | float):
        holder[key] *= draw.choice((-1, 1e-12, 1e12, 1e300))
    else:
        holder[key], way = "@here@", text[:30]
    cell.write_record(json.dumps(record).replace('"@here@"', text))
    return f"tables.{'.'.join(map(str, path))}: {way}"


def ranks(place: Path) -> Callable:
    """A function that makes an attempt with one of the three."""
    spoilers = (*[spoil_told] * 6, *cells.RECORDS, *cells.SAMPLES)
    of_cell = cells.spoiling(
        spoilers, place, example="devices", studies=("parallel",), wrong=impossible
    )

    def attempt(work: Path, draw: random.Random) -> Attempt:
        way = draw.choice(("cell", "cell", "flags", "traces"))
        return {"cell": of_cell, "flags": of_flags, "traces": of_traces}[way](work, draw)

    return attempt


def of_flags(work: Path, draw: random.Random) -> Attempt:
    """The study's program is asked for something that it cannot measure; it only reads that."""
    text = draw.choice(SPECS)
    if draw.random() < 0.5:
        text = json.dumps([VARIANT | {draw.choice(KEYS): draw.choice(VALUES)}])
    words = ["--size", "nano", "--device", "cpu"]
    if draw.random() < 0.6:
        words += ["--variants", text]
    else:
        text = draw.choice(NUMBERS)
        words += [f"--{draw.choice(FLAGS)}", text]

    def run() -> None:
        one_line_usage()
        spec, _ = time_parallel.parse(words)
        (work / "spec.json").write_text(json.dumps(spec, allow_nan=False))

    return Attempt(how=f"{words[-2]} {text[:60]!r}", run=run)


def of_traces(work: Path, draw: random.Random) -> Attempt:
    """One of the traces of two ranks is spoilt, or there twice."""
    for path in TRACES:
        shutil.copy(path, work)
    file = work / draw.choice(TRACES).name
    way = draw.choice((*["inside"] * 5, "bytes", "no file", "twice"))
    if way == "no file":
        how = no_file(file, draw)
    elif way == "twice":
        how = way
        shutil.copy(*draw.sample([work / path.name for path in TRACES], 2))
    elif way == "bytes":
        how, content = spoilt_bytes(file.read_bytes(), draw)
        file.write_bytes(content)
    else:
        how = recordings.spoil_json(file, draw)

    def run() -> None:
        sys.argv = ["analyze", *(path.name for path in TRACES), "--ranks", "--out", "out"]
        sys.argv += ["--most-seconds", str(recordings.SECONDS)]
        analyze_nsys.main()

    wrong = functools.partial(recordings.impossible, work / "out")
    return Attempt(how=f"{file.name} of two ranks: {how}", run=run, wrong=wrong)


def impossible(tables: Path) -> str:
    """A number in the tables of the study that nothing can have; empty where none is."""
    for name in MADE:
        found = pd.DataFrame()
        with contextlib.suppress(FileNotFoundError, pd.errors.EmptyDataError):
            found = pd.read_csv(tables / f"{name}.csv", keep_default_na=False, na_values=[""])
        for column in TABLES[name].columns.values():
            if column.kind != NUMBER or column.name not in found:
                continue
            values = found[column.name].dropna()
            most = MOST[column.unit]
            least = -most if column.name in SIGNED else 0
            for value in values[~values.between(least, most)]:
                return f"{name}.csv: {column.name} is {value}"
    return cells.impossible_number(tables)
