"""The tables of one device's replayed history.

Bytes are those that were requested, times are seconds since the first event, and an event is its
number in the device's history; the state "after event -1" is that before the first one.
"""

import re

import numpy as np
import pandas as pd

from stepscope.snapshot import CATEGORIES
from stepscope.snapshot.categories import UNKNOWN, Blocks
from stepscope.snapshot.events import OOM, Snapshot
from stepscope.snapshot.known import Known
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

    def __init__(self, blocks: Blocks, lines: list[str], python: np.ndarray):
        """lines: of each stack, and "" for none; python: whether the stack has a frame of Python,
        and False."""
        self.blocks, self.replay, self.parts = blocks, blocks.replay, blocks.parts
        self.lines, self.python = lines, python
        self.seconds = self.replay.device.seconds
        self.number = self.replay.device.number
        # One number for each text, so that groups are made of numbers.
        self.module, self.modules = _coded([collapsed(name) for name in self.parts.module])
        self.phase, self.phases = _coded(self.parts.phase)
        self.line, self.line_names = _coded(lines[:-1])
        self.tensor, self.tensor_names = _coded(blocks.tensors)

    def time(self, event: int) -> float | None:
        """Seconds since the first event; None where times were not recorded."""
        return None if self.seconds is None else float(self.seconds[max(event, 0)])

    def part(self, event: int) -> tuple[object, str, str]:
        """(step, phase, module) of an event."""
        at = int(self.parts.of(np.array([event]))[0])
        return (
            (None, "", "")
            if at < 0
            else (self.parts.step[at], self.parts.phase[at], self.parts.module[at])
        )


def _coded(texts: list) -> tuple[np.ndarray, list]:
    """(the number of each text and at the end of none, the different texts); number 0 is that of
    none."""
    empty = ("", "", "") if texts and isinstance(texts[0], tuple) else ""
    names = {empty: 0}
    return np.array([*(names.setdefault(text, len(names)) for text in texts), 0]), list(names)


