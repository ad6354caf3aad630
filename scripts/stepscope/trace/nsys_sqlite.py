"""Reads the SQLite export of Nsight Systems (`nsys export --type sqlite`), as any version since
2021 lays it out.

Layout: https://docs.nvidia.com/nsight-systems/UserGuide/index.html, "SQLite Schema Reference".
Tables appear only when they have rows, and columns come and go with the version; what is missing is
taken as not recorded.
"""

import functools
import itertools
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from stepscope.recordings.limits import reading
from stepscope.snapshot.events import Frame
from stepscope.snapshot.stacks import user_line

from . import TraceError, events
from .events import Names, Trace

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
OTHERS = {"library": ("CUBLAS_EVENTS", "CUDNN_EVENTS"), "system": ("OSRT_API",)}
RANGES = "NVTX_EVENTS"
DIAGNOSTICS = "DIAGNOSTIC_EVENT"
# What the names of tables begin with, even in an export of a capture in which nothing happened.
KNOWN = ("CUPTI_ACTIVITY_KIND_", RANGES, "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME")

# ENUM_NSYS_EVENT_TYPE: ranges of NVTX and of NVTXT.
_PUSH_POP = (59, 70)
_START_END = (60, 71)
_DOMAIN = 75  # gives a domain of NVTX its name
_WITH_BACKTRACE = 67  # class of a CUDA call's second row, which has its backtrace
_LIBRARIES = ("cuBLAS", "cuDNN")  # domains whose ranges are calls into these libraries
# A mark of NVTX at the start of a CUDA call; the frames of Python, the innermost first, are numbers
# of StringIds.
_BACKTRACE = "Python Backtrace on CUDA"
# Immutable: SQLite then makes no file beside the input, and needs none that may be there.
_READ_ONLY = "mode=ro&immutable=1"
_UNNAMED = "(unnamed)"
_MISSING = np.iinfo(np.int64).min
_THREADS = 2**24  # a global thread id ends with the thread's 24 bits; the rest is the process
_PID = _THREADS - 1  # of which the last 24 bits are the process id
_WARNS = (2, 3, 4)  # ENUM_DIAGNOSTIC_SEVERITY_LEVEL: warning, error, fatal
_MOST_DIAGNOSTICS = 20
# Columns of the export → of events.py.
_OURS = {
    "globalTid": "thread",
    "globalPid": "process",
    "deviceId": "device",
    "streamId": "stream",
    "correlationId": "correlation",
}
# ENUM_CUDA_MEMCPY_OPER, without those of arrays and unified memory.
_COPY_KINDS = {
    1: "Host-to-Device",
    2: "Device-to-Host",
    8: "Device-to-Device",
    9: "Host-to-Host",
    10: "Peer-to-Peer",
}
_Codes = Callable[[pd.Series], np.ndarray]  # from numbers of the export to codes of names


def read(path: Path) -> Trace:
    """The trace in an SQLite export. Raises TraceError with one line for any other file, or a
    damaged one."""
    advice = "export it again with `nsys export --type sqlite`"
    with reading(path, "a trace of Nsight Systems", TraceError, advice):
        return _trace(_Database(path))


class _Database:
    """An SQLite file, opened for reading, whose missing tables are empty and missing columns have
    their default."""

    def __init__(self, path: Path):
        self.connection = sqlite3.connect(
            f"file:{quote(os.fsencode(path.resolve()))}?{_READ_ONLY}", uri=True
        )
        self.connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        # No views: an export has none, and one without an end would be read for ever.
        columns = self.connection.execute(
            "SELECT main.name, info.name FROM sqlite_master AS main,"
            " pragma_table_info(main.name) AS info WHERE main.type = 'table'"
        )
        self.tables: dict[str, set[str]] = {}
        for table, column in columns:
            self.tables.setdefault(table, set()).add(column)

    def integers(
        self, table: str, columns: dict[str, int], where: str = "1", **also: str
    ) -> pd.DataFrame:
        """Columns of 64 bits, by the names in _OURS; NULL and missing columns are replaced by the
        given defaults. also: expressions by the names of their columns."""
        there = self.tables.get(table, set())
        chosen = [
            f'COALESCE("{name}", {default})' if name in there else f"{default}"
            for name, default in columns.items()
        ]
        query = f'SELECT {", ".join([*chosen, *also.values()])} FROM "{table}" WHERE {where}'
        rows = self.rows(query) if there else ()
        found = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64)
        names = [*columns, *also]
        return pd.DataFrame(found.reshape(-1, len(names)), columns=names).rename(columns=_OURS)

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there with these columns."""
        return set(columns) <= self.tables.get(table, set())

    def rows(self, query: str):
        """The rows of any query."""
        return self.connection.execute(query)

    def texts(
        self,
        table: str,
        key: str,
        value: str,
    ) -> list[tuple[int, str]]:
        """Each row's number and text; none without the table or the columns."""
        if not self.has(table, key, value):
            return []
        return [
            (int(number), _text(text))
            for number, text in self.rows(f"SELECT {key}, {value} FROM {table}")
        ]


