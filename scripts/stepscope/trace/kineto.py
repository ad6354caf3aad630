"""Reads the trace that torch.profiler exports (`export_chrome_trace`): Kineto's events as JSON.

With a GPU it holds the same things as one of Nsight Systems. Without one, the operators of the
processor stand where kernels would: each one that calls no other, and the callers that do most of
their work themselves (all calls of one operator together), with what they call; beside them the
collectives that a library runs on threads of its own.
"""

import gzip
import json
import re
import zlib
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.recordings import names as people
from stepscope.recordings.limits import most_unpacked
from stepscope.trace import TraceError, event_categories, events
from stepscope.trace.event_categories import CALL, EITHER, MOVES, ON_DEVICE, OPERATOR, RANGE
from stepscope.trace.events import Names, Trace
from stepscope.trace.nesting import climb, latest_before, nest

_OWN_WORK = 0.5
_GZIP = b"\x1f\x8b"
_MOST = 2**63
_COLLECTIVE = re.compile(r"^(gloo|mpi|ucc|nccl|xccl):")  # on a thread of the processor
_ITEM_BYTES = {
    "Double": 8,
    "Long": 8,
    "Float": 4,
    "Int": 4,
    "Half": 2,
    "BFloat16": 2,
    "Short": 2,
}
# In a text of JSON: a backslash with what makes it an escape, or alone, as in C:\code; a number
# that C++ prints and JSON does not have.
_ESCAPE = re.compile(r"""\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?""")
_NO_NUMBER = re.compile(r"(?<=:)\s*[-+]?(nan|inf)(?=\s*[,}\]])", re.IGNORECASE)
_DAMAGES = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    OverflowError,
    RecursionError,
    zlib.error,
)


def read(path: Path) -> Trace:
    """The trace in a .json or .json.gz. Raises TraceError with one line for any other file, or a
    damaged one."""
    try:
        content = _parsed(_bytes(path))
        if isinstance(content, list):  # the format allows the events alone
            content = {"traceEvents": content}
        found = [each for each in content["traceEvents"] if isinstance(each, dict)]
        if not found:
            raise ValueError("it has no events")
        return _trace(content, [each for each in found if each.get("ph") == "X"])
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from None
    except _DAMAGES as error:
        raise TraceError(
            f"{path} is not a trace of torch.profiler, or is damaged ({_reason(error)})"
        ) from None


def _bytes(path: Path) -> bytes:
    """What is in the file, unpacked if it is packed."""
    with path.open("rb") as file:
        if file.read(2) != _GZIP:
            return path.read_bytes()
    limit = most_unpacked(path)
    with gzip.open(path) as unpacked:
        raw = unpacked.read(limit + 1)
    if len(raw) > limit:
        raise TraceError(
            f"{path}: unpacked it is larger than {limit >> 20} MB; if you trust it, gunzip it first"
        )
    return raw


def _parsed(raw: bytes):
    """The JSON, also with what its writers get wrong in names: bytes that are not UTF-8, control
    characters, backslashes that escape nothing; numbers that are none; a list without its end."""
    text = raw.decode(json.detect_encoding(raw), "replace")
    try:
        return json.loads(text, strict=False)
    except ValueError as error:
        mended = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", text)
        mended = _NO_NUMBER.sub("null", mended)
        if mended.lstrip().startswith("[") and not mended.rstrip().endswith("]"):
            mended = mended.rstrip().rstrip(",") + "]"
        if mended == text:
            raise error
    return json.loads(mended, strict=False)


