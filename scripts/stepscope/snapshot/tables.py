"""The tables of one device's replayed history.

Bytes are those that were requested, times are seconds since the first event, and an event is its
number in the device's history; the state "after event -1" is that before the first one.
"""

import re
from functools import cached_property

import numpy as np
import pandas as pd

from stepscope.snapshot import MEMORY_CATEGORIES
from stepscope.snapshot.categories import UNKNOWN, Blocks
from stepscope.snapshot.events import OOM, Snapshot
from stepscope.snapshot.known import Known
from stepscope.snapshot.phases import changes
from stepscope.snapshot.replay import Replay, after_each
from stepscope.snapshot.stacks import whole

TIMELINE_ROWS = 2000
_BOUNDARIES = 800  # rows of the timeline that changes of phase may take
MOST_LINES = 200
MOST_GROUPS = 40
NAMED = 5  # categories with a column of their own in the timeline; the rest is `other`
MIN_BLOCK = 512  # bytes
_NUMBER = re.compile(r"\.\d+(?=[./]|$)")


def collapsed(path: str) -> str:
    """A path in which one block stands for all, as in "blocks.*/attention/softmax"."""
    return _NUMBER.sub(".*", path)


class Device:
    """One device's history, what is known of its blocks, and the lines that made them, for all its
    tables."""

    def __init__(
        self,
        blocks: Blocks,
        lines: list[str],
        python: np.ndarray,
    ):
        """lines: of each stack, and "" for none; python: whether the stack has a frame of Python,
        and False."""
        self.blocks, self.replay, self.parts = blocks, blocks.replay, blocks.parts
        self.lines, self.python = lines, python
        self.seconds = self.replay.device.seconds
        self.number = self.replay.device.number

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each block; `alive` at the peak; `lifetime` of those that did not outlive the
        recording.

        Texts are pandas's categories, so that groups of millions of blocks are made of numbers.
        """
        replay, told = self.replay, self.parts.told
        lifetime = np.full(len(replay.size), np.nan)
        if self.seconds is not None:
            ended = replay.end < replay.events
            start = np.maximum(replay.start[ended], 0)
            lifetime[ended] = self.seconds[replay.end[ended]] - self.seconds[start]
        columns = {
            "bytes": replay.size,
            "category": pd.Categorical.from_codes(
                self.blocks.category, pd.Index(MEMORY_CATEGORIES)
            ),
            "phase": _texts(told["phase"], self.blocks.part),
            "module": _texts(told["module"].map(collapsed), self.blocks.part),
            "frame": _texts(pd.Series(self.lines, dtype=object), replay.stack),
            "tensor": pd.factorize(pd.Series(self.blocks.tensors))[0][self.blocks.tensor],
            "stack": replay.stack,
            "alive": replay.alive_after(replay.peak_event),
            "lifetime": lifetime,
        }
        return pd.DataFrame(columns)

    def time(self, event: int) -> float | None:
        """Seconds since the first event; None where times were not recorded."""
        return None if self.seconds is None else float(self.seconds[max(event, 0)])


def _texts(texts: pd.Series, number: np.ndarray) -> pd.Categorical:
    """The text of each number, of -1 the last, which is none; the categories in the order of the
    list behind none."""
    code, known = pd.factorize(pd.concat([texts[-1:], texts]))
    return pd.Categorical.from_codes(code[1:][number], known)


def _plain(table: pd.DataFrame, device: Device) -> pd.DataFrame:
    """A table of a device in which texts are texts again."""
    texts = table.select_dtypes("category").columns
    table = table.astype(dict.fromkeys(texts, object))
    table.insert(0, "device", device.number)
    return table


def summary(device: Device, cut: bool) -> pd.DataFrame:
    """One row."""
    replay, peak = device.replay, device.replay.peak_event
    at_peak = device.parts.at(peak)
    recorded, alive = replay.recorded, replay.alive_after(peak)
    allocated = int(replay.size[recorded].sum())
    without = int(replay.size[recorded & ~device.python[replay.stack]].sum())
    unknown = alive & (device.blocks.category == UNKNOWN)
    row = {
        "device": device.number,
        "events": replay.events,
        "cut": cut,
        "start": int(replay.active[0]),
        "end": int(replay.active[-1]),
        "peak": replay.peak_bytes,
        "peak_event": peak,
        "peak_time": device.time(peak) if replay.events else None,
        "peak_step": at_peak["step"],
        "peak_phase": at_peak["phase"],
        "peak_module": at_peak["module"],
        "peak_allocated": int(allocated_bytes(replay)[alive].sum()),
        "is_allocated_known": bool((replay.taken[alive] > 0).all()),
        "peak_reserved": int(replay.reserved.max()),
        "reserved_at_peak": int(replay.reserved[peak + 1]),
        "allocated": allocated,
        "without_frames": without / allocated if allocated else None,
        "unknown_before": int(replay.size[unknown & ~recorded].sum()),
    }
    return pd.DataFrame([row | _ooms(device)])


def allocated_bytes(replay: Replay) -> np.ndarray:
    """Bytes that the allocator took for each block: as the final state says, else at least, since
    it rounds up to 512 (kMinBlockSize in c10/core/CachingDeviceAllocator.h), and gives a block
    whole where too little would be left of it."""
    rounded = -(-replay.size // MIN_BLOCK) * MIN_BLOCK
    return np.where(replay.taken > 0, replay.taken, rounded)


def _ooms(device: Device) -> dict:
    """Of the first time that memory ran out: what follows it is how the program recovered."""
    events = device.replay.device
    found = np.flatnonzero(events.action == OOM)
    if not len(found):
        return {"ooms": 0}
    at = found[0]
    around = device.parts.at(at)
    return {
        "ooms": len(found),
        "oom_requested": int(events.size[at]),
        "oom_free": int(events.address[at]),
        "oom_phase": around["phase"],
        "oom_module": around["module"],
        "oom_frame": device.lines[events.stack[at]],
    }


def timeline(device: Device) -> pd.DataFrame:
    """Memory after at most TIMELINE_ROWS events: the first and the last, the peak, those around
    changes of phase, and of the rest the highest and the lowest of equally long parts. Event -1 is
    the state before the first."""
    replay, events = device.replay, device.replay.events
    borders = _borders(device)
    borders = borders[_spread(0, len(borders) - 1, min(len(borders), _BOUNDARIES))]
    chosen = [borders, [-1, events - 1, replay.peak_event, int(replay.reserved.argmax()) - 1]]
    parts = (TIMELINE_ROWS - len(borders) - 4) // 2
    part = np.searchsorted(_spread(0, events + 1, parts + 1), np.arange(events + 1), "right")
    extremes = pd.Series(replay.active).groupby(part).agg(["idxmax", "idxmin"])
    at = np.unique(np.concatenate([*chosen, extremes.to_numpy().ravel() - 1]))
    table = pd.DataFrame({"device": device.number, "event": at})
    table["time"] = np.nan if device.seconds is None else device.seconds[np.maximum(at, 0)]
    for name in ("step", "phase", "module"):
        table[name] = device.parts.told[name].to_numpy()[device.parts.of(at)]
    table["active"] = replay.active[at + 1]
    table["reserved"] = replay.reserved[at + 1]
    column = np.minimum(device.blocks.category, NAMED)
    for code, name in enumerate([*MEMORY_CATEGORIES[:NAMED], "other"]):
        own = column == code
        held = after_each(replay.start[own], replay.end[own], replay.size[own], events)
        table[name.replace(" ", "_")] = held[at + 1]
    return table


def _spread(first: int, last: int, number: int) -> np.ndarray:
    """So many whole numbers from the first to the last."""
    return np.linspace(first, last, number).astype(int)


def _borders(device: Device) -> np.ndarray:
    """The last event before, and the last one of, each stretch of events in one phase of one
    step."""
    first, events = device.parts.first, device.replay.events
    full = np.flatnonzero(first < np.append(first, events)[1:])
    told = device.parts.told.iloc[full]
    stretch = told.groupby(["step", "phase"], dropna=False, sort=False).ngroup().to_numpy()
    begins = first[full][changes(stretch)]
    return np.unique([0, *begins, events]) - 1


def peak(device: Device) -> pd.DataFrame:
    """What is alive at the peak by category; every category has a row."""
    alive = device.table[device.table["alive"]]
    held = alive.groupby("category", observed=False)["bytes"].agg(bytes="sum", blocks="size")
    return _plain(held.reset_index(), device)


def lines(device: Device, snapshot: Snapshot) -> pd.DataFrame:
    """What is alive at the peak by category, part of the model and line of code, the largest first.

    stack: the whole stack of the largest block of the row, the innermost call first.
    """
    alive = device.table[device.table["alive"]].sort_values("bytes", kind="stable")
    rows = alive.groupby(["category", "module", "frame"], observed=True).agg(
        bytes=("bytes", "sum"), blocks=("bytes", "size"), stack=("stack", "last")
    )
    rows = rows.sort_values("bytes", ascending=False, kind="stable").head(MOST_LINES)
    stacks = [whole(snapshot, number) for number in rows["stack"]]
    # No text to pandas: the names of files may be what is none in Unicode.
    rows["stack"] = pd.Series(stacks, rows.index, dtype=object)
    return _plain(rows.reset_index(), device)


def largest(device: Device) -> pd.DataFrame:
    """The largest allocations; those that are equal in all but time are one row. lifetime: the
    median."""
    # Only the largest sizes can be among the rows: few groups are made of millions of blocks.
    sizes = np.unique(device.replay.size)[-MOST_GROUPS:]
    table = device.table[np.isin(device.replay.size, sizes)]
    by = ["bytes", "category", "phase", "module", "frame", "tensor"]
    rows = table.groupby(by, observed=True).agg(
        count=("alive", "size"), alive=("alive", "sum"), lifetime=("lifetime", "median")
    )
    rows = rows.sort_values(["bytes", "count"], ascending=False).head(MOST_GROUPS).reset_index()
    tensors = pd.DataFrame(
        pd.unique(pd.Series(device.blocks.tensors)).tolist(), columns=["op", "shape", "dtype"]
    )
    rows = rows.join(tensors, on="tensor").drop(columns="tensor")
    rows.insert(0, "rank", np.arange(1, len(rows) + 1))
    return _plain(rows, device)


def saved(known: Known) -> pd.DataFrame:
    """What autograd kept for the backward pass: of the block in the middle of the model, and
    outside all blocks."""
    table = _middle_block(known.saved, "module", r"^(blocks\.\d{1,9})(?:/|$)")
    table = table.assign(
        module=[collapsed(name) for name in table["module"]],
        category=np.where(table["cast"].astype(bool), "cast weights", "activations"),
    )
    groups = _counted(table, ["part", "module", "op", "shape", "dtype", "category"])
    return groups.sort_values("part", kind="stable")


def named(known: Known) -> pd.DataFrame:
    """Storages that were named: of the block in the middle of the model, and those of no block, by
    category.

    Where a storage is named several times (a gradient in each step), the last time counts.
    """
    storages = known.tensors.drop_duplicates(["category", "name", "address"], keep="last")
    last = storages.groupby(["category", "name"])["at"].transform("last")
    kept = _middle_block(storages[storages["at"] == last], "name", r"^(blocks\.\d{1,9})\.")
    return _counted(kept, ["category", "part"])


def _middle_block(table: pd.DataFrame, column: str, pattern: str) -> pd.DataFrame:
    """The rows of the block in the middle of all, as `part` "block", and those of none, as "rest",
    by the names in a column."""
    block = table[column].astype(str).str.extract(pattern, expand=False)
    found = sorted(block.dropna().unique(), key=lambda name: int(name.split(".")[1]))
    middle = found[len(found) // 2] if found else None
    part = np.where(block.isna(), "rest", "block")
    return table.assign(part=part)[block.isna() | (block == middle)]


def _counted(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """How many tensors are equal in these columns, and their bytes."""
    groups = table.groupby(by, sort=False)["bytes"]
    return groups.agg(tensors="size", bytes="sum").reset_index()
