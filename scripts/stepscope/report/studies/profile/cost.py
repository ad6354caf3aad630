"""What the profiler itself costs, and whether its ranges agree with the host's clock."""

import pandas as pd

from stepscope.report.data.profile import Profile, lead, leading, number, title
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.order import label
from stepscope.report.studies.profile.tables import table

PHASES = ("inference", "forward", "backward", "optimizer")


def costs(profile: Profile) -> pd.DataFrame:
    """A row a cell and phase, times in ms.

    `without`, `with`: medians of the host's clock in the timing study and in the profiled run; `ratio` their quotient.
    `range`, `clock`: means of the phase's range and of the clock in the profiled run; `difference` = range / clock - 1.
    """
    rows = []
    for row in profile.profiled():
        plain = profile.unprofiled(row)
        for phase in PHASES:
            median, mean = row.get(f"{phase}_median_ms"), row.get(f"{phase}_mean_ms")
            if not formatting.known(median):
                continue
            own = profile.row("phases", row["cell"], phase=phase)
            around = own["host_ms_total"] / own["count"] if own.get("count") else None
            rows.append(
                {"cell": row["cell"], "phase": phase, "without": plain.get(f"{phase}_median_ms"), "with": median}
                | {"range": around, "clock": mean}
            )
    frame = pd.DataFrame(rows, columns=["cell", "phase", "without", "with", "range", "clock"])
    numbers = frame.columns[2:]
    frame[numbers] = frame[numbers].astype(float)
    return frame.assign(ratio=frame["with"] / frame["without"], difference=frame["range"] / frame["clock"] - 1)


def cost_table(profile: Profile, found: pd.DataFrame) -> Table | None:
    """Phase by phase: without and with the profiler, and the ranges against the clock of the same run."""
    whole = profile.cells
    by_cell = {row["cell"]: row for row in profile.profiled()}
    group, agree = "host's clock, median", "in the profiled run, mean"
    columns = [*leading(whole), Column("phase", number=False), Column("without profiler", "ms", group=group)]
    columns += [Column("with profiler", "ms", group=group), Column("with / without", group=group)]
    columns += [Column("range", "ms", group=agree), Column("host's clock", "ms", group=agree)]
    columns += [Column("difference", "%", group=agree)]
    rows = []
    for line in found.to_dict("records"):
        cells = [*lead(by_cell[line["cell"]], whole), Cell(label(line["phase"])), number(line["without"], 4)]
        cells += [number(line["with"], 4), _ratio(line["ratio"]), number(line["range"], 4), number(line["clock"], 4)]
        rows.append([*cells, _difference(line["difference"])])
    caption = "What the profiler costs, phase by phase, and how well its ranges agree with the host's clock."
    notes = [
        "Without profiler: the phased steps of the timing study. Range: what the profiler recorded for the phase. "
        "The range and the clock measure the same steps from two sides, and should agree; their means also hold the "
        "first recorded steps, which can be slower than the median."
    ]
    return table("cost", caption, columns, rows, notes)


def _ratio(value: float) -> Cell:
    return Cell(f"{value:.2f}", sort=value) if formatting.known(value) else Cell("–")


def _difference(value: float) -> Cell:
    if not formatting.known(value):
        return Cell("–")
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    return Cell(f"{sign}{formatting.fixed(100 * abs(value), 2)}", sort=value)


def agreement(profile: Profile, found: pd.DataFrame) -> str:
    """How far ranges and clock lie apart, in a sentence; empty where nothing is known."""
    apart = found["difference"].dropna().abs()
    if apart.empty:
        return ""
    worst = found.loc[apart.idxmax()]
    name = next(title(row, profile.cells) for row in profile.profiled() if row["cell"] == worst["cell"])
    text = f"Ranges and clock of the same run differ by at most {formatting.percent(float(apart.max()))}"
    return f"{text} ({label(worst['phase'])} of {name})."
