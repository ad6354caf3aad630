"""The events of a memory snapshot as columns of numbers: millions of dicts would take ten times the memory."""

from array import array
from typing import NamedTuple

ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map")
ACTIONS += ("segment_unmap", "oom", "snapshot", "other")
"""What an event can be; its code is the place in this tuple. The last is any that a newer version of PyTorch adds."""

_CODES = {name: code for code, name in enumerate(ACTIONS)}
_OTHER = len(ACTIONS) - 1


def code_of(action: object) -> int:
    """The code of an event's action."""
    return _CODES.get(action, _OTHER) if isinstance(action, str) else _OTHER


class Rows(NamedTuple):
    """Events that stand one after the other in the columns: from `start` up to, but not including, `stop`."""

    start: int
    stop: int


class Columns:
    """Events as columns: `action` (see ACTIONS), `address` (of "oom": bytes that the device had free), `size` in bytes,
    `time` in microseconds (0 if not recorded), `stack` (index of `stacks`, -1 without one).

    stacks: each a list of frames, dicts as they stand in the snapshot.
    """

    def __init__(self) -> None:
        self.action, self.address, self.size, self.time = array("b"), array("q"), array("q"), array("q")
        self.stack = array("i")
        self.stacks: list[list] = []
        self._numbers: dict[int, int] = {}  # by identity

    def __len__(self) -> int:
        return len(self.action)

    def append(self, event: dict) -> None:
        """Add an event as it stands in the snapshot. Raises TypeError or OverflowError where it is none."""
        action = event.get("action")
        self.action.append(code_of(action))
        self.address.append(event.get("device_free" if action == "oom" else "addr", 0))
        self.size.append(event.get("size", 0))
        self.time.append(event.get("time_us", 0))
        self.stack.append(self.number_of(event.get("frames")))

    def number_of(self, frames: object) -> int:
        """The index of a stack, by identity: pickle keeps what is shared shared."""
        if frames is None:
            return -1
        if type(frames) is not list:
            raise TypeError("frames that are no list")
        if not frames:
            return -1
        number = self._numbers.get(id(frames))
        if number is None:
            number = self._numbers[id(frames)] = len(self.stacks)
            self.stacks.append(frames)
        return number
