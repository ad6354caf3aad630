"""How it was measured: counts, versions, dates, clocks, and what is missing."""

import math
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, ordered, share, value_of
from stepscope.results.cells import MISSING, NOT_MEASURED

from . import profile
from .machine import Chapter, measured_rate, place
from .profile import Profiled

SECOND = 1.0  # to which starts are known
MOST = 12  # cells that are named one by one
USELESS = "of no use"  # the state of a cell that was measured, and whose files are refused
COMMIT = 12  # characters of a commit that tell
# pins the versions that the project asks for
REQUIREMENTS = Path(__file__).resolve().parents[4] / "requirements.txt"
VERSIONS = {"torch": "PyTorch", "triton": "Triton", "python": "Python", "driver": "driver"}


@frozen
class Method(Chapter):
    """Of all cells of a machine. Versions are joined where cells differ in them.

    cells: those that ran; days: on which they started, in order; time: what they took together;
    commits: that measured. ceilings: rates of large products by precision, then of copies. alike:
    what is known of other cards of this type, too, beside theirs. clock, clock_low: the most and
    the least of the cells' medians. throttled: cells during which the card lowered its clocks, and
    throttle what made it; shared: cells beside which another process was on the GPU; at_once: on
    how many GPUs cells ran at a time; cards: how many of the type there were, None of a single one.
    has_doubt: whether a step's time has no interval.

    profilers: that profiled steps, with their versions; profiles: plain profiled steps, the largest
    first; warnings: what profilers and the analyses of their traces warned of, and in how many
    cells.

    lacking: by what is the matter (`state`) how many cells of the plan, and a few of them, each
    with its reason; again: what has Snakemake measure those of no use, although there are records.
    commands: of every cell, for facts.json.
    """

    cells: Maybe
    days: list[str]
    time: Maybe
    commits: list[Name]
    versions: list[Name]
    ceilings: list[Row]
    alike: list[Row]
    clock: Maybe
    clock_low: Maybe
    throttled: Maybe
    throttle: list[Name]
    shared: Maybe
    at_once: Maybe
    cards: Maybe
    has_doubt: bool
    profilers: list[Name]
    profiles: list[Row]
    warnings: list[Row]
    lacking: list[Row]
    again: Name | None
    commands: dict[str, str]


def facts(data: Data) -> Method | None:
    """Of all cells of the machine, those of one's own steps among them."""
    data = data.seen(own_steps=None)
    cells = data.dicts("cells")
    if not cells:
        return None
    ran = [row for row in cells if row["status"] != MISSING]
    states = grouped([row | {"state": _state(row)} for row in cells], "state")
    records = [f"results/{row['cell']}/record.json" for row in states.get((USELESS,), ())]
    cards = data.cards(row["cell"] for row in ran if row["study"] != "parallel")
    clocks = read(ran, "sm_clock_median_mhz", "MHz")
    timed = data.series(quantity="time", study=["timing", "ladder"])
    known = [row for row in ran if row["profiler_version"]]  # else none came to run
    told = [f"{row['profiler']} {row['profiler_version']}" for row in known]
    profiles = profile.profiled(data.seen(own_steps=False))
    warnings = grouped(data.dicts("warnings"), "text").values()
    return Method(
        data=data,
        cells=_count(ran),
        days=sorted({row["started"][:10] for row in ran if row["started"]}),
        time=_minutes(ran),
        commits=names(map(_commit, ran)),
        versions=versions(ran),
        ceilings=_ceilings(data),
        alike=beside_others(data)[:MOST],
        clock=highest(clocks),
        clock_low=min(clocks, key=value_of, default=None),
        throttled=_count([row for row in ran if row["throttle"]]),
        throttle=names(word for row in ran for word in row["throttle"].split("; ")),
        shared=_count([row for row in ran if row["other_processes"] > 0]),
        at_once=at_once(ran),
        cards=count(len(cards)) if len(cards) > 1 else None,
        has_doubt=any(math.isnan(row["low"]) for row in timed),
        profilers=names(told),
        profiles=[_profile(each) for each in profiles if not each.options],
        warnings=[{"warning": Name(rows[0]["text"]), "cells": _count(rows)} for rows in warnings],
        lacking=[
            {"state": state, "cells": _count(rows), "rows": list(map(_listed, rows[:MOST]))}
            for (state,), rows in states.items()
            if state != "ok"
        ],
        again=Name(" ".join(["--forcerun", *records])) if records else None,
        commands={row["cell"]: row["command"] for row in cells},
    )


