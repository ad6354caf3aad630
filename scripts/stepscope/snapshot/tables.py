"""The tables of one device's replayed history.

Bytes are those that were requested, times are seconds since the first event, and an event is its
number in the device's history; the state "after event -1" is that before the first one.
"""

import re

import numpy as np
import pandas as pd

from . import MEMORY_CATEGORIES
from .categories import UNKNOWN, Blocks
from .events import OOM, Snapshot
from .known import Known
from .phases import changes
from .replay import Replay, after_each
from .stacks import whole

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


def of_blocks(blocks: Blocks, lines: list[str]) -> pd.DataFrame:
    """A row for each block; `alive` at the peak.

    Texts are pandas's categories, so that groups of millions of blocks are made of numbers. lines:
    of each stack, and "" for none.
    """
    replay, told = blocks.replay, blocks.parts.told
    columns = {
        "bytes": replay.size,
        "category": pd.Categorical.from_codes(blocks.category, pd.Index(MEMORY_CATEGORIES)),
        "phase": _texts(told["phase"], blocks.part),
        "module": _texts(told["module"].map(collapsed), blocks.part),
        "frame": _texts(pd.Series(lines, dtype=object), replay.stack),
        "tensor": pd.factorize(pd.Series(blocks.tensors))[0][blocks.tensor],
        "stack": replay.stack,
        "alive": replay.alive_after(replay.peak_event),
    }
    return pd.DataFrame(columns)


def _texts(texts: pd.Series, number: np.ndarray) -> pd.Categorical:
    """The text of each number, of -1 the last, which is none; the categories in the order of the
    list behind none."""
    code, known = pd.factorize(pd.concat([texts[-1:], texts]))
    return pd.Categorical.from_codes(code[1:][number], known)