def summary(device: Device, cut: bool) -> pd.DataFrame:
    """One row."""
    replay, peak = device.replay, device.replay.peak_event
    step, phase, module = device.part(peak)
    recorded, alive = replay.recorded, replay.alive_after(peak)
    allocated = int(replay.size[recorded].sum())
    without = int(replay.size[recorded & ~device.python[replay.stack]].sum())
    unknown = alive & (device.blocks.category == UNKNOWN)
    row = {
        "device": device.number,
        "events": replay.events,
        "duration": device.time(replay.events - 1) if replay.events else None,
        "cut": cut,
        "start": int(replay.active[0]),
        "end": int(replay.active[-1]),
        "peak": replay.peak_bytes,
        "peak_event": peak,
        "peak_time": device.time(peak) if replay.events else None,
        "peak_step": step,
        "peak_phase": phase,
        "peak_module": module,
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
    _, phase, module = device.part(at)
    return {
        "ooms": len(found),
        "oom_requested": int(events.size[at]),
        "oom_free": int(events.address[at]),
        "oom_phase": phase,
        "oom_module": module,
        "oom_frame": device.lines[events.stack[at]],
    }


def timeline(device: Device) -> pd.DataFrame:
    """Memory after at most TIMELINE_ROWS events: the first and the last, the peak, those around
    changes of phase, and of the rest the highest and the lowest of equally long parts. Event -1 is
    the state before the first."""
    replay, events = device.replay, device.replay.events
    borders = _borders(device)
    borders = borders[np.linspace(0, len(borders) - 1, min(len(borders), _BOUNDARIES)).astype(int)]
    chosen = [borders, [-1, events - 1, replay.peak_event, int(replay.reserved.argmax()) - 1]]
    edges = np.unique(
        np.linspace(0, events + 1, (TIMELINE_ROWS - len(borders) - 4) // 2 + 1).astype(int)
    )[:-1]
    for extreme in (np.maximum, np.minimum):
        best = np.repeat(
            extreme.reduceat(replay.active, edges), np.diff(np.append(edges, events + 1))
        )
        hits = np.flatnonzero(replay.active == best)
        chosen.append(hits[np.searchsorted(hits, edges)] - 1)
    at = np.unique(np.concatenate(chosen).astype(np.int64))
    part = device.parts.of(at)
    table = pd.DataFrame({"device": device.number, "event": at})
    table["time"] = np.nan if device.seconds is None else device.seconds[np.maximum(at, 0)]
    table["step"] = np.array([*device.parts.step, None], dtype=object)[part]
    table["phase"] = np.array([*device.parts.phase, ""], dtype=object)[part]
    table["module"] = np.array([*device.parts.module, ""], dtype=object)[part]
    table["active"] = replay.active[at + 1]
    table["reserved"] = replay.reserved[at + 1]
    for code, name in enumerate([*CATEGORIES[:NAMED], "other"]):
        own = device.blocks.category == code if code < NAMED else device.blocks.category >= NAMED
        held = after_each(replay.start[own], replay.end[own], replay.size[own], events)
        table[name.replace(" ", "_")] = held[at + 1]
    return table


def _borders(device: Device) -> np.ndarray:
    """The last event before, and the last one of, each stretch of events in one phase of one
    step."""
    parts, events = device.parts, device.replay.events
    full = np.flatnonzero(parts.first < np.append(parts.first, events)[1:])
    known = [(parts.step[at], parts.phase[at]) for at in full.tolist()]
    changes = [
        parts.first[at]
        for at, own, before in zip(full, known, [None, *known], strict=False)
        if own != before
    ]
    return np.unique([0, *changes, events]) - 1


def peak(device: Device) -> pd.DataFrame:
    """What is alive at the peak by category; every category has a row."""
    replay = device.replay
    alive = replay.alive_after(replay.peak_event)
    category, most = device.blocks.category[alive], len(CATEGORIES)
    held = np.bincount(category, weights=replay.size[alive], minlength=most).astype(np.int64)
    found = {
        "category": CATEGORIES,
        "bytes": held,
        "blocks": np.bincount(category, minlength=most),
    }
    return pd.DataFrame({"device": device.number, **found})


def lines(device: Device, snapshot: Snapshot) -> pd.DataFrame:
    """What is alive at the peak by category, part of the model and line of code, the largest first.

    stack: the whole stack of the largest block of the row, the innermost call first.
    """
    replay, blocks = device.replay, device.blocks
    alive = np.flatnonzero(replay.alive_after(replay.peak_event))
    alive = alive[
        np.argsort(replay.size[alive], kind="stable")
    ]  # the last of a group is its largest
    columns = [
        blocks.category[alive],
        device.module[blocks.part[alive]],
        device.line[replay.stack[alive]],
    ]
    keys, sizes, counts, groups = _groups(columns, replay.size[alive])
    largest = np.zeros(len(sizes), dtype=np.int64)
    largest[groups] = alive
    order = np.lexsort((*keys[::-1], -sizes))[:MOST_LINES]
    return pd.DataFrame(
        {
            "device": device.number,
            "category": [CATEGORIES[each] for each in keys[0][order]],
            "module": [device.modules[each] for each in keys[1][order]],
            "frame": [device.line_names[each] for each in keys[2][order]],
            "bytes": sizes[order],
            "blocks": counts[order],
            "stack": [whole(snapshot, number) for number in replay.stack[largest[order]]],
        }
    )


def largest(device: Device) -> pd.DataFrame:
    """The largest allocations; those that are equal in all but time are one row."""
    replay, blocks = device.replay, device.blocks
    # Only the largest sizes can be among the rows: few groups are made of millions of blocks.
    sizes = np.unique(replay.size)[-MOST_GROUPS:]
    own = np.flatnonzero(replay.size >= sizes[0]) if len(sizes) else np.empty(0, dtype=np.int64)
    part = blocks.part[own]
    columns = [-replay.size[own], blocks.category[own], device.phase[part], device.module[part]]
    columns += [device.line[replay.stack[own]], device.tensor[blocks.tensor[own]]]
    alive = replay.alive_after(replay.peak_event)[own]
    keys, at_peak, counts, groups = _groups(columns, alive.astype(np.int64))
    order = np.lexsort((*keys[:0:-1], -counts, keys[0]))[:MOST_GROUPS]
    tensors = [device.tensor_names[each] for each in keys[5][order]]
    return pd.DataFrame(
        {
            "device": device.number,
            "rank": np.arange(1, len(order) + 1),
            "bytes": -keys[0][order],
            "count": counts[order],
            "alive": at_peak[order],
            "category": [CATEGORIES[each] for each in keys[1][order]],
            "phase": [device.phases[each] for each in keys[2][order]],
            "module": [device.modules[each] for each in keys[3][order]],
            "frame": [device.line_names[each] for each in keys[4][order]],
            **{
                name: [each[at] for each in tensors]
                for at, name in enumerate(("op", "shape", "dtype"))
            },
            "lifetime": [_lifetime(device, own[groups == at]) for at in order],
        }
    )


def _lifetime(device: Device, blocks: np.ndarray) -> float | None:
    """The median of seconds that blocks lived, of those that did not outlive the recording."""
    start, end = device.replay.start[blocks], device.replay.end[blocks]
    ended = end < device.replay.events
    if device.seconds is None or not ended.any():
        return None
    return float(
        np.median(device.seconds[end[ended]] - device.seconds[np.maximum(start[ended], 0)])
    )


def saved(known: Known) -> pd.DataFrame:
    """What autograd kept for the backward pass: of the block in the middle of the model, and
    outside all blocks."""
    table = pd.DataFrame(known.saved, columns=["module", "bytes", "op", "shape", "dtype", "cast"])
    block, middle = _middle_block(table["module"], r"^(blocks\.\d{1,9})(?:/|$)")
    table["part"] = np.where(block.isna(), "rest", "block")
    table = table[block.isna() | (block == middle)]
    table = table.assign(
        module=[collapsed(name) for name in table["module"]],
        category=np.where(table["cast"].astype(bool), "cast weights", "activations"),
    )
    by = ["part", "module", "op", "shape", "dtype", "category"]
    groups = table.groupby(by, sort=False)["bytes"].agg(tensors="size", bytes="sum").reset_index()
    return groups.sort_values("part", kind="stable")


def named(known: Known) -> pd.DataFrame:
    """Storages that were named: of the block in the middle of the model, and those of no block, by
    category.

    Where a storage is named several times (a gradient in each step), the last time counts.
    """
    last = {(each["category"], each["name"], each["address"]): each for each in known.tensors}
    named = {(each["category"], each["name"]): each["at"] for each in last.values()}
    kept = [each for each in last.values() if each["at"] == named[each["category"], each["name"]]]
    table = pd.DataFrame(kept, columns=["category", "name", "bytes"])
    block, middle = _middle_block(table["name"], r"^(blocks\.\d{1,9})\.")
    table["part"] = np.where(block.isna(), "rest", "block")
    table = table[block.isna() | (block == middle)]
    return (
        table.groupby(["category", "part"], sort=False)["bytes"]
        .agg(tensors="size", bytes="sum")
        .reset_index()
    )


def _middle_block(names: pd.Series, pattern: str) -> tuple[pd.Series, str | None]:
    """(the block in each name, NaN for none; the block in the middle of all)."""
    block = names.astype(str).str.extract(pattern, expand=False)
    found = sorted(block.dropna().unique(), key=lambda name: int(name.split(".")[1]))
    return block, found[len(found) // 2] if found else None


def _groups(columns: list[np.ndarray], values: np.ndarray) -> tuple:
    """Groups of rows that are equal in all columns: (their values there, sums, counts, group of
    each row)."""
    group = np.zeros(len(values), dtype=np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        _, group = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
    number = int(group.max(initial=-1)) + 1
    one = np.zeros(number, dtype=np.int64)
    one[group] = np.arange(len(values))
    sums = np.bincount(group, weights=values, minlength=number).astype(np.int64)
    return [column[one] for column in columns], sums, np.bincount(group, minlength=number), group
