"""A step of several ranks taken apart: what each computes, waits and transfers, its collectives one
by one, and the kernels in which ranks differ. A rank is a process on a device.

Seconds and counts are those of a step.
"""

import re

import numpy as np
import pandas as pd

from . import collectives, kernel_names
from .attribution import Attribution
from .events import MEMORY, SECOND, Trace, moved
from .kernel_categories import CATEGORIES, category_of
from .nesting import arrays, covered, union

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


SHOWN = ["process", "device"]  # what is shown of a rank


def with_ranks(found: Attribution) -> pd.DataFrame:
    """The operations with what is SHOWN of their rank, the `steps` of its process (`owner`), and
    two numbers: `place`, of the process and device, and `rank`, the trace's or else that."""
    trace = found.trace
    owner = trace.operations["process"]
    place = trace.operations.groupby(["process", "device"]).ngroup()
    is_told = place.nunique() == owner.nunique() and set(owner) <= trace.ranks.keys()
    is_other = found.category != CATEGORIES.index("communication")
    return trace.operations.assign(
        owner=owner,
        place=place,
        rank=owner.map(trace.ranks) if is_told else place,
        process=owner.map(trace.process_name),
        steps=owner.map(found.steps_of_process).fillna(found.steps),
        ns=found.durations,
        is_other=is_other,
        computes=is_other & ~found.moves_memory,
    )


def tables(found: Attribution) -> dict[str, pd.DataFrame]:
    """The tables of a trace's ranks and their collectives."""
    every = with_ranks(found)
    waits = collectives.with_waits(of_ranks(found.trace, every["rank"].to_numpy()))
    return {
        "ranks": _steps(found, every, waits),
        "rank_kernels": _kernels(found, every),
        "communication": _communication(found, every, waits),
    }


def _steps(found: Attribution, every: pd.DataFrame, waits: pd.DataFrame) -> pd.DataFrame:
    """A row for each rank: its step, and what that goes to. `compute` is whatever runs on the
    device beside collectives; those count where it does not.

    waited_for: how long all other ranks together wait in collectives that this one was the last
    to start, covered by kernels or not. Empty of a trace of one rank.
    """
    if every["rank"].nunique() < 2:
        return pd.DataFrame()
    late = collectives.waited_for(waits)
    rows = []
    for (rank, _), part in every.groupby(["rank", "place"]):
        windows = _windows(found, part)
        own = waits[waits["rank"] == rank]
        own = own.assign(until=own["until"].fillna(own["start"]))
        start, end, until = arrays(own, "start", "end", "until")
        computing = arrays(part[part["is_other"]], "start", "end")
        times = {"step": float((windows[1] - windows[0]).sum())}
        times |= collectives.parts(windows, computing, (start, until), (until, end))
        times["waited_for"] = late.get(rank, 0.0)
        rows.append(_shown(part) | _a_step(times, part))
    return pd.DataFrame(rows)


def _communication(found: Attribution, every: pd.DataFrame, waits: pd.DataFrame) -> pd.DataFrame:
    """A row for each collective, size and group of a rank.

    waiting: until the last rank has started the same one; transfer: the rest (both only where
    several ranks are in the trace). hidden: while a kernel of the rank computes; exposed: the
    rest. beside: the kernel that computed longest beside it; slowed: how much longer all
    kernels beside it took than the median of the same ones, on the same rank, that had none
    beside them; slowed_share: of those. bus_rate: B/s, by the transfer, else by all the time.
    """
    rows = []
    for (rank, _), part in every.groupby(["rank", "place"]):
        own = waits[waits["rank"] == rank]
        computing = part[part["computes"]]
        beside = _beside(computing, own)
        for _, alike in own.groupby(["name", "given", "got", "group"], sort=False):
            of_alike = beside[beside["operation"].isin(alike["operation"])]
            row = _shown(part) | _row(alike, computing, part)
            rows.append(row | _slowed(found, of_alike, part))
    return pd.DataFrame(rows)


def _row(alike: pd.DataFrame, computing: pd.DataFrame, part: pd.DataFrame) -> dict:
    """Of some collectives of a rank that are alike. part: all its operations; computing: those that
    do."""
    said = alike.iloc[0]
    ranks = int(said["ranks"] if said["ranks"] > 0 else said["members"])
    row = {
        "collective": said["name"],
        "group": said["group"],
        "ranks": ranks,
        "count": len(alike) / part["steps"].iloc[0],
    }
    spans = alike[["start", "end"]].to_numpy().T
    start, end = arrays(computing, "start", "end")
    hidden = float(np.diff(covered(start, end, spans), axis=0).sum())
    time = float((spans[1] - spans[0]).sum())
    # nan where no other rank is there
    waiting = float((alike["until"] - alike["start"]).sum(min_count=1))
    if said["given"] >= 0:
        given, got = (float(said[way] * said["item"]) for way in ("given", "got"))
        moving = time - np.nan_to_num(waiting)
        link = len(alike) * collectives.bus_bytes(str(said["name"]), given, got, ranks)
        row["elements"] = max(int(said["given"]), int(said["got"]))
        row["bytes"] = max(given, got)
        row["bus_rate"] = link / moving * SECOND if moving else None
    times = {
        "time": time,
        "waiting": waiting,
        "transfer": time - waiting,
        "exposed": time - hidden,
        "hidden": hidden,
    }
    return row | _a_step(times, part)


