"""Tables of the warm-up study: what a reader would have got, beside the steady state."""

from stepscope.report.data.warmup import CLOSE, WARM, Point, Setting, Warmups, phase_names, ratio
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.table import badge_legend, marks, number, reasons

_STEADY = "steady state"
_PER_CENT = 100


def means_table(warmups: Warmups, setting: Setting) -> Table | None:
    """Mean ± standard deviation of each phase after each number of warm-up steps; a row of the steady medians."""
    if not setting.points:
        return None
    columns = [Column("size", number=False), Column("warm-up steps"), Column("first measured step", "ms")]
    columns += [Column(name, group="mean ± standard deviation (ms), × steady state") for _, name in phase_names()]
    columns += [Column(name, group="of the step") for name in ("std / mean", "median / steady state")]
    rows = []
    for point in setting.points:
        rows += [_mean_row(point, row) for row in point.timed]
        rows += [_steady_row(point)] if point.measured else []
    notes = [
        f"Exactly {warmups.steps} steps after the warm-up, none discarded; each row is a process of its own. "
        + _steady_note(setting)
    ]
    part = warmups.cells[warmups.cells["cell"].isin([row["cell"] for point in setting.points for row in point.timed])]
    caption = f"What a benchmark gets after so many warm-up steps: {warmups.place(setting)}."
    return Table("warmup-means", caption, columns, rows, notes + _reasons(part) + badge_legend(rows), grouped=True)


def _mean_row(point: Point, row: dict) -> list[Cell]:
    phases = phase_names()
    cells = [Cell(point.size, badges=marks(row)), number(row["warmup"], formatting.count)]
    if not formatting.known(row.get("step_mean_ms")):
        lost = Cell(badges=(row["status"],)) if row["status"] in ("oom", "unsupported", "failed") else Cell("–")
        return [*cells, *[lost] * (1 + len(phases)), Cell("–"), Cell("–")]
    cells.append(number(row["step_first_ms"], formatting.significant))
    for phase, _ in phases:
        mean, over = row[f"{phase}_mean_ms"], row[f"{phase}_mean_over_steady"]
        below = f"× {times(over)}" if formatting.known(over) else ""
        cells.append(Cell(formatting.mean_and_std(mean, row[f"{phase}_std_ms"]), below, mean))
    spread = number(row["step_std_over_mean"], formatting.percent)
    return [*cells, spread, number(row["step_median_over_steady"], times)]


def _steady_row(point: Point) -> list[Cell]:
    """The medians of the steady state, below its cells."""
    medians = [
        number(point.steady(phase), lambda value: formatting.significant(value, 4)) for phase, _ in phase_names()
    ]
    return [Cell(point.size), Cell(_STEADY), Cell("–"), *medians, Cell("–"), Cell("–")]


def times(value: float) -> str:
    """A ratio near one with three decimals, a larger one with three digits: 1.002, 4.90, 12.3."""
    return f"{value:.3f}" if abs(value - 1) < 0.1 else formatting.significant(value)


def _steady_note(setting: Setting) -> str:
    """What the steady state is, by the steps that it was taken from."""
    found = {
        (row["steady_from"], row["steady_warmup"], row["steady_samples"])
        for point in setting.measured
        for row in point.measured
        if formatting.known(row["steady_from"])
    }
    if not found:
        return "No process ran enough steps for a steady state."
    parts = [
        f"the {count:,.0f} steps from index {start:,.0f} on of the process with {warmup:,.0f} warm-up steps"
        for start, warmup, count in sorted(found)
    ]
    return f"The steady state is the median of {formatting.listing(parts, between='; ')}."


def rates_table(warmups: Warmups, setting: Setting) -> Table | None:
    """Tokens per second by the means, against those of the steady state, and peak memory."""
    peaks = [
        (name, words)
        for name, words in (("allocated", "allocated"), ("reserved", "reserved"), ("resident", "resident"))
        if any(formatting.known(row.get(f"peak_{name}_bytes")) for point in setting.points for row in point.timed)
    ]
    shown = [(phase, name) for phase, name in phase_names() if phase in ("forward", "forward_backward", "step")]
    rows = [_rate_row(setting, point, row, shown, peaks) for point in setting.points for row in point.timed]
    if not setting.measured:
        return None
    columns = [Column("size", number=False), Column("warm-up steps")]
    columns += [Column(name, group="tokens/s by the mean, share of the steady state's") for _, name in shown]
    columns += [Column(words, group="peak memory (GiB)") for _, words in peaks]
    note = "Tokens of a batch over the mean time; the share below it is the steady state's time over the mean."
    caption = f"Throughput that so many warm-up steps give, and peak memory: {warmups.place(setting)}."
    return Table("warmup-rates", caption, columns, rows, [note, *badge_legend(rows)], folded=True, grouped=True)


