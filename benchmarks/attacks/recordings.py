"""Traces and memory snapshots of strangers: the programs that analyse them, by hand."""

import contextlib
import functools
import gzip
import io
import json
import pickle
import random
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import analyze_nsys
import analyze_snapshot
import pandas as pd

from attacks.trying import Attempt
from attacks.values import HOSTILE, bomb, holder_of, no_file, somewhere, spoilt_bytes

TESTS = Path(__file__).resolve().parents[2] / "tests"
STRANGERS, RECORDED = TESTS / "data/strangers", TESTS / "unit/trace/recordings"
SECONDS = 5  # of the processor, for a file
YEAR, MOST_BYTES = 3.2e7, 2**53
IS_TIME = ("time", "duration", "busy", "wall", "idle", "median", "min", "max")
IS_BYTES = ("bytes", "peak", "active", "reserved", "allocated")

# Values for SQLite and pickle, which know more than JSON.
VALUES = (
    *(None, True, -1, 0, 1, 2**31, 2**63 - 1, -(2**63), 1e-12, 1e308, float("nan"), float("inf")),
    *("", "x" * 10_000, "\0", "../../outside", "<script>alert(1)</script>", b"", b"\xff" * 100),
)
NESTED = (*VALUES, 2**70, 10**400, [], {}, (), {"a": []}, [[1]] * 3, (1,) * 1000, {1, 2}, 1j)
# A view that has no end stands where a table did.
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {} FROM n"
# Programs for the unpickler: to import, to grow, to go deep, to hash for ever.
OPCODES = {
    "import": b"cos\nsystem\n(S'touch outside'\ntR.",
    "import by name": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\rtouch outside\x85R.",
    "persistent": b"Pno\n.",
    "extension": b"\x82\x01.",
    "length": b"\x8e" + (2**40).to_bytes(8, "little") + b"a.",
    "long": b"\x8b\xff\xff\xff\x7f.",
    "frame": b"\x80\x04\x95" + (2**40).to_bytes(8, "little") + b".",
    "holds itself": b"]q\0h\0a.",
    "deep": b"]" * 500_000 + b"a" * 499_999 + b".",
    "marks": b"(" * 1_000_000 + b".",
    "doubling": b"K\x01" + b"2\x86" * 60 + b".",
    "hashed doubling": b"}K\x01" + b"2\x86" * 60 + b"K\x01s.",
    "doubling text": b"\x8c\x10" + b"x" * 16 + b"2\x86" * 400 + b".",
    "memo": b"j\xff\xff\xff\x7f.",
    "large memo": b"Nr\xff\xff\xff\x7f.",
    "build": b"}}b.",
    "pops": b"0" * 100 + b".",
}


def traces(place: Path) -> Callable:
    """A function that makes an attempt with a trace."""
    packed = bomb(b'{"traceEvents": [', b" ")
    paths = [*STRANGERS.glob("*.json"), *STRANGERS.glob("*.sqlite")]
    paths.remove(STRANGERS / "11_windows_path.json")  # no JSON as it is
    paths += [path for path in RECORDED.iterdir() if path.suffix != ".md"]

    def attempt(work: Path, draw: random.Random) -> Attempt:
        path = draw.choice(sorted(paths))
        file = work / path.name
        file.write_bytes(path.read_bytes())
        way = draw.choice((*["inside"] * 6, "bytes", "no file"))
        if draw.random() < 0.03:
            way = "bomb"
        if way == "no file":
            how = no_file(file, draw)
        elif way == "bomb":
            how = "bomb"
            file = work / "trace.json.gz"
            file.write_bytes(packed)
        elif way == "bytes":
            how, content = spoilt_bytes(path.read_bytes(), draw)
            file.write_bytes(content)
        elif path.suffix == ".sqlite":
            how = spoil_database(file, draw)
        else:
            how = spoil_json(file, draw)
        return analysed(analyze_nsys.main, file, f"{path.name}: {how}")

    return attempt


def snapshots(place: Path) -> Callable:
    """A function that makes an attempt with a snapshot."""
    packed = bomb(b"\x80\x04\x8e" + (2**31).to_bytes(8, "little"), b"x")
    paths = [
        *STRANGERS.glob("*.pickle"),
        *(TESTS / "unit/snapshot/recordings").rglob("*.pickle.gz"),
    ]

    def attempt(work: Path, draw: random.Random) -> Attempt:
        path = draw.choice(sorted(paths))
        file = work / path.name
        content = _unpacked(path)
        way = draw.choice((*["inside"] * 6, "bytes", "bytes", "no file", "opcodes", "opcodes"))
        name = path.relative_to(TESTS)
        if draw.random() < 0.03:
            way = "bomb"
        if way == "no file":
            file.write_bytes(content)
            how = no_file(file, draw)
        elif way == "bomb":
            how, name = "bomb", Path("snapshot")
            file.write_bytes(packed)
        elif way == "opcodes":
            how, name = draw.choice(list(OPCODES)), Path("opcodes")
            file.write_bytes(OPCODES[how])
        elif way == "bytes":
            how, content = spoilt_bytes(content, draw)
            file.write_bytes(content)
        else:
            how, made = spoilt_pickle(pickle.loads(content), draw)
            file.write_bytes(pickle.dumps(made, draw.choice((2, 3, 4, 5))))
        return analysed(analyze_snapshot.main, file, f"{name}: {how}")

    return attempt


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def analysed(main: Callable, file: Path, how: str) -> Attempt:
    """An attempt with a program that analyses a file."""

    def run() -> None:
        sys.argv = ["analyze", file.name, "--out", "out", "--most-seconds", str(SECONDS)]
        main()

    return Attempt(how=how, run=run, wrong=functools.partial(impossible, file.parent / "out"))


