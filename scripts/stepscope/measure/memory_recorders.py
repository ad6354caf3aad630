"""Recorders of every allocation: PyTorch's allocator history on a GPU, torch.profiler's memory
events on a CPU.

Both end in a memory snapshot in PyTorch's format (torch.cuda.memory._snapshot), which
pytorch.org/memory_viz opens. A *mark* is a place in the history, given as [allocations, frees]
before it: counts need no clock to agree.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler._memory_profiler import OpTree

from .scratch import profiler

SCRIPTS = Path(__file__).resolve().parents[2]
MARK = "stepscope mark"  # the profiler's event of one on a CPU
Mark = list[int]  # [allocations, frees]


def recorder(device: str) -> "CudaRecorder | CpuRecorder":
    """The recorder of a device, "cuda" or "cpu"."""
    return CudaRecorder() if device == "cuda" else CpuRecorder()


class CudaRecorder:
    """The history of the CUDA caching allocator, with Python's stack for each allocation."""

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

    def stop(self, before: Iterable[dict] = ()) -> tuple[dict, list[Mark]]:
        """(the snapshot, the marks in their order). before: what was alive when the recording
        began, each with `address` and `bytes`, which the allocator knows."""
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

    _profile: torch.profiler.profile | None = None

    def start(self) -> None:
        """Record from here on, and forget what was recorded before."""
        self.abandon()
        self._count = 0
        self._profile = profiler("cpu", profile_memory=True, with_stack=True)
        self._profile.__enter__()

    def mark(self) -> int:
        """Note this place; returns the mark's number."""
        with torch.profiler.record_function(MARK):
            self._count += 1
        return self._count - 1

    def allocated(self) -> None:
        """A CPU's allocator keeps no account."""
        return None

    def stop(self, before: Iterable[dict] = ()) -> tuple[dict, list[Mark]]:
        """(the snapshot, the marks in their order). before: what was alive when the recording
        began, each with `address` and `bytes`."""
        profile: Any = self._profile  # whose results have no type until it has ended
        self.abandon()
        trace, marks = from_events(OpTree(profile.profiler.kineto_results).sorted_nodes)
        segments = segments_of(trace, before)
        return {"segments": segments, "device_traces": [trace], "allocator_settings": {}}, marks

    def abandon(self) -> None:
        """Record no more."""
        if self._profile is not None:
            self._profile.__exit__(None, None, None)
            self._profile = None


def from_events(events: Iterable[Any]) -> tuple[list[dict], list[Mark]]:
    """(a snapshot's trace, the marks) of torch.profiler's events in the order of their starts, each
    with its `tag`, `parent` and `extra_fields`."""
    trace: list[dict] = []
    marks: list[Mark] = []
    counts = [0, 0]
    for event in events:
        if event.tag == _EventType.TorchOp and event.name == MARK:
            marks.append([*counts])
        elif event.tag == _EventType.Allocation:
            size = event.extra_fields.alloc_size  # below 0 of what is freed
            is_freed = size < 0
            counts[is_freed] += 1
            entry = {
                "addr": event.extra_fields.ptr,
                "size": abs(size),
                "frames": [] if is_freed else _frames(event),
                "stream": 0,
                "time_us": event.start_time_ns // 1000,
                "pool_id": (0, 0),
            }
            actions = ["free_requested", "free_completed"] if is_freed else ["alloc"]
            trace += [entry | {"action": action} for action in actions]
    return trace, marks


def _frames(event: Any) -> list[dict]:
    """Python's stack at an event, innermost first."""
    found = []
    while event := event.parent:
        if event.tag == _EventType.PyCall:
            call = event.extra_fields.callsite
            # The profiler cuts the first of sys.path off a file's name; ours get it back.
            is_ours = call.file_name.startswith("stepscope/")
            file = str(SCRIPTS / call.file_name) if is_ours else call.file_name
            found.append({"filename": file, "line": call.line_number, "name": call.function_name})
    return found


def segments_of(trace: list[dict], before: Iterable[dict]) -> list[dict]:
    """A segment for each block that is alive at a trace's end. before: as stop() has it."""
    alive: dict[int, tuple[int, list]] = {}
    for tensor in before:
        if tensor["bytes"]:
            alive[tensor["address"]] = tensor["bytes"], []
    for entry in trace:
        if entry["action"] == "alloc":
            alive[entry["addr"]] = entry["size"], entry["frames"]
        elif entry["action"] == "free_completed":
            alive.pop(entry["addr"], None)
    segments = []
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
        segments.append(segment | sizes)
    return segments
