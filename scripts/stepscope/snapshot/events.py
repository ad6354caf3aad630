"""What a memory snapshot consists of, whichever version of PyTorch wrote it. Memory is in bytes,
time in microseconds.

Layouts: `_snapshot` in torch/cuda/memory.py and THCPModule_memorySnapshot in
torch/csrc/cuda/Module.cpp, 2.1 to 2.13. Fields come and go with the version; what is missing is
taken as not recorded. The "size" of an allocation and of its free is what was requested, that of a
block is rounded up (to 512 bytes, and more) and so is what PyTorch's own counters count.
"""

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from stepscope.snapshot import SnapshotError

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

_WRONG = (
    "this is not a memory snapshot of PyTorch ({}); give a file of torch.cuda.memory._dump_snapshot"
)


class Rows(NamedTuple):
    """Events that stand one after the other in the columns: from `start` up to, but not including,
    `stop`."""

    start: int
    stop: int


class _Known:
    """What stands in a list of frames once its stack has a number."""

    def __init__(self, number: int):
        self.number = number


class Columns:
    """Events as columns: `action` (see ACTIONS), `address` (of "oom": bytes that the device had
    free), `size` in bytes, `time` in microseconds (0 if not recorded), `stack` (index of `stacks`,
    -1 without one).

    stacks: each a list of frames, dicts as they stand in the snapshot.
    """

    def __init__(self) -> None:
        self.action = array("b")
        self.address = array("q")
        self.size = array("q")
        self.time = array("q")
        self.stack = array("i")
        self.stacks: list[list] = []
        self._numbers: dict[tuple[int, ...], _Known] = {}  # by the identities of frames

    def __len__(self) -> int:
        return len(self.action)

    def take(self, trace: list) -> int:
        """Move a list's events here: emptied they take a fifth of the memory. Returns how many;
        `Rows` stay instead.

        Raises ValueError, TypeError or OverflowError if one is not an event.
        """
        rows = [each for each in trace if isinstance(each, Rows)]
        start = len(self)
        for event in trace:
            if isinstance(event, dict):
                self._append(event)
            elif not isinstance(event, Rows):
                raise ValueError(f"an event is a {type(event).__name__}")
        moved = len(self) - start
        if moved:
            if rows and rows[-1].stop == start:
                start = rows.pop().start
            trace[:] = [*rows, Rows(start, len(self))]
        return moved

    def _append(self, event: dict) -> None:
        action = event.get("action")
        if action is None:
            raise ValueError("an event has no action")
        self.action.append(_CODES.get(action, _OTHER) if isinstance(action, str) else _OTHER)
        self.address.append(_address(event, "device_free" if action == "oom" else "addr"))
        self.size.append(_integer(event, "size"))
        self.time.append(_integer(event, "time_us"))
        self.stack.append(self.number_of(event.get("frames")))
        event.clear()

    def number_of(self, frames: object) -> int:
        """The index of a stack: of equal ones the same. The list itself then holds its number
        alone."""
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


def is_trace(value: object) -> bool:
    """Whether this is a list of events."""
    last = value[-1] if type(value) is list and value else None
    return isinstance(last, Rows) or (type(last) is dict and "action" in last)


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
    time and stack (number in Snapshot.stacks, -1: none). Blocks at the end: block_address,
    block_size as the allocator took it, block_requested, block_active (waiting to be free included)
    and block_stack. reserved: bytes of the device that PyTorch held at the end.

    Addresses above 2^63 are negative numbers here: they are compared, and never shown.
    """

    number: int
    action: np.ndarray
    address: np.ndarray
    size: np.ndarray
    time: np.ndarray
    stack: np.ndarray
    block_address: np.ndarray
    block_size: np.ndarray
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
    """devices: those with events or memory. stacks: numbers in `frames`, the innermost call
    first."""

    devices: list[Device]
    stacks: list[tuple[int, ...]]
    frames: list[Frame]
    annotations: list[Annotation] = field(default_factory=list)


def snapshot(root: object, columns: Columns) -> Snapshot:
    """The snapshot in a pickle's object and the columns of its events. Raises SnapshotError without
    a file's name."""
    try:
        return _snapshot(root, columns)
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise SnapshotError(_WRONG.format(" ".join(str(error).split())[:120])) from None


