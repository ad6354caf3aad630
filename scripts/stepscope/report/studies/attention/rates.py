"""Arithmetic rates of attention, their share of the measured ceiling, and our kernel against the others."""

from stepscope.report.data.attention import (
    DIRECTIONS,
    OURS,
    Attention,
    Group,
    compared,
    count,
    lost,
    marks,
    median,
    notes,
    speed,
)
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.studies.attention.tables import POINT


def rates_table(attention: Attention, group: Group, precision: str) -> Table | None:
    """TFLOP/s of every implementation at each d and length, over their share of the ceiling; None where none ran."""
    ceiling = matmul_ceiling(attention.ceilings, group.hardware, precision)
    names = group.values("implementation", precision)
    columns = [*POINT, *(Column(name, group=f"{way} (TFLOP/s)") for way in DIRECTIONS for name in names)]
    rows = []
    for d_head, length in group.points(precision):
        points = [group.at(name, precision, d_head, length, way) for way in DIRECTIONS for name in names]
        rows.append([count(d_head), count(length), *(_rate(row, ceiling) for row in points)])
    if not any(cell.sort is not None for row in rows for cell in row[2:]):
        return None
    share = "; below it the share of the measured matrix product" if ceiling else ""
    caption = f"Arithmetic rate in TFLOP/s{share}, {precision}, {group.place}."
    told = notes([row for row in group.rows if row["precision"] == precision], rows)
    name = f"attention-rates-{group.hardware}-{precision}"
    return Table(name, caption, columns, rows, [_ceiling_note(ceiling, precision), *told], grouped=True)


def _rate(row: dict, ceiling: float | None) -> Cell:
    value = row.get("tflops")
    if not formatting.known(value):
        return Cell("" if lost(row) else "–", badges=lost(row))
    return Cell(
        formatting.significant(value), formatting.percent(value / ceiling) if ceiling else "", value, marks(row)
    )


def _ceiling_note(ceiling: float | None, precision: str) -> str:
    if not ceiling:
        return f"No matrix product in {precision} was measured on this hardware: no shares."
    rate = formatting.significant(ceiling)
    return f"Shares are of the rate of a large matrix product in {precision} on this hardware: {rate} TFLOP/s."


def ours_table(group: Group, precision: str) -> Table | None:
    """How many times the speed of each other implementation ours has; None without ours, or without another."""
    names = group.values("implementation", precision)
    others = [name for name in names if name != OURS]
    if OURS not in names or not others:
        return None
    columns = [*POINT, *(Column(name, group=f"{way}, against") for way in DIRECTIONS for name in others)]
    rows = []
    for d_head, length in group.points(precision):
        line = [count(d_head), count(length)]
        for way in DIRECTIONS:
            ours = group.at(OURS, precision, d_head, length, way)
            line += [_ratio(ours, group.at(name, precision, d_head, length, way)) for name in others]
        rows.append(line)
    if not any(cell.sort is not None for row in rows for cell in row[2:]):
        return None
    caption = f"The speed of {OURS}, this project's kernel, over that of the others, {precision}, {group.place}."
    note = "Ratio of the medians; above 1 ours is the faster one. In brackets: the two 95 % intervals overlap."
    name = f"attention-ours-{group.hardware}-{precision}"
    return Table(name, caption, columns, rows, [note, *notes([], rows)], grouped=True)


def _ratio(ours: dict, other: dict) -> Cell:
    ratio = speed(ours, other)
    if ratio is None:
        badges = lost(ours) or lost(other)
        return Cell("" if badges else "–", badges=badges)
    return Cell(compared(ours, other, formatting.significant(ratio)), sort=ratio)


def fastest(group: Group, direction: str) -> dict:
    """The result with the highest rate in a direction; empty where nothing ran."""
    known = [row for row in group.rows if row["direction"] == direction and median(row)]
    return max((row for row in known if formatting.known(row.get("tflops"))), key=lambda row: row["tflops"], default={})
