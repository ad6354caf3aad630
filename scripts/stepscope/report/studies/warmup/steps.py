"""Time over the step's index, across the processes of a point."""

import pandas as pd

from stepscope.report.data.warmup import Point, Setting, Warmups
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.tables.warmup import PHASES

SHOWN = ("forward", "backward", "optimizer", "step")
INDICES = (0, 1, 2, 3, 4, 5, 10)


def by_step(samples: pd.DataFrame) -> pd.DataFrame:
    """A row a phase and step: median, lowest and highest ms over the processes, and how many `processes`.

    The samples are raw ones (seconds) of several cells; `step` is the sum of the phases where a step has all.
    """
    columns = ["phase", "step", "median", "low", "high", "processes"]
    if samples.empty:
        return pd.DataFrame(columns=columns)
    wide = samples.pivot_table(index=["cell", "step"], columns="phase", values="seconds") * 1e3
    wide = wide.reindex(columns=list(PHASES["step"]))
    wide["step"] = wide.sum(axis=1, skipna=False)
    long = wide.melt(var_name="phase", value_name="ms", ignore_index=False).dropna().reset_index()
    found = long.groupby(["phase", "step"])["ms"].agg(["median", "min", "max", "size"]).reset_index()
    return found.set_axis(columns, axis=1)


def steps_table(warmups: Warmups, setting: Setting) -> Table | None:
    """How many times the steady state the steps with these indices take, a row a size and phase."""
    rows, seen = [], set()
    for point in setting.measured:
        found = by_step(warmups.samples(point))
        seen |= set(found["step"])
        rows += [_row(found, point, phase) for phase in SHOWN if point.steady(phase)]
    indices = [index for index in INDICES if index in seen]
    if not rows or not indices:
        return None
    columns = [Column("size", number=False), Column("phase", number=False)]
    columns += [Column(str(index), group="× steady state, at step") for index in indices]
    note = (
        "Steps are counted from 0, the first in the process. The median over the processes that ran the step, and "
        "below it the lowest and the highest where they differ. Sorts by the median."
    )
    lines = [
        [Cell(size), Cell(phase), *(cells.get(index, Cell("–")) for index in indices)] for size, phase, cells in rows
    ]
    caption = f"How many times the steady state each of the first steps takes: {warmups.place(setting)}."
    return Table("warmup-steps", caption, columns, lines, [note], grouped=True)


def _row(found: pd.DataFrame, point: Point, phase: str) -> tuple[str, str, dict[int, Cell]]:
    steady = point.steady(phase)
    cells = {}
    for each in found[found["phase"] == phase].to_dict("records"):
        middle, low, high = (each[name] / steady for name in ("median", "low", "high"))
        ends = list(dict.fromkeys([_ratio(low), _ratio(high)]))
        cells[int(each["step"])] = Cell(_ratio(middle), " to ".join(ends) if len(ends) > 1 else "", middle)
    return point.size, phase, cells


def _ratio(value: float) -> str:
    """Two decimals, or three digits of a large one."""
    return f"{value:.2f}" if value < 10 else formatting.significant(value)
