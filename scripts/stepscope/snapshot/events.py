"""What a memory snapshot consists of, whichever version of PyTorch wrote it. Memory is in bytes,
time in microseconds.

Layouts: `_snapshot` in torch/cuda/memory.py and THCPModule_memorySnapshot in
torch/csrc/cuda/Module.cpp, 2.1 to 2.13. Fields come and go with the version; what is missing is
taken as not recorded. The "size" of an allocation and of its free is what was requested, that of a
block is rounded up (to 512 bytes, and more) and so is what PyTorch's own counters count.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

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

_CODES = {name: code for code, name in enumerate(ACTIONS)}
_OTHER = len(ACTIONS) - 1
_MOST_BYTES = 1 << 62  # of all that is added up: more would not fit into 64 bits
_WRAPS = 1 << 64
UNKNOWN_LINE = -1


class _Event(NamedTuple):
    """A row of a device's history: see Device."""

    action: int
    address: int
    size: int
    time: int
    stack: int


class _Stacks:
    """The stacks that events and blocks have: equal ones are one, and so are their frames, each a
    dict of the snapshot, told apart by which object it is."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        # Events share lists of frames, which all live until the last one is read.
        self._of_list: dict[int, int] = {}
        self._frames: dict[int, object] = {}

    def number_of(self, frames: object) -> int:
        """The number of a stack, -1 of none."""
        if frames is None or frames == []:
            return -1
        if id(frames) in self._of_list:
            return self._of_list[id(frames)]
        found = _checked(frames, list, "a stack")
        key = tuple(map(id, found))
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._frames.update(zip(key, found, strict=True))
        self._of_list[id(frames)] = self._numbers[key]
        return self._numbers[key]

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


def snapshot(root: object) -> Snapshot:
    """The snapshot in a pickle's object. Raises ValueError where it is none, or has no usable
    numbers."""
    if isinstance(root, list) and root and isinstance(root[0], dict) and "blocks" in root[0]:
        root = {"segments": root}  # torch.cuda.memory_snapshot(): segments and nothing else
    content = _checked(root, dict, "its outermost object")
    if "segments" not in content and "device_traces" not in content:
        raise ValueError("it has neither segments nor device_traces")
    traces = _items(content.get("device_traces") or [], list, "device_traces")
    segments = _items(content.get("segments") or [], dict, "segments")
    _each_once([segment.get("blocks") for segment in segments])
    stacks = _Stacks()
    of_device: dict[int, list[dict]] = {number: [] for number, own in enumerate(traces) if own}
    for segment in segments:
        of_device.setdefault(_integer(segment, "device"), []).append(segment)
    devices = []
    for number, own in sorted(of_device.items()):
        trace = traces[number] if 0 <= number < len(traces) else []
        devices.append(_device(number, trace, own, stacks))
    annotations = _annotations(content.get("external_annotations") or [])
    return Snapshot(devices, *stacks.told(), annotations)


def _event(event: object, stacks: _Stacks) -> _Event:
    found = _checked(event, dict, "an event")
    action = found.get("action")
    if action is None:
        raise ValueError("an event has no action")
    return _Event(
        action=_CODES.get(action, _OTHER) if isinstance(action, str) else _OTHER,
        address=_address(found, "device_free" if action == "oom" else "addr"),
        size=_integer(found, "size"),
        time=_integer(found, "time_us"),
        stack=stacks.number_of(found.get("frames")),
    )


def _device(number: int, trace: list, segments: list[dict], stacks: _Stacks) -> Device:
    columns = np.dtype([(name, np.int64) for name in _Event._fields])
    events = np.fromiter((_event(each, stacks) for each in trace), dtype=columns)
    blocks = itertools.chain.from_iterable(_blocks(segment, stacks) for segment in segments)
    final = pd.DataFrame(blocks, columns=_Block._fields, dtype=np.int64)
    reserved = [_integer(segment, "total_size") for segment in segments]
    _check_sizes(
        {
            # what was asked for in vain may be any number
            "an event": events["size"][events["action"] != OOM],
            "an allocation": final["size"].to_numpy(),
            "a block": final["taken"].to_numpy(),
            "a segment": np.array(reserved, dtype=np.int64),
        }
    )
    return Device(
        number=number,
        **{name: events[name] for name in _Event._fields},
        blocks=final[final["active"] == 1].drop(columns="active"),
        has_state=len(final) > 0,
        reserved=sum(reserved),
    )


def _check_sizes(sizes: dict[str, np.ndarray]) -> None:
    """Refuse sizes that are negative or too large to be added up."""
    for what, each in sizes.items():
        if (each < 0).any():
            raise ValueError(f"{what} has a negative size")
        if each.sum(dtype=np.float64) >= _MOST_BYTES:
            raise ValueError("its sizes add up to more than there can be")


class _Block(NamedTuple):
    """A block of the final state."""

    address: int
    taken: int
    size: int
    active: bool
    stack: int


def _blocks(segment: dict, stacks: _Stacks) -> list[_Block]:
    """A segment's blocks. Until 2.1 a block had no address of its own and what was requested stood
    in its history."""
    found = []
    address = _address(segment, "address")
    for block in _items(segment.get("blocks") or [], dict, "blocks"):
        size = _integer(block, "size")
        history = block.get("history")
        past = history[0] if isinstance(history, list) and history else {}
        past = past if isinstance(past, dict) else {}
        requested = _integer(block, "requested_size", _integer(past, "real_size", size))
        found.append(
            _Block(
                address=_address(block, "address", address),
                taken=size,
                size=requested,
                active=_text(block, "state").startswith("active"),
                stack=stacks.number_of(block.get("frames", past.get("frames"))),
            )
        )
        address = _wrapped(address + size)
    return found


def _frame(frame: object) -> Frame:
    """PyTorch writes -1 for a line that it does not know, some of its versions as 2^64 - 1."""
    found = _checked(frame, dict, "a frame")
    line = found.get("line", 0)
    known = isinstance(line, int) and 0 <= line < 2**63
    return Frame(_text(found, "filename"), line if known else UNKNOWN_LINE, _text(found, "name"))


def _annotations(entries: object) -> pd.DataFrame:
    found = [
        entry
        for entry in _items(entries, dict, "external_annotations")
        if entry.get("stage") in ("START", "END")
    ]
    columns = {
        "name": [_text(entry, "name") for entry in found],
        "starts": [entry["stage"] == "START" for entry in found],
        "device": [_integer(entry, "device") for entry in found],
        "time": [_integer(entry, "time_us") for entry in found],
    }
    return pd.DataFrame(columns).sort_values("time", kind="stable")


def _integer(entry: dict, name: str, otherwise: int = 0, most: int = 2**63) -> int:
    """A number of an entry below `most`; what is missing or None is taken as not recorded."""
    value = entry.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, int) or not -(2**63) <= value < most:
        raise ValueError(f"{name} is not a number, or too large")
    return value


def _address(entry: dict, name: str, otherwise: int = 0) -> int:
    """An address as a number of 64 bits with a sign; of "oom" the free bytes stand in its place."""
    return _wrapped(_integer(entry, name, otherwise, _WRAPS))


def _wrapped(address: int) -> int:
    """The same 64 bits with a sign."""
    return (address + 2**63) % _WRAPS - 2**63


_Kind = TypeVar("_Kind")


def _checked(value: object, kind: type[_Kind], what: str) -> _Kind:
    """The value if it is of this kind; never the text of something else: that of lists that share
    lists has no end."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} is a {type(value).__name__}")
    return value


def _text(entry: dict, name: str) -> str:
    """A text of an entry; what is missing or None is empty."""
    value = entry.get(name)
    return "" if value is None else _checked(value, str, "a name")


def _items(value: object, kind: type[_Kind], what: str) -> list[_Kind]:
    items = _each_once(_checked(value, list, what))
    return [_checked(each, kind, f"one of {what}") for each in items]


def _each_once(items: list) -> list:
    """The items, unless one is in the list twice: with shared lists in lists a small file can ask
    for endless work."""
    shared = [id(item) for item in items if isinstance(item, list | dict)]
    if len(set(shared)) < len(shared):
        raise ValueError("one object is in it several times")
    return items