def _trace(content: dict, found: list[dict]) -> Trace:
    by_kind: dict[int | None, list[dict]] = {}
    for event in found:
        category = event.get("cat") or event.get("pid") or ""
        by_kind.setdefault(event_categories.kind_of(str(category)), []).append(event)
    for event in by_kind.get(EITHER, []):
        kind = OPERATOR if people.is_operator(_text(event)) else RANGE
        by_kind.setdefault(kind, []).append(event)
    by_hand = by_kind.get(RANGE, [])
    operators = by_kind.get(OPERATOR, [])
    if any(event.get("name") == "step" for event in by_hand):  # the program's, else the profiler's
        by_hand = [event for event in by_hand if not _is_profiler_step(event)]
    calling = by_kind.get(CALL, [])
    hosts = _Hosts([*by_hand, *operators, *calling])
    names = Names()
    named = [*by_hand, *operators]
    is_operator = np.repeat([False, True], [len(by_hand), len(operators)])
    codes = [names.code("step" if _is_profiler_step(each) else _text(each)) for each in by_hand]
    codes += [names.of_operator(_text(event)) for event in operators]
    ranges = events.frame(
        events.RANGES,
        **_times(named),
        **hosts.of(named),
        name=codes,
        nested=np.ones(len(named)),
        cut=np.zeros(len(named)),
        sequence=_numbers(named, "Sequence number"),
    )
    calls = events.frame(
        events.CALLS,
        **_times(calling),
        **hosts.of(calling),
        name=[names.code(_text(event)) for event in calling],
        correlation=_numbers(calling, "correlation"),
    )
    working = [*by_kind.get(ON_DEVICE, []), *by_kind.get(MOVES, [])]
    working.sort(key=lambda event: float(event["ts"]))
    operations = _operations(working, names, calls, hosts)
    on_host = not working and not calling and bool(operators)
    if on_host:
        is_work = np.array([bool(_COLLECTIVE.match(_text(each))) for each in named], dtype=bool)
        operations, calls = _host_operations(ranges, is_operator, is_work)
    of_operators, of_persons = (
        set(ranges["name"][mask].tolist()) for mask in (is_operator, ~is_operator)
    )
    properties = [each for each in content.get("deviceProperties") or [] if isinstance(each, dict)]
    told = content.get("distributedInfo") or {}
    rank = told.get("rank") if isinstance(told, dict) else None
    return Trace(
        names=names.list,
        ranges=ranges,
        calls=calls,
        operations=operations,
        devices={
            int(each["id"]): str(each["name"])
            for each in properties
            if {"id", "name"} <= each.keys()
        },
        device_is_host=on_host,
        operators=frozenset(of_operators - of_persons),
        messages=_messages(working),
        profiler="torch",
        processes=hosts.shown(),
        ranks=dict.fromkeys(hosts.shown(), rank) if isinstance(rank, int) else {},
    )


class _Hosts:
    """The processes and threads of the host: a number for each."""

    def __init__(self, found: list[dict]) -> None:
        """found: all events of the host."""
        self._processes: dict[Hashable, int] = {}
        self._threads: dict[Hashable, int] = {}
        for event in found:
            process = _key(event.get("pid"))
            self._processes.setdefault(process, len(self._processes))
            self._threads.setdefault((process, _key(event.get("tid"))), len(self._threads))

    def of(self, part: list[dict]) -> dict[str, list[int]]:
        """The columns `process` and `thread` of some of these events."""
        keys = [(_key(event.get("pid")), _key(event.get("tid"))) for event in part]
        return {
            "process": [self._processes[process] for process, _ in keys],
            "thread": [self._threads[key] for key in keys],
        }

    def shown(self) -> dict[int, int | str]:
        """Number → what the process is called in the file: its id, or the name of merged files."""
        return {
            number: key if isinstance(key, int) else str(key)
            for key, number in self._processes.items()
        }

    def of_device(
        self, device: Hashable, launched_by: np.ndarray, are_mixed: bool
    ) -> int | np.ndarray:
        """The process that a device's events belong to, where files were merged: the one with the
        same words before the number, such as "[TP00] 0" beside "[TP00] 4711"; else the one that
        launched most of them, or where devices have no numbers of their own each."""
        words = _words(device)
        alike = [
            number for key, number in self._processes.items() if words and _words(key) == words
        ]
        if len(alike) == 1:
            return alike[0]
        known = launched_by[launched_by >= 0]
        most = int(np.bincount(known).argmax()) if len(known) else 0
        return np.where(launched_by >= 0, launched_by, most) if are_mixed else most


def _operations(
    working: list[dict], names: Names, calls: pd.DataFrame, hosts: _Hosts
) -> pd.DataFrame:
    """What devices did. Their events have a device for a process; whose it is, launches tell."""
    times = _times(working)
    correlation = np.array(_numbers(working, "correlation"), dtype=np.int64)
    asked = pd.DataFrame({"correlation": correlation, "start": times["end"]})
    launched = latest_before(calls[["correlation", "start"]], asked)
    by = np.append(calls["process"].to_numpy(), -1)[np.where(correlation >= 0, launched, -1)]
    process = np.zeros(len(working), dtype=np.int64)
    pids: dict[Hashable, list[int]] = {}
    for at, event in enumerate(working):
        pids.setdefault(_key(event.get("pid")), []).append(at)
    are_mixed = len(pids) < len(set(calls["process"].tolist()))  # device 0 of several hosts
    for device, own in pids.items():
        process[own] = hosts.of_device(device, by[own], are_mixed)
    return events.frame(
        events.OPERATIONS,
        **times,
        process=process,
        device=_numbers(working, "device", 0),
        stream=_numbers(working, "stream", 0),
        correlation=correlation,
        name=[names.code(_device_name(event)) for event in working],
        kind=[events.MEMORY if _moves(event) else events.KERNEL for event in working],
        bytes=_numbers(working, "bytes"),
        shape=_shapes(working),
    )