def _text(value: object) -> str:
    """A column of text may hold numbers and bytes too: SQLite's types are those of the values."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _trace(database: _Database) -> Trace:
    if not any(name.startswith(KNOWN) for name in database.tables):
        raise ValueError("it has none of its tables")
    names = Names()
    strings = _strings(database, names)
    all_calls = _calls(database, strings, CALLS)
    calls = all_calls[all_calls.pop("class") != _WITH_BACKTRACE].reset_index(drop=True)
    others = {
        kind: _calls(database, strings, tables)[list(events.CALLS)]
        for kind, tables in OTHERS.items()
    }
    others["line"] = _lines(database, names, all_calls)
    operations = _operations(database, names, strings, calls)
    ranges, noted = _ranges(database, names)
    others["library"] = pd.concat([others["library"], noted], ignore_index=True)
    trace = Trace(
        names=list(names),
        ranges=ranges,
        calls=calls,
        operations=operations,
        others=others,
    )
    trace.diagnostics = _diagnostics(database, trace)
    trace.ranges = ranges.assign(end=ranges["end"].mask(ranges["cut"], trace.extent[1]))
    return trace


def _strings(database: _Database, names: Names) -> _Codes:
    """From identifiers of the export's own string table to codes of names; what it does not have is
    _UNNAMED."""
    unknown = names[_UNNAMED]
    found = {key: names[text] for key, text in database.texts("StringIds", "id", "value")}
    known = pd.Series(found, dtype=np.int64)
    return lambda identifiers: known.reindex(identifiers, fill_value=unknown).to_numpy()


def _ranges(database: _Database, names: Names) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(ranges, calls into libraries, which newer versions note as ranges): their names are inline
    text or in the string table; the sequence number is cut off the name.

    Old versions fill columns that do not apply: an end of 0 or -1 means no end, and an empty text
    no text.
    """
    columns = {
        "start": 0,
        "end": _MISSING,
        "eventType": _PUSH_POP[0],
        "globalTid": 0,
        "domainId": -1,
    }
    is_range = '"end" IS NOT NULL'
    if database.has(RANGES, "eventType"):
        is_range = f'"eventType" IN {(*_PUSH_POP, *_START_END)}'
    texts = ["NULLIF(text, '')"] if database.has(RANGES, "text") else []
    if database.has(RANGES, "textId") and database.has("StringIds", "id", "value"):
        texts.append("(SELECT value FROM StringIds WHERE id = textId)")
    # as bytes, which need not be UTF-8
    text = f"CAST(COALESCE({', '.join([*texts, repr(_UNNAMED)])}, '') AS BLOB)"
    read = functools.lru_cache(maxsize=1024)(lambda raw: names.operator(_text(raw)))
    database.connection.create_function("code", 1, lambda raw: read(raw)[0])
    database.connection.create_function("sequence", 1, lambda raw: read(raw)[1])
    found = database.integers(
        RANGES, columns, is_range, name=f"code({text})", sequence=f"sequence({text})"
    )
    found["process"] = found["thread"] // _THREADS
    domains = pd.MultiIndex.from_frame(found[["process", "domainId"]])
    is_call = domains.isin(_libraries(database))
    cut = found["end"] < found["start"]
    found["end"] = found["end"].mask(cut, found["start"])
    ranges = events.frame(
        events.RANGES,
        found[~is_call],
        nested=found["eventType"].isin(_PUSH_POP),
        cut=cut,
    )
    return ranges, events.frame(events.CALLS, found[is_call], correlation=-1)


def _libraries(database: _Database) -> list[tuple[int, int]]:
    """(process, domain of NVTX) of each library."""
    if not database.has(RANGES, "eventType", "globalTid", "domainId", "text"):
        return []
    wanted = f"eventType = {_DOMAIN} AND text IN {_LIBRARIES}"
    query = f"SELECT globalTid / {_THREADS}, domainId FROM {RANGES} WHERE {wanted}"
    return database.rows(query).fetchall()


def _calls(database: _Database, strings: _Codes, tables: tuple[str, ...]) -> pd.DataFrame:
    columns = {
        "start": 0,
        "end": 0,
        "globalTid": 0,
        "nameId": -1,
        "correlationId": -1,
        "eventClass": -1,
    }
    parts = [database.integers(table, columns) for table in tables]
    found = pd.concat(parts, ignore_index=True)
    return events.frame(
        (*events.CALLS, "class"),
        found.rename(columns={"eventClass": "class"}),
        process=found["thread"] // _THREADS,
        end=found[["start", "end"]].max(axis=1),
        name=strings(found["nameId"]),
    )


