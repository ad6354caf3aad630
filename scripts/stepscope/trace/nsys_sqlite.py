"""Reads the SQLite export of Nsight Systems (`nsys export --type sqlite`), as any version since 2021 lays it out.

Layout: https://docs.nvidia.com/nsight-systems/UserGuide/index.html, "SQLite Schema Reference". Tables appear only when
they have rows, and columns come and go with the version; what is missing is taken as not recorded.
"""

import itertools
import re
import sqlite3
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from stepscope.trace import TraceError, events
from stepscope.trace.events import Names, Trace

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
RANGES = "NVTX_EVENTS"
# Any of these says that the file is an export, even of a capture in which nothing happened.
KNOWN = (KERNELS, COPIES, FILLS, GRAPHS, *CALLS, RANGES, "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME")

_PUSH_POP, _START_END = (59, 70), (60, 71)  # ENUM_NSYS_EVENT_TYPE: ranges of NVTX and of NVTXT
_MISSING = np.iinfo(np.int64).min
_INLINE = -2  # instead of a text's id: the text stands in the row itself
_PROCESS_BITS = 24  # a global thread id ends with the thread's 24 bits; the rest is the process
_PID = 2**_PROCESS_BITS - 1  # of which the last 24 bits are the process id
# ENUM_DIAGNOSTIC_SEVERITY_LEVEL, for exports that do not hold the table; "Info" and "Verbose" are no warnings.
_SEVERITIES = {2: "Warning", 3: "Error", 4: "Fatal"}
_WARNS = re.compile(r"warn|err|fatal", re.IGNORECASE)
_MOST_DIAGNOSTICS = 20
# ENUM_CUDA_MEMCPY_OPER, for exports that do not hold the table.
_COPY_KINDS = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 10: "Peer-to-Peer"}


def read(path: Path) -> Trace:
    """The trace in an SQLite export. Raises TraceError with one line for any other file, or a damaged one."""
    if not path.is_file():
        raise TraceError(f"{path}: there is no such file")
    try:
        database = _Database(path)
        return _trace(database, path)
    except (sqlite3.Error, ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise TraceError(
            f"{path} cannot be read ({reason}); export it again with `nsys export --type sqlite`"
        ) from None


class _Database:
    """An SQLite file, opened for reading, whose missing tables are empty and missing columns have their default."""

    def __init__(self, path: Path):
        self._connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        # No views: an export has none, and one without an end would be read for ever.
        tables = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = {
            name: {row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(name)})")}
            for (name,) in tables.fetchall()
        }

    def integers(
        self, table: str, columns: dict[str, int], where: str = "1", order: str = "", also: str = ""
    ) -> np.ndarray:
        """(rows, columns) int64; NULL and missing columns are replaced by the given defaults. also: one expression."""
        if table not in self.tables:
            return np.empty((0, len(columns) + bool(also)), dtype=np.int64)
        there = self.tables[table]
        chosen = [
            f'COALESCE("{name}", {default})' if name in there else f"{default}" for name, default in columns.items()
        ]
        chosen += [also] if also else []
        rows = self._connection.execute(f'SELECT {", ".join(chosen)} FROM "{table}" WHERE {where} {order}')
        return np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64).reshape(-1, len(chosen))

    def rows(self, query: str):
        """The rows of any query."""
        return self._connection.execute(query)


def _quoted(name: str) -> str:
    """A name as SQL has it, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: object) -> str:
    """A column of text may hold numbers and bytes too: SQLite's types are those of the values."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _trace(database: _Database, path: Path) -> Trace:
    if not database.tables.keys() & set(KNOWN):
        raise TraceError(f"{path} is an SQLite file, but not a trace of Nsight Systems: it has none of its tables")
    names = Names()
    strings = _strings(database, names)
    calls = _calls(database, names, strings)
    operations = _operations(database, names, strings, calls)
    trace = Trace(
        names=names.list,
        ranges=_ranges(database, names, strings),
        calls=calls,
        operations=operations,
        devices=_devices(database),
        diagnostics=_diagnostics(database),
    )
    unended = trace.ranges["cut"].to_numpy()
    trace.ranges.loc[unended, "end"] = np.maximum(trace.ranges["start"][unended], trace.end)
    return trace


