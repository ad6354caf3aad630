"""What is alive at the peak by whole stacks, and how the segments are cut into blocks at the end."""

import numpy as np
import pandas as pd

from stepscope.snapshot.events import Frame, Snapshot
from stepscope.snapshot.table_names import CATEGORIES
from stepscope.snapshot.tables import Device

MOST_STACKS, MOST_FRAMES, MOST_SEGMENTS = 40, 64, 200
NO_STACK = "(no frames)"


def stacks(device: Device, snapshot: Snapshot) -> pd.DataFrame:
    """The whole stacks that hold most at the peak, the innermost call first, each with its category."""
    replay = device.replay
    alive = np.flatnonzero(replay.alive_after(replay.peak_event))
    table = pd.DataFrame({"stack": replay.stack[alive], "category": device.blocks.category[alive]})
    table = table.assign(bytes=replay.size[alive]).groupby(["stack", "category"])["bytes"].agg(["sum", "size"])
    table = table.sort_values("sum", ascending=False, kind="stable").head(MOST_STACKS).reset_index()
    whole = replay.peak_bytes
    return pd.DataFrame(
        {
            "device": device.number,
            "rank": range(1, len(table) + 1),
            "bytes": table["sum"],
            "blocks": table["size"],
            "share": table["sum"] / whole if whole else None,
            "category": [CATEGORIES[code] for code in table["category"]],
            "stack": [whole_stack(snapshot, number) for number in table["stack"]],
        }
    )


def whole_stack(snapshot: Snapshot, number: int) -> str:
    """A stack as text: `file:line function` of each level."""
    if number < 0 or not snapshot.stacks[number]:
        return NO_STACK
    frames = [snapshot.frames[at] for at in snapshot.stacks[number][:MOST_FRAMES]]
    more = len(snapshot.stacks[number]) - len(frames)
    return " ← ".join([*map(_shown, frames), *([f"{more} more"] if more else [])])


def _shown(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} {frame.function}"


def segments(device: Device) -> pd.DataFrame:
    """A row for each segment when the snapshot was taken: what of it is in use, and its largest unused block."""
    events = device.replay.device
    number, own = len(events.segments), events.block_segment
    size, active = events.block_size, events.block_active

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(own, weights=values, minlength=number).astype(np.int64)

    largest = np.zeros(number, dtype=np.int64)
    np.maximum.at(largest, own[~active], size[~active])
    used, whole = total(size * active), events.segments[:, 1]
    table = pd.DataFrame(
        {
            "device": device.number,
            "address": [f"{address & (2**64 - 1):#x}" for address in events.segments[:, 0].tolist()],
            "stream": events.segments[:, 2],
            "bytes": whole,
            "active_bytes": used,
            "unused_bytes": whole - used,
            "unused_share": np.divide(whole - used, whole, np.full(number, np.nan), where=whole > 0),
            "largest_unused_bytes": largest,
            "blocks": total(np.ones(len(own))),
            "active_blocks": total(active.astype(float)),
        }
    )
    return table.sort_values("unused_bytes", ascending=False, kind="stable").head(MOST_SEGMENTS)
