"""The tables of a comparison's page, and its CSV."""

from collections import Counter
from collections.abc import Iterable, Sequence

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import (
    FASTER,
    NOT_COMPARABLE,
    SAME,
    SLOWER,
    UNCLEAR,
    interval_text,
    ratio_text,
)
from stepscope.report.kit.formatting import median_beside_interval
from stepscope.report.kit.table import build, named, number
from stepscope.report.runs.changes import CODE, Change
from stepscope.report.runs.control import Alarm
from stepscope.report.runs.judging import Compared, Lost, Pair
from stepscope.report.runs.recorded import Filling, Kernel
from stepscope.report.runs.series import FREE_FORWARD, in_words, point_of
from stepscope.tables import schema, writer

VERDICTS = (SLOWER, FASTER, SAME, UNCLEAR, NOT_COMPARABLE)
SHOWN = 5  # of the worst and of the best
MOST = 40  # rows of kernels, of memory

_FREE = "Free steps: the device is waited for at their end alone; other forward passes are a phase of a whole step."

CSV = schema.Table(
    "compare",
    "a series in both folders",
    (
        schema.text("study", "the study"),
        schema.text("cell", "the cell, in the results"),
        schema.text("baseline_hardware", "label of the machine in the baseline"),
        schema.text(
            "series", "phase (`free_forward`: forward by itself, in free steps); of attention length and direction"
        ),
        schema.text("limited_by", "what limits it now: `gpu`, `launches` or `processor`"),
        schema.text("verdict", "`faster`, `slower`, `same`, `unclear` or `not comparable`"),
        schema.text("why", "what keeps a verdict back, beside a difference that is too small to be told"),
        schema.number("baseline_ms", "ms", "median in the baseline"),
        schema.number("results_ms", "ms", "median in the results"),
        schema.number("times_as_long", "ratio", "the second over the first"),
        schema.number("ci_low", "ratio", "lower end of its 95 % interval"),
        schema.number("ci_high", "ratio", "upper end of it"),
        schema.number("margin", "ratio", "up to which both count as the same, or beyond which they differ"),
        schema.number("cycles_times_as_long", "ratio", "the same ratio in cycles of the SM clock"),
        schema.number("baseline_clock_mhz", "MHz", "median SM clock in the baseline"),
        schema.number("results_clock_mhz", "MHz", "median SM clock in the results"),
        schema.number("baseline_host_ms", "ms", "the host's loop of plain Python in the baseline"),
        schema.number("results_host_ms", "ms", "the same in the results"),
    ),
)


def as_csv(pairs: Iterable[Pair]) -> str:
    """Every series as a row."""
    return writer.as_csv(CSV, map(_csv_row, pairs))


def _csv_row(pair: Pair) -> dict:
    low, high = pair.ends or (None, None)
    hosts = [each.host[0] if each.host else None for each in (pair.before, pair.after)]
    return {
        "study": pair.place.study,
        "cell": pair.place.cell,
        "baseline_hardware": pair.machine.before,
        "series": pair.place.what,
        "limited_by": pair.limited_by,
        "verdict": pair.verdict,
        "why": pair.why,
        "baseline_ms": pair.before.median,
        "results_ms": pair.after.median,
        "times_as_long": pair.times_as_long,
        "ci_low": low,
        "ci_high": high,
        "margin": pair.comparison and pair.comparison.margin,
        "cycles_times_as_long": pair.cycles,
        "baseline_clock_mhz": pair.before.clock_mhz,
        "results_clock_mhz": pair.after.clock_mhz,
        "baseline_host_ms": hosts[0],
        "results_host_ms": hosts[1],
    }


def counts(found: Compared) -> Table | None:
    """A row for each study and what limits its series: how many have which verdict."""
    groups: dict[tuple[str, str], Counter] = {}
    for pair in found.pairs:
        groups.setdefault((pair.place.study, pair.limited_by), Counter())[pair.verdict] += 1
    rows = [(study, what, seen) for (study, what), seen in groups.items()]
    columns = [
        Column("study", number=False, value=lambda row: row[0]),
        Column("limited by", number=False, value=lambda row: row[1]),
        Column("series", value=lambda row: row[2].total(), show=formatting.count),
        *(Column(word, value=lambda row, word=word: row[2][word], show=formatting.count) for word in VERDICTS),
    ]
    return build("compare_counts", "Verdicts on the results beside the baseline, by study and limit.", columns, rows)


