"""Reads the trace that torch.profiler exports (`export_chrome_trace`): Kineto's events as JSON.

With a GPU it holds the same things as one of Nsight Systems. Without one, the operators of the
processor stand where kernels would: each one that calls no other, and the callers that do most of
their work themselves (all calls of one operator together), with what they call.
"""

import gzip
import json
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.recordings.limits import most_unpacked
from stepscope.trace import TraceError, events
from stepscope.trace.events import Names, Trace
from stepscope.trace.nesting import climb, nest

_RANGES = {"user_annotation", "cpu_op"}
_CALLS = {"cuda_runtime", "cuda_driver"}
_OPERATIONS = {"kernel": events.KERNEL, "gpu_memcpy": events.MEMORY, "gpu_memset": events.MEMORY}
_OWN_WORK = 0.5
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
        raw = _unpacked(path) if path.name.endswith(".gz") else path.read_bytes()
        content = json.loads(raw)
        found = [event for event in content["traceEvents"] if event.get("ph") == "X"]
        return _trace(content, found)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from None
    except _DAMAGES as error:
        raise TraceError(
            f"{path} is not a trace of torch.profiler, or is damaged ({_reason(error)})"
        ) from None


def _unpacked(path: Path) -> bytes:
    limit = most_unpacked(path)
    with gzip.open(path) as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise TraceError(
            f"{path}: unpacked it is larger than {limit >> 20} MB; if you trust it, gunzip it first"
        )
    return raw


def _trace(content: dict, found: list[dict]) -> Trace:
    names, threads = Names(), {}

    def common(part: list[dict]) -> dict:
        start = np.array([round(event["ts"] * 1000) for event in part], dtype=np.int64)
        length = np.array([round(event.get("dur", 0) * 1000) for event in part], dtype=np.int64)
        return {"process": np.zeros(len(part)), "start": start, "end": start + length}

    def of_threads(part: list[dict]) -> dict:
        keys = [(event.get("pid"), event.get("tid")) for event in part]
        codes = [names.code("step" if _is_profiler_step(event) else _text(event)) for event in part]
        return common(part) | {
            "thread": [threads.setdefault(key, len(threads)) for key in keys],
            "name": codes,
        }

    def argument(part: list[dict], key: str, otherwise: int) -> list[int]:
        return [event.get("args", {}).get(key, otherwise) for event in part]

    named = [event for event in found if event.get("cat") in _RANGES]
    if any(event["name"] == "step" for event in named):  # the program's own, else the profiler's
        named = [event for event in named if not _is_profiler_step(event)]
    flags = {"nested": np.ones(len(named)), "cut": np.zeros(len(named))}
    ranges = events.frame(
        events.RANGES, **of_threads(named), **flags, sequence=argument(named, "Sequence number", -1)
    )
    calling = [event for event in found if event.get("cat") in _CALLS]
    calls = events.frame(
        events.CALLS, **of_threads(calling), correlation=argument(calling, "correlation", -1)
    )
    working = sorted(
        (event for event in found if event.get("cat") in _OPERATIONS), key=lambda event: event["ts"]
    )
    operations = events.frame(
        events.OPERATIONS,
        **common(working),
        device=argument(working, "device", 0),
        stream=argument(working, "stream", 0),
        correlation=argument(working, "correlation", -1),
        name=[names.code(_as_nsys(event)) for event in working],
        kind=[_OPERATIONS[event["cat"]] for event in working],
        bytes=argument(working, "bytes", -1),
    )
    is_operator = np.array([event["cat"] == "cpu_op" for event in named], dtype=bool)
    on_host = not working and bool(is_operator.any())
    if on_host:
        operations, calls = _host_operations(ranges, is_operator)
    by_operators, by_hand = (
        set(ranges["name"][mask].tolist()) for mask in (is_operator, ~is_operator)
    )
    properties = content.get("deviceProperties") or []
    return Trace(
        names=names.list,
        ranges=ranges,
        calls=calls,
        operations=operations,
        devices={
            int(entry["id"]): str(entry["name"])
            for entry in properties
            if {"id", "name"} <= entry.keys()
        },
        device_is_host=on_host,
        operators=frozenset(by_operators - by_hand),
    )


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:80]


def _is_profiler_step(event: dict) -> bool:
    """Whether this is a range that torch.profiler's step() opened, such as ProfilerStep#3."""
    return str(event.get("name", "")).startswith("ProfilerStep#")


def _text(event: dict) -> str:
    """An event's name, with what UTF-8 cannot hold replaced."""
    return str(event.get("name", "")).encode("utf-8", "replace").decode()


def _as_nsys(event: dict) -> str:
    """The name of a copy or fill as Nsight Systems writes it; kernels have one name in both."""
    name = _text(event)
    if event["cat"] == "gpu_memset":
        return "[CUDA memset]"
    if event["cat"] == "gpu_memcpy":
        for short, long in (
            ("HtoD", "Host-to-Device"),
            ("DtoH", "Device-to-Host"),
            ("DtoD", "Device-to-Device"),
        ):
            if short in name:
                return f"[CUDA memcpy {long}]"
    return name


def _host_operations(
    ranges: pd.DataFrame, is_operator: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(operations, the calls that launch them): the operators that do the work themselves."""
    own = ranges[is_operator].reset_index(drop=True)
    nothing = np.empty(0, dtype=np.int64)
    parent, _ = nest(own, nothing, nothing, nothing.astype(bool))
    length = (own["end"] - own["start"]).to_numpy()
    inner = parent >= 0
    calling = np.bincount(parent[inner], minlength=len(own)) > 0
    called = np.bincount(parent[inner], length[inner], len(own))
    code = own["name"].to_numpy()
    alone, whole = (
        np.bincount(code[calling], part[calling], code.max() + 1)
        for part in (length - called, length)
    )
    works = ~calling | (alone >= _OWN_WORK * whole)[code]
    hidden = climb(parent, parent, ~works) >= 0  # inside one that works
    chosen = own[works & ~hidden].sort_values("start", kind="stable")
    number = np.arange(len(chosen))
    common = {key: chosen[key].to_numpy() for key in ("process", "start", "end", "name")} | {
        "correlation": number
    }
    zero = np.zeros(len(chosen))
    operations = events.frame(
        events.OPERATIONS,
        device=zero,
        stream=zero,
        kind=zero + events.KERNEL,
        bytes=zero - 1,
        **common,
    )
    calls = events.frame(events.CALLS, thread=chosen["thread"].to_numpy(), **common)
    return operations, calls
