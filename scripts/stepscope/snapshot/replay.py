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

from .events import ALLOC, FREE_COMPLETED, FREE_REQUESTED, GROWS, SHRINKS, Device


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
    of_state = device.blocks[~device.blocks["address"].isin(touched)]
    of_orphans = {
        "address": device.address[orphans],
        "size": device.size[orphans],
        "start": -1,
        "end": orphans,
        "stack": -1,
        "taken": 0,
    }
    known = device.blocks.drop_duplicates("address").set_index("address")
    # no block begins at 1
    held = known.reindex(np.where(ends == events, device.address[first], 1), fill_value=-1)
    stack = device.stack[first]
    of_history = {
        "address": device.address[first],
        "size": device.size[first],
        "start": first,
        "end": ends,
        # Events may be recorded without stacks while blocks have them:
        # _record_memory_history(context="state").
        "stack": np.where(stack < 0, held["stack"], stack),
        "taken": held["taken"].clip(lower=0).to_numpy(),
    }
    parts = [of_state.assign(start=-1, end=events)]
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
        forgotten=bool((of_state["stack"] >= 0).any()),
    )


def _paired(device: Device) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """(allocations, and the event that ends each, or the number of events; frees of what the
    history did not allocate; whether an address is allocated or freed twice in a row, or the final
    state denies what the last event of one says)."""
    events = len(device.action)
    freed = _action_that_frees(device)
    chosen = np.flatnonzero((device.action == ALLOC) | (device.action == freed))
    table = pd.DataFrame({"address": device.address[chosen], "event": chosen})
    table["allocates"] = (device.action[chosen] == ALLOC).astype(int)
    table = table.sort_values("address", kind="stable")  # of each, in the order of time
    of_address = table.groupby("address")
    before = of_address["allocates"].shift(fill_value=-1)
    until = of_address["event"].shift(-1, fill_value=events)
    allocates = table["allocates"] == 1
    is_again = before == table["allocates"]
    # a profile without a final state contradicts nothing
    in_state = table["address"].isin(device.blocks["address"])
    denied = (until == events) & device.has_state & (allocates != in_state)
    return (
        table["event"][allocates].to_numpy(),
        until[allocates].to_numpy(),
        table["event"][~allocates & (before != 1)].to_numpy(),
        bool((is_again | denied).any()),
    )


def _action_that_frees(device: Device) -> int:
    """FREE_COMPLETED, but FREE_REQUESTED if the recording was set to skip the former."""
    requested = device.address[device.action == FREE_REQUESTED]
    waiting = np.isin(requested, device.blocks["address"])
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