def worst(found: Compared) -> Table | None:
    """The series that are slower by most, one a cell: those that are called so first, then by what is sure of it.

    None where nothing takes longer, but for what is the same.
    """
    slower = [pair for pair in _different(found) if pair.verdict == SLOWER or pair.times_as_long > 1]
    pairs = sorted(slower, key=lambda pair: (pair.verdict != SLOWER, -pair.ends[0]))
    caption = f"The {SHOWN} worst: the series of a cell that takes longest{_uncalled(pairs, SLOWER)}."
    return _of_pairs("compare_worst", caption, found, pairs)


def best(found: Compared) -> Table | None:
    """The same of those that are faster."""
    faster = [pair for pair in _different(found) if pair.verdict == FASTER or pair.times_as_long < 1]
    pairs = sorted(faster, key=lambda pair: (pair.verdict != FASTER, pair.ends[1]))
    caption = f"The {SHOWN} best: the series of a cell that gained most{_uncalled(pairs, FASTER)}."
    return _of_pairs("compare_best", caption, found, pairs)


def _uncalled(pairs: Sequence[Pair], verdict: str) -> str:
    """Words for that none of them has a verdict; empty where one has."""
    return "" if any(pair.verdict == verdict for pair in pairs) else f"; none of them is called {verdict}"


def _different(found: Compared) -> list[Pair]:
    """The series that are faster, slower or unclear."""
    return [pair for pair in found.pairs if pair.ends and pair.verdict not in (SAME, NOT_COMPARABLE)]


def _of_pairs(name: str, caption: str, found: Compared, pairs: Sequence[Pair]) -> Table | None:
    first = {pair.place.cell: pair for pair in reversed(pairs)}
    chosen = [pair for pair in pairs if first[pair.place.cell] is pair][:SHOWN]
    note = "Times as long: the results' time over the baseline's, below it the 95 % interval between processes."
    return build(name, caption, pair_columns(found), chosen, [note])


def every(found: Compared) -> Table | None:
    """All series, in the results' order."""
    caption = "Every series that is in both; margin: what unchanged cells differ by, or 2 %."
    notes = [_FREE] if any(pair.place.what == FREE_FORWARD for pair in found.pairs) else []
    return build("compare_series", caption, pair_columns(found, is_full=True), found.pairs, notes, folded=True)


def pair_columns(found: Compared, is_full: bool = False) -> list[Column]:
    """The columns of tables of series."""
    several = len(found.machines) > 1
    own = [
        *([Column("hardware", number=False, value=lambda pair: pair.machine.name)] if several else []),
        Column("cell", number=False, wrap=True, value=lambda pair: named(point_of(pair.place.cell))),
        Column("series", number=False, value=lambda pair: in_words(pair.place.what)),
        Column("verdict", number=False, wrap=True, value=lambda pair: TableCell(pair.verdict, pair.why)),
        Column("baseline", "ms", value=lambda pair: number(pair.before.median, four)),
        Column("results", "ms", value=lambda pair: number(pair.after.median, four)),
        Column("times as long", value=_times_as_long),
        Column("in cycles", value=lambda pair: number(pair.cycles, ratio_text), optional=True),
        Column("limited by", number=False, value=lambda pair: pair.limited_by),
    ]
    if is_full:
        own += [Column("margin", "%", value=_margin), Column("SM clock", "MHz", value=_clocks, optional=True)]
        own += [Column("host's loop", "ms", value=_hosts, optional=True)]
    return own


def four(value: float) -> str:
    """A time with four digits."""
    return formatting.significant(value, 4)


def _times_as_long(pair: Pair) -> TableCell:
    below = median_beside_interval(pair.times_as_long, *pair.ends)[1] if pair.ends else ""
    return number(pair.times_as_long, ratio_text, below)


def _margin(pair: Pair) -> TableCell:
    return number(
        pair.comparison and 100 * (pair.comparison.margin - 1), lambda value: formatting.significant(value, 2)
    )


def _clocks(pair: Pair) -> TableCell:
    return _then(pair.before.clock_mhz, pair.after.clock_mhz, formatting.count)


