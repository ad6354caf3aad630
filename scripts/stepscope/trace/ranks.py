"""A step of several ranks taken apart: what each computes, waits and transfers, its collectives one
by one, and the kernels in which ranks differ. A rank is a process on a device.

Seconds and counts are those of a step.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from stepscope.trace import collectives, kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import MEMORY, SECOND, Trace, moved
from stepscope.trace.kernel_categories import CATEGORIES, category_of
from stepscope.trace.nesting import covered, groups, union

MOST_KERNELS = 40
# Calls that have a collective start, and are none themselves.
_STARTS_ONE = re.compile(r"^c10d::|^record_param_comms")
# Which collective a kernel of NCCL and its like is, by its name.
_KERNEL = re.compile(
    (
        r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|reduce"
        r"|gather|scatter)"
    ),
    re.IGNORECASE,
)
_SAID = ["given", "got", "item", "ranks", "sequence"]


@dataclass(frozen=True)
class Place:
    """A rank: its process and device in the trace, the positions of its operations, and the steps
    of its process."""

    rank: int
    process: int
    device: int
    own: np.ndarray
    steps: int


def places(found: Attribution) -> Iterator[Place]:
    """Every process on every device; their ranks are the trace's, else numbers in their order."""
    trace = found.trace
    device = trace.operations["device"].to_numpy()
    keys = [
        (process, number, mine[part])
        for process, mine in groups(trace.operations["process"].to_numpy())
        for number, part in groups(device[mine])
    ]
    processes = {process for process, _, _ in keys}
    is_told = trace.ranks.keys() >= processes and len(processes) == len(keys)
    for at, (process, number, own) in enumerate(keys):
        steps = found.steps_of_process.get(process, found.steps)
        yield Place(trace.ranks[process] if is_told else at, process, number, own, steps)


def shown(found: Attribution, place: Place) -> dict:
    """The first columns of what has a row for each rank."""
    return {
        "process": found.trace.process_name(place.process),
        "device": place.device,
        "device_name": found.trace.devices.get(place.device, ""),
    }


