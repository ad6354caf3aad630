"""What a memory snapshot consists of, whichever version of PyTorch wrote it. Memory is in bytes, time in microseconds.

Layouts: `_snapshot` in torch/cuda/memory.py and THCPModule_memorySnapshot in torch/csrc/cuda/Module.cpp, 2.1 to 2.13.
Fields come and go with the version; what is missing is taken as not recorded. The "size" of an allocation and of its
free is what was requested, that of a block is rounded up (to 512 bytes, and more) and so is what PyTorch's own
counters count.
"""

from array import array
from dataclasses import dataclass, field

import numpy as np

from stepscope.snapshot import SnapshotError

ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map")
ACTIONS += ("segment_unmap", "oom", "snapshot", "other")
"""What an event can be; its code is the place in this tuple. The last is any that a newer version of PyTorch adds."""
ALLOC, FREE_REQUESTED, FREE_COMPLETED = (ACTIONS.index(name) for name in ("alloc", "free_requested", "free_completed"))
GROWS = tuple(ACTIONS.index(name) for name in ("segment_alloc", "segment_map"))
SHRINKS = tuple(ACTIONS.index(name) for name in ("segment_free", "segment_unmap"))
OOM = ACTIONS.index("oom")

_CODES = {name: code for code, name in enumerate(ACTIONS)}
_OTHER = len(ACTIONS) - 1
_MOST_BYTES = 1 << 62  # of all that is added up: more would not fit into 64 bits

_WRONG = "this is not a memory snapshot of PyTorch ({}); give a file of torch.cuda.memory._dump_snapshot"


class _Known:
    """What stands in a list of frames once its stack has a number."""

    def __init__(self, number: int):
        self.number = number


class _Stacks:
    """stacks: each a list of frames, dicts as they stand in the snapshot."""

    def __init__(self) -> None:
        self.stacks: list[list] = []
        self._numbers: dict[tuple[int, ...], _Known] = {}  # by the identities of frames

    def number_of(self, frames: object) -> int:
        """The index of a stack: of equal ones the same. The list itself then holds its number alone."""
        if frames is None or frames == []:
            return -1
        if type(frames) is not list:
            raise TypeError("frames that are not a list")
        if type(frames[0]) is _Known:
            return frames[0].number
        key = tuple(map(id, frames))
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = _Known(len(self.stacks))
            self.stacks.append(frames.copy())
        frames[:] = [known]
        return known.number


@dataclass(frozen=True)
class Frame:
    """One level of a stack, of Python or of C++."""

    file: str
    line: int
    function: str


@dataclass
class Device:
    """One device's history and its memory at the end of it.

    Events, in order: action (code in ACTIONS), address (of "oom": free bytes of the device), size, time and stack
    (number in Snapshot.stacks, -1: none). Blocks at the end: block_address, block_requested, block_active (waiting to
    be free included) and block_stack. reserved: bytes of the device that PyTorch held at the end.
    """

    number: int
    action: np.ndarray
    address: np.ndarray
    size: np.ndarray
    time: np.ndarray
    stack: np.ndarray
    block_address: np.ndarray
    block_requested: np.ndarray
    block_active: np.ndarray
    block_stack: np.ndarray
    reserved: int = 0

    @property
    def seconds(self) -> np.ndarray | None:
        """Time of each event since the first; None where times were not recorded."""
        if not len(self.time) or not self.time.any():
            return None
        return (self.time - self.time[0]) / 1e6


@dataclass(frozen=True)
class Annotation:
    """The start or the end of a range of torch.profiler.record_function."""

    name: str
    starts: bool
    device: int
    time: int


@dataclass
class Snapshot:
    """devices: those with events or memory. stacks: numbers in `frames`, the innermost call first."""

    devices: list[Device]
    stacks: list[tuple[int, ...]]
    frames: list[Frame]
    annotations: list[Annotation] = field(default_factory=list)


def snapshot(root: object) -> Snapshot:
    """The snapshot in a pickle's object, which is emptied. Raises SnapshotError without a file's name."""
    try:
        return _snapshot(root)
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise SnapshotError(_WRONG.format(" ".join(str(error).split())[:120])) from None


