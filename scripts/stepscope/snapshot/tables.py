"""The tables of one device's replayed history. Columns: see table_names.py."""

import re

import numpy as np
import pandas as pd

from stepscope.snapshot.categories import UNKNOWN, Blocks
from stepscope.snapshot.events import ALLOC, OOM
from stepscope.snapshot.known import Known
from stepscope.snapshot.replay import after_each
from stepscope.snapshot.table_names import CATEGORIES, CATEGORY_COLUMNS

TIMELINE_ROWS = 2000
_BOUNDARIES = 800  # rows of the timeline that changes of phase may take
MOST_LINES, MOST_GROUPS = 60, 40
MIN_BLOCK = 512  # bytes
OTHER = "other"
_NUMBER = re.compile(r"\.\d+(?=[./]|$)")


def collapsed(path: str) -> str:
    """A path in which one block stands for all, as in "blocks.*/attention/softmax"."""
    return _NUMBER.sub(".*", path)


class Device:
    """One device's history, what is known of its blocks, and the lines that made them, for all its tables."""

    def __init__(self, blocks: Blocks, lines: list[str], python: np.ndarray):
        """lines: of each stack, and "" for none; python: whether the stack has a frame of Python, and False."""
        self.blocks, self.replay, self.parts = blocks, blocks.replay, blocks.parts
        self.lines, self.python = lines, python
        self.ms = self.replay.device.ms
        self.number = self.replay.device.number
        modules = [collapsed(name) for name in self.parts.module]
        # One number for each text, so that groups are made of numbers.
        self.module, self.modules = _coded(modules)
        self.phase, self.phases = _coded(self.parts.phase)
        self.line, self.line_names = _coded(lines[:-1])
        tensors = [(op, shape, kind, collapsed(name)) for op, shape, kind, name in blocks.tensors]
        self.tensor, self.tensor_names = _coded(tensors)

    def time(self, event: int) -> float | None:
        """Milliseconds since the first event; None where times were not recorded."""
        return None if self.ms is None else float(self.ms[max(event, 0)])

    def part(self, event: int) -> tuple[object, str, str]:
        """(step, phase, module) of an event."""
        at = int(self.parts.of(np.array([event]))[0])
        return (None, "", "") if at < 0 else (self.parts.step[at], self.parts.phase[at], self.parts.module[at])


def _coded(texts: list) -> tuple[np.ndarray, list]:
    """(the number of each text and at the end of none, the different texts); number 0 is that of none."""
    empty = ("", "", "", "") if texts and isinstance(texts[0], tuple) else ""
    names = {empty: 0}
    return np.array([*(names.setdefault(text, len(names)) for text in texts), 0]), list(names)


def summary(device: Device, annotations: int, cut: bool) -> pd.DataFrame:
    """One row."""
    replay, events = device.replay, device.replay.device
    peak = replay.peak_event
    step, phase, module = device.part(peak)
    recorded = replay.recorded
    allocated = int(replay.size[recorded].sum())
    without = int(replay.size[recorded & ~device.python[replay.stack]].sum())
    inactive = ~events.block_active
    rounding = (events.block_size - events.block_requested)[events.block_active]
    alive_unknown = replay.alive_after(peak) & (device.blocks.category == UNKNOWN)
    unknown = replay.size[alive_unknown].sum()
    row = {
        "device": device.number,
        "events": replay.events,
        "time_recorded_ms": device.time(replay.events - 1) if replay.events else None,
        "cut": cut,
        "base_bytes": int(replay.active[0]),
        "start_bytes": int(replay.active[min(1, replay.events)]),
        "end_bytes": int(replay.active[-1]),
        "peak_bytes": replay.peak_bytes,
        "peak_event": peak,
        "peak_ms": device.time(peak) if replay.events else None,
        "peak_step": step,
        "peak_phase": phase,
        "peak_module": module,
        "peak_reserved_bytes": int(replay.reserved.max()),
        "reserved_at_peak_bytes": int(replay.reserved[peak + 1]),
        "unused_at_peak_bytes": int(replay.reserved[peak + 1] - replay.peak_bytes),
        "largest_unused_block_bytes": int(events.block_size[inactive].max(initial=0)),
        "rounding_bytes": int(rounding.sum()),
        "expandable_segments": events.expandable,
        "allocations": int(recorded.sum()),
        "allocated_bytes": allocated,
        "unknown_share_at_peak": _share(unknown, replay.peak_bytes),
        "without_frames_share": _share(without, allocated),
        "annotations": annotations,
        "peak_rounded_bytes": int(rounded(replay.size[replay.alive_after(peak)]).sum()),
        "unknown_before_recording_bytes": int(replay.size[alive_unknown & ~recorded].sum()),
    }
    return pd.DataFrame([row | _ooms(device)])


