"""Which blocks of memory there were, from when to when: what the events of one device and its final
state tell.

A block's life is [start, end): it is there after event `start`, and no more after event `end`; -1
is "before the first event" and the number of events is "to the end". It ends with "free_completed",
when other blocks may have its place: a block that another stream still uses is there until then, as
in PyTorch's counter of active bytes.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.snapshot.events import ALLOC, FREE_COMPLETED, FREE_REQUESTED, GROWS, SHRINKS, Device


@dataclass
class Replay:
    """A device's blocks as columns (address, size in requested bytes, start, end, stack), in the
    order of their starts, and its memory after each event: active[i] and reserved[i] after event i
    - 1, so that [0] is before the first. taken: bytes that the allocator took for a block, where
    the final state has it; else 0.

    contradicted: whether the events cannot be all that happened. forgotten: whether blocks were
    recorded whose allocations the history does not have.
    """

    device: Device
    address: np.ndarray
    size: np.ndarray
    start: np.ndarray
    end: np.ndarray
    stack: np.ndarray
    taken: np.ndarray
    active: np.ndarray
    reserved: np.ndarray
    contradicted: bool
    forgotten: bool

    @property
    def events(self) -> int:
        """How many events there are."""
        return len(self.device.action)

    @property
    def recorded(self) -> np.ndarray:
        """For each block whether its allocation is in the history."""
        return self.start >= 0

    @property
    def peak_event(self) -> int:
        """The event after which most bytes were active, the first of several; -1 if that was before
        all of them."""
        return int(self.active.argmax()) - 1

    @property
    def peak_bytes(self) -> int:
        return int(self.active.max())

    def alive_after(self, event: int) -> np.ndarray:
        """Which blocks are there after an event."""
        return (self.start <= event) & (self.end > event)


def replay(device: Device) -> Replay:
    """Pair every allocation with the free that ends it.

    What was active before the first event follows from the end: blocks that are freed without
    having been allocated in the history, and blocks of the final state that no event touches. So a
    recording that began midway is whole.

    A history whose buffer overflowed is, like one that began midway, the end of the whole, and the
    order of the events cannot tell the two apart. What proves that events are missing: an address
    that is allocated twice or freed twice in a row, or a final state that the events deny
    (`contradicted`); or a block that is there at the end with its stack, whose allocation is not in
    the history, since PyTorch records both or neither (`forgotten`: the buffer overflowed or was
    cleared). A contradicted history is replayed as far as it goes: a block ends when its address is
    allocated again.
    """
    events = len(device.action)
    first, ends, orphans, contradicted = _paired(device)
    touched = device.address[np.append(first, orphans)]
    untouched = np.flatnonzero(device.block_active & ~np.isin(device.block_address, touched))
    of_state = {
        "address": device.block_address,
        "size": device.block_requested,
        "start": -1,
        "end": events,
        "stack": device.block_stack,
        "taken": device.block_size,
    }
    of_orphans = {
        "address": device.address[orphans],
        "size": device.size[orphans],
        "start": -1,
        "end": orphans,
        "stack": -1,
        "taken": 0,
    }
    held = _in_final_state(device, device.address[first], ends)
    # Events may be recorded without stacks while blocks have them:
    # _record_memory_history(context="state").
    in_state = np.append(device.block_stack, -1)[held]
    of_history = {
        "address": device.address[first],
        "size": device.size[first],
        "start": first,
        "end": ends,
        "stack": np.where(device.stack[first] < 0, in_state, device.stack[first]),
        "taken": np.append(device.block_size, 0)[held],
    }
    parts = [pd.DataFrame(of_state).iloc[untouched]]
    parts += [pd.DataFrame(of_orphans), pd.DataFrame(of_history)]
    blocks = pd.concat(parts).sort_values("start", kind="stable")
    columns = {str(name): column.to_numpy() for name, column in blocks.items()}
    active = after_each(columns["start"], columns["end"], columns["size"], events)
    return Replay(
        device=device,
        **columns,
        active=active,
        reserved=np.maximum(_reserved(device), active),
        contradicted=contradicted,
        forgotten=bool((device.block_stack[untouched] >= 0).any()),
    )


def _paired(device: Device) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """(allocations, and the event that ends each, or the number of events; frees of what the
    history did not allocate; whether an address is allocated or freed twice in a row, or the final
    state denies what the last event of one says)."""
    events = len(device.action)
    freed = _action_that_frees(device)
    chosen = np.flatnonzero((device.action == ALLOC) | (device.action == freed))
    # by address, each in the order of time
    chosen = chosen[np.argsort(device.address[chosen], kind="stable")]
    address = device.address[chosen]
    allocates = device.action[chosen] == ALLOC
    # Whether the event before, and the one behind, is of the same address.
    goes_on = np.concatenate([[False], address[1:] == address[:-1], [False]])[: len(chosen) + 1]
    has_before, has_next = goes_on[:-1], goes_on[1:]
    next_event = np.append(chosen[1:], events)[: len(chosen)]
    is_again = np.append(False, allocates[1:] == allocates[:-1])[: len(chosen)] & has_before
    in_state = np.isin(address, device.block_address[device.block_active])
    has_state = device.block_address.size > 0  # a profile without one contradicts nothing
    denied = ~has_next & has_state & (allocates != in_state)
    return (
        chosen[allocates],
        np.where(has_next, next_event, events)[allocates],
        chosen[~allocates & (is_again | ~has_before)],
        bool((is_again | denied).any()),
    )


def _in_final_state(device: Device, address: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For blocks that are there to the end their number in the final state; else -1."""
    if not len(device.block_address):
        return np.full(len(address), -1)
    order = np.argsort(device.block_address, kind="stable")
    place = np.searchsorted(device.block_address, address, sorter=order)
    block = order[np.minimum(place, len(order) - 1)]
    is_same = (device.block_address[block] == address) & device.block_active[block]
    return np.where(is_same & (end == len(device.action)), block, -1)


def _action_that_frees(device: Device) -> int:
    """FREE_COMPLETED, but FREE_REQUESTED if the recording was set to skip the former."""
    requested = device.address[device.action == FREE_REQUESTED]
    waiting = np.isin(requested, device.block_address[device.block_active])
    skipped = not (device.action == FREE_COMPLETED).any() and not waiting.all()
    return FREE_REQUESTED if skipped else FREE_COMPLETED


def after_each(
    start: np.ndarray,
    end: np.ndarray,
    size: np.ndarray,
    events: int,
) -> np.ndarray:
    """(events + 1) bytes of these blocks that are there before the first event and after each
    one."""
    change = np.zeros(events + 1, dtype=np.int64)
    began = start >= 0
    change[0] = size[~began].sum()
    change[start[began] + 1] = size[began]  # an event starts one block and ends one, at most
    ended = end < events
    change[1:] -= np.bincount(end[ended], weights=size[ended], minlength=events).astype(np.int64)
    return change.cumsum()


def _reserved(device: Device) -> np.ndarray:
    """Bytes that PyTorch held of the device, from what it held at the end backwards. A profile of a
    processor has no such events: what is active is then all that is known to be held."""
    sign = np.isin(device.action, GROWS).astype(int) - np.isin(device.action, SHRINKS)
    held = np.append(0, np.cumsum(sign * device.size))
    return held + (device.reserved - held[-1])