class Ranks:
    """The ranks of a trace and their collectives."""

    def __init__(self, found: Attribution) -> None:
        self.found = found
        self.places = sorted(places(found), key=lambda place: place.rank)
        operations = found.trace.operations
        self.name, self.start, self.end = (
            operations[key].to_numpy() for key in ("name", "start", "end")
        )
        self.is_other = found.category != CATEGORIES.index("communication")
        self.computes = self.is_other & (operations["kind"].to_numpy() != MEMORY)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """A row for each collective, as collectives.py asks for it, with what the library says of
        it; `until` is when the last rank has started it, `waiting` the time until then."""
        chosen = is_collective(self.found.trace)
        parts = [
            of_rank(self.found.trace, place.own[chosen[place.own]], place.rank)
            for place in self.places
        ]
        own = (
            pd.concat(parts, ignore_index=True)
            if parts
            else of_rank(self.found.trace, np.empty(0, dtype=np.int64), 0)
        )
        instance = collectives.instances(own)
        shift = own["rank"].map(collectives.clock_offsets(own, instance)).astype(float)
        same = own.assign(start=own["start"] + shift, end=own["end"] + shift)
        until = collectives.last_starts(same, instance) - shift
        return own.assign(
            instance=instance,
            shift=shift,
            until=until,
            waiting=until - own["start"],
            members=own["rank"].groupby(instance).transform("nunique"),
        )

    def table(self) -> pd.DataFrame:
        """A row for each rank: its step, and what that goes to. `compute` is whatever runs on the
        device beside collectives; those count where it does not.

        waited_for: how long all other ranks together wait in collectives that this one was the last
        to start, covered by kernels or not. Empty of a trace of one rank.
        """
        if len(self.places) < 2:
            return pd.DataFrame()
        every = self.collectives
        same = every.assign(
            start=every["start"] + every["shift"], end=every["end"] + every["shift"]
        )
        late = collectives.waited_for(same, every["instance"].to_numpy())
        rows = []
        for place in self.places:
            windows = _windows(self.found, place)
            other = place.own[self.is_other[place.own]]
            own = every[every["rank"] == place.rank]
            start = own["start"].to_numpy()
            end = own["end"].to_numpy()
            until = own["until"].fillna(own["start"]).to_numpy()
            computing = self.start[other], self.end[other]
            parts = collectives.parts(windows, computing, (start, until), (until, end))
            whole = {"step": float((windows[1] - windows[0]).sum())}
            times = whole | parts | {"waited_for": late.get(place.rank, 0.0)}
            seconds = {key: value / SECOND / place.steps for key, value in times.items()}
            rows.append({"rank": place.rank} | shown(self.found, place) | seconds)
        return pd.DataFrame(rows)

    def communication(self) -> pd.DataFrame:
        """A row for each collective, size and group of a rank.

        waiting: until the last rank has started the same one; transfer: the rest (both only where
        several ranks are in the trace). hidden: while a kernel of the rank computes; exposed: the
        rest. beside: the kernel that computed longest beside it; slowed: how much longer all
        kernels beside it took than the median of the same ones, on the same rank, that had none
        beside them; slowed_share: of those. bus_rate: B/s, by the transfer, else by all the time.
        """
        rows = []
        for place in self.places:
            own = self.collectives[self.collectives["rank"] == place.rank]
            beside = self._beside(place, own["operation"].to_numpy())
            for _, part in own.groupby(["name", "given", "got", "group"], sort=False):
                row = {"rank": place.rank} | shown(self.found, place)
                rows.append(row | self._row(place, part, beside))
        return pd.DataFrame(rows)

    def _row(self, place: Place, part: pd.DataFrame, beside: pd.DataFrame) -> dict:
        """Of some collectives of a rank that are alike."""
        said = part.iloc[0]
        at = part["operation"].to_numpy()
        computing = place.own[self.computes[place.own]]
        spans = np.array([self.start[at], self.end[at]])
        of_each = np.diff(covered(self.start[computing], self.end[computing], spans), axis=0)
        time = float((spans[1] - spans[0]).sum())
        hidden = float(of_each.sum())
        waiting = float(part["waiting"].sum(min_count=1))  # nan where no other rank is there
        ranks = int(said["ranks"] if said["ranks"] > 0 else said["members"])
        row = {
            "collective": said["name"],
            "group": said["group"],
            "ranks": ranks,
        }
        row["count"] = len(part) / place.steps
        if said["given"] >= 0:
            given, got = (float(said[key] * said["item"]) for key in ("given", "got"))
            row["elements"] = max(int(said["given"]), int(said["got"]))
            row["bytes"] = max(given, got)
            moving = time - (0.0 if np.isnan(waiting) else waiting)
            link = len(part) * collectives.bus_bytes(str(said["name"]), given, got, ranks)
            row["bus_rate"] = link / moving * SECOND if moving else None
        times = {
            "time": time,
            "waiting": waiting,
            "transfer": time - waiting,
        }
        times |= {"exposed": time - hidden, "hidden": hidden}
        row |= {key: value / SECOND / place.steps for key, value in times.items()}
        return row | _slowed(beside[beside["operation"].isin(at)], place.steps)

    def _beside(self, place: Place, at: np.ndarray) -> pd.DataFrame:
        """A row for each kernel of a rank that computes beside a collective (their positions): the
        collective, of several the latest, as `operation`, the time, and the median of the same
        kernel, launched with the same grid, without any."""
        own = place.own[self.computes[place.own]]
        start, end = self.start[own], self.end[own]
        at = at[np.argsort(self.start[at], kind="stable")]
        latest = np.searchsorted(self.start[at], end, "left") - 1
        reach = np.append(np.maximum.accumulate(self.end[at]), np.iinfo(np.int64).min)
        is_beside = start < reach[latest]
        alike = self.found.trace.operations[["name", "shape"]].iloc[own]
        table = alike.assign(time=(end - start).astype(float))
        alone = table[~is_beside].groupby(["name", "shape"])["time"].median().rename("alone")
        table = table[is_beside].assign(operation=at[latest[is_beside]])
        return table.assign(kernel=self._short(table["name"])).join(alone, on=["name", "shape"])

    def kernels(self) -> pd.DataFrame:
        """A row for each kernel that computes on several ranks: where it is fastest and slowest, by
        the mean of its times, and what they differ by over a step; the largest first."""
        if len(self.places) < 2:
            return pd.DataFrame()
        of_rank_mean = {}
        of_rank_calls = {}
        for place in self.places:
            own = place.own[self.computes[place.own]]
            time = pd.Series((self.end[own] - self.start[own]) / SECOND)
            by_name = time.groupby(self.name[own])
            of_rank_mean[place.rank] = by_name.mean()
            of_rank_calls[place.rank] = by_name.size() / place.steps
        means = pd.DataFrame(of_rank_mean).dropna(thresh=2)
        calls = pd.DataFrame(of_rank_calls).max(axis=1)[means.index]
        if means.empty:
            return pd.DataFrame()
        fastest = means.min(axis=1)
        slowest = means.max(axis=1)
        table = pd.DataFrame(
            {
                "kernel": self._short(means.index),
                "calls": calls,
                "fastest_rank": means.idxmin(axis=1),
                "slowest_rank": means.idxmax(axis=1),
                "fastest": fastest,
                "slowest": slowest,
                "difference": (slowest - fastest) * calls,
            }
        )
        return table.nlargest(MOST_KERNELS, "difference").reset_index(drop=True)

    def _short(self, codes: Iterable[int]) -> list[str]:
        names = self.found.trace.names
        return [kernel_names.describe(names[code]).short for code in codes]


