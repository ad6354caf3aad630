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
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.recordings import names as people
from stepscope.recordings.limits import most_unpacked
from stepscope.trace import TraceError, event_categories, events
from stepscope.trace.event_categories import CALL, EITHER, MOVES, ON_DEVICE, OPERATOR, RANGE
from stepscope.trace.events import Names, Trace
from stepscope.trace.nesting import climb, groups, latest_before, nest

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
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:80]
        raise TraceError(
            f"{path} is not a trace of torch.profiler, or is damaged ({reason})"
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
    by_kind = _by_kind(found)
    by_hand = by_kind[RANGE]
    operators = by_kind[OPERATOR]
    calling = by_kind[CALL]
    if any(event["name"] == "step" for event in by_hand):  # the program's, else the profiler's
        by_hand = [event for event in by_hand if not _is_profiler_step(event)]
    named = [*by_hand, *operators]
    is_operator = np.repeat([False, True], [len(by_hand), len(operators)])
    host, processes = _of_host([*named, *calling])
    names = Names()
    codes = [names.code("step" if _is_profiler_step(each) else each["name"]) for each in by_hand]
    codes += [names.of_operator(event["name"]) for event in operators]
    ranges = events.frame(
        events.RANGES,
        host[: len(named)],
        name=codes,
        nested=True,
        cut=False,
        sequence=_numbers(named, "Sequence number"),
    )
    calls = events.frame(
        events.CALLS,
        host[len(named) :],
        name=[names.code(event["name"]) for event in calling],
        correlation=_numbers(calling, "correlation"),
    )
    working = [*by_kind[ON_DEVICE], *by_kind[MOVES]]
    working.sort(key=lambda event: float(event["ts"]))
    operations = _operations(working, names, calls, processes)
    on_host = not working and not calling and bool(operators)
    if on_host:
        collective = np.array([bool(_COLLECTIVE.match(each["name"])) for each in named])
        operations, calls = _host_operations(ranges, is_operator | collective)
    of_operators, of_persons = (
        set(ranges["name"][mask].tolist()) for mask in (is_operator, ~is_operator)
    )
    told = content.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    shown = dict(enumerate(processes))
    return Trace(
        names=names.list,
        ranges=ranges,
        calls=calls,
        operations=operations,
        devices={
            int(each["id"]): str(each["name"])
            for each in content.get("deviceProperties") or []
            if isinstance(each, dict) and {"id", "name"} <= each.keys()
        },
        device_is_host=on_host,
        operators=frozenset(of_operators - of_persons),
        messages=_messages(working),
        profiler="torch",
        processes=shown,
        ranks=dict.fromkeys(shown, rank) if isinstance(rank, int) else {},
    )


def _by_kind(found: list[dict]) -> dict[int, list[dict]]:
    """Events by their kind; each with a name that UTF-8 can hold, of a copy or fill as Nsight
    Systems writes it, and with arguments."""
    by_kind: dict[int, list[dict]] = defaultdict(list)
    for event in found:
        category = str(event.get("cat") or event.get("pid") or "")
        kind = event_categories.kind_of(category)
        if kind is None:
            continue
        name = str(event.get("name", "")).encode("utf-8", "replace").decode()
        if kind == MOVES:
            name = event_categories.copy_name(category, name)
        elif kind == EITHER:
            kind = OPERATOR if people.is_operator(name) else RANGE
        said = event.get("args")
        arguments = said if isinstance(said, dict) else {}
        by_kind[kind].append(
            event
            | {
                "name": name,
                "args": arguments,
                "moves": kind == MOVES,
            }
        )
    return by_kind


def _of_host(part: list[dict]) -> tuple[pd.DataFrame, list[int | str]]:
    """(times, process and thread of all events of the host, what the processes are called in the
    file: by their id, or the name of merged files)."""
    keys = [(_key(event.get("pid")), _key(event.get("tid"))) for event in part]
    process, known = _numbered([process for process, _ in keys])
    thread, _ = _numbered(keys)
    return _times(part).assign(process=process, thread=thread), known


def _operations(
    working: list[dict], names: Names, calls: pd.DataFrame, processes: list[int | str]
) -> pd.DataFrame:
    """What devices did. Their events have a device for a process; whose it is, launches tell."""
    times = _times(working)
    correlation = np.array(_numbers(working, "correlation"), dtype=np.int64)
    asked = pd.DataFrame({"correlation": correlation, "start": times["end"]})
    launched = latest_before(calls[["correlation", "start"]], asked)
    by = np.append(calls["process"].to_numpy(), -1)[np.where(correlation >= 0, launched, -1)]
    process = np.zeros(len(working), dtype=np.int64)
    device, pids = _numbered([_key(event.get("pid")) for event in working])
    are_mixed = len(pids) < calls["process"].nunique()  # device 0 of several hosts
    for number, own in groups(device):
        process[own] = _owner(pids[number], by[own], processes, are_mixed)
    return events.frame(
        events.OPERATIONS,
        times,
        process=process,
        device=_numbers(working, "device", 0),
        stream=_numbers(working, "stream", 0),
        correlation=correlation,
        name=[names.code(event["name"]) for event in working],
        kind=[events.MEMORY if event["moves"] else events.KERNEL for event in working],
        bytes=_numbers(working, "bytes"),
        # a number for each grid that kernels were launched with
        shape=_numbered([str(event["args"].get("grid")) for event in working])[0],
    )


def _owner(
    device: int | str, launched_by: np.ndarray, processes: list[int | str], are_mixed: bool
) -> int | np.ndarray:
    """The process that a device's events belong to, where files were merged: the one with the same
    words before the number, such as "[TP00] 0" beside "[TP00] 4711"; else the one that launched
    most of them, or where devices have no numbers of their own each."""
    words = _words(device)
    alike = [number for number, key in enumerate(processes) if words and _words(key) == words]
    if len(alike) == 1:
        return alike[0]
    known = launched_by[launched_by >= 0]
    most = int(np.bincount(known).argmax()) if len(known) else 0
    return np.where(launched_by >= 0, launched_by, most) if are_mixed else most


def _messages(working: list[dict]) -> pd.DataFrame:
    """What torch.distributed says of its collectives (saveNcclMeta in
    torch/csrc/profiler/util.cpp)."""
    at = [number for number, event in enumerate(working) if "Collective name" in event["args"]]
    own = [working[number] for number in at]
    said = [event["args"] for event in own]
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


def _times(part: list[dict]) -> pd.DataFrame:
    """Starts and ends in nanoseconds."""
    start = np.array([round(float(event["ts"]) * 1000) for event in part], dtype=np.int64)
    length = [max(round(float(event.get("dur") or 0) * 1000), 0) for event in part]
    return pd.DataFrame({"start": start, "end": start + np.array(length, dtype=np.int64)})


def _numbers(part: list[dict], key: str, otherwise: int = -1) -> list[int]:
    """A whole number of each event's arguments; what is none, or has more than 63 bits, counts as
    not recorded."""
    values = [event["args"].get(key) for event in part]
    return [
        value if isinstance(value, int) and -_MOST <= value < _MOST else otherwise
        for value in values
    ]


def _numbered(values: list) -> tuple[np.ndarray, list]:
    """(a number for each value, the different values)."""
    number, known = pd.factorize(pd.Series(values, dtype=object))
    return number, list(known)


def _key(value: object) -> int | str:
    """A process's or thread's id: a number, or text."""
    return value if isinstance(value, int) else str(value)


def _words(pid: int | str) -> str:
    """What stands before the number in the name of a process."""
    return str(pid).rstrip("0123456789").strip()


def _is_profiler_step(event: dict) -> bool:
    """Whether this is a range that torch.profiler's step() opened, such as ProfilerStep#3."""
    return event["name"].startswith("ProfilerStep#")


def _host_operations(
    ranges: pd.DataFrame, is_work: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(operations, the calls that launch them): of the ranges that are work (a mask) those
    that do it themselves."""
    own = ranges[is_work].reset_index(drop=True)
    nothing = np.empty(0, dtype=np.int64)
    parent, _ = nest(own, nothing, nothing, nothing.astype(bool))
    length = (own["end"] - own["start"]).to_numpy()
    inner = parent >= 0
    called = np.bincount(parent[inner], length[inner], len(own))
    calls_any = np.isin(np.arange(len(own)), parent)
    of_name = (
        pd.DataFrame({"alone": length - called, "whole": length})[calls_any]
        .groupby(own["name"][calls_any])
        .sum()
    )
    does_most = of_name["alone"] >= _OWN_WORK * of_name["whole"]
    works = ~calls_any | own["name"].isin(of_name.index[does_most]).to_numpy()
    hidden = climb(parent, parent, ~works) >= 0  # inside one that works
    chosen = own[works & ~hidden].sort_values("start", kind="stable")
    number = np.arange(len(chosen))
    operations = events.frame(
        events.OPERATIONS,
        chosen,
        correlation=number,
        device=0,
        stream=0,
        kind=events.KERNEL,
        bytes=-1,
        shape=0,
    )
    return operations, events.frame(events.CALLS, chosen, correlation=number)