def _snapshot(root: object, columns: Columns) -> Snapshot:
    if isinstance(root, list) and root and isinstance(root[0], dict) and "blocks" in root[0]:
        root = {"segments": root}  # torch.cuda.memory_snapshot(): segments and nothing else
    content = _checked(root, dict, "its outermost object")
    if "segments" not in content and "device_traces" not in content:
        raise ValueError("it has neither segments nor device_traces")
    traces = _items(content.get("device_traces") or [], list, "device_traces")
    rows = {number: _rows(trace, columns) for number, trace in enumerate(traces)}
    segments = _items(content.get("segments") or [], dict, "segments")
    _each_once([segment.get("blocks") for segment in segments])
    blocks: dict[int, list[_Block]] = {}
    reserved: dict[int, list[int]] = {}
    for segment in segments:
        number = _integer(segment, "device")
        blocks.setdefault(number, []).extend(_blocks(segment, columns))
        reserved.setdefault(number, []).append(_integer(segment, "total_size"))
    stacks, frames = _stacks(columns)
    numbers = {number for number, trace in enumerate(traces) if trace} | blocks.keys()
    devices = [
        _device(
            number,
            columns,
            rows.get(number, slice(0, 0)),
            blocks.get(number, []),
            reserved.get(number, []),
        )
        for number in sorted(numbers)
    ]
    annotations = _annotations(content.get("external_annotations") or [])
    return Snapshot(devices, stacks, frames, annotations)


def _device(
    number: int,
    columns: Columns,
    rows: np.ndarray | slice,
    blocks: list["_Block"],
    reserved: list[int],
) -> Device:
    """rows: of the device's events; reserved: bytes of its segments."""
    own = {
        name: np.array(getattr(columns, name), dtype=kind, copy=False)[rows]
        for name, kind in _KINDS.items()
    }
    final = np.array(blocks, dtype=np.int64).reshape(-1, len(_Block._fields)).T
    address, size, requested, active, stack = final
    _check_sizes(
        {
            # what was asked for in vain may be any number
            "an event": own["size"][own["action"] != OOM],
            "an allocation": requested,
            "a block": size,
            "a segment": np.array(reserved, dtype=np.int64),
        }
    )
    return Device(
        number=number,
        **own,
        block_address=address,
        block_size=size,
        block_requested=requested,
        block_active=active.astype(bool),
        block_stack=stack,
        reserved=sum(reserved),
    )


def _check_sizes(sizes: dict[str, np.ndarray]) -> None:
    """Refuse sizes that are negative or too large to be added up."""
    for what, each in sizes.items():
        if (each < 0).any():
            raise ValueError(f"{what} has a negative size")
        if each.sum(dtype=np.float64) >= _MOST_BYTES:
            raise ValueError("its sizes add up to more than there can be")


_KINDS = {
    "action": np.int8,
    "address": np.int64,
    "size": np.int64,
    "time": np.int64,
    "stack": np.int32,
}


def _rows(trace: list, columns: Columns) -> np.ndarray | slice:
    """Where in the columns a device's events are: a slice, so that they are not copied, where they
    stand together."""
    columns.take(trace)
    if len(trace) < 2:
        return slice(*trace[0]) if trace else slice(0, 0)
    return np.concatenate([np.arange(each.start, each.stop) for each in trace])


class _Block(NamedTuple):
    """A block of the final state."""

    address: int
    size: int
    requested: int
    active: bool
    stack: int


def _blocks(segment: dict, columns: Columns) -> list[_Block]:
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
                size=size,
                requested=requested,
                active=_text(block, "state").startswith("active"),
                stack=columns.number_of(block.get("frames", past.get("frames"))),
            )
        )
        address = _wrapped(address + size)
    return found


def _stacks(columns: Columns) -> tuple[list[tuple[int, ...]], list[Frame]]:
    """Stacks as numbers of frames; a frame is one dict, however many stacks it is in."""
    frames = {id(frame): frame for stack in columns.stacks for frame in stack}
    numbers = {key: number for number, key in enumerate(frames)}
    return [tuple(numbers[id(frame)] for frame in stack) for stack in columns.stacks], list(
        map(_frame, frames.values())
    )


def _frame(frame: object) -> Frame:
    """PyTorch writes -1 for a line that it does not know, some of its versions as 2^64 - 1."""
    found = _checked(frame, dict, "a frame")
    line = found.get("line", 0)
    known = isinstance(line, int) and 0 <= line < 2**63
    return Frame(_text(found, "filename"), line if known else UNKNOWN_LINE, _text(found, "name"))


def _annotations(entries: object) -> list[Annotation]:
    found = [
        Annotation(
            _text(entry, "name"),
            entry.get("stage") == "START",
            _integer(entry, "device"),
            _integer(entry, "time_us"),
        )
        for entry in _items(entries, dict, "external_annotations")
        if entry.get("stage") in ("START", "END")
    ]
    return sorted(found, key=lambda each: each.time)


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
