"""What a memory snapshot consists of, whichever version of PyTorch wrote it. Memory is in bytes,
time in microseconds.

Layouts: `_snapshot` in torch/cuda/memory.py and THCPModule_memorySnapshot in
torch/csrc/cuda/Module.cpp, 2.1 to 2.13. Fields come and go with the version; what is missing is
taken as not recorded. The "size" of an allocation and of its free is what was requested, that of a
block is rounded up (to 512 bytes, and more) and so is what PyTorch's own counters count.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

# What an event can be; its code is the place in this tuple. The last is any that a newer version
# of PyTorch adds.
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "other",
)
ALLOC, FREE_REQUESTED, FREE_COMPLETED = (
    ACTIONS.index(name) for name in ("alloc", "free_requested", "free_completed")
)
GROWS = tuple(ACTIONS.index(name) for name in ("segment_alloc", "segment_map"))
SHRINKS = tuple(ACTIONS.index(name) for name in ("segment_free", "segment_unmap"))
OOM = ACTIONS.index("oom")

_MOST_BYTES = 1 << 62  # of all that is added up: more would not fit into 64 bits
UNKNOWN_LINE = -1


class _Stacks:
    """The stacks that events and blocks have: equal ones are one, and so are their frames, each a
    dict of the snapshot, told apart by which object it is."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        # Events share lists of frames, which all live until the last one is read.
        self._of_list: dict[int, int] = {}
        self._frames: dict[int, dict] = {}

    def number_of(self, frames: list[dict] | None) -> int:
        """The number of a stack, -1 of none."""
        if not frames:
            return -1
        if id(frames) not in self._of_list:
            key = tuple(map(id, frames))
            self._frames.update(zip(key, frames, strict=True))
            self._of_list[id(frames)] = self._numbers.setdefault(key, len(self._numbers))
        return self._of_list[id(frames)]

    def told(self) -> tuple[list[tuple[int, ...]], list["Frame"]]:
        """(stacks as numbers of frames, the frames)."""
        numbers = {key: number for number, key in enumerate(self._frames)}
        stacks = [tuple(numbers[key] for key in stack) for stack in self._numbers]
        return stacks, list(map(_frame, self._frames.values()))


@dataclass(frozen=True)
class Frame:
    """One level of a stack, of Python or of C++; its line may be UNKNOWN_LINE."""

    file: str
    line: int
    function: str


@dataclass
class Device:
    """One device's history and its memory at the end of it.

    Events, in order: action (code in ACTIONS), address (of "oom": free bytes of the device), size,
    time and stack (number in Snapshot.stacks, -1: none). blocks: those that are active at the end
    (waiting to be free included), a row each: address, size as requested, bytes taken by the
    allocator, stack. has_state: whether any block is known. reserved: bytes of the device that
    PyTorch held at the end.

    Addresses above 2^63 are negative numbers here: they are compared, and never shown.
    """

    number: int
    action: np.ndarray
    address: np.ndarray
    size: np.ndarray
    time: np.ndarray
    stack: np.ndarray
    blocks: pd.DataFrame
    has_state: bool
    reserved: int = 0

    @property
    def seconds(self) -> np.ndarray | None:
        """Time of each event since the first; None where times were not recorded."""
        if not len(self.time) or not self.time.any():
            return None
        return (self.time - self.time[0]) / 1e6


@dataclass
class Snapshot:
    """devices: those with events or memory. stacks: numbers in `frames`, the innermost call
    first. annotations: the starts and ends of ranges of torch.profiler.record_function in the order
    of time, with `name`, whether it `starts`, `device` and `time`."""

    devices: list[Device]
    stacks: list[tuple[int, ...]]
    frames: list[Frame]
    annotations: pd.DataFrame


def snapshot(root: dict | list) -> Snapshot:
    """The snapshot in a pickle's object. Raises whatever Python does where it is none."""
    if isinstance(root, list):
        root = {"segments": root}  # torch.cuda.memory_snapshot(): segments and nothing else
    if "segments" not in root and "device_traces" not in root:
        raise ValueError("it has neither segments nor device_traces")
    traces = root.get("device_traces") or []
    stacks = _Stacks()
    of_device: dict[int, list[dict]] = {number: [] for number, own in enumerate(traces) if own}
    for segment in root.get("segments") or []:
        of_device.setdefault(segment.get("device") or 0, []).append(segment)
    devices = []
    for number, own in sorted(of_device.items()):
        trace = traces[number] if 0 <= number < len(traces) else []
        devices.append(_device(number, trace, own, stacks))
    annotations = _annotations(root.get("external_annotations") or [])
    return Snapshot(devices, *stacks.told(), annotations)


