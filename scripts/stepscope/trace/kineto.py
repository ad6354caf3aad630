"""Reads the trace that torch.profiler exports (`export_chrome_trace`): Kineto's events as JSON.

With a GPU it holds the same things as one of Nsight Systems. Without one, the operators of the
processor stand where kernels would: each one that calls no other, and the callers that do most of
their work themselves (all calls of one operator together), with what they call; beside them the
collectives that a library runs on threads of its own.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.recordings import names as people
from stepscope.recordings.limits import reading, unpacked

from . import TraceError, event_categories, events
from .event_categories import CALL, EITHER, MOVES, OPERATOR, RANGE
from .events import Trace
from .nesting import climb, latest_before, nest

_OWN_WORK = 0.5
_MOST = 2**63
_EVENT = ["kind", "name", "pid", "tid", "args", "ts", "dur"]
# Column → (argument, what stands where it is none).
_ARGUMENTS = {
    "sequence": ("Sequence number", -1),
    "correlation": ("correlation", -1),
    "device": ("device", 0),
    "stream": ("stream", 0),
    "bytes": ("bytes", -1),
}
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


def read(path: Path) -> Trace:
    """The trace in a .json or .json.gz. Raises TraceError with one line for any other file, or a
    damaged one."""
    advice = "export it again with export_chrome_trace"
    with reading(path, "a trace of torch.profiler", TraceError, advice):
        content = _parsed(unpacked(path))
        if isinstance(content, list):  # the format allows the events alone
            content = {"traceEvents": content}
        found = [each for each in content["traceEvents"] if isinstance(each, dict)]
        if not found:
            raise ValueError("it has no events")
        return _trace(content, [each for each in found if each.get("ph") == "X"])


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
    table = _events(found)
    is_range = table["kind"] == RANGE
    is_step = is_range & table["name"].str.startswith("ProfilerStep#")
    named = table["name"][is_range & ~is_step].unique()
    if "step" in map(people.meaning, named):  # the program's, else those of torch.profiler's step()
        table = table[~is_step]
    table["name"], names = pd.factorize(table["name"])
    host = table[table["kind"] <= CALL]
    process, keys = pd.factorize(host["pid"])
    thread = host.groupby(["pid", "tid"], sort=False).ngroup()
    host = host.assign(process=process, thread=thread)
    is_call = host["kind"] == CALL
    calls = events.frame(events.CALLS, host[is_call])
    is_operator = (host["kind"] == OPERATOR).to_numpy()[~is_call]
    ranges = events.frame(events.RANGES, host[~is_call], nested=True, cut=False)
    working = table[table["kind"] > CALL]
    on_host = working.empty and calls.empty and bool(is_operator.any())
    if on_host:
        is_collective = np.array([bool(_COLLECTIVE.match(name)) for name in names])
        operations, calls = _host_operations(ranges, is_operator | is_collective[ranges["name"]])
    else:
        operations = _operations(working, calls, list(keys))
    are_operators = pd.Series(is_operator).groupby(ranges["name"]).all()
    rank = (content.get("distributedInfo") or {}).get("rank")
    shown = dict(enumerate(keys))
    return Trace(
        names=names.tolist(),
        ranges=ranges,
        calls=calls,
        operations=operations,
        device_is_host=on_host,
        operators=frozenset(are_operators.index[are_operators].tolist()),
        messages=_messages(working["args"].tolist()),
        profiler="torch",
        processes=shown,
        ranks=dict.fromkeys(shown, rank) if isinstance(rank, int) else {},
    )


def _events(found: list[dict]) -> pd.DataFrame:
    """A row for each event that counts, by kind: ranges, operators, calls, and what devices
    did, in the order of its start. Each with a name that UTF-8 can hold, of a copy or fill as
    Nsight Systems writes it; times are in nanoseconds."""
    own = []
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
        if kind == OPERATOR:
            name = events.name_of_operator(name)
        said = event.get("args")
        own.append(
            {
                "kind": kind,
                "name": name,
                "pid": _key(event.get("pid")),
                "tid": _key(event.get("tid")),
                "args": said if isinstance(said, dict) else {},
                "ts": event["ts"],
                "dur": event.get("dur") or 0,
            }
        )
    table = pd.DataFrame(own, columns=_EVENT, dtype=object)
    microseconds = table[["ts", "dur"]].astype(float)
    whole = (microseconds * 1000).round().astype(np.int64)
    table = table.assign(
        kind=table["kind"].astype(np.int64),
        start=whole["ts"],
        end=whole["ts"] + whole["dur"].clip(lower=0),
    )
    for column, (key, otherwise) in _ARGUMENTS.items():
        table[column] = _numbers(table["args"].tolist(), key, otherwise)
    return table.sort_values("start", kind="stable", ignore_index=True)


def _operations(
    working: pd.DataFrame, calls: pd.DataFrame, processes: list[int | str]
) -> pd.DataFrame:
    """What devices did. Their events have a device for a process; whose it is, launches tell."""
    asked = working[["correlation", "end"]].rename(columns={"end": "start"})
    launched = latest_before(calls[["correlation", "start"]], asked)
    is_linked = working["correlation"] >= 0
    by = np.append(calls["process"].to_numpy(), -1)[np.where(is_linked, launched, -1)]
    process = np.zeros(len(working), dtype=np.int64)
    devices = working.groupby("pid").indices
    are_mixed = len(devices) < calls["process"].nunique()  # device 0 of several hosts
    for device, own in devices.items():
        process[own] = _owner(device, by[own], processes, are_mixed)
    return events.frame(
        events.OPERATIONS,
        working,
        process=process,
        kind=np.where(working["kind"] == MOVES, events.MEMORY, events.KERNEL),
        # a number for each grid that kernels were launched with
        shape=pd.factorize(working["args"].map(lambda said: str(said.get("grid"))))[0],
    )


def _owner(
    device: object, launched_by: np.ndarray, processes: list[int | str], are_mixed: bool
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
    """What torch.distributed says of its collectives in operations' arguments (saveNcclMeta in
    torch/csrc/profiler/util.cpp)."""
    at = [number for number, said in enumerate(working) if "Collective name" in said]
    own = [working[number] for number in at]
    return events.frame(
        events.MESSAGES,
        operation=at,
        collective=[str(each["Collective name"]).strip("_") for each in own],
        given=_numbers(own, "In msg nelems"),
        got=_numbers(own, "Out msg nelems"),
        item=[_ITEM_BYTES.get(str(each.get("dtype")), 1) for each in own],
        group=[_group(each) for each in own],
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


def _numbers(part: list[dict], key: str, otherwise: int = -1) -> list[int]:
    """A whole number of each event's arguments; what is none, or has more than 63 bits, counts as
    not recorded."""
    values = [said.get(key) for said in part]
    return [
        value if isinstance(value, int) and -_MOST <= value < _MOST else otherwise
        for value in values
    ]


def _key(value: object) -> int | str:
    """A process's or thread's id: a number, or text."""
    return value if isinstance(value, int) else str(value)


def _words(pid: object) -> str:
    """What stands before the number in the name of a process."""
    return str(pid).rstrip("0123456789").strip()


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
    times = pd.DataFrame({"alone": length - called, "whole": length})
    of_name = times.groupby([own["name"], calls_any]).transform("sum")
    works = ~calls_any | (of_name["alone"] >= _OWN_WORK * of_name["whole"]).to_numpy()
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