def rounded(size: np.ndarray) -> np.ndarray:
    """Bytes that the allocator takes for requests, at least: it rounds up to 512 (kMinBlockSize in
    c10/core/CachingDeviceAllocator.h)."""
    return -(-size // MIN_BLOCK) * MIN_BLOCK


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
        "oom_requested_bytes": int(events.size[at]),
        "oom_free_bytes": int(events.address[at]),
        "oom_phase": phase,
        "oom_module": module,
        "oom_frame": device.lines[events.stack[at]],
    }


def timeline(device: Device) -> pd.DataFrame:
    """Memory after at most TIMELINE_ROWS events: the first and the last, the peak, those around changes of phase, and
    of the rest the highest and the lowest of equally long parts. Event -1 is the state before the first."""
    replay, events = device.replay, device.replay.events
    runs = _runs(device)
    borders = np.unique([at for start, end, _ in runs for at in (start - 1, end - 1)])
    borders = borders[np.linspace(0, len(borders) - 1, min(len(borders), _BOUNDARIES)).astype(int)]
    chosen = [borders, [-1, events - 1, replay.peak_event, int(replay.reserved.argmax()) - 1]]
    edges = np.unique(np.linspace(0, events + 1, (TIMELINE_ROWS - len(borders) - 4) // 2 + 1).astype(int))[:-1]
    for extreme in (np.maximum, np.minimum):
        best = np.repeat(extreme.reduceat(replay.active, edges), np.diff(np.append(edges, events + 1)))
        hits = np.flatnonzero(replay.active == best)
        chosen.append(hits[np.searchsorted(hits, edges)] - 1)
    at = np.unique(np.concatenate(chosen).astype(np.int64))
    part = device.parts.of(at)
    table = pd.DataFrame({"device": device.number, "event": at})
    table["time_ms"] = np.nan if device.ms is None else device.ms[np.maximum(at, 0)]
    table["step"] = np.array([*device.parts.step, None], dtype=object)[part]
    table["phase"] = np.array([*device.parts.phase, ""], dtype=object)[part]
    table["active_bytes"] = replay.active[at + 1]
    table["reserved_bytes"] = replay.reserved[at + 1]
    for code, name in enumerate(CATEGORY_COLUMNS):
        own = device.blocks.category == code
        table[name] = after_each(replay.start[own], replay.end[own], replay.size[own], events)[at + 1]
    return table


def phases(device: Device) -> pd.DataFrame:
    """A row for each stretch of events in one phase of one step; stretches between phases have the phase ""."""
    replay, rows = device.replay, []
    action = replay.device.action
    ended = np.zeros(replay.events, dtype=bool)
    ended[replay.end[replay.end < replay.events]] = True
    ended &= action != ALLOC  # an address that is allocated twice, in a cut history
    sizes = np.where((action == ALLOC) | ended, replay.device.size, 0)
    for start, end, part in _runs(device):
        own, inside = replay.active[start : end + 1], slice(start, end)
        allocates, frees = action[inside] == ALLOC, ended[inside]
        rows.append(
            {
                "device": device.number,
                "step": device.parts.step[part] if part >= 0 else None,
                "phase": device.parts.phase[part] if part >= 0 else "",
                "start_event": start,
                "end_event": end - 1,
                "start_ms": device.time(start),
                "end_ms": device.time(end - 1),
                "start_bytes": int(own[0]),
                "end_bytes": int(own[-1]),
                "peak_bytes": int(own.max()),
                "peak_event": start + int(own.argmax()) - 1,
                "allocations": int(allocates.sum()),
                "allocated_bytes": int(sizes[inside][allocates].sum()),
                "frees": int(frees.sum()),
                "freed_bytes": int(sizes[inside][frees].sum()),
            }
        )
    return pd.DataFrame(rows)


def _runs(device: Device) -> list[tuple[int, int, int]]:
    """(first event, event after the last, number of a part) of stretches of events in one phase of one step."""
    parts, events, found = device.parts, device.replay.events, []
    first = [0, *parts.first.tolist(), events]
    for part in range(-1, len(parts.first)):
        start, end = first[part + 1], first[part + 2]
        if end <= start:
            continue
        same = found and found[-1][2] >= 0 and part >= 0
        if same and (parts.step[part], parts.phase[part]) == (parts.step[found[-1][2]], parts.phase[found[-1][2]]):
            found[-1] = (found[-1][0], end, found[-1][2])
        else:
            found.append((start, end, part))
    return found


def peak(device: Device) -> pd.DataFrame:
    """What is alive at the peak by category; every category has a row."""
    replay = device.replay
    alive = replay.alive_after(replay.peak_event)
    sizes, category = replay.size[alive], device.blocks.category[alive]
    held = [int(sizes[category == code].sum()) for code in range(len(CATEGORIES))]
    return pd.DataFrame(
        {
            "device": device.number,
            "category": CATEGORIES,
            "bytes": held,
            "blocks": [int((category == code).sum()) for code in range(len(CATEGORIES))],
            "share": [_share(each, replay.peak_bytes) for each in held],
        }
    )


def peak_lines(device: Device) -> pd.DataFrame:
    """What is alive at the peak by category, part of the model and line, the largest first."""
    replay, blocks = device.replay, device.blocks
    alive = np.flatnonzero(replay.alive_after(replay.peak_event))
    columns = [blocks.category[alive], device.module[blocks.part[alive]], device.line[replay.stack[alive]]]
    keys, sizes, counts = _groups(columns, replay.size[alive])
    order = np.lexsort((*keys[::-1], -sizes))
    shown, rest = order[:MOST_LINES], order[MOST_LINES:]
    rows = [
        {
            "category": CATEGORIES[keys[0][at]],
            "module": device.modules[keys[1][at]],
            "frame": device.line_names[keys[2][at]],
            "bytes": int(sizes[at]),
            "blocks": int(counts[at]),
        }
        for at in shown
    ]
    if len(rest):
        rows.append(
            {
                "category": OTHER,
                "module": "",
                "frame": "",
                "bytes": int(sizes[rest].sum()),
                "blocks": int(counts[rest].sum()),
            }
        )
    table = pd.DataFrame(rows, columns=["category", "module", "frame", "bytes", "blocks"])
    table["share"] = [_share(each, replay.peak_bytes) for each in table["bytes"]]
    table.insert(0, "device", device.number)
    return table


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
    keys, at_peak, counts, groups = _groups(columns, alive.astype(np.int64), with_groups=True)
    order = np.lexsort((*keys[:0:-1], -counts, keys[0]))[:MOST_GROUPS]
    rows = []
    for rank, at in enumerate(order, 1):
        op, shape, dtype, name = device.tensor_names[keys[5][at]]
        members = own[groups == at]
        lived = members[replay.end[members] < replay.events]
        lifetime = None
        if device.ms is not None and len(lived):
            lifetime = float(np.median(device.ms[replay.end[lived]] - device.ms[np.maximum(replay.start[lived], 0)]))
        rows.append(
            {
                "device": device.number,
                "rank": rank,
                "bytes": -int(keys[0][at]),
                "count": int(counts[at]),
                "alive_at_peak": int(at_peak[at]),
                "category": CATEGORIES[keys[1][at]],
                "step_phase": device.phases[keys[2][at]],
                "module": device.modules[keys[3][at]],
                "frame": device.line_names[keys[4][at]],
                "op": op,
                "shape": shape,
                "dtype": dtype,
                "name": name,
                "lifetime_ms": lifetime,
            }
        )
    return pd.DataFrame(rows)


def churn(device: Device) -> pd.DataFrame:
    """Which lines allocate most, whatever becomes of it."""
    replay, blocks = device.replay, device.blocks
    own = np.flatnonzero(replay.recorded)
    part = blocks.part[own]
    columns = [device.phase[part], device.module[part], device.line[replay.stack[own]]]
    keys, sizes, counts = _groups(columns, replay.size[own])
    order = np.lexsort((*keys[::-1], -sizes))[:MOST_GROUPS]
    return pd.DataFrame(
        {
            "device": device.number,
            "phase": [device.phases[each] for each in keys[0][order]],
            "module": [device.modules[each] for each in keys[1][order]],
            "frame": [device.line_names[each] for each in keys[2][order]],
            "allocations": counts[order],
            "bytes": sizes[order],
        }
    )


def saved(known: Known) -> pd.DataFrame:
    """What autograd kept for the backward pass: of the block in the middle of the model, and outside all blocks."""
    table = pd.DataFrame(known.saved, columns=["module", "bytes", "op", "shape", "dtype", "cast"])
    block, middle = _middle_block(table["module"], r"^(blocks\.\d{1,9})(?:/|$)")
    table["part"] = np.where(block.isna(), "outside", "block")
    table = table[block.isna() | (block == middle)]
    table = table.assign(
        module=[collapsed(name) for name in table["module"]],
        category=np.where(table["cast"].astype(bool), "cast weights", "activations"),
    )
    by = ["part", "module", "op", "shape", "dtype", "category"]
    groups = table.groupby(by, sort=False)["bytes"].agg(tensors="size", bytes="sum").reset_index()
    return groups.sort_values("part", kind="stable")


def tensors(known: Known) -> pd.DataFrame:
    """Storages that were named: of the block in the middle of the model, and those of no block, by category.

    Where a storage is named several times (a gradient in each step), the last time counts.
    """
    last = {(each["category"], each["name"], each["address"]): each for each in known.tensors}
    named = {(each["category"], each["name"]): each["at"] for each in last.values()}
    kept = [each for each in last.values() if each["at"] == named[each["category"], each["name"]]]
    table = pd.DataFrame(kept, columns=["category", "name", "bytes"])
    block, middle = _middle_block(table["name"], r"^(blocks\.\d{1,9})\.")
    table["part"] = np.where(block.isna(), "outside", "block")
    table = table[block.isna() | (block == middle)]
    return table.groupby(["category", "part"], sort=False)["bytes"].agg(tensors="size", bytes="sum").reset_index()


def _middle_block(names: pd.Series, pattern: str) -> tuple[pd.Series, str | None]:
    """(the block in each name, NaN for none; the block in the middle of all)."""
    block = names.astype(str).str.extract(pattern, expand=False)
    found = sorted(block.dropna().unique(), key=lambda name: int(name.split(".")[1]))
    return block, found[len(found) // 2] if found else None


def _groups(columns: list[np.ndarray], values: np.ndarray, with_groups: bool = False) -> tuple:
    """Groups of rows that are equal in all columns: (their values there, sums, counts[, group of each row])."""
    group = np.zeros(len(values), dtype=np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        _, group = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
    number = int(group.max(initial=-1)) + 1
    one = np.zeros(number, dtype=np.int64)
    one[group] = np.arange(len(values))
    sums = np.bincount(group, weights=values, minlength=number).astype(np.int64)
    found = [column[one] for column in columns], sums, np.bincount(group, minlength=number)
    return (*found, group) if with_groups else found


def _share(part: float, whole: float) -> float | None:
    return float(part) / float(whole) if whole else None
