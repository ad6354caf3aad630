"""Tables of the warm-up study but those of the first step's contents: means, rates, verdicts and steps."""

import pandas as pd

from stepscope.report.data.warmup import CLOSE, Setting, SizeRuns, Warmups, by_step, phase_names
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.tables.columns import ratio
from stepscope.tables.warmup import PHASES

_INDICES = (0, 1, 2, 3, 4, 5, 10)  # of steps
_STEPS_NOTE = (
    "Steps are counted from 0, the first in the process. The median over the processes that ran the step, and below it "
    "the lowest and the highest where they differ. Sorts by the median."
)
_RATES_NOTE = "Tokens of a batch over the mean time; the share below it is the steady state's time over the mean."
_ENOUGH_NOTE = (
    f"Enough: from this number on every mean is within ± {formatting.percent(CLOSE, 1)} of the steady state, of the "
    "numbers that were tried. Each mean is of one process, and differs by as much as processes do too."
)
_UNSURE_NOTE = (
    f"In brackets: {{sizes}}, of which the steady state has no interval within ± {formatting.percent(CLOSE, 1)}."
)

_Line = tuple[SizeRuns, dict | None]  # a size and one of its rows; None for its steady state


def means_table(warmups: Warmups, setting: Setting) -> Table | None:
    """Mean ± standard deviation of each phase after each number of warm-up steps; a row of the steady medians."""
    lines = []
    for point in setting.points:
        lines += [(point, row) for row in point.timed]
        lines += [(point, None)] if point.measured else []
    columns = [
        Column("size", number=False, value=_size),
        Column("warm-up steps", value=_warmup),
        Column("first measured step", "ms", value=lambda line: _measured(line, "step_first_ms")),
        *(
            Column(name, group="mean ± standard deviation (ms), × steady state",
                   value=lambda line, phase=phase: _mean(*line, phase))
            for phase, name in phase_names()
        ),
        Column("std / mean", group="of the step", value=_of_row("step_std_over_mean"), show=formatting.percent),
        Column("median / steady state", group="of the step", value=_of_row("step_median_over_steady"), show=_times),
    ]  # fmt: skip
    first = (
        f"Exactly {warmups.steps} steps after the warm-up, none discarded; each row is a process of its own. "
        + _steady_note(setting)
    )
    reasons = table.reasons(
        [row for _, row in lines if row],
        lambda row: f"{row['size']} at {row['context']:,.0f}",
        pattern="n/a ({names}): {reason}.",
    )
    caption = f"What a benchmark gets after so many warm-up steps: {warmups.place(setting)}."
    return table.build("warmup-means", caption, columns, lines, [first, *reasons], grouped=True)


def _size(line: _Line) -> TableCell:
    point, row = line
    return TableCell(point.size, badges=table.marks(row) if row else ())


def _warmup(line: _Line) -> TableCell:
    _, row = line
    return table.count(row["warmup"]) if row else TableCell("steady state")


def _of_row(name: str):
    """The field of a line's row, which the steady state does not have."""
    return lambda line: (line[1] or {}).get(name)


def lost(row: dict) -> tuple[str, ...]:
    """The badge of a row that was tried and has no result; that it is missing stands beside the size."""
    return tuple(each for each in table.lost(row) if each != "missing")


def _measured(line: _Line, name: str) -> TableCell:
    """A number of a row that has a mean, or why there is none."""
    row = line[1] or {}
    if formatting.known(row.get("step_mean_ms")):
        return table.number(row[name])
    return table.number(None, badges=lost(row))


def _mean(point: SizeRuns, row: dict | None, phase: str) -> TableCell:
    """Mean and standard deviation over their multiple of the steady state; the steady state's median itself."""
    if row is None:
        return table.number(point.steady(phase), _four_digits)
    if not formatting.known(row.get("step_mean_ms")):
        return table.number(None, badges=lost(row))
    mean, over = row[f"{phase}_mean_ms"], row[f"{phase}_mean_over_steady"]
    below = f"× {_times(over)}" if formatting.known(over) else ""
    return TableCell(formatting.mean_and_std(mean, row[f"{phase}_std_ms"]), below, mean)


def _four_digits(value: float) -> str:
    return formatting.significant(value, 4)


def _times(value: float) -> str:
    """A ratio near one with three decimals, a larger one with three digits: 1.002, 4.90, 12.3."""
    return f"{value:.3f}" if abs(value - 1) < 0.1 else formatting.significant(value)


def _steady_note(setting: Setting) -> str:
    """What the steady state is, by the steps that it was taken from."""
    found: dict[tuple, list[str]] = {}
    for point in setting.measured:
        row = point.measured[0]
        if formatting.known(row["steady_from"]):
            steps = row["steady_from"], row.get("steady_processes", 1), row["steady_samples"]
            found.setdefault(steps, []).append(point.size)
    if not found:
        return "No process ran enough steps for a steady state."
    parts = [
        f"{count:,.0f} steps from index {start:,.0f} on of {_processes(processes)}"
        + (f" ({formatting.listing(sizes)})" if len(found) > 1 else "")
        for (start, processes, count), sizes in found.items()
    ]
    return f"The steady state: the geometric mean of the processes' medians, {formatting.listing(parts, between='; ')}."


def _processes(count: float) -> str:
    return "one process" if count == 1 else f"{count:,.0f} processes"


