"""A step of several ranks taken apart: what each computes, waits and transfers, its collectives one
by one, and the kernels in which ranks differ. A rank is a process on a device.

Seconds and counts are those of a step.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from stepscope.trace import collectives, kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import MEMORY, SECOND, Trace, moved
from stepscope.trace.kernel_categories import CATEGORIES, category_of
from stepscope.trace.nesting import arrays, covered, groups, union

MOST_KERNELS = 40
# Calls that have a collective start, and are none themselves.
_STARTS_ONE = re.compile(r"^c10d::|^record_param_comms")
# Which collective a kernel of NCCL and its like is, by its name.
_KERNEL = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|reduce"
    r"|gather|scatter)",
    re.IGNORECASE,
)
_SAID = ["given", "got", "item", "ranks", "sequence"]


@dataclass(frozen=True)
class Place:
    """A rank: its process, the positions of its operations in the trace, the steps of its process,
    and the first columns of what has a row for each."""

    rank: int
    process: int
    own: np.ndarray
    steps: int
    shown: dict


def places(found: Attribution) -> list[Place]:
    """Every process on every device; their ranks are the trace's, else numbers in their order."""
    trace = found.trace
    process, device = arrays(trace.operations, "process", "device")
    by_process = [(number, mine) for number, mine in groups(process)]
    keys = [
        (number, int(device[mine[part[0]]]), mine[part])
        for number, mine in by_process
        for _, part in groups(device[mine])
    ]
    is_told = len(by_process) == len(keys) and all(each in trace.ranks for each, _ in by_process)
    return [
        Place(
            rank=trace.ranks[number] if is_told else at,
            process=number,
            own=own,
            steps=found.steps_of_process.get(number, found.steps),
            shown={
                "process": trace.process_name(number),
                "device": gpu,
                "device_name": trace.devices.get(gpu, ""),
            },
        )
        for at, (number, gpu, own) in enumerate(keys)
    ]


class Ranks:
    """The ranks of a trace and their collectives."""

    def __init__(self, found: Attribution) -> None:
        self.found = found
        self.places = sorted(places(found), key=lambda place: place.rank)
        self.start, self.end = arrays(found.trace.operations, "start", "end")
        self.is_other = found.category != CATEGORIES.index("communication")
        self.computes = self.is_other & ~found.moves_memory

    def computing(self, place: Place) -> np.ndarray:
        """The operations of a rank that compute."""
        return place.own[self.computes[place.own]]

    @cached_property
    def collectives(self) -> dict[int, pd.DataFrame]:
        """Rank → a row for each of its collectives, with what the library says of it, and for whom
        it waits."""
        every = of_ranks(self.found.trace, [(place.rank, place.own) for place in self.places])
        waits = collectives.with_waits(every)
        return {place.rank: waits[waits["rank"] == place.rank] for place in self.places}

    def table(self) -> pd.DataFrame:
        """A row for each rank: its step, and what that goes to. `compute` is whatever runs on the
        device beside collectives; those count where it does not.

        waited_for: how long all other ranks together wait in collectives that this one was the last
        to start, covered by kernels or not. Empty of a trace of one rank.
        """
        if len(self.places) < 2:
            return pd.DataFrame()
        late = collectives.waited_for(pd.concat(self.collectives.values()))
        rows = []
        for place in self.places:
            windows = _windows(self.found, place)
            other = place.own[self.is_other[place.own]]
            own = self.collectives[place.rank]
            own = own.assign(until=own["until"].fillna(own["start"]))
            start, end, until = arrays(own, "start", "end", "until")
            computing = self.start[other], self.end[other]
            times = {"step": float((windows[1] - windows[0]).sum())}
            times |= collectives.parts(windows, computing, (start, until), (until, end))
            times["waited_for"] = late.get(place.rank, 0.0)
            rows.append({"rank": place.rank} | place.shown | _a_step(times, place))
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
            own = self.collectives[place.rank]
            beside = self._beside(place, own["operation"].to_numpy())
            for _, part in own.groupby(["name", "given", "got", "group"], sort=False):
                of_part = beside[beside["operation"].isin(part["operation"])]
                row = {"rank": place.rank} | place.shown | self._row(place, part)
                rows.append(row | _slowed(of_part, place))
        return pd.DataFrame(rows)

    def _row(self, place: Place, part: pd.DataFrame) -> dict:
        """Of some collectives of a rank that are alike."""
        said = part.iloc[0]
        ranks = int(said["ranks"] if said["ranks"] > 0 else said["members"])
        row = {
            "collective": said["name"],
            "group": said["group"],
            "ranks": ranks,
            "count": len(part) / place.steps,
        }
        computing = self.computing(place)
        spans = part[["start", "end"]].to_numpy().T
        hidden = np.diff(covered(self.start[computing], self.end[computing], spans), axis=0)
        time = float((spans[1] - spans[0]).sum())
        # nan where no other rank is there
        waiting = float((part["until"] - part["start"]).sum(min_count=1))
        if said["given"] >= 0:
            given = float(said["given"] * said["item"])
            got = float(said["got"] * said["item"])
            moving = time - (0.0 if np.isnan(waiting) else waiting)
            link = len(part) * collectives.bus_bytes(str(said["name"]), given, got, ranks)
            row["elements"] = max(int(said["given"]), int(said["got"]))
            row["bytes"] = max(given, got)
            row["bus_rate"] = link / moving * SECOND if moving else None
        times = {
            "time": time,
            "waiting": waiting,
            "transfer": time - waiting,
            "exposed": time - float(hidden.sum()),
            "hidden": float(hidden.sum()),
        }
        return row | _a_step(times, place)

    def _beside(self, place: Place, at: np.ndarray) -> pd.DataFrame:
        """A row for each kernel of a rank that computes beside a collective (their positions): the
        collective, of several the latest, as `operation`, the time, and the median of the same
        kernel, launched with the same grid, without any."""
        own = self.computing(place)
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
        means = {}
        calls = {}
        for place in self.places:
            own = self.computing(place)
            names = self.found.trace.operations["name"].to_numpy()[own]
            by_name = pd.Series(self.found.durations[own] / SECOND).groupby(names)
            means[place.rank] = by_name.mean()
            calls[place.rank] = by_name.size() / place.steps
        mean = pd.DataFrame(means).dropna(thresh=2)
        if mean.empty:
            return pd.DataFrame()
        fastest = mean.min(axis=1)
        slowest = mean.max(axis=1)
        most_calls = pd.DataFrame(calls).max(axis=1)[mean.index]
        table = pd.DataFrame(
            {
                "kernel": self._short(mean.index),
                "calls": most_calls,
                "fastest_rank": mean.idxmin(axis=1),
                "slowest_rank": mean.idxmax(axis=1),
                "fastest": fastest,
                "slowest": slowest,
                "difference": (slowest - fastest) * most_calls,
            }
        )
        return table.nlargest(MOST_KERNELS, "difference").reset_index(drop=True)

    def _short(self, codes: Iterable[int]) -> list[str]:
        names = self.found.trace.names
        return [kernel_names.describe(names[code]).short for code in codes]