def _beside(computing: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """The kernels of a rank that compute beside one of its collectives: with that one, of several
    the latest, as `operation`, and as `alone` the median time of the same kernel, launched with the
    same grid, without any."""
    own = own.sort_values("start", kind="stable")
    start, end, operation = arrays(own, "start", "end", "operation")
    latest = np.searchsorted(start, computing["end"], "left") - 1
    is_beside = computing["start"] < np.append(np.maximum.accumulate(end), -np.inf)[latest]
    same = ["name", "shape"]
    alone = computing[~is_beside].groupby(same)["ns"].median().rename("alone")
    beside = computing[is_beside].join(alone, on=same)
    return beside.assign(operation=operation[latest[is_beside]])


def _kernels(found: Attribution, every: pd.DataFrame) -> pd.DataFrame:
    """A row for each kernel that computes on several ranks: where it is fastest and slowest, by
    the mean of its times, and what they differ by over a step; the largest first."""
    of_rank = every[every["computes"]].groupby(["name", "rank"])
    mean = (of_rank["ns"].mean() / SECOND).unstack().dropna(thresh=2)
    if mean.empty:
        return pd.DataFrame()
    calls = (of_rank.size() / of_rank["steps"].first()).unstack().max(axis=1)[mean.index]
    table = pd.DataFrame(
        {
            "kernel": kernel_names.shorts(found.named(mean.index)),
            "calls": calls,
            "fastest_rank": mean.idxmin(axis=1),
            "slowest_rank": mean.idxmax(axis=1),
            "fastest": mean.min(axis=1),
            "slowest": mean.max(axis=1),
        }
    )
    table["difference"] = (table["slowest"] - table["fastest"]) * calls
    return table.nlargest(MOST_KERNELS, "difference").reset_index(drop=True)


def _shown(part: pd.DataFrame) -> dict:
    """The first columns of what has a row for a rank, from its operations."""
    return part[["rank", *SHOWN]].iloc[0].to_dict()


def _a_step(times: dict[str, float], part: pd.DataFrame) -> dict[str, float]:
    """Nanoseconds of the whole trace as seconds of a step of a rank, from its operations."""
    return {name: time / SECOND / part["steps"].iloc[0] for name, time in times.items()}


def of_ranks(trace: Trace, rank: np.ndarray | int) -> pd.DataFrame:
    """The collectives among the operations, of these ranks, as collectives.py asks for them: what
    the library says of them, else what the kernel's name does."""
    found = trace.operations.join(trace.messages.set_index("operation")).assign(rank=rank)
    is_one = trace.names_that(_is_collective)[found["name"]] & (found["kind"] != MEMORY)
    found = found[is_one].sort_values("rank", kind="stable")
    of_kernels = pd.Series([_collective(trace.names[code]) for code in found["name"]], found.index)
    whole = found[_SAID].fillna(-1).astype(np.int64)
    return whole.assign(
        operation=found.index,
        rank=found["rank"],
        name=found["collective"].fillna(of_kernels),
        group=found["group"].astype("str").fillna(""),
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
    parts = [of_ranks(trace, rank) for rank, trace in enumerate(traces)]
    every = pd.concat(parts, ignore_index=True)
    offsets = collectives.clock_offsets(every, collectives.instances(every))
    return [
        moved(trace, round(offsets.get(rank, traces[0].extent[0] - trace.extent[0])))
        for rank, trace in enumerate(traces)
    ]


def _slowed(found: Attribution, beside: pd.DataFrame, part: pd.DataFrame) -> dict:
    """What computed beside some collectives, and how much longer than alone."""
    if beside.empty:
        return {"beside": ""}
    longest = beside.groupby("name")["ns"].sum().nlargest(1).index
    row: dict = {"beside": kernel_names.shorts(found.named(longest))[0], "slowed": None}
    known = beside[beside["alone"] > 0]
    alone = float(known["alone"].sum())
    if alone:
        longer = float((known["ns"] - known["alone"]).sum())
        row |= _a_step({"slowed": longer}, part) | {"slowed_share": longer / alone}
    return row


def _windows(found: Attribution, operations: pd.DataFrame) -> list[np.ndarray]:
    """(starts, ends) of the steps of a rank, from its operations: each until what was launched in
    it has ended; without steps, from the first phase or operation to the last."""
    ranges = found.trace.ranges
    has_steps = "step" in found.phases
    own = found.occurrences("step") if has_steps else ranges[found.is_phase[found.codes]]
    own = own[own["process"] == operations["owner"].iloc[0]]
    if has_steps:
        step = found.occurrence["step"][operations.index]
        last = operations["end"].groupby(step).max().reindex(own.index).fillna(0)
        return list(union(own["start"].to_numpy(), last.clip(lower=own["end"]).to_numpy(np.int64)))
    every = pd.concat([operations, own])
    return [np.array([every["start"].min()]), np.array([every["end"].max()])]