def _rate_row(setting: Setting, point: Point, row: dict, shown: list, peaks: list) -> list[Cell]:
    cells = [Cell(point.size, badges=marks(row)), number(row["warmup"], formatting.count)]
    for phase, _ in shown:
        rate = row.get(f"{phase}_tokens_per_s")
        share = ratio(1.0, row.get(f"{phase}_mean_over_steady"))
        below = formatting.percent(share, 3) if formatting.known(share) else ""
        lost = Cell(badges=(row["status"],)) if row["status"] in ("oom", "unsupported", "failed") else Cell("–")
        cells.append(Cell(formatting.significant(rate, 4), below, rate) if formatting.known(rate) else lost)
    return cells + [number(row.get(f"peak_{name}_bytes"), formatting.gib) for name, _ in peaks]


def verdicts_table(warmups: Warmups, setting: Setting) -> Table | None:
    """How far the means without any warm-up are off, and how many warm-up steps are enough, a row a size."""
    if not setting.measured:
        return None
    enough = [(phase, name) for phase, name in phase_names() if phase != "forward_backward"]
    columns = [Column("size", number=False), Column("first step", "ms"), Column("steady state", "ms")]
    names = ("mean / steady state", "median / steady state", "std / mean")
    columns += [Column(name, group="step without warm-up") for name in names]
    columns += [Column(name, group="warm-up steps that are enough") for _, name in enough]
    rows = [_verdict_row(point, enough) for point in setting.measured]
    note = (
        f"Enough: from this number on every mean is within ± {CLOSE:.0%} of the steady state, of the numbers that "
        "were tried. Means are of other processes than the steady state, and differ by as much as runs do too."
    ).replace("%", " %")
    unsettled = formatting.listing([point.size for point in setting.unsettled])
    notes = [note, *[
        f"In brackets: {unsettled}, whose processes with {WARM} or more warm-up steps differ by more than "
        f"{CLOSE * 100:.0f} % in the median step, so that the steady state is unsure."
    ] * bool(unsettled)]  # fmt: skip
    caption = f"Without warm-up, and how much warm-up is enough: {warmups.place(setting)}."
    return Table("warmup-verdicts", caption, columns, rows, [*notes, *badge_legend(rows)])


def _verdict_row(point: Point, enough: list[tuple[str, str]]) -> list[Cell]:
    cold, steady = point.cold or {}, point.steady("step")
    first = cold.get("step_first_ms")
    over = ratio(first, steady) if formatting.known(first) else None
    below = f"× {formatting.significant(over)}" if over else ""
    cells = [Cell(point.size), Cell(formatting.significant(first), below, first) if cold else Cell("–")]
    cells.append(number(steady, lambda value: formatting.significant(value, 4)))
    cells += [
        number(cold.get(f"step_{name}_over_steady"), lambda value: f"× {times(value)}") for name in ("mean", "median")
    ]
    cells.append(number(cold.get("step_std_over_mean"), formatting.percent))
    return cells + [_enough_cell(point, phase) for phase, _ in enough]


def _enough_cell(point: Point, phase: str) -> Cell:
    found = point.enough(phase)
    if found is not None:
        return Cell(_sure(point, formatting.count(found)), sort=found)
    most = max(row["warmup"] for row in point.measured)
    return Cell(_sure(point, f"> {most:,.0f}"), sort=most + 1) if point.steady(phase) else Cell("–")


def _sure(point: Point, text: str) -> str:
    """In brackets where the steady state is unsure."""
    return text if point.is_settled else f"({text})"


def _reasons(part) -> list[str]:
    """Why cells have no result, each reason once."""
    return reasons(
        part.to_dict("records"),
        lambda row: f"{row['size']} at {row['context']:,.0f}",
        pattern="n/a ({names}): {reason}.",
    )
