"""What ran on what, in a few lines, and what not to trust."""

import math
from collections import Counter

import pandas as pd

from stepscope.report.data.agreement import measured_again
from stepscope.report.data.control import MANY_PAIRS, control_pairs, floors_of
from stepscope.report.data.ladder import time
from stepscope.report.data.machines import every_cell, facts, processes
from stepscope.report.data.own_models import is_own
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import side_by_side
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import ratio_text
from stepscope.report.kit.order import column
from stepscope.report.studies.page_one.tables import largest_ladder
from stepscope.tables.columns import GPU, LAUNCHES, PROCESSOR

_LIMITS = {GPU: "the GPU limits", LAUNCHES: "launches limit", PROCESSOR: "the processor limits"}
MOST_REASONS = 3
FAR_APART = math.log(1.25)  # a difference that is worth a word even where nothing tells how sure it is
_DOUBTS = {"noisy": "noisy", "throttle": "throttled", "slow_host": "on a slow host", "unsteady": "unsteady"}
# What each is, and what to do about it.
_MEANING = {
    "noisy": ("Noisy", "Read the interval, not the median."),
    "throttle": ("Throttled, at lowered clocks", ""),
    "slow_host": ("On a slow host", "Measure again."),
    "unsteady": ("Unsteady, processes apart by more than chance", "Measure again."),
}


def strip(machine: Machine) -> list[tuple[str, str]]:
    """(name, value): the machine, how it was measured, how many cells have a result."""
    cells = every_cell(machine.tables)
    cells = cells[cells["hardware"] == machine.hardware]
    lines = _about(machine), _measured(machine, cells), _cells(machine, cells)
    return [(name, value) for name, value in lines if value]


def _about(machine: Machine) -> tuple[str, str]:
    if not machine.labels:
        return "Machine", ""
    own = facts(machine.tables, machine.hardware)
    device = formatting.listing([str(each) for each in own["device_name"]], 2) or machine.hardware
    count = len(own["device_uuid"])
    parts = [f"{device} ({count:,} cards, each cell on one)" if count > 1 else device]
    parts += [f"{formatting.listing([f'{watts:,.0f}' for watts in own['power_limit_w']])} W"] * bool(
        own["power_limit_w"]
    )
    for key, words in (("driver", "driver"), ("torch", "PyTorch")):
        parts += [f"{words} {formatting.listing(list(map(str, own[key])), 2)}"] * bool(own[key])
    others = [each for each in machine.labels if each != machine.hardware]
    more = f"; not on this page: {formatting.listing(others, 2)}" if others else ""
    return "Machine", f"{', '.join(parts)}{more}"


def _measured(machine: Machine, cells: pd.DataFrame) -> tuple[str, str]:
    days = cells["started"].dropna().astype(str).str[:10]
    parts = [days.min() if days.min() == days.max() else f"{days.min()} to {days.max()}"] if len(days) else []
    counts = processes(machine.tables).get("timing")
    if counts:
        words = "process" if counts == [1] else "processes"
        parts.append(f"{formatting.listing(list(map(str, counts)))} {words} a timing cell")
    return "Measured", "; ".join([*parts, *_floor_text(machine)])


def _floor_text(machine: Machine) -> list[str]:
    """`cells measured twice differ by at most 0.4 % where the GPU limits`; of many phases, what 19 of 20 of them do.
    Empty if none was."""
    found = control_pairs(machine.tables["timing"])
    counts = Counter(pair.limited_by for pair in found if pair.hardware == machine.hardware)
    by_class = floors_of(found).by_class
    own = {kind: floor for (hardware, kind), floor in by_class.items() if hardware == machine.hardware}
    if not own:
        return []
    parts = []
    for kind, floor in own.items():
        where = f" where {_LIMITS[kind]}" if kind in _LIMITS else ""
        covered = " (19 of 20 phases)" if counts[kind] >= MANY_PAIRS else ""
        parts.append(f"{formatting.percent(math.expm1(floor))}{where}{covered}")
    return [f"cells measured twice differ by at most {formatting.listing(parts)}"]


def _cells(machine: Machine, cells: pd.DataFrame) -> tuple[str, str]:
    statuses = cells["status"]
    if statuses.empty:
        return "Cells", ""
    marked = [f"{len(own):,} {_DOUBTS[name]}" for name, own in doubtful(machine).items() if own]
    of_these = f" ({', '.join(marked)})" if marked else ""
    lost = f", {(statuses == 'oom').sum():,} out of memory" if (statuses == "oom").any() else ""
    lost += f", {(statuses == 'unsupported').sum():,} not possible" if (statuses == "unsupported").any() else ""
    # Results that are shared tell of no cell that is missing: only those that are known to be are counted against.
    of_all = f" of {len(statuses):,}" if statuses.isin(("missing", "failed")).any() else ""
    return "Cells", f"{(statuses == 'ok').sum():,}{of_all} measured{of_these}{lost}"