class _Strings:
    """Codes of the export's own string table."""

    def __init__(self, identifiers: np.ndarray, codes: np.ndarray, unknown: int):
        order = np.argsort(identifiers)
        self._identifiers, self._codes, self._unknown = identifiers[order], codes[order], unknown

    def codes(self, identifiers: np.ndarray) -> np.ndarray:
        """The codes in the trace's names; what the table does not have is the unknown name."""
        if not len(self._identifiers):
            return np.full(len(identifiers), self._unknown)
        at = np.minimum(np.searchsorted(self._identifiers, identifiers), len(self._identifiers) - 1)
        return np.where(self._identifiers[at] == identifiers, self._codes[at], self._unknown)


def _strings(database: _Database, names: Names) -> _Strings:
    unknown = names.code("(unnamed)")
    if "StringIds" not in database.tables:
        return _Strings(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), unknown)
    found = database.rows("SELECT id, value FROM StringIds").fetchall()
    identifiers = np.array([row[0] for row in found], dtype=np.int64)
    return _Strings(identifiers, np.array([names.code(_text(row[1])) for row in found], dtype=np.int64), unknown)


def _devices(database: _Database) -> dict[int, str]:
    for table in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"):
        if {"id", "name"} <= database.tables.get(table, set()):
            return {int(number): _text(name) for number, name in database.rows(f"SELECT id, name FROM {table}")}
    return {}


def _ranges(database: _Database, names: Names, strings: _Strings) -> pd.DataFrame:
    """Ranges whose name is inline text or in the string table; the sequence number is cut off the name.

    Old versions fill columns that do not apply: an end of 0 or -1 means no end, and an empty text no text.
    """
    columns = {"start": 0, "end": _MISSING, "eventType": _PUSH_POP[0], "globalTid": 0}
    there = database.tables.get(RANGES, set())
    kinds = f'"eventType" IN {(*_PUSH_POP, *_START_END)}' if "eventType" in there else '"end" IS NOT NULL'
    has_text = "COALESCE(text, '') != ''" if "text" in there else "0"
    registered = "COALESCE(textId, -1)" if "textId" in there else "-1"
    text = f"CASE WHEN {has_text} THEN {_INLINE} ELSE {registered} END"
    found = database.integers(RANGES, columns, kinds, "ORDER BY rowid", also=text)
    start, end, kind, thread, text = found.T
    inline, cut = text == _INLINE, end < start
    code = strings.codes(text)
    code, sequence = np.array([names.operator(name) for name in names.list], dtype=np.int64).reshape(-1, 2)[code].T
    if inline.any():
        texts = database.rows(f'SELECT text FROM "{RANGES}" WHERE {kinds} AND {has_text} ORDER BY rowid')
        pairs = itertools.chain.from_iterable(names.operator(_text(name)) for (name,) in texts)
        of_text = np.fromiter(pairs, dtype=np.int64).reshape(-1, 2)
        code[inline], sequence[inline] = of_text.T
    return events.frame(
        events.RANGES,
        process=thread >> _PROCESS_BITS,
        thread=thread,
        start=start,
        end=np.where(cut, start, np.maximum(start, end)),
        name=code,
        nested=np.isin(kind, _PUSH_POP),
        cut=cut,
        sequence=sequence,
    )


def _calls(database: _Database, names: Names, strings: _Strings) -> pd.DataFrame:
    columns = {"start": 0, "end": 0, "globalTid": 0, "nameId": -1, "correlationId": -1}
    found = np.concatenate([database.integers(table, columns) for table in CALLS])
    start, end, thread, name, correlation = found.T
    return events.frame(
        events.CALLS,
        process=thread >> _PROCESS_BITS,
        thread=thread,
        start=start,
        end=np.maximum(start, end),
        name=strings.codes(name),
        correlation=correlation,
    )