def rates_table(warmups: Warmups, setting: Setting) -> Table | None:
    """Tokens per second by the means, against those of the steady state, and peak memory."""
    if not setting.measured:
        return None
    lines = [(point, row) for point in setting.points for row in point.timed]
    shown = [(phase, name) for phase, name in phase_names() if phase in ("forward", "forward_backward", "step")]
    columns = [
        Column("size", number=False, value=_size),
        Column("warm-up steps", value=_warmup),
        *(
            Column(name, group="tokens/s by the mean, share of the steady state's",
                   value=lambda line, phase=phase: _rate(line[1], phase))
            for phase, name in shown
        ),
        *(
            Column(name, group="peak memory (GiB)", value=_of_row(f"peak_{name}_bytes"), show=formatting.gib,
                   optional=True)
            for name in ("allocated", "reserved", "resident")
        ),
    ]  # fmt: skip
    caption = f"Throughput that so many warm-up steps give, and peak memory: {warmups.place(setting)}."
    return table.build("warmup-rates", caption, columns, lines, [_RATES_NOTE], folded=True, grouped=True)


def _rate(row: dict, phase: str) -> TableCell:
    rate, share = row.get(f"{phase}_tokens_per_s"), ratio(1.0, row.get(f"{phase}_mean_over_steady"))
    if not formatting.known(rate):
        return table.number(None, badges=lost(row))
    return table.number(rate, _four_digits, formatting.percent(share, 3))


def verdicts_table(warmups: Warmups, setting: Setting) -> Table | None:
    """How far the means without any warm-up are off, and how many warm-up steps are enough, a row a size."""
    columns = [
        Column("size", number=False, value=lambda point: point.size),
        Column("first step", "ms", value=_first_step),
        Column("steady state", "ms", value=_steady_step),
        _cold_column("mean / steady state", "step_mean_over_steady", lambda value: f"× {_times(value)}"),
        _cold_column("median / steady state", "step_median_over_steady", lambda value: f"× {_times(value)}"),
        _cold_column("std / mean", "step_std_over_mean", formatting.percent),
        *(
            Column(name, group="warm-up steps that are enough", value=lambda point, phase=phase: _enough(point, phase))
            for phase, name in phase_names()
            if phase != "forward_backward"
        ),
    ]
    unsure = formatting.listing([point.size for point in setting.measured if not point.is_settled])
    notes = [_ENOUGH_NOTE, _UNSURE_NOTE.format(sizes=unsure) if unsure else ""]
    caption = f"Without warm-up, and how much warm-up is enough: {warmups.place(setting)}."
    return table.build("warmup-verdicts", caption, columns, setting.measured, notes)


def _cold_column(name: str, field: str, show) -> Column:
    """A number of the process without warm-up."""
    return Column(name, group="step without warm-up", value=lambda point: (point.cold or {}).get(field), show=show)


def _first_step(point: SizeRuns) -> TableCell:
    first = (point.cold or {}).get("step_first_ms")
    over = ratio(first, point.steady("step")) if formatting.known(first) else None
    return table.number(first, below=f"× {formatting.significant(over)}" if over else "")


def _steady_step(point: SizeRuns) -> TableCell:
    """The steady step over half its interval."""
    below = formatting.plus_minus(point.width) if point.width is not None else ""
    return table.number(point.steady("step"), _four_digits, below)


def _enough(point: SizeRuns, phase: str) -> TableCell:
    """How many are enough, or more than were tried; in brackets where the steady state is unsure."""
    if not point.steady(phase):
        return table.NOTHING
    found, most = point.enough(phase), max(row["warmup"] for row in point.measured)
    text, sort = (f"> {most:,.0f}", most + 1) if found is None else (formatting.count(found), found)
    return TableCell(text if point.is_settled else f"({text})", sort=sort)


def steps_table(warmups: Warmups, setting: Setting) -> Table | None:
    """How many times the steady state the steps with these indices take, a row a size and phase."""
    lines, seen = [], set()
    for point in setting.measured:
        found = by_step(warmups.samples(point))
        seen |= set(found["step"])
        lines += [
            (point.size, phase, _step_cells(found, point, phase))
            for phase in (*PHASES["step"], "step")
            if point.steady(phase)
        ]
    indices = [index for index in _INDICES if index in seen]
    columns = [
        Column("size", number=False, value=lambda line: line[0]),
        Column("phase", number=False, value=lambda line: line[1]),
        *(
            Column(str(index), group="× steady state, at step", value=lambda line, index=index: line[2].get(index))
            for index in indices
        ),
    ]
    caption = f"How many times the steady state each of the first steps takes: {warmups.place(setting)}."
    return table.build("warmup-steps", caption, columns, lines if indices else [], [_STEPS_NOTE], grouped=True)


def _step_cells(found: pd.DataFrame, point: SizeRuns, phase: str) -> dict[int, TableCell]:
    """Step -> its median over the steady state, over the lowest and the highest."""
    steady = point.steady(phase)
    cells = {}
    for each in found[found["phase"] == phase].to_dict("records"):
        middle, low, high = (each[name] / steady for name in ("median", "low", "high"))
        ends = list(dict.fromkeys([_ratio(low), _ratio(high)]))
        cells[int(each["step"])] = TableCell(_ratio(middle), " to ".join(ends) if len(ends) > 1 else "", middle)
    return cells


def _ratio(value: float) -> str:
    """Two decimals, or three digits of a large one."""
    return f"{value:.2f}" if value < 10 else formatting.significant(value)