def is_collective(trace: Trace) -> np.ndarray:
    """Mask of the operations that are collectives."""
    codes = trace.operations["name"].to_numpy()
    known = np.zeros(len(trace.names), dtype=bool)
    for code in np.unique(codes).tolist():
        name = trace.names[code]
        known[code] = category_of(name) == "communication" and not _STARTS_ONE.match(name)
    return known[codes] & (trace.operations["kind"].to_numpy() != MEMORY)


def of_rank(trace: Trace, own: np.ndarray, rank: int) -> pd.DataFrame:
    """The collectives at some positions of the operations: what the library says of them, else what
    the kernel's name does."""
    operations = trace.operations.iloc[own]
    said = trace.messages.set_index("operation").reindex(own)
    of_kernels = [_collective(trace.names[code]) for code in operations["name"]]
    table = (
        said[_SAID]
        .fillna(-1)
        .astype(np.int64)
        .assign(
            operation=own,
            rank=rank,
            name=said["collective"].fillna(pd.Series(of_kernels, index=own, dtype=object)),
            group=said["group"].fillna(""),
            start=operations["start"].to_numpy(dtype=float),
            end=operations["end"].to_numpy(dtype=float),
        )
    )
    return table.reset_index(drop=True)


def _collective(kernel: str) -> str:
    found = _KERNEL.search(kernel)
    return found[1].lower().replace("_", "") if found else kernel_names.describe(kernel).short


def aligned(traces: list[Trace]) -> list[Trace]:
    """Traces of one run, a rank each, by the clock of the first: by the ends of equal collectives,
    or where there are none by their first events."""
    parts = [
        of_rank(trace, np.flatnonzero(is_collective(trace)), rank)
        for rank, trace in enumerate(traces)
    ]
    every = pd.concat(parts, ignore_index=True)
    offsets = collectives.clock_offsets(every, collectives.instances(every))
    result = []
    for rank, trace in enumerate(traces):
        offset = offsets.get(rank, traces[0].start - trace.start)
        result.append(moved(trace, round(offset)))
    return result


def _slowed(beside: pd.DataFrame, steps: int) -> dict:
    """What computed beside some collectives, and how much longer than alone."""
    if beside.empty:
        return {"beside": ""}
    known = beside[beside["alone"] > 0]
    longer = float((known["time"] - known["alone"]).sum())
    alone = float(known["alone"].sum())
    return {
        "beside": beside.groupby("kernel")["time"].sum().idxmax(),
        "slowed": longer / SECOND / steps if alone else None,
        "slowed_share": longer / alone if alone else None,
    }


def _windows(found: Attribution, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends) of a rank's steps: each until what was launched in it has ended; without
    steps, from the first phase or operation to the last."""
    end = pd.Series(found.trace.operations["end"].to_numpy()[place.own])
    if "step" in found.phases:
        own = found.occurrences("step")
        own = own[own["process"] == place.process]
        last = end.groupby(found.occurrence["step"][place.own]).max().reindex(own.index).fillna(0)
        ends = np.maximum(own["end"].to_numpy(), last.to_numpy(dtype=np.int64))
        return union(own["start"].to_numpy(), ends)
    start = found.trace.operations["start"].to_numpy()[place.own]
    phases = found.trace.ranges[found.is_phase[found.trace.ranges["name"].to_numpy()]]
    phases = phases[phases["process"] == place.process]
    first = min([start.min(), *phases["start"]])
    last_end = max([end.max(), *phases["end"]])
    return np.array([first]), np.array([last_end])
