"""How much a median changes from one process to the next, which decides what may be called faster."""

import math

import pandas as pd

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.tables import label

POINT = ["hardware", "size", "context", "batch", "precision", "mode", "options"]
_PHASES = ("inference", "forward", "backward", "optimizer", "forward_backward", "step")


def spreads(timing: pd.DataFrame) -> pd.DataFrame:
    """A row a repeated point and phase: `medians` (ms, by run), `spread` = (max - min) / median of the runs' medians,
    `interval` = the widest interval within one run over its median. Both are shares of one."""
    columns = [*POINT, "parameters", "phase", "medians", "spread", "interval"]
    repeated = timing[timing.groupby(POINT, dropna=False)["cell"].transform("size") > 1] if len(timing) else timing
    rows = []
    for _, runs in repeated.groupby(POINT, sort=False, dropna=False) if len(repeated) else ():
        for phase in (phase for phase in _PHASES if f"{phase}_median_ms" in runs):
            medians = runs[f"{phase}_median_ms"].dropna()
            if len(medians) < 2:
                continue
            width = (runs[f"{phase}_ci_high_ms"] - runs[f"{phase}_ci_low_ms"]) / runs[f"{phase}_median_ms"]
            point = runs.iloc[0][[*POINT, "parameters"]].to_dict()
            spread = (medians.max() - medians.min()) / medians.median()
            rows.append({**point, "phase": phase, "medians": list(medians), "spread": spread, "interval": width.max()})
    return pd.DataFrame(rows, columns=columns)


def repeats_table(found: pd.DataFrame) -> Table | None:
    """The medians of each run beside each other."""
    if found.empty:
        return None
    runs = max(len(medians) for medians in found["medians"])
    several = found["hardware"].nunique() > 1
    columns = [Column("hardware", number=False)] if several else []
    columns += [Column("size", number=False), Column("context", "tokens"), Column("precision", number=False)]
    options = found["options"].nunique() > 1
    columns += [Column("options", number=False)] if options else []
    columns += [Column("phase", number=False)]
    columns += [Column(f"run {run + 1}", "ms", group="median") for run in range(runs)]
    columns += [Column("between runs", "%", group="difference"), Column("within a run", "%", group="difference")]
    rows = []
    for row in found.to_dict("records"):
        names = [Cell(row["hardware"])] if several else []
        names += [
            Cell(row["size"]),
            Cell(formatting.count(row["context"]), sort=row["context"]),
            Cell(row["precision"]),
        ]
        names += [Cell(row["options"] or "–")] if options else []
        rows.append(
            [*names, Cell(label(row["phase"])), *_medians(row, runs), *(_share(row[k]) for k in ("spread", "interval"))]
        )
    note = (
        "Between runs: (largest − smallest) / median of the runs' medians. Within a run: the widest 95 % confidence "
        "interval of the median, as a share of it. Each run is a process of its own."
    )
    return Table("repeats", "The same cells measured again in fresh processes.", columns, rows, [note])


def _medians(row: dict, runs: int) -> list[Cell]:
    medians = row["medians"]
    decimals = formatting.decimals_for(medians[0], row["interval"] * medians[0] / 2, digits=2)
    cells = [Cell(formatting.fixed(median, decimals), sort=median) for median in medians]
    return cells + [Cell("–")] * (runs - len(cells))


def _share(value: float) -> Cell:
    return Cell(formatting.significant(value * 100, 2), sort=value) if formatting.known(value) else Cell("–")


def typical_spreads(found: pd.DataFrame, phase: str) -> dict[tuple[str, str], float]:
    """The largest spread between runs of each (hardware, precision), in one phase."""
    own = found[found["phase"] == phase]
    return {key: float(part["spread"].max()) for key, part in own.groupby(["hardware", "precision"])}


def verdict(slower_time: float, faster_time: float, spread: float) -> str:
    """Is the second time faster than the first, by more than runs differ? `spread` is the sum of both spreads."""
    if math.log(slower_time / faster_time) > spread:
        return "faster"
    return "slower" if math.log(faster_time / slower_time) > spread else "equal"