def _messages(working: list[dict]) -> pd.DataFrame:
    """What torch.distributed says of its collectives (saveNcclMeta in
    torch/csrc/profiler/util.cpp)."""
    at = [number for number, event in enumerate(working) if "Collective name" in _arguments(event)]
    own = [working[number] for number in at]
    said = [_arguments(event) for event in own]
    return events.frame(
        events.MESSAGES,
        operation=at,
        collective=[str(each["Collective name"]).strip("_") for each in said],
        given=_numbers(own, "In msg nelems"),
        got=_numbers(own, "Out msg nelems"),
        item=[_ITEM_BYTES.get(str(each.get("dtype")), 1) for each in said],
        group=[_group(each) for each in said],
        ranks=_numbers(own, "Group size"),
        sequence=_numbers(own, "Seq"),
    )


def _group(said: dict) -> str:
    """A group's name, which may be used again for other ranks, and its ranks; of a message between
    two its ends."""
    parts = [str(said.get(key, "")) for key in ("Process Group Name", "Process Group Ranks")]
    if str(said["Collective name"]) in ("send", "recv"):
        parts += [f"{said.get('Src Rank', '')}→{said.get('Dst Rank', '')}"]
    return " ".join(part for part in parts if part)


def _shapes(working: list[dict]) -> list[int]:
    """A number for each grid that kernels were launched with."""
    numbers: dict[str, int] = {}
    grids = [str(_arguments(event).get("grid")) for event in working]
    return [numbers.setdefault(grid, len(numbers)) for grid in grids]


def _times(part: list[dict]) -> dict[str, np.ndarray]:
    """Starts and ends in nanoseconds."""
    start = np.array([round(float(event["ts"]) * 1000) for event in part], dtype=np.int64)
    length = [max(round(float(event.get("dur") or 0) * 1000), 0) for event in part]
    return {"start": start, "end": start + np.array(length, dtype=np.int64)}


def _arguments(event: dict) -> dict:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def _numbers(part: list[dict], key: str, otherwise: int = -1) -> list[int]:
    """A whole number of each event's arguments; what is none, or has more than 63 bits, counts as
    not recorded."""
    values = [_arguments(event).get(key) for event in part]
    return [
        value if isinstance(value, int) and -_MOST <= value < _MOST else otherwise
        for value in values
    ]


def _key(value: object) -> Hashable:
    """A process's or thread's id: a number, or text."""
    return value if isinstance(value, int) else str(value)


def _words(pid: Hashable) -> str:
    """What stands before the number in the name of a process."""
    return str(pid).rstrip("0123456789").strip()


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:80]


def _is_profiler_step(event: dict) -> bool:
    """Whether this is a range that torch.profiler's step() opened, such as ProfilerStep#3."""
    return str(event.get("name", "")).startswith("ProfilerStep#")


def _text(event: dict) -> str:
    """An event's name, with what UTF-8 cannot hold replaced."""
    return str(event.get("name", "")).encode("utf-8", "replace").decode()


def _moves(event: dict) -> bool:
    return event_categories.kind_of(str(event.get("cat"))) == MOVES


def _device_name(event: dict) -> str:
    """The name of a copy or fill as Nsight Systems writes it; kernels have one name in both."""
    name = _text(event)
    return event_categories.copy_name(str(event["cat"]), name) if _moves(event) else name


def _host_operations(
    ranges: pd.DataFrame, is_operator: np.ndarray, is_work: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(operations, the calls that launch them): the operators that do the work themselves, and the
    ranges that are work (masks)."""
    own = ranges[is_operator | is_work].reset_index(drop=True)
    nothing = np.empty(0, dtype=np.int64)
    parent, _ = nest(own, nothing, nothing, nothing.astype(bool))
    length = (own["end"] - own["start"]).to_numpy()
    inner = parent >= 0
    calling = np.bincount(parent[inner], minlength=len(own)) > 0
    called = np.bincount(parent[inner], length[inner], len(own))
    code = own["name"].to_numpy()
    kinds = code.max() + 1
    alone = np.bincount(code[calling], (length - called)[calling], kinds)
    whole = np.bincount(code[calling], length[calling], kinds)
    works = ~calling | (alone >= _OWN_WORK * whole)[code]
    hidden = climb(parent, parent, ~works) >= 0  # inside one that works
    chosen = own[works & ~hidden].sort_values("start", kind="stable")
    number = np.arange(len(chosen))
    common = {key: chosen[key].to_numpy() for key in ("process", "start", "end", "name")}
    common["correlation"] = number
    zero = np.zeros(len(chosen))
    operations = events.frame(
        events.OPERATIONS,
        device=zero,
        stream=zero,
        kind=zero + events.KERNEL,
        bytes=zero - 1,
        shape=zero,
        **common,
    )
    calls = events.frame(events.CALLS, thread=chosen["thread"].to_numpy(), **common)
    return operations, calls
