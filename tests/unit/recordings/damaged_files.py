"""Traces and snapshots with random damages: each should be analysed, or refused in one line, within
10 s.

Takes small recordings of the tests, damages each kind of file (SQLite exports, torch.profiler's
JSON, pickles, and packed ones) in bytes and in values, and analyses it in this process.
"""

import copy
import gzip
import json
import pickle
import random
import shutil
import signal
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path

from stepscope import snapshot, trace
from stepscope.recordings import limits, text
from stepscope.snapshot import analysis as snapshots
from stepscope.snapshot import summary as snapshot_summary
from stepscope.trace import analysis as traces
from stepscope.trace import cautions
from stepscope.trace import summary as trace_summary

ROOT, SECONDS = Path(__file__).resolve().parents[3], 10
TRACES, SNAPSHOTS = ROOT / "tests/unit/trace/recordings", ROOT / "tests/unit/snapshot/recordings"
VALUES = (
    None,
    True,
    -1,
    0,
    2**31,
    2**62,
    -(2**63),
    2**70,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "9" * 5000,
)
VALUES += (b"\xff\x00", "\x1b[0m", "a" * 100_000, [], {}, [[]], {"a": []})
FLAT = tuple(value for value in VALUES if not isinstance(value, list | dict) and value != 2**70)


class TooLongError(Exception):
    """A damaged file took more than SECONDS."""


def damaged_bytes(raw, chance):
    """Bytes flipped, cut off, doubled, moved or overwritten."""
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 8, 50))):
        at, length = chance.randrange(len(data)), chance.choice((1, 2, 8, 200))
        match chance.randrange(6):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at : at + length] = chance.randbytes(length)
            case 2:
                data[at:at] = data[at : at + length]
            case 3:
                del data[at : at + length]
            case 4:
                data[at : at + length] = bytes([chance.choice((0, 0xFF))]) * length
            case 5 if chance.random() < 0.2:
                del data[max(at, 1) :]
    return bytes(data) or b"\0"


def damaged_values(content, chance):
    """A few values, anywhere in lists and dicts, replaced or removed."""
    content = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 3, 20))):
        at, holder, key = content, None, None
        while isinstance(at, list | dict) and at and (holder is None or chance.random() < 0.9):
            holder, key = at, chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
            at = holder[key]
        if holder is None:
            return chance.choice(VALUES)
        if chance.random() < 0.2:
            del holder[key]
        else:
            holder[key] = chance.choice(VALUES)
    return content


def damage_database(path, chance):
    """A few values of an SQLite file replaced, of any type, and now and then a table or a column
    taken away."""
    database = sqlite3.connect(path)
    tables = [
        row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    for _ in range(chance.choice((1, 1, 3, 20))):
        table = chance.choice(tables)
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        try:
            column = chance.choice(columns)
            if chance.random() < 0.1:
                database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            elif chance.random() < 0.05:
                database.execute(f'DROP TABLE "{table}"')
            else:
                rows = "1" if chance.random() < 0.2 else f"rowid % 7 = {chance.randrange(7)}"
                database.execute(
                    f'UPDATE "{table}" SET "{column}" = ? WHERE {rows}', (chance.choice(FLAT),)
                )
        except (sqlite3.Error, IndexError):
            continue
    database.commit()
    database.close()


def kinds():
    """Kind of file and damage → (ending, what writes one damaged so)."""
    database = TRACES / "two_layers_bf16.sqlite"
    events = json.loads(gzip.decompress((TRACES / "two_layers_bf16_torch.json.gz").read_bytes()))
    events["traceEvents"] = events["traceEvents"][:400]
    packed = (SNAPSHOTS / "annotations/snapshot.pickle.gz").read_bytes()
    plain = gzip.decompress(packed)
    content = pickle.loads(plain)

    def in_database(path, chance):
        shutil.copyfile(database, path)
        damage_database(path, chance)

    def of_bytes(raw):
        return lambda path, chance: path.write_bytes(damaged_bytes(raw, chance)) and None

    whole = json.dumps(events).encode()
    return {
        "SQLite, bytes": (".sqlite", of_bytes(database.read_bytes())),
        "SQLite, values": (".sqlite", in_database),
        "JSON, bytes": (".json", of_bytes(whole)),
        "JSON, values": (
            ".json",
            lambda path, chance: (
                path.write_text(json.dumps(damaged_values(events, chance), default=str)) and None
            ),
        ),
        "packed JSON, bytes": (".json.gz", of_bytes(gzip.compress(whole))),
        "pickle, bytes": (".pickle", of_bytes(plain)),
        "pickle, values": (
            ".pickle",
            lambda path, chance: (
                path.write_bytes(pickle.dumps(damaged_values(content, chance), 4)) and None
            ),
        ),
        "packed pickle, bytes": (".pickle.gz", of_bytes(packed)),
    }


def analysed(path):
    """What becomes of a file: analysed, refused, or the name of another exception; TooLongError
    beyond SECONDS."""
    try:
        if ".pickle" in path.name:
            most = limits.Limits(
                SECONDS, 2
            )  # a damaged number may ask the unpickler for any time and memory
            refusals = (snapshot.SnapshotError, TooLongError)
            said = limits.within(
                most, "a", lambda: snapshot_summary.text(snapshots.analyse_file(path)), refusals
            )
        else:
            found = traces.read(path)
            cautions.require_operations(found, str(path))
            said = trace_summary.markdown(traces.analyse(found), "Trace")
        return "analysed" if said else "nothing said"
    except (trace.TraceError, snapshot.SnapshotError) as error:
        line = text.plain(error, 1000)
        return "refused" if line and "\n" not in str(error) else "refused in several lines"
    except TooLongError:
        raise
    except limits.LimitError as error:
        return (
            "refused" if "memory" in str(error) or "with code" in str(error) else f"{error}"[:100]
        )
    except Exception as error:  # what is counted here
        return f"{type(error).__name__}: {error}"[:100]


def run(kind, damages):
    """How many of a kind's damages came to what."""

    def stop(*_):
        raise TooLongError

    outcomes, (ending, write) = Counter(), kind
    before = signal.signal(signal.SIGPROF, stop)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(damages):
                path = Path(folder) / f"damaged{ending}"
                write(path, random.Random(f"0 {number}"))
                signal.setitimer(
                    signal.ITIMER_PROF, SECONDS
                )  # of the processor: others may be busy
                try:
                    outcomes[analysed(path)] += 1
                except TooLongError:
                    outcomes[f"longer than {SECONDS} s"] += 1
                signal.setitimer(signal.ITIMER_PROF, 0)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return outcomes