def _device(number: int, trace: list[dict], segments: list[dict], stacks: _Stacks) -> Device:
    codes = {name: code for code, name in enumerate(ACTIONS)}
    events = _integers(
        action=[codes.get(event["action"], codes["other"]) for event in trace],
        # of "oom" the free bytes stand in its place
        address=[_signed(event.get("addr") or event.get("device_free")) for event in trace],
        size=[event.get("size") or 0 for event in trace],
        time=[event.get("time_us") or 0 for event in trace],
        stack=[stacks.number_of(event.get("frames")) for event in trace],
    )
    found = list(itertools.chain.from_iterable(map(_blocks, segments)))
    blocks = pd.DataFrame(
        _integers(
            address=[_signed(block["address"]) for block in found],
            taken=[block["taken"] for block in found],
            size=[block["size"] for block in found],
            stack=[stacks.number_of(block["frames"]) for block in found],
        )
    )
    reserved = _integers(bytes=[segment.get("total_size") or 0 for segment in segments])["bytes"]
    sizes = {
        # what was asked for in vain may be any number
        "an event": events["size"][events["action"] != OOM],
        "an allocation": blocks["size"],
        "a block": blocks["taken"],
        "a segment": reserved,
    }
    for what, each in sizes.items():
        if (each < 0).any():
            raise ValueError(f"{what} has a negative size")
        if each.astype(float).sum() >= _MOST_BYTES:
            raise ValueError("its sizes add up to more than there can be")
    return Device(
        number=number,
        **events,
        blocks=blocks.loc[[block["active"] for block in found]],
        has_state=len(found) > 0,
        reserved=int(reserved.sum()),
    )


def _integers(**columns: list[int]) -> dict[str, np.ndarray]:
    """Columns of 64 bits. Raises ValueError, TypeError or OverflowError for what does not fit."""
    return {name: np.array(values, dtype=np.int64) for name, values in columns.items()}


def _blocks(segment: dict) -> Iterator[dict]:
    """A segment's blocks: address, size as requested, bytes taken, whether it is active, frames.
    Until 2.1 a block had no address of its own and what was requested stood in its history."""
    address = segment.get("address") or 0
    for block in segment["blocks"]:
        taken = block["size"]
        past: dict = (block.get("history") or [{}])[0]
        yield {
            "address": block.get("address", address),
            "size": block.get("requested_size", past.get("real_size", taken)),
            "taken": taken,
            "active": _text(block, "state").startswith("active"),
            "frames": block.get("frames", past.get("frames")),
        }
        address += taken


def _frame(frame: dict) -> Frame:
    """PyTorch writes -1 for a line that it does not know, some of its versions as 2^64 - 1."""
    line = frame.get("line", 0)
    known = isinstance(line, int) and 0 <= line < 2**63
    return Frame(_text(frame, "filename"), line if known else UNKNOWN_LINE, _text(frame, "name"))


def _annotations(entries: list[dict]) -> pd.DataFrame:
    found = [entry for entry in entries if entry.get("stage") in ("START", "END")]
    numbers = _integers(
        device=[entry.get("device") or 0 for entry in found],
        time=[entry.get("time_us") or 0 for entry in found],
    )
    names = [_text(entry, "name") for entry in found]
    starts = [entry["stage"] == "START" for entry in found]
    table = pd.DataFrame({"name": names, "starts": starts, **numbers})
    return table.sort_values("time", kind="stable")


def _signed(address: int | None) -> int:
    """An address of 64 bits as a number with a sign."""
    return ((address or 0) + 2**63) % 2**64 - 2**63


def _text(entry: dict, name: str) -> str:
    """A text of an entry; what is missing or None is empty. Never that of something else: the text
    of lists that share lists has no end."""
    value = entry.get(name) or ""
    if not isinstance(value, str):
        raise ValueError(f"a name is a {type(value).__name__}")
    return value
