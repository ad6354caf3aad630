"""What ran on what, in a few lines, and what not to trust."""

import math

import pandas as pd

from stepscope.report.data.agreement import measured_again
from stepscope.report.data.control import floors
from stepscope.report.data.machines import every_cell, facts, processes
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import ratio_text
from stepscope.report.kit.order import column
from stepscope.tables.columns import GPU, LAUNCHES, PROCESSOR

_LIMITS = {GPU: "the GPU limits", LAUNCHES: "launches limit", PROCESSOR: "the processor limits"}
FAR_APART = math.log(1.25)  # a difference that is worth a word even where nothing tells how sure it is
_DOUBTS = {"noisy": "noisy", "throttle": "throttled", "slow_host": "on a slow host", "unsteady": "unsteady"}
_MOST_NAMES = 2


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
    parts = [f"{device}, each cell on one of {count:,}" if count > 1 else device]
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
        parts.append(f"{formatting.listing(list(map(str, counts)))} {words} a cell")
    return "Measured", "; ".join([*parts, *_floor_text(machine)])


def _floor_text(machine: Machine) -> list[str]:
    """`19 in 20 phases of unchanged cells differ by at most 0.4 % where the GPU limits`; nothing without a control."""
    found = floors(machine.tables["timing"]).by_class
    own = {kind: floor for (hardware, kind), floor in found.items() if hardware == machine.hardware}
    if not own:
        return []
    parts = [
        f"{formatting.percent(math.expm1(floor))}{f' where {_LIMITS[kind]}' if kind in _LIMITS else ''}"
        for kind, floor in own.items()
    ]
    return [f"19 in 20 phases of unchanged cells differ by at most {formatting.listing(parts)}"]


def _cells(machine: Machine, cells: pd.DataFrame) -> tuple[str, str]:
    statuses = cells["status"]
    if statuses.empty:
        return "Cells", ""
    parts = [f"{(statuses == 'ok').sum():,} of {len(statuses):,} done"]
    parts += [f"{(statuses == 'oom').sum():,} out of memory"] * bool((statuses == "oom").any())
    parts += [f"{len(own):,} {_DOUBTS[name]}" for name, own in doubtful(machine).items() if own]
    return "Cells", ", ".join(parts)


def doubtful(machine: Machine) -> dict[str, list[str]]:
    """Key of _DOUBTS → the cells, of all studies, of which any series or the whole is that."""
    found: dict[str, list[str]] = {name: [] for name in _DOUBTS}
    for study in machine.tables.studies:
        frame = machine.tables[study]
        frame = frame[frame["hardware"] == machine.hardware] if len(frame) else frame
        for name in _DOUBTS if len(frame) else ():
            flags = [_flags(frame, each) for each in frame if each == name or each.endswith(f"_{name}")]
            is_so = pd.concat(flags, axis=1).any(axis=1) if flags else pd.Series(False, index=frame.index)
            found[name] += list(dict.fromkeys(frame.loc[is_so, "cell"]))
    return found


def _flags(frame: pd.DataFrame, name: str) -> pd.Series:
    """Whether a flag is set, or a text is not empty."""
    return frame[name].map(lambda value: value is True or (isinstance(value, str) and bool(value)))


def doubts(machine: Machine) -> list[str]:
    """Up to three sentences on what not to rely on."""
    return [each for each in (_cells_in_doubt(machine), _disagreement(machine), _single(machine)) if each]


def _cells_in_doubt(machine: Machine) -> str:
    parts = []
    for name, cells in doubtful(machine).items():
        if cells:
            places = sorted((cell.partition("/")[2] for cell in cells), key=lambda place: not _is_on_page(place))
            verb = "is" if len(places) == 1 else "are"
            parts.append(f"{_DOUBTS[name]} {verb} {formatting.listing(places, _MOST_NAMES)}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _is_on_page(place: str) -> bool:
    """Whether page one shows numbers of such a cell."""
    return place.startswith(("ladder/", "timing/"))


def _disagreement(machine: Machine) -> str:
    again = [each for each in measured_again(machine.tables) if each.hardware == machine.hardware]
    apart = [each for each in again if each.found.is_different]
    how = "disagree"
    if not apart:
        apart = [each for each in again if not each.found.has_interval and abs(math.log(each.found.ratio)) > FAR_APART]
        how = f"differ by more than {formatting.percent(math.expm1(FAR_APART))}, without a verdict,"
    if not apart:
        return ""
    worst = max(apart, key=lambda each: abs(math.log(each.found.ratio)))
    place = f"{worst.row['size']} at {worst.row['context']:,.0f} in {worst.row['precision']}"
    return (
        f"Studies that measured the same {how} in {len(apart):,} of {len(again):,} comparisons, most in {place}: "
        f"the {worst.study} study's time is {ratio_text(1 / worst.found.ratio)} times the timing study's."
    )


def _single(machine: Machine) -> str:
    """That there are no verdicts, where a single process measured every cell of the timing study."""
    timing = machine.tables["timing"]
    counts = column(timing, "step_processes")[column(timing, "hardware") == machine.hardware].dropna()
    if len(counts) and (counts <= 1).all():
        return "A single process measured each timing cell: no intervals, and no verdict on any difference."
    return ""