def summary(blocks: Blocks, cut: bool, lines: list[str], python: np.ndarray) -> pd.DataFrame:
    """One row. python: whether each stack has a frame of Python, and False for none."""
    replay, peak = blocks.replay, blocks.replay.peak_event
    at_peak = blocks.parts.at(peak)
    recorded, alive = replay.recorded, replay.alive_after(peak)
    allocated = int(replay.size[recorded].sum())
    without = int(replay.size[recorded & ~python[replay.stack]].sum())
    unknown = alive & (blocks.category == UNKNOWN)
    seconds = replay.device.seconds
    row = {
        "events": replay.events,
        "cut": cut,
        "start": int(replay.active[0]),
        "end": int(replay.active[-1]),
        "peak": replay.peak_bytes,
        "peak_event": peak,
        "peak_time": None if seconds is None else float(seconds[max(peak, 0)]),
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
    return pd.DataFrame([row | _ooms(blocks, lines)])


def allocated_bytes(replay: Replay) -> np.ndarray:
    """Bytes that the allocator took for each block: as the final state says, else at least, since
    it rounds up to 512 (kMinBlockSize in c10/core/CachingDeviceAllocator.h), and gives a block
    whole where too little would be left of it."""
    rounded = -(-replay.size // MIN_BLOCK) * MIN_BLOCK
    return np.where(replay.taken > 0, replay.taken, rounded)


def _ooms(blocks: Blocks, lines: list[str]) -> dict:
    """Of the first time that memory ran out: what follows it is how the program recovered."""
    events = blocks.replay.device
    found = np.flatnonzero(events.action == OOM)
    if not len(found):
        return {"ooms": 0}
    at = found[0]
    around = blocks.parts.at(at)
    return {
        "ooms": len(found),
        "oom_requested": int(events.size[at]),
        "oom_free": int(events.address[at]),
        "oom_phase": around["phase"],
        "oom_module": around["module"],
        "oom_frame": lines[events.stack[at]],
    }


def timeline(blocks: Blocks) -> pd.DataFrame:
    """Memory after at most TIMELINE_ROWS events: the first and the last, the peak, those around
    changes of phase, and of the rest the highest and the lowest of equally long parts. Event -1 is
    the state before the first."""
    replay, events = blocks.replay, blocks.replay.events
    borders = _borders(blocks)
    borders = borders[_spread(0, len(borders) - 1, min(len(borders), _BOUNDARIES))]
    chosen = [borders, [-1, events - 1, replay.peak_event, int(replay.reserved.argmax()) - 1]]
    parts = (TIMELINE_ROWS - len(borders) - 4) // 2
    part = np.searchsorted(_spread(0, events + 1, parts + 1), np.arange(events + 1), "right")
    extremes = pd.Series(replay.active).groupby(part).agg(["idxmax", "idxmin"])
    at = np.unique(np.concatenate([*chosen, extremes.to_numpy().ravel() - 1]))
    table = pd.DataFrame({"event": at})
    seconds = replay.device.seconds
    table["time"] = np.nan if seconds is None else seconds[np.maximum(at, 0)]
    for name in ("step", "phase", "module"):
        table[name] = blocks.parts.told[name].to_numpy()[blocks.parts.of(at)]
    table["active"] = replay.active[at + 1]
    table["reserved"] = replay.reserved[at + 1]
    column = np.minimum(blocks.category, NAMED)
    for code, name in enumerate([*MEMORY_CATEGORIES[:NAMED], "other"]):
        own = column == code
        held = after_each(replay.start[own], replay.end[own], replay.size[own], events)
        table[name.replace(" ", "_")] = held[at + 1]
    return table


def _spread(first: int, last: int, number: int) -> np.ndarray:
    """So many whole numbers from the first to the last."""
    return np.linspace(first, last, number).astype(int)


def _borders(blocks: Blocks) -> np.ndarray:
    """The last event before, and the last one of, each stretch of events in one phase of one
    step."""
    parts, events = blocks.parts, blocks.replay.events
    stretch = parts.told.groupby(["step", "phase"], dropna=False, sort=False).ngroup().to_numpy()
    begins = np.flatnonzero(changes(stretch[parts.of(np.arange(events))]))
    return np.unique([0, *begins, events]) - 1


def peak(table: pd.DataFrame) -> pd.DataFrame:
    """What is alive at the peak by category, from of_blocks(); every category has a row."""
    alive = table[table["alive"]]
    held = alive.groupby("category", observed=False)["bytes"].agg(bytes="sum", blocks="size")
    return held.reset_index()


def lines(table: pd.DataFrame, snapshot: Snapshot) -> pd.DataFrame:
    """What is alive at the peak by category, part of the model and line of code, the largest first.

    stack: the whole stack of the largest block of the row, the innermost call first.
    """
    alive = table[table["alive"]].sort_values("bytes", kind="stable")
    rows = alive.groupby(["category", "module", "frame"], observed=True).agg(
        bytes=("bytes", "sum"), blocks=("bytes", "size"), stack=("stack", "last")
    )
    rows = rows.sort_values("bytes", ascending=False, kind="stable").head(MOST_LINES)
    stacks = [whole(snapshot, number) for number in rows["stack"]]
    # No text to pandas: the names of files may be what is none in Unicode.
    rows["stack"] = pd.Series(stacks, rows.index, dtype=object)
    return rows.reset_index()


def largest(table: pd.DataFrame, blocks: Blocks) -> pd.DataFrame:
    """The largest allocations; those that are equal in all but time are one row."""
    # Only the largest sizes can be among the rows: few groups are made of millions of blocks.
    sizes = np.unique(table["bytes"])[-MOST_GROUPS:]
    table = table[table["bytes"].isin(sizes)]
    by = ["bytes", "category", "phase", "module", "frame", "tensor"]
    rows = table.groupby(by, observed=True).agg(count=("alive", "size"), alive=("alive", "sum"))
    rows = rows.sort_values(["bytes", "count"], ascending=False).head(MOST_GROUPS).reset_index()
    tensors = pd.DataFrame(
        pd.unique(pd.Series(blocks.tensors)).tolist(), columns=["op", "shape", "dtype"]
    )
    rows = rows.join(tensors, on="tensor").drop(columns="tensor")
    rows.insert(0, "rank", np.arange(1, len(rows) + 1))
    return rows


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