def spoil_json(file: Path, draw: random.Random) -> str:
    """A part of a trace is another, is gone, or is called otherwise."""
    trace = json.loads(_unpacked(file))
    path = somewhere(trace, draw)
    holder, key = holder_of(trace, path), path[-1]
    way = draw.choice(("another", "another", "gone", "renamed", "scaled"))
    text = draw.choice(HOSTILE)
    if way == "gone":
        del holder[key]
    elif way == "renamed" and isinstance(holder, dict):
        holder[f"{key} "] = holder.pop(key)
    elif way == "scaled" and isinstance(holder[key], int | float):
        holder[key] *= draw.choice((-1, 1e-12, 1e12, 1e300))
    else:
        holder[key] = "@here@"
        way = text[:30]
    content = json.dumps(trace).replace('"@here@"', text).encode()
    file.write_bytes(gzip.compress(content, 1) if file.suffix == ".gz" else content)
    return f"{'.'.join(map(str, path))}: {way}"


def spoil_database(file: Path, draw: random.Random) -> str:
    """A table or column of an export is gone, or holds something else."""
    with sqlite3.connect(file) as database:
        listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = sorted(name for (name,) in listed if not name.startswith("sqlite_"))
        full = [name for name in tables if database.execute(f"SELECT 1 FROM {name}").fetchone()]
        table = draw.choice(full)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        column, value = draw.choice(columns), draw.choice(VALUES)
        way = draw.choice(("one", "one", "all", "all", "gone", "renamed", "dropped", "endless"))
        change = f'UPDATE OR IGNORE {table} SET "{column}" = ?'
        if way == "one":
            row = f"(SELECT rowid FROM {table} LIMIT 1 OFFSET {draw.randrange(5)})"
            with contextlib.suppress(sqlite3.IntegrityError):  # a key can be a number alone
                database.execute(f"{change} WHERE rowid = {row}", (value,))
        elif way == "all":
            with contextlib.suppress(sqlite3.IntegrityError):
                database.execute(change, (value,))
        elif way == "renamed":
            database.execute(f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other')
        elif way == "dropped":
            database.execute(f"DELETE FROM {table}")
        else:
            database.execute(f"ALTER TABLE {table} RENAME TO hidden")
        if way == "endless":
            named = ", ".join(f'x AS "{each}"' for each in columns)
            database.execute(f"CREATE VIEW {table} AS {ENDLESS.format(named)}")
    database.close()
    return f"{table}.{column}: {way}, {str(value)[:30]!r}"


def spoilt_pickle(snapshot: dict, draw: random.Random) -> tuple[str, object]:
    """A part of a snapshot is another, or is gone."""
    path = somewhere(snapshot, draw)
    holder, key = holder_of(snapshot, path), path[-1]
    way = draw.choice(("another", "another", "another", "gone", "in itself", "scaled"))
    if way == "gone":
        del holder[key]
    elif way == "in itself":
        holder[key] = draw.choice((holder, snapshot))
    elif way == "scaled" and isinstance(holder[key], int):
        holder[key] *= draw.choice((-1, 2**20, 2**60))
    else:
        holder[key] = draw.choice(NESTED)
        way = str(holder[key])[:30] if not isinstance(holder[key], int) else "a number"
    return f"{'.'.join(map(str, path))}: {way}", snapshot


def impossible(folder: Path) -> str:
    """A time, a number of bytes or a share in tables that nothing can have; empty where none is."""
    for path in sorted(folder.rglob("*.csv")):
        table = pd.read_csv(io.BytesIO(path.read_bytes()), keep_default_na=False, na_values=[""])
        for name in table.select_dtypes("number"):
            values = table[name].dropna()
            kind = name.rpartition("_")[2]
            most = YEAR if kind in IS_TIME else MOST_BYTES
            if name == "share":
                most = 1 + 1e-9
            elif kind not in (*IS_TIME, *IS_BYTES):
                continue
            if name != "time" or "event" not in table:  # a moment may lie before the first one
                for value in values[~values.between(0, most)]:
                    return f"{path.name}: {name} is {value}"
    return ""