def doubtful(machine: Machine) -> dict[str, list[str]]:
    """Key of _DOUBTS → the cells, of all studies, of which any series or the whole is that."""
    found: dict[str, list[str]] = {name: [] for name in _DOUBTS}
    for study in machine.tables.studies:
        frame = machine.tables[study]
        frame = frame[frame["hardware"] == machine.hardware] if len(frame) else frame
        for name in _DOUBTS if len(frame) else ():
            flags = [_flags(frame, each) for each in frame if each == name or each.endswith(f"_{name}")]
            is_so = pd.concat(flags, axis=1).any(axis=1) if flags else pd.Series(False, index=frame.index)
            if name == "slow_host" and "limited_by" in frame:  # it does not disturb what waited in the GPU's queue
                is_so &= frame["limited_by"] != GPU
            found[name] += list(dict.fromkeys(frame.loc[is_so, "cell"]))
    return found


def _flags(frame: pd.DataFrame, name: str) -> pd.Series:
    """Whether a flag is set, or a text is not empty."""
    return frame[name].map(lambda value: value is True or (isinstance(value, str) and bool(value)))


def doubts(machine: Machine) -> list[str]:
    """A few sentences on what not to rely on and what to do about it, and on what is missing."""
    found = *_cells_in_doubt(machine), _disagreement(machine), _single(machine), _impossible(machine)
    return [each for each in found if each]


def _cells_in_doubt(machine: Machine) -> list[str]:
    """Of what stands on the page; of other cells only where nothing there is in doubt: the strip counts them all."""
    ladder, parts = largest_ladder(machine), []
    shown = [row for row in ladder.rungs if time(row, "step")] if ladder else []
    drawn_steps = [each for own in side_by_side(machine.steps)[1].values() for each in own]
    bars = [(each.row, machine.profile.unprofiled(each.row)) for each in drawn_steps]
    for name, cells in doubtful(machine).items():
        if not cells:
            continue
        rungs, *drawn = (
            {row["cell"] for row in rows if row.get("cell") in cells and _is_of_step(row, name)}
            for rows in (shown, *bars)
        )
        places = [f"{len(rungs):,} of {len(shown):,} rungs of the ladder above"] * bool(rungs)
        places += [f"{sum(map(bool, drawn)):,} of {len(bars):,} bars of the figure"] * any(drawn)
        is_so, advice = _MEANING[name]
        told = formatting.listing(places) if places else formatting.cells(len(cells))
        parts.append(f"{is_so}: {told}. {advice}".strip())
    return parts


def _is_of_step(row: dict, name: str) -> bool:
    """Whether a doubt about a cell is one about its whole step: what is said of one phase need not be."""
    return name not in ("noisy", "unsteady") or row.get(f"step_{name}") is True


def _disagreement(machine: Machine) -> str:
    again = [each for each in measured_again(machine.tables) if each.hardware == machine.hardware]
    apart = [each for each in again if each.found.is_different]
    how = "disagree"
    if not apart:
        apart = [each for each in again if not each.found.has_interval and abs(math.log(each.found.ratio)) > FAR_APART]
        how = f"differ by more than {formatting.percent(math.expm1(FAR_APART))}"
    if not apart:
        return ""
    worst = max(apart, key=lambda each: abs(math.log(each.found.ratio)))
    place = f"{worst.row['size']} at {worst.row['context']:,.0f} in {worst.row['precision']}"
    return (
        f"Studies that measured the same {how} in {len(apart):,} of {len(again):,} comparisons, most in {place}: "
        f"the {worst.study} study's time is {ratio_text(1 / worst.found.ratio)} times the timing study's. "
        "Compare within one."
    )


def _impossible(machine: Machine) -> str:
    """Why cells of models of one's own have no result, each reason once, those of the most cells first."""
    found: dict[str, list[dict]] = {}
    for study in machine.tables.studies:
        for row in machine.tables[study].to_dict("records"):
            if (row["hardware"], row["status"]) == (machine.hardware, "unsupported") and is_own(row):
                found.setdefault(formatting.first_sentence(str(row.get("reason") or "")), []).append(row)
    if not found:
        return ""
    told = [
        f"{formatting.listing(list(dict.fromkeys(row['size'] for row in rows)), 3)} ({formatting.cells(len(rows))}): "
        f"{reason or 'no reason was recorded'}"
        for reason, rows in sorted(found.items(), key=lambda each: -len(each[1]))
    ]
    more = f"; {len(told) - MOST_REASONS:,} more reasons stand with the data" if len(told) > MOST_REASONS else ""
    return f"Not possible with models of one's own: {'; '.join(told[:MOST_REASONS])}{more}."


def _single(machine: Machine) -> str:
    """That there are no verdicts, where a single process measured every cell of the timing study."""
    timing = machine.tables["timing"]
    counts = column(timing, "step_processes")[column(timing, "hardware") == machine.hardware].dropna()
    if len(counts) and (counts <= 1).all():
        return "One process measured each timing cell: no ratio has an interval or a verdict."
    return ""