def read(cells: list[Row], column: str, unit: str) -> list[Quantity]:
    """A column of cells, of those that have it."""
    return list(filter(None, (number(row, column, unit) for row in cells)))


def highest(read: list[Quantity]) -> Maybe:
    """None of none."""
    return max(read, key=value_of, default=None)


def _ceilings(data: Data) -> list[Row]:
    rows = data.series(study="ceilings", quantity="rate")
    products = [row for row in rows if row["size"] == "matmul"]
    others = [row for row in rows if row["size"] != "matmul"]
    kinds = [*grouped(products, "precision").values(), others]
    return [_ceiling(kind) for kind in kinds if kind]


def at_once(cells: list[Row]) -> Maybe:
    """On how many GPUs cells ran at a time at most, where that was more than one: by their starts
    and durations."""
    runs = []
    for row in cells:
        if row["gpu_uuid"] and row["started"] and not math.isnan(row["duration_s"]):
            start = datetime.fromisoformat(row["started"]).timestamp()
            runs.append((start, start + row["duration_s"] - SECOND, row["gpu_uuid"]))
    most = 0
    for at, _, _ in runs:
        busy = {gpu for start, end, gpu in runs if start <= at < end}
        most = max(most, len(busy))
    return count(most) if most > 1 else None


def versions(cells: list[Row]) -> list[Name]:
    """Of PyTorch and what is below it, all that cells name; with the pinned one where a cell ran
    with another."""
    pinned = dict(re.findall(r"^(\w+)==([\w.]+)", REQUIREMENTS.read_text(), re.MULTILINE))
    found = []
    for column, label in VERSIONS.items():
        named = names(row[column] for row in cells)
        asked = pinned.get(column)
        others = [name for name in named if asked and name.partition("+")[0] != asked]
        said = f" ({asked} is pinned)" if others else ""
        if named:
            found.append(Name(f"{label} {', '.join(named)}{said}"))
    return found


def _state(row: Row) -> str:
    """What is the matter with a cell: its status, unless its files are refused or it ran with
    other code than today's."""
    if row["status"] == MISSING and not (row["reason"] or NOT_MEASURED).startswith(NOT_MEASURED):
        return USELESS
    return "of older code" if row["status"] == "ok" and not row["is_current"] else row["status"]


def _listed(row: Row) -> Row:
    reason = row["reason"].removeprefix(NOT_MEASURED).removeprefix(": ")
    return {"cell": Name(row["cell"]), "reason": Name(reason) if reason else None}


def beside_others(data: Data) -> list[Row]:
    """Rows of the table `cards`, in their own unit, those that most cards are known of first."""
    found = []
    for row in data.dicts("cards"):
        unit = row["unit"]
        where = place(data, row)
        what = where.name if where else row["size"]
        found.append(
            shown(row, value=unit, low=unit, high=unit)
            | {"what": Name(f"{what}, {row['precision']}")}
        )
    return list(ordered(found, "cards", reverse=True))


def _count(rows: list[Row]) -> Maybe:
    """None of none."""
    return count(len(rows)) if rows else None


def _minutes(rows: list[Row]) -> Maybe:
    known = [row["duration_s"] for row in rows if not math.isnan(row["duration_s"])]
    return Quantity(sum(known) / 60, "min") if known else None


def names(words: Iterable[str]) -> list[Name]:
    """Each once."""
    return [Name(word) for word in dict.fromkeys(words) if word]


def _commit(row: Row) -> str:
    commit, dirty, _ = row["commit"].partition("-dirty")
    return commit[:COMMIT] + dirty


def _profile(step: Profiled) -> Row:
    """Its place, `phases`, and by the name of each phase what the profiler costs; `moving`: the
    share of copies and fills in the GPU's time."""
    phases = [shown(row) for row in step.data.dicts("phases", cell=step.cell)]
    costs = {str(row["phase"]): row["overhead"] for row in phases}
    whole = next((row for row in phases if row["phase"] == "step"), {})
    timed = [row for row in phases if row["clock"]]
    moving = share(whole.get("memory_time"), whole.get("gpu_time"))
    return {"place": step.place, "phases": timed, "moving": moving} | costs


def _ceiling(rows: list[Row]) -> Row:
    """The rates of a large product or copy: in a burst, sustained, and by the data sheet."""
    one = rows[0]
    what = Name(f"product in {one['precision']}" if one["size"] == "matmul" else "copy")
    return {"what": what} | {row["variant"]: measured_rate(row) for row in rows}
