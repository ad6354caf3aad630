"""Recorders of every allocation: PyTorch's allocator history on a GPU, torch.profiler's memory
events on a CPU.

Both end in a memory snapshot in PyTorch's format (torch.cuda.memory._snapshot), which
pytorch.org/memory_viz opens. A *mark* is a place in the history, given as [allocations, frees]
before it: counts need no clock to agree.
"""

import bisect
import re
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path

import torch

from stepscope.measure.scratch import events_of, profiler

SCRIPTS = Path(__file__).resolve().parents[2]
Mark = list[int]  # [allocations, frees]


def recorder(device: str) -> "CudaRecorder | CpuRecorder":
    """The recorder of a device, "cuda" or "cpu"."""
    return CudaRecorder() if device == "cuda" else CpuRecorder()


class CudaRecorder:
    """The history of the CUDA caching allocator, with Python's stack for each allocation."""

    name = "allocator history"

    def start(self) -> None:
        """Record from here on, and forget what was recorded before."""
        self.abandon()
        torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python")
        self._marks: list[Mark] = []
        self._start = self._counts()

    def mark(self) -> int:
        """Note this place; returns the mark's number."""
        self._marks.append(
            [now - start for now, start in zip(self._counts(), self._start, strict=True)]
        )
        return len(self._marks) - 1

    def allocated(self) -> int:
        """Bytes handed out by the allocator now."""
        return torch.cuda.memory_allocated()

    def stop(self) -> tuple[dict, list[Mark]]:
        """(the snapshot, the marks in their order)."""
        snapshot = torch.cuda.memory._snapshot()
        self.abandon()
        return snapshot, self._marks

    def abandon(self) -> None:
        """Record no more."""
        torch.cuda.memory._record_memory_history(None)

    @staticmethod
    def _counts() -> Mark:
        counts = torch.cuda.memory_stats()  # empty before a process first uses CUDA
        return [counts.get(f"allocation.all.{name}", 0) for name in ("allocated", "freed")]


class CpuRecorder:
    """torch.profiler's memory events; a stack names the line where a function begins, since it
    knows no other."""

    name = "torch.profiler"
    _profile: torch.profiler.profile | None = None

    def start(self) -> None:
        """Record from here on, and forget what was recorded before."""
        self.abandon()
        self._count = 0
        self._profile = profiler("cpu", profile_memory=True, with_stack=True)
        self._profile.__enter__()

    def mark(self) -> int:
        """Note this place; returns the mark's number."""
        with torch.profiler.record_function(f"stepscope mark {self._count}"):
            self._count += 1
        return self._count - 1

    def allocated(self) -> None:
        """A CPU's allocator keeps no account."""
        return None

    def stop(self) -> tuple[dict, list[Mark]]:
        """(the snapshot without segments, the marks in their order)."""
        profile = self._profile
        assert profile is not None, "start() comes first"
        self.abandon()
        return from_profile(events_of(profile))

    def abandon(self) -> None:
        """Record no more."""
        if self._profile is not None:
            self._profile.__exit__(None, None, None)
            self._profile = None


def from_profile(events: list[dict]) -> tuple[dict, list[Mark]]:
    """(a snapshot without segments, the marks) of the events of a Chrome trace by
    torch.profiler."""
    memory = [event for event in events if event.get("name") == "[memory]"]
    memory.sort(key=lambda event: event["ts"])
    stacks = _Stacks(event for event in events if event.get("cat") == "python_function")
    trace: list[dict] = []
    times: dict[bool, list[float]] = {True: [], False: []}  # of allocations, and of frees
    for event in memory:
        size = event["args"]["Bytes"]  # below 0 of what is freed
        is_made = size > 0
        times[is_made].append(event["ts"])
        entry = {
            "addr": event["args"]["Addr"],
            "size": abs(size),
            "frames": stacks.at(event["tid"], event["ts"]) if is_made else [],
            "stream": 0,
            "time_us": int(event["ts"]),
            "pool_id": (0, 0),
        }
        actions = ["alloc"] if is_made else ["free_requested", "free_completed"]
        trace += [entry | {"action": action} for action in actions]
    marks = []
    for time in _marked(events):
        marks.append([bisect.bisect_left(before, time) for before in times.values()])
    return {"segments": [], "device_traces": [trace], "allocator_settings": {}}, marks


def _marked(events: list[dict]) -> list[float]:
    """When the marks were made, in their order."""
    times: dict[int, float] = {}
    for event in events:
        match = re.fullmatch(r"stepscope mark (\d+)", event.get("name", ""))
        if match and event.get("ph") == "X":
            times[int(match[1])] = event["ts"]
    return [times[number] for number in range(len(times))]


def add_segments(snapshot: dict, before: Iterable[tuple[int, int]]) -> None:
    """Give a snapshot without segments one for each block that is alive at its end.

    before: (address, bytes) of what was alive when the recording began and still is at its end.
    """
    alive: dict[int, tuple[int, list]] = {address: (size, []) for address, size in before if size}
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "alloc":
            alive[entry["addr"]] = entry["size"], entry["frames"]
        elif entry["action"] == "free_completed":
            alive.pop(entry["addr"], None)
    for address, (size, frames) in sorted(alive.items()):
        own = {"address": address, "requested_size": size}
        block = own | {"size": size, "state": "active_allocated", "frames": frames}
        segment = own | {
            "device": 0,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "blocks": [block],
        }
        sizes = dict.fromkeys(("total_size", "allocated_size", "active_size"), size)
        snapshot["segments"].append(segment | sizes)


class _Stacks:
    """Python's stack at a time, from the profiler's events, one for each call of a function."""

    _FUNCTION = re.compile(r"(.+\.py)\((\d+)\): (.+)")

    def __init__(self, events: Iterable[dict]):
        self._waiting: dict[int, deque[dict]] = defaultdict(deque)
        self._open: dict[int, list[dict]] = defaultdict(list)
        for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
            self._waiting[event["tid"]].append(event)

    def at(self, thread: int, time: float) -> list[dict]:
        """Frames of a thread, innermost first; must be asked in the order of time."""
        stack = self._open[thread]
        waiting = self._waiting[thread]
        while waiting and waiting[0]["ts"] <= time:
            stack.append(waiting.popleft())
        stack[:] = [call for call in stack if call["ts"] + call["dur"] >= time]
        frames = [self._FUNCTION.fullmatch(call["name"]) for call in reversed(stack)]
        return [
            {"filename": _path(match[1]), "line": int(match[2]), "name": match[3]}
            for match in frames
            if match
        ]


def _path(name: str) -> str:
    """The profiler cuts the first of sys.path off a file's name; ours get it back."""
    return str(SCRIPTS / name) if name.startswith("stepscope/") else name
