"""Collectives of several ranks: which are the same one, what a rank waits in them, and for whom.

Pure functions of a table with a row for each collective of a rank. Its columns: `rank` (any
number), `group` and `name` (text), `sequence` (its number in the group, -1 if that is not known),
`start` and `end` by the rank's own clock, in any unit.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from .nesting import covered

_SAME = ["group", "name", "number"]


def instances(found: pd.DataFrame) -> np.ndarray:
    """For each row the number of its instance: the ranks of a group run the same collectives in the
    same order, so that the third all-reduce of one is the third of all."""
    by_time = found.sort_values(["rank", "start"], kind="stable")
    order = by_time.groupby(["rank", "group", "name"]).cumcount().reindex(found.index)
    known = found["sequence"] >= 0
    numbered = known.groupby([found["group"], found["name"]]).transform("all")
    keys = found.assign(number=np.where(numbered, found["sequence"], order))
    return keys.groupby(_SAME).ngroup().to_numpy()


def clock_offsets(found: pd.DataFrame, instance: np.ndarray) -> dict[Hashable, float]:
    """Rank → what to add to its times for the clock of the first one that it has to do with.

    A collective ends at about the same moment on all its ranks: the offset is the median difference
    of the ends of equal ones. A rank that shares none with the first has it from one that does.
    """
    ends = found.assign(instance=instance).groupby(["instance", "rank"])["end"].last().unstack()
    offsets: dict[Hashable, float] = {}
    waiting = ends.columns.tolist()
    while waiting:
        known = ends[list(offsets)] + pd.Series(offsets, dtype=float)
        reference = known.bfill(axis=1).iloc[:, 0] if offsets else pd.Series(dtype=float)
        differences = {rank: (reference - ends[rank]).dropna() for rank in waiting}
        rank = max(waiting, key=lambda each: len(differences[each]))
        shared = differences[rank]
        offsets[rank] = float(shared.median()) if len(shared) else 0.0
        waiting.remove(rank)
    return offsets


def with_waits(found: pd.DataFrame) -> pd.DataFrame:
    """With three columns more: `until`, when the last rank has started the same collective, by the
    clock of the row's own rank and between its start and end, nan where no other rank has it;
    `last`, that rank; `members`, how many ranks have it."""
    instance = instances(found)
    shift = found["rank"].map(clock_offsets(found, instance)).astype(float)
    start = found["start"] + shift
    same = start.groupby(instance)
    latest = same.transform("max").clip(start, found["end"] + shift) - shift
    return found.assign(
        until=latest.where(same.transform("size") > 1),
        last=found["rank"].to_numpy()[same.transform("idxmax")],
        members=found["rank"].groupby(instance).transform("nunique"),
    )


def waited_for(waits: pd.DataFrame) -> dict[Hashable, float]:
    """Rank → how long all other ranks together wait in collectives that it was the last to start,
    covered by kernels or not."""
    total = (waits["until"] - waits["start"]).groupby(waits["last"]).sum()
    return {int(rank): float(total.get(rank, 0.0)) for rank in waits["rank"].unique()}


def bus_bytes(
    name: str,
    given: float,
    got: float,
    ranks: int,
) -> float:
    """Bytes that each link of a ring carries for a collective, by its name; given and got: bytes of
    a rank's input and output.

    Their rate is the bus bandwidth (doc/PERFORMANCE.md of NVIDIA/nccl-tests), which does not depend
    on the number of ranks.
    """
    plain = name.lower().replace("_", "").replace(" ", "")
    whole = max(given, got)
    if plain.startswith("allreduce"):
        return whole * 2 * (ranks - 1) / ranks
    if any(word in plain for word in ("gather", "scatter", "alltoall")):
        return whole * (ranks - 1) / ranks
    return whole


def parts(
    windows: Sequence[np.ndarray],
    computing: Sequence[np.ndarray],
    waiting: Sequence[np.ndarray],
    transferring: Sequence[np.ndarray],
) -> dict[str, float]:
    """What a rank's time in some windows goes to: compute, transfer, waiting, idle, each where none
    of those before it is, so that they add up to the windows. All are (starts, ends)."""
    kinds = {
        "compute": computing,
        "transfer": transferring,
        "waiting": waiting,
        "idle": windows,
    }
    found = {}
    before = 0.0
    start = np.empty(0)
    end = np.empty(0)
    for kind, (starts, ends) in kinds.items():
        start, end = np.append(start, starts), np.append(end, ends)
        until = float(np.diff(covered(start, end, np.array(windows)), axis=0).sum())
        found[kind] = until - before
        before = until
    return found