def _hosts(pair: Pair) -> TableCell:
    loops = [each.host[0] if each.host else None for each in (pair.before, pair.after)]
    return _then(*loops, formatting.significant)


def _then(before: float | None, after: float | None, show) -> TableCell:
    return TableCell(f"{show(before)} → {show(after)}", sort=after) if before and after else TableCell("–")


def provenance(found: Sequence[Change]) -> Table | None:
    """What changed beside the times."""
    columns = [
        Column("what", number=False, value="fact"),
        Column("baseline", number=False, value=lambda row: named(row["before"])),
        Column("results", number=False, value=lambda row: named(row["after"])),
        Column("cells", value="cells", show=formatting.count),
    ]
    note = f"{CODE}: a digest of the program and of the modules that can change a number."
    rows = [{"fact": each.fact, "before": each.before, "after": each.after, "cells": each.cells} for each in found]
    notes = [note] if any(each.fact == CODE for each in found) else []
    return build("compare_provenance", "What changed, in how many of the common cells.", columns, rows, notes)


def alarms(found: Sequence[Alarm]) -> Table | None:
    """The unchanged pairs that are judged different."""
    columns = [
        Column("run", number=False, value=lambda alarm: alarm.pair.run),
        Column("cell", number=False, value=lambda alarm: named(alarm.pair.cells[1])),
        Column("series", number=False, value=lambda alarm: in_words(alarm.pair.phase)),
        Column("first", "ms", value=lambda alarm: number(alarm.pair.series[0].median, four)),
        Column("again", "ms", value=lambda alarm: number(alarm.pair.series[1].median, four)),
        Column("times as fast", value=lambda alarm: number(alarm.comparison.ratio, ratio_text,
                                                           interval_text(alarm.comparison))),
    ]  # fmt: skip
    return build("compare_alarms", "Unchanged cells that are judged different.", columns, found)


def lost(found: Sequence[Lost]) -> Table | None:
    """What ran in one of the folders only."""
    columns = [
        Column("cell", number=False, value=lambda each: named(each.place.cell)),
        Column("series", number=False, value=lambda each: in_words(each.place.what)),
        Column("baseline", number=False, value=lambda each: TableCell(badges=(each.before,))),
        Column("results", number=False, value=lambda each: TableCell(badges=(each.after,))),
    ]
    return build("compare_statuses", "What ran in one of the two only.", columns, found, folded=len(found) > MOST)


def kernels(found: Sequence[Kernel]) -> Table | None:
    """Kernels that came, went, grew or shrank."""
    columns = [
        Column("cell", number=False, value=lambda each: named(each.cell)),
        Column("kernel", number=False, value=lambda each: TableCell(formatting.shortened(each.name, 60),
                                                                     title=each.full_name)),
        Column("category", number=False, value=lambda each: each.category),
        Column("change", number=False, value=lambda each: each.change),
        Column("baseline", "ms a step", value=lambda each: number(each.before_ms)),
        Column("results", "ms a step", value=lambda each: number(each.after_ms)),
    ]  # fmt: skip
    note = "Of one profile each, without a verdict; told is what changed by at least 1 % of the step's GPU time."
    return build("compare_kernels", "Kernels that changed, the largest change first.", columns, found[:MOST], [note])


def fillings(found: Sequence[Filling]) -> Table | None:
    """What fills more, or less, of the memory at the peak."""
    columns = [
        Column("cell", number=False, value=lambda each: named(each.cell)),
        Column("category", number=False, value=lambda each: each.category),
        Column("baseline", "GiB", value=lambda each: number(each.before / 2**30, formatting.rounded)),
        Column("results", "GiB", value=lambda each: number(each.after / 2**30, formatting.rounded)),
        Column("more", "MiB", value=lambda each: number((each.after - each.before) / 2**20)),
    ]
    note = "Told is what changed by at least 2 MiB, a step of PyTorch's allocator."
    return build("compare_memory", "Memory at the peak, by category.", columns, found[:MOST], [note])


def left_out(found: Sequence[tuple[str, str, str]]) -> Table | None:
    """Cells that cannot be used: which side, cell, why."""
    columns = [Column(label, number=False, wrap=True, value=lambda row, at=at: row[at])
               for at, label in enumerate(("folder", "cell", "why"))]  # fmt: skip
    return build("compare_left_out", "Cells that were left out.", columns, found, folded=len(found) > MOST)
