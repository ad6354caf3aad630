"""The ladder study's tables beside the rungs: the whole model compiled, and whether all compute the same step."""

from stepscope.report.data.ladder import Ladder, agrees, peak, times
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import size_cell
from stepscope.report.studies.ladder.tables import bracketed, notes, number_cell, time_cell


def compiling_table(hardware: str, found: list[Ladder]) -> Table | None:
    """The whole model compiled beside its blocks; None where it was not tried."""
    lines, rows = [], []
    for ladder in found:
        for row in ladder.wholes:
            other = ladder.at(row.get("compared_with")) or {}
            line = [Cell(ladder.size), Cell(formatting.count(ladder.context), sort=ladder.context)]
            line += [number_cell(each.get("compile_seconds")) for each in (other, row)]
            line += [time_cell(each, "step") if each else Cell("–") for each in (other, row)]
            line += [size_cell(peak(each)) if each else Cell("–") for each in (other, row)]
            lines.append([*line, _gain_alone(row, other, ladder.doubt)])
            rows.append(row)
    if not lines:
        return None
    columns = [Column("size", number=False), Column("context", "tokens")]
    for group in ("compiling (s)", "step (ms)", "peak memory"):
        columns += [Column("blocks", group=group), Column("whole", group=group)]
    columns.append(Column("whole over blocks", "times the speed"))
    caption = f"The whole model compiled instead of block by block, on {hardware}."
    return Table(f"ladder-compiling-{hardware}", caption, columns, lines, notes(rows, lines))


def _gain_alone(row: dict, other: dict, doubt: float) -> Cell:
    value = row.get("gain_before")
    return Cell(bracketed(times(value), row, other, doubt), sort=value) if formatting.known(value) else Cell("–")


def agreement_table(hardware: str, found: list[Ladder]) -> Table | None:
    """Loss and gradients of every cell against the first rung's; None where no cell has a loss."""
    lines, rows = [], []
    for ladder in found:
        for row in ladder.rows:
            if not formatting.known(row.get("loss")) and agrees(row) is None:
                continue
            told = {True: "yes", False: "no", None: "–"}[agrees(row)]
            numbers = [_scientific(row.get(f"{name}_difference")) for name in ("loss", "gradient", "gradient_norm")]
            cosine = row.get("gradient_cosine")
            line = [
                Cell(ladder.place),
                Cell(str(row["name"])),
                number_cell(row.get("loss"), 6),
                number_cell(row.get("gradient_norm"), 4),
            ]
            line += [*numbers, Cell(f"{cosine:.6f}", sort=cosine) if formatting.known(cosine) else Cell("–")]
            lines.append([*line, _scientific(row.get("tolerance")), Cell(told)])
            rows.append(row)
    if not lines:
        return None
    columns = [Column("ladder", number=False), Column("cell", number=False), Column("loss"), Column("gradient norm")]
    columns += [Column(name, group="relative difference") for name in ("loss", "gradients", "norm")]
    columns += [Column("cosine"), Column("tolerance"), Column("agrees", number=False)]
    caption = f"Loss and gradients against those of the first rung that has them, on {hardware}."
    note = "Tolerance: of gradients and their norm; a tenth of it for the loss."
    many = len(lines) > 40
    return Table(f"ladder-agreement-{hardware}", caption, columns, lines, [note], folded=True, grouped=True,
                 page_only=many)  # fmt: skip


def _scientific(value: object) -> Cell:
    """A small number: `1.2e-05`, `0`."""
    if not formatting.known(value):
        return Cell("–")
    return Cell(f"{value:.1e}".replace("-", "\N{MINUS SIGN}") if value else "0", sort=value)