def _snapshot(root: object) -> Snapshot:
    if isinstance(root, list) and root and isinstance(root[0], dict) and "blocks" in root[0]:
        root = {"segments": root}  # torch.cuda.memory_snapshot(): segments and nothing else
    if not isinstance(root, dict):
        raise ValueError(f"its outermost object is a {type(root).__name__}")
    if "segments" not in root and "device_traces" not in root:
        raise ValueError("it has neither segments nor device_traces")
    stacks = _Stacks()
    traces = _each_once(_list(root.get("device_traces", []), "device_traces"))
    events = [_columns(_dicts(trace, "a device's trace"), stacks) for trace in traces]
    segments = _dicts(root.get("segments", []), "segments")
    _each_once([segment.get("blocks") for segment in segments])
    blocks: dict[int, list[tuple]] = {}
    reserved: dict[int, list[int]] = {}
    for segment in segments:
        number = _integer(segment.get("device", 0))
        blocks.setdefault(number, []).extend(_blocks(segment, stacks))
        reserved.setdefault(number, []).append(_integer(segment.get("total_size", 0)))
    devices = []
    for number in sorted({number for number, trace in enumerate(traces) if trace} | blocks.keys()):
        action, address, size, time, stack = events[number] if number < len(events) else _columns([], stacks)
        held = reserved.get(number, [])
        of_blocks = np.array(blocks.get(number, []), dtype=np.int64).reshape(-1, 4).T
        added = size[action != OOM]  # what was asked for in vain may be any number
        _check_sizes({"an event": added, "an allocation": of_blocks[1], "a segment": np.array(held, dtype=np.int64)})
        own = of_blocks[0], of_blocks[1], of_blocks[2].astype(bool), of_blocks[3]
        devices.append(Device(number, action, address, size, time, stack, *own, sum(held)))
    annotations = _annotations(root.get("external_annotations", []))
    frames = {id(frame): frame for stack in stacks.stacks for frame in stack}  # a frame is one dict in all stacks
    numbers = {key: number for number, key in enumerate(frames)}
    numbered = [tuple(numbers[id(frame)] for frame in stack) for stack in stacks.stacks]
    return Snapshot(devices, numbered, list(map(_frame, frames.values())), annotations)


def _columns(trace: list[dict], stacks: _Stacks) -> tuple[np.ndarray, ...]:
    """action, address, size, time and stack of a device's events, which are emptied: as dicts they take more memory."""
    action, address, size, time, stack = columns = tuple(array(kind) for kind in "bqqqi")
    for event in trace:
        name = event.get("action")
        if name is None:
            raise ValueError("an event has no action")
        action.append(_CODES.get(name, _OTHER) if isinstance(name, str) else _OTHER)
        address.append(event.get("device_free" if name == "oom" else "addr", 0))
        size.append(event.get("size", 0))
        time.append(event.get("time_us", 0))
        stack.append(stacks.number_of(event.get("frames")))
        event.clear()
    return tuple(np.array(column, dtype=column.typecode, copy=False) for column in columns)


def _check_sizes(sizes: dict[str, np.ndarray]) -> None:
    """Refuse sizes that are negative or too large to be added up."""
    for what, each in sizes.items():
        if (each < 0).any():
            raise ValueError(f"{what} has a negative size")
        if each.sum(dtype=np.float64) >= _MOST_BYTES:
            raise ValueError("its sizes add up to more than there can be")


def _blocks(segment: dict, stacks: _Stacks) -> list[tuple[int, int, bool, int]]:
    """(address, requested, active, stack) of a segment's blocks. Until 2.1 a block had no address of its own and what
    was requested stood in its history."""
    found, address = [], _integer(segment.get("address", 0))
    for block in _dicts(segment.get("blocks", []), "blocks"):
        size = _integer(block.get("size", 0))
        history = block.get("history")
        past = history[0] if isinstance(history, list) and history and isinstance(history[0], dict) else {}
        requested = _integer(block.get("requested_size", past.get("real_size", size)))
        stack = stacks.number_of(block.get("frames", past.get("frames")))
        active = _text(block.get("state", "inactive")).startswith("active")
        found.append((_integer(block.get("address", address)), requested, active, stack))
        address += size
    return found


def _frame(frame: object) -> Frame:
    if not isinstance(frame, dict):
        raise ValueError(f"a frame is a {type(frame).__name__}")
    return Frame(_text(frame.get("filename", "")), _integer(frame.get("line", 0)), _text(frame.get("name", "")))


def _annotations(entries: object) -> list[Annotation]:
    found = [
        Annotation(
            _text(entry.get("name", "")),
            entry.get("stage") == "START",
            _integer(entry.get("device", 0)),
            _integer(entry.get("time_us", 0)),
        )
        for entry in _dicts(entries, "external_annotations")
        if entry.get("stage") in ("START", "END")
    ]
    return sorted(found, key=lambda each: each.time)


def _integer(value: object) -> int:
    if not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError("a number is missing or too large")
    return value


def _text(value: object) -> str:
    """A name; never the text of something else: that of lists that share lists has no end."""
    if not isinstance(value, str):
        raise ValueError(f"a name is a {type(value).__name__}")
    return value


def _list(value: object, what: str) -> list:
    if not isinstance(value, list):
        raise ValueError(f"{what} is a {type(value).__name__}")
    return value


def _dicts(value: object, what: str) -> list[dict]:
    found = _each_once(_list(value, what))
    if any(not isinstance(each, dict) for each in found):
        raise ValueError(f"{what} holds something other than dicts")
    return found


def _each_once(items: list) -> list:
    """The items, unless one is in the list twice: with shared lists in lists a small file can ask for endless work."""
    shared = [id(item) for item in items if isinstance(item, list | dict)]
    if len(set(shared)) < len(shared):
        raise ValueError("one object is in it several times")
    return items
