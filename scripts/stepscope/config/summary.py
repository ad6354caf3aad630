"""What `snakemake plan` prints: a small table of the cells by study, and what is to know of them."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepscope.config.estimate import FORMULA, SAID, SPREAD, UNKNOWN, Estimate, at_either_end, shares, total_seconds
from stepscope.config.time_left import in_words

WIDTH = 100  # columns
_INDENT = 10  # of what is said below the table
_MOST = 4  # cells, or reasons, that are named
# Of a reason that a cell is to be measured for: what is said of cells that have it. The first two explain themselves.
_WHY = {
    "spec": "measured by another spec",
    "code": "measured by other code, and no edit was accepted",
    "hardware": "measured on another machine or with other software",
    "damaged": "refused when tables are made; delete their folders to measure them again",
}


@dataclass(frozen=True)
class Todo:
    """A cell that is to be measured: why (a name and a line), and what it is expected to cost."""

    why: str
    reason: str
    estimate: Estimate


@dataclass(frozen=True)
class Machine:
    """A label's plan. name: of its GPU or CPU. capacity: bytes of its memory, None if unknown. cells: how many each
    study has. at_once: how many run together, None for jobs of a cluster, as many as its queue lets run. used: its
    results are used as they are."""

    label: str
    name: str
    capacity: int | None
    cells: dict[str, int]
    todo: Sequence[Todo]
    at_once: int | None = 1
    used: bool = False


def page(preset: str, machines: Sequence[Machine], free: int, command: str) -> str:
    """All that is said. free: bytes of the disk that the results are on. command: what measures the cells."""
    measured = [machine for machine in machines if not machine.used]
    several = len(measured) > 1
    parts = [_title(preset, measured), _table(measured, several)]
    told = [line for machine in measured for line in _told(machine, several)]
    told += [
        ("Used", f"{machine.label}: {sum(machine.cells.values()):,} cells as they are, measured elsewhere")
        for machine in machines
        if machine.used
    ]
    recorded = sum(one.estimate.recorded for machine in measured for one in machine.todo)
    if recorded:
        short = "; not enough" if recorded > free else ""
        told.append(("Disk", f"about {_size(recorded)} for traces and snapshots; {_size(free)} are free{short}"))
    told.append(("Next", command))
    return "\n\n".join([*filter(None, parts), "\n".join(_hanging(*line) for line in told)])


def _title(preset: str, machines: Sequence[Machine]) -> str:
    count, every = sum(len(machine.todo) for machine in machines), sum(sum(one.cells.values()) for one in machines)
    where = ", ".join(machine.label for machine in machines) or "no machine"
    if not count:
        return f"Preset {preset} on {where}: all {every:,} cells hold; nothing is to be measured."
    return _wrapped(f"Preset {preset} on {where}: {count:,} of {every:,} cells are to be measured.{_time(machines)}")


def _time(machines: Sequence[Machine]) -> str:
    """How long it takes, in a sentence; empty where nothing is known."""
    by_queue = any(machine.at_once is None for machine in machines)
    seconds, low, high = (sum(_wall(each, factor, by_queue) for each in machines) for factor in (1.0, *SPREAD))
    if not seconds:
        return " How long that takes is not known."
    took = f" They take about {in_words(seconds)}"
    if in_words(low) != in_words(high):
        took += f" ({in_words(low)} to {in_words(high)})"
    if by_queue:
        return f"{took} of GPUs, shared by as many as the cluster gives."
    together = max(machine.at_once for machine in machines)
    return f"{took}, {f'{together} cells at a time' if together > 1 else 'one after another'}."


def _wall(machine: Machine, factor: float, by_queue: bool) -> float:
    """Seconds until the machine's last cell has ended: an equal part for each that runs, at least the longest cell; of
    a cluster's queue all of them.

    factor: of what the formula alone expects.
    """
    found = at_either_end([one.estimate for one in machine.todo], factor)
    total = total_seconds(found)
    return total if by_queue else max([total / machine.at_once, *(one.seconds or 0.0 for one in found)])


# The table ------------------------------------------------------------------------------------------------------------


def _table(machines: Sequence[Machine], several: bool) -> str:
    """A line for each study of each machine; no column for a reason that no cell has."""
    every = [one for machine in machines for one in machine.todo]
    reasons = [why for why in ("missing", "failed", *_WHY) if any(one.why == why for one in every)]
    lines = [["study", "cells", "to measure", *reasons, "minutes", "peak GiB", "disk MiB"]]
    for machine in machines:
        for study, count in machine.cells.items():
            own = [one for one in machine.todo if one.estimate.cell.study == study]
            name = f"{machine.label} {study}" if several else study
            lines.append([name, f"{count:,}", *_numbers(own, reasons)])
    total = sum(sum(machine.cells.values()) for machine in machines)
    lines.append(["all", f"{total:,}", *_numbers(every, reasons)])
    return _aligned(lines)


def _numbers(todo: Sequence[Todo], reasons: Iterable[str]) -> list[str]:
    """How many are to be measured, by reason; minutes, the largest peak, and what they record."""
    counts = Counter(one.why for one in todo)
    seconds = total_seconds(one.estimate for one in todo)
    peak = max((one.estimate.peak for one in todo), default=0)
    recorded = sum(one.estimate.recorded for one in todo)
    return [
        *(f"{count:,}" if count else "–" for count in (len(todo), *(counts[why] for why in reasons))),
        f"{seconds / 60:,.1f}" if seconds else "?" if todo else "–",
        _gib(peak) if peak else "–",
        f"{recorded / 2**20:,.1f}" if recorded else "–",
    ]


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns of text: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    )


# What is said below it ------------------------------------------------------------------------------------------------


def _told(machine: Machine, several: bool) -> list[tuple[str, str]]:
    """(what it is about, a sentence) of a machine with cells to measure."""
    if not machine.todo:
        return []
    where = f"{machine.label}: " if several else ""
    told = [("Stale", where + line) for line in _reasons(machine.todo)]
    told.append(("Time", where + _basis(machine.todo)))
    return [*told, ("Memory", where + _memory(machine))]


def _reasons(todo: Sequence[Todo]) -> list[str]:
    """Why cells that are there do not hold, a line for each reason that several share."""
    counts = Counter(
        (one.why, one.reason if one.why in ("spec", "hardware") else "") for one in todo if one.why in _WHY
    )
    lines = []
    for (why, reason), count in counts.most_common(_MOST):
        first = next(one.estimate.cell for one in todo if one.why == why and reason in ("", one.reason))
        said = reason or _WHY[why]
        lines.append(f"{why}, {_cells(count)}: {said} ({'such as ' if count > 1 else ''}{_short(first.name)})")
    if len(counts) > _MOST:
        lines.append(f"and {sum(counts.values()) - sum(n for _, n in counts.most_common(_MOST)):,} more cells")
    return lines


def _basis(todo: Sequence[Todo]) -> str:
    """Which share of the time rests on what."""
    found = shares(one.estimate for one in todo)
    total = sum(seconds for _, seconds in found.values())
    parts = [
        f"{_share(seconds / total)} by {SAID[basis]}"
        for basis, (_, seconds) in found.items()
        if basis in SAID and total
    ]
    if UNKNOWN in found:
        count = found[UNKNOWN][0]
        as_mean = ", counted as the mean of the others" if total else ""
        parts.append(f"{_cells(count)} of unknown time{as_mean}")
    if FORMULA in found and total:
        parts.append(f"without a record of this machine it may be {SPREAD[0]:g} to {SPREAD[1]:g} times that")
    return "; ".join(parts)


def _memory(machine: Machine) -> str:
    """Which cells will not fit."""
    with_peak = [one.estimate for one in machine.todo if one.estimate.peak]
    if not with_peak:
        return "no cell whose peak a formula gives"
    most = max(with_peak, key=lambda one: one.peak)
    needs = f"{_short(most.cell.name)} needs most, {_gib(most.peak)} GiB by the closed form"
    if machine.capacity is None:
        return f"{needs}; the memory of {machine.name} is not known"
    lost = sorted((one.estimate for one in machine.todo if one.estimate.fits is False), key=lambda one: -one.peak)
    limit = f"{_gib(machine.capacity)} GiB of {machine.name}"
    if not lost:
        return f"all fit into the {limit}; {needs}"
    named = ", ".join(_short(one.cell.name) + (f" {_gib(one.peak)} GiB" if one.peak else "") for one in lost[:_MOST])
    more = f" and {len(lost) - _MOST:,} more" if len(lost) > _MOST else ""
    return f"{_cells(len(lost))} will not fit into the {limit}, which is a result (oom): {named}{more}"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


def _cells(count: int) -> str:
    return f"{count:,} {'cell' if count == 1 else 'cells'}"


def _short(name: str) -> str:
    """A cell's name without the machine's label."""
    return name.partition("/")[2]


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}" if size >= 2**30 else f"{size / 2**30:.2f}"


def _size(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _hanging(name: str, text: str) -> str:
    """A sentence beside what it is about, its further lines below its first. A command stays on one line."""
    if name == "Next":
        return f"{name:<{_INDENT}}{text}"
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{name:<{_INDENT}}",
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