def _operations(database: _Database, names: Names, strings: _Strings, calls: pd.DataFrame) -> pd.DataFrame:
    """Kernels, copies, fills and whole graphs, in the order of their start."""
    common = {"globalPid": -1, "deviceId": 0, "streamId": 0, "correlationId": -1, "start": 0, "end": 0}
    parts = []

    def add(table: str, kind: int, column: str, codes) -> None:
        found = database.integers(table, common | {column: -1, "bytes": -1})
        if len(found):
            parts.append(np.column_stack([found[:, :6], codes(found[:, 6]), np.full(len(found), kind), found[:, 7]]))

    there = database.tables.get(KERNELS, ())
    label = next((name for name in ("demangledName", "mangledName", "shortName") if name in there), "demangledName")
    copies = _COPY_KINDS | _enumeration(database, "ENUM_CUDA_MEMCPY_OPER")
    add(KERNELS, events.KERNEL, label, strings.codes)
    add(
        COPIES,
        events.MEMORY,
        "copyKind",
        _coded(names, lambda kind: f"[CUDA memcpy {copies.get(kind, 'of unknown kind')}]"),
    )
    add(FILLS, events.MEMORY, "value", _coded(names, lambda _: "[CUDA memset]"))
    add(GRAPHS, events.GRAPH, "graphId", _coded(names, lambda graph: f"[CUDA graph {graph}]"))
    found = np.concatenate(parts) if parts else np.empty((0, 9), dtype=np.int64)
    process, device, stream, correlation, start, end, code, kind, size = found[np.argsort(found[:, 4], kind="stable")].T
    only = calls["process"].unique()
    process = np.where(process >= 0, process >> _PROCESS_BITS, only[0] if len(only) == 1 else -1)
    device = _gpus(database, process, device)
    values = {"process": process, "device": device, "stream": stream, "correlation": correlation, "bytes": size}
    return events.frame(events.OPERATIONS, **values, start=start, end=np.maximum(start, end), name=code, kind=kind)


def _gpus(database: _Database, process: np.ndarray, device: np.ndarray) -> np.ndarray:
    """The number of each operation's GPU in the machine: a process may see only some, numbered anew from 0."""
    gpu = device.copy()
    for number, seen, pid in _seen_devices(database):
        gpu[((process & _PID) == pid) & (device == seen)] = number
    return gpu


def _seen_devices(database: _Database) -> list[list[int]]:
    """[number in the machine, number in the process, process id] of each GPU that a process saw."""
    found = database.integers("TARGET_INFO_CUDA_DEVICE", {"gpuId": -1, "cudaId": -1, "pid": -1}).tolist()
    return [row for row in found if row[0] >= 0]


def _diagnostics(database: _Database) -> tuple[str, ...]:
    """What the profiler itself warned of, each text once: "Not all NVTX events might have been collected"."""
    if not {"severity", "text"} <= database.tables.get("DIAGNOSTIC_EVENT", set()):
        return ()
    levels = _SEVERITIES | _enumeration(database, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL")
    found = database.rows("SELECT severity, text FROM DIAGNOSTIC_EVENT").fetchall()
    warned = [_text(text) for severity, text in found if _WARNS.search(levels.get(severity, ""))]
    return tuple(dict.fromkeys(text for text in warned if text))[:_MOST_DIAGNOSTICS]


def _coded(names: Names, text):
    """From numbers to the codes of what `text` calls them."""

    def codes(numbers: np.ndarray) -> np.ndarray:
        known, inverse = np.unique(numbers, return_inverse=True)
        return np.array([names.code(text(int(number))) for number in known], dtype=np.int64)[inverse]

    return codes


def _enumeration(database: _Database, table: str) -> dict[int, str]:
    if not {"id", "label"} <= database.tables.get(table, set()):
        return {}
    return {int(number): _text(label) for number, label in database.rows(f"SELECT id, label FROM {table}")}