def _a_step(times: dict[str, float], place: Place) -> dict[str, float]:
    """Nanoseconds of the whole trace as seconds of a step."""
    return {name: time / SECOND / place.steps for name, time in times.items()}


def of_ranks(trace: Trace, positions: list[tuple[int, np.ndarray]]) -> pd.DataFrame:
    """The collectives among the operations of each rank (their positions), as collectives.py asks
    for them: what the library says of them, else what the kernel's name does."""
    operations = trace.operations.join(trace.messages.set_index("operation"))
    name, kind = arrays(operations, "name", "kind")
    is_one = trace.names_that(_is_collective)[name] & (kind != MEMORY)
    parts = [operations.iloc[own[is_one[own]]].assign(rank=rank) for rank, own in positions]
    found = pd.concat(parts or [operations[:0].assign(rank=0)])
    of_kernels = [_collective(trace.names[code]) for code in found["name"]]
    whole = found[_SAID].fillna(-1).astype(np.int64)
    return whole.assign(
        operation=found.index,
        rank=found["rank"],
        name=found["collective"].fillna(pd.Series(of_kernels, index=found.index, dtype=object)),
        group=found["group"].fillna(""),
        start=found["start"].astype(float),
        end=found["end"].astype(float),
    ).reset_index(drop=True)


def _is_collective(name: str) -> bool:
    return category_of(name) == "communication" and not _STARTS_ONE.match(name)


def _collective(kernel: str) -> str:
    found = _KERNEL.search(kernel)
    return found[1].lower().replace("_", "") if found else kernel_names.describe(kernel).short


def aligned(traces: list[Trace]) -> list[Trace]:
    """Traces of one run, a rank each, by the clock of the first: by the ends of equal collectives,
    or where there are none by their first events."""
    parts = [
        of_ranks(trace, [(rank, np.arange(len(trace.operations)))])
        for rank, trace in enumerate(traces)
    ]
    every = pd.concat(parts, ignore_index=True)
    offsets = collectives.clock_offsets(every, collectives.instances(every))
    return [
        moved(trace, round(offsets.get(rank, traces[0].start - trace.start)))
        for rank, trace in enumerate(traces)
    ]


def _slowed(beside: pd.DataFrame, place: Place) -> dict:
    """What computed beside some collectives, and how much longer than alone."""
    if beside.empty:
        return {"beside": ""}
    known = beside[beside["alone"] > 0]
    longer = float((known["time"] - known["alone"]).sum())
    alone = float(known["alone"].sum())
    return {
        "beside": beside.groupby("kernel")["time"].sum().idxmax(),
        "slowed": longer / SECOND / place.steps if alone else None,
        "slowed_share": longer / alone if alone else None,
    }


def _windows(found: Attribution, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends) of a rank's steps: each until what was launched in it has ended; without
    steps, from the first phase or operation to the last."""
    operations = found.trace.operations.iloc[place.own]
    if "step" in found.phases:
        own = found.occurrences("step")
        own = own[own["process"] == place.process]
        last = operations["end"].groupby(found.occurrence["step"][place.own]).max()
        end = last.reindex(own.index).fillna(0).astype(np.int64).clip(lower=own["end"])
        return union(own["start"].to_numpy(), end.to_numpy())
    phases = found.trace.ranges[found.is_phase[found.codes]]
    phases = phases[phases["process"] == place.process]
    first = min([operations["start"].min(), *phases["start"]])
    last_end = max([operations["end"].max(), *phases["end"]])
    return np.array([first]), np.array([last_end])
