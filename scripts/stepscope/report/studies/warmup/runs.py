"""From run to run: how much medians of fresh processes differ, against the intervals within one."""

import statistics

import pandas as pd

from stepscope.report.data.repeats import POINT, spreads
from stepscope.report.data.warmup import WARM, Setting, Warmups, ratio
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.order import label, with_order
from stepscope.tables.warmup import PHASES

SHOWN = ("forward", "backward", "step")


def runs(warmups: Warmups) -> pd.DataFrame:
    """What `spreads` gives for the timing study's repeats and for this study's warm processes, and `study`."""
    found = []
    timing = with_order(warmups.tables["timing"])
    if len(timing):
        found.append(spreads(timing).assign(study="timing"))
    cells = warmups.cells
    if len(cells):
        warm = cells[(cells["warmup"] >= WARM) & (cells["first"] != "profiled")]
        found.append(spreads(warm).assign(study="warmup"))
    every = pd.concat([each for each in found if len(each)]) if any(len(each) for each in found) else pd.DataFrame()
    return every[every["phase"].isin(SHOWN)].reset_index(drop=True) if len(every) else every


def runs_table(found: pd.DataFrame) -> Table | None:
    """A row a point: the spread between its runs beside the widest interval within one, for each phase."""
    if found.empty:
        return None
    several = found["hardware"].nunique() > 1
    names = [name for name in ("options", "batch") if found[name].nunique() > 1]
    columns = [Column("hardware", number=False)] if several else []
    columns += [Column("size", number=False), Column("context", "tokens"), Column("precision", number=False)]
    columns += [Column(name, number=name == "batch") for name in names]
    columns += [Column("study", number=False), Column("runs")]
    phases = [phase for phase in SHOWN if (found["phase"] == phase).any()]
    for phase in phases:
        columns += [
            Column(way, group=f"{label(phase)} (%)") for way in ("between runs", "within a run", "between / within")
        ]
    rows = []
    for _, own in found.groupby(["study", *POINT], sort=False, dropna=False):
        first = own.iloc[0]
        cells = [Cell(first["hardware"])] if several else []
        cells += [Cell(first["size"]), Cell(formatting.count(first["context"]), sort=float(first["context"]))]
        cells += [Cell(first["precision"])]
        cells += [Cell(formatting.count(first[name]) if name == "batch" else first[name] or "–") for name in names]
        cells += [Cell(first["study"]), Cell(formatting.count(float(max(map(len, own["medians"])))))]
        rows.append(cells + [cell for phase in phases for cell in _differences(own[own["phase"] == phase])])
    note = (
        "Between runs: (largest − smallest) / median of the runs' medians, each run a process of its own. Within a "
        "run: the widest 95 % confidence interval of the median, as a share of it. Where the first is larger, the "
        "interval says too little of the next run. Runs are the repeats of the timing study, and this study's "
        f"processes with {WARM} or more warm-up steps."
    )
    caption = "How much runs of the same cell differ, against the intervals within a run."
    return Table("warmup-runs", caption, columns, rows, [note])


def _differences(own: pd.DataFrame) -> list[Cell]:
    if own.empty:
        return [Cell("–")] * 3
    between, within = float(own["spread"].iloc[0]), float(own["interval"].iloc[0])
    cells = [
        Cell(formatting.significant(100 * value, 2), sort=value) if formatting.known(value) else Cell("–")
        for value in (between, within)
    ]
    over = between / within if formatting.known(within) and within > 0 else float("nan")
    return [*cells, Cell(formatting.significant(over, 2), sort=over) if formatting.known(over) else Cell("–")]


def told(found: pd.DataFrame, hardware: str) -> str:
    """Runs against intervals in a sentence; empty where nothing ran twice."""
    own = found[found["hardware"] == hardware] if len(found) else found
    phase = next((phase for phase in reversed(SHOWN) if len(own) and (own["phase"] == phase).any()), None)
    if phase is None:
        return ""
    own = own[own["phase"] == phase]
    worst, widest = own.loc[own["spread"].idxmax()], formatting.percent(float(own["interval"].max()))
    wider = int((own["spread"] > own["interval"]).sum())
    if len(own) == 1:
        against = f"which is {'more' if wider else 'no more'} than the widest interval within a run ({widest})"
    else:
        against = f"and by more than the widest 95 % interval within one of them in {wider:,} of {len(own):,} points"
    what = "a step" if phase == "step" else phase
    return (
        f"Fresh processes of the same cell differ in the median time of {what} by up to "
        f"{formatting.percent(float(worst['spread']))} ({worst['size']}, context {worst['context']:,.0f}, "
        f"{worst['precision']}; {worst['study'].replace('warmup', 'warm-up')} study), {against}."
    )


def against_timing(warmups: Warmups, setting: Setting) -> str:
    """The timing study's phased steps of the same points over the steady state; empty where none were timed."""
    timing = with_order(warmups.tables["timing"])
    found = []
    for point in setting.measured:
        seen = [each for each in map(float, _phased_steps(timing, setting, point.size)) if each == each]
        if seen and (value := ratio(statistics.median(seen), point.steady("step"))):
            found.append((point.size, value))
    if not found:
        return ""
    low, high = min(found, key=lambda each: each[1]), max(found, key=lambda each: each[1])
    ends = f"{low[1]:.2f} ({low[0]})" + (f" to {high[1]:.2f} ({high[0]})" if high is not low else "")
    return f"The timing study's phased steps of the same points, at another time, took {ends} times the steady state."


def _phased_steps(timing: pd.DataFrame, setting: Setting, size: str) -> pd.Series:
    """Forward, backward and optimizer together (ms) of each run of a point in the timing study."""
    phases = [f"{phase}_median_ms" for phase in PHASES["step"]]
    if timing.empty or not all(name in timing for name in ("mode", *phases)):
        return pd.Series(dtype=float)
    own = timing[(timing["size"] == size) & (timing["mode"] == "step")]
    for name in ("hardware", "context", "precision", "batch", "options"):
        own = own[own[name] == getattr(setting, name)]
    return own[phases].sum(axis=1, skipna=False)