def _lines(database: _Database, names: Names, calls: pd.DataFrame) -> pd.DataFrame:
    """The CUDA calls whose backtrace was recorded, by the line of the user's Python they are of."""
    marks = []
    if database.has(RANGES, "jsonText", "globalTid"):
        texts = dict(database.texts("StringIds", "id", "value"))
        wanted = f"""jsonText LIKE '{{"{_BACKTRACE}"%'"""
        query = f"SELECT start, globalTid, jsonText FROM {RANGES} WHERE {wanted}"
        for start, thread, text in database.rows(query):
            frames = [
                Frame(texts[each["File"]], each["Line"], texts[each["Function"]])
                for each in json.loads(text)[_BACKTRACE]["Frames"]
            ]
            marks.append((start, thread, names[user_line(frames)]))
    table = pd.DataFrame(marks, columns=["start", "thread", "name"], dtype=np.int64)
    once = calls.drop(columns="name").drop_duplicates(["start", "thread"])
    return events.frame(events.CALLS, table.merge(once, on=["start", "thread"]))


def _operations(
    database: _Database, names: Names, strings: _Codes, calls: pd.DataFrame
) -> pd.DataFrame:
    """Kernels, copies, fills and whole graphs, in the order of their start."""
    common = {
        "globalPid": -1,
        "deviceId": 0,
        "streamId": 0,
        "correlationId": -1,
        "start": 0,
        "end": 0,
        "bytes": -1,
        "gridX": 0,
        "gridY": 0,
        "gridZ": 0,
    }
    copied = _coded(names, lambda kind: f"[CUDA memcpy {_COPY_KINDS.get(kind, 'of unknown kind')}]")
    kinds: list[tuple[str, int, str, _Codes]] = [
        (KERNELS, events.KERNEL, "demangledName", strings),
        (COPIES, events.MEMORY, "copyKind", copied),
        (FILLS, events.MEMORY, "value", _coded(names, "[CUDA memset]".format)),
        (GRAPHS, events.GRAPH, "graphId", _coded(names, "[CUDA graph {}]".format)),
    ]
    parts = []
    for table, kind, column, codes in kinds:
        columns = common | {column: -1}
        read = database.integers(table, columns)
        parts.append(read.assign(kind=kind, name=codes(read[column])))
    found = pd.concat(parts).sort_values("start", kind="stable", ignore_index=True)
    only = calls["process"].unique()
    process = found["process"] // _THREADS  # of none -1
    if len(only) == 1:
        process = process.mask(process < 0, only[0])
    return events.frame(
        events.OPERATIONS,
        found,
        process=process,
        device=_gpus(database, process.to_numpy(), found["device"].to_numpy()),
        end=found[["start", "end"]].max(axis=1),
        shape=found.groupby(["gridX", "gridY", "gridZ"]).ngroup(),
    )


def _gpus(database: _Database, process: np.ndarray, device: np.ndarray) -> np.ndarray:
    """The number of each operation's GPU in the machine: a process may see only some, numbered anew
    from 0."""
    gpu = device.copy()
    columns = {
        "gpuId": -1,
        "cudaId": -1,
        "pid": -1,
    }
    known = database.integers("TARGET_INFO_CUDA_DEVICE", columns)
    for number, seen, pid in known.itertuples(index=False):
        if number >= 0:
            gpu[((process & _PID) == pid) & (device == seen)] = number
    return gpu


def _diagnostics(database: _Database, trace: Trace) -> tuple[str, ...]:
    """What the profiler itself warned of, each text once: "Not all NVTX events might have been
    collected". What it says of a process that is not in the trace, a launcher's shell, is left out.
    """
    if not database.has(DIAGNOSTICS, "severity", "text"):
        return ()
    every = pd.concat([table["process"] for table in trace.tables.values()])
    there = ", ".join(map(str, (every & _PID).unique()))
    owner = "globalPid" if database.has(DIAGNOSTICS, "globalPid") else "NULL"
    wanted = f"""
        text <> '' AND severity IN {_WARNS} AND (
            {owner} IS NULL OR {owner} <= 0 OR {owner} / {_THREADS} & {_PID} IN ({there})
        )"""
    warned = database.rows(f"SELECT text FROM {DIAGNOSTICS} WHERE {wanted}")
    return tuple(dict.fromkeys(_text(text) for (text,) in warned))[:_MOST_DIAGNOSTICS]


def _coded(names: Names, text: Callable[[int], str]) -> _Codes:
    """From numbers to the codes of what `text` calls them."""

    def codes(numbers: pd.Series) -> np.ndarray:
        known, inverse = np.unique(numbers, return_inverse=True)
        code = [names[text(number)] for number in known.tolist()]
        return np.array(code, dtype=np.int64)[inverse]

    return codes
