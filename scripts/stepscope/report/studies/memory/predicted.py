"""The predicted peak beside the measured one, and the first context that does not fit beside the first that did not."""

from dataclasses import dataclass

from stepscope.report.data.memory import POINT, Memory, lead, leading, out_of_memory, part
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import change, change_cell, percent_change, size_cell
from stepscope.report.kit.table import badge_legend
from stepscope.report.studies.memory.peaks import place

FAR = 0.05  # a difference from which on its causes are named
_LEAST = 0.01  # share of the measured peak from which on a category is one


def difference(memory: Memory, row: dict) -> float | None:
    """(predicted − measured) / measured of the bytes that tensors ask for at the peak; None unless the cell is ok."""
    return apart(row, memory.requested(row))


def apart(row: dict, measured: object) -> float | None:
    """(predicted − measured) / measured of a cell's peak; None unless the cell is ok."""
    predicted = row.get("predicted_peak_bytes")
    if row["status"] != "ok" or not (formatting.known(predicted) and formatting.known(measured) and measured):
        return None
    return (predicted - measured) / measured


def causes(memory: Memory, row: dict) -> list[str]:
    """`activations −3.1 GiB`: predicted less measured, of the categories that differ by more than a little."""
    predicted: dict[str, float] = {}
    for each in memory.rows("predicted", row):
        predicted[str(each["category"])] = predicted.get(str(each["category"]), 0.0) + each["bytes"]
    measured = memory.at_peak(row)
    if not (predicted and measured):
        return []
    apart = {name: predicted.get(name, 0.0) - measured.get(name, 0.0) for name in {**measured, **predicted}}
    least = _LEAST * memory.requested(row)
    largest = sorted(apart.items(), key=lambda entry: -abs(entry[1]))
    return [f"{name} {change(value)}" for name, value in largest if abs(value) >= least]


def predicted_table(memory: Memory) -> Table | None:
    """A row a recorded cell: predicted and measured peak, their difference, and where each lies."""
    rows = [row for row in memory.recorded if formatting.known(row.get("predicted_peak_bytes"))]
    if not rows:
        return None
    far = any(_is_far(memory, row) for row in rows)
    columns = [*leading(memory), *(Column(name, group="peak") for name in ("predicted", "measured"))]
    columns += [Column(name, group="difference (%)") for name in ("as asked for", "as allocated")]
    columns += [Column(name, group="it lies in", number=False) for name in ("predicted", "measured")]
    columns += [Column("predicted less measured", number=False, wrap=True)] if far else []
    lines = []
    for row in rows:
        line = [*lead(row, memory), size_cell(row["predicted_peak_bytes"])]
        line += [size_cell(memory.requested(row), badges=out_of_memory(row)), change_cell(difference(memory, row))]
        line.append(change_cell(apart(row, row.get("peak_allocated_bytes"))))
        line += [Cell(str(row["predicted_phase"] or "–"), part(row["predicted_part"])), place(memory, row)]
        lines.append(line + ([_causes(memory, row)] if far else []))
    caption = "The peak in closed form beside the peak of the recorded steps."
    notes = [
        "Measured: what tensors asked for, before the allocator rounds each block up. Difference: (predicted − "
        "measured) / measured, of this and of what the allocator counts; for a cell that ran out of memory there is "
        "none. Every tensor that is predicted to be "
        "alive at the peak is in memory_predicted.csv."
    ]
    notes += [f"Categories are named where the difference is more than {100 * FAR:.0f} %."] if far else []
    return Table("memory-predicted", caption, columns, lines, [*notes, *badge_legend(lines)], grouped=True)


def _is_far(memory: Memory, row: dict) -> bool:
    return abs(difference(memory, row) or 0) > FAR


def _causes(memory: Memory, row: dict) -> Cell:
    return Cell(formatting.listing(causes(memory, row)) or "–" if _is_far(memory, row) else "–")


@dataclass(frozen=True)
class Limit:
    """Cells that differ only in the context, and which contexts (tokens) fit."""

    row: dict  # one of them, for its names
    predicted: tuple[float, float] | None  # the first context too long, as the cells' smallest and largest prediction
    fitted: float | None  # the longest that was measured
    failed: float | None  # the shortest that ran out of memory

    @property
    def verdict(self) -> str:
        """`as predicted`, `not reached`, or what contradicts; empty without a prediction or a measurement."""
        if self.predicted is None or (self.fitted is None and self.failed is None):
            return ""
        low, high = self.predicted
        if self.fitted is not None and self.fitted >= high:
            return "more fits than predicted"
        if self.failed is not None and self.failed < low:
            return "less fits than predicted"
        return "not reached" if self.failed is None else "as predicted"


def limits(memory: Memory) -> list[Limit]:
    """A row for each size, mode, precision and options."""
    groups: dict[tuple, list[dict]] = {}
    for row in memory.first_runs(memory.all):
        groups.setdefault((*(row[name] for name in POINT), row["precision"]), []).append(row)
    return [_limit(rows) for rows in groups.values()]


def _limit(rows: list[dict]) -> Limit:
    told = [row["predicted_first_context_too_long"] for row in rows]
    told = [value for value in told if formatting.known(value)]
    fitted = [row["context"] for row in rows if row["status"] == "ok"]
    failed = [row["context"] for row in rows if row["status"] == "oom"]
    return Limit(
        rows[0], (min(told), max(told)) if told else None, max(fitted, default=None), min(failed, default=None)
    )


def limits_table(memory: Memory, found: list[Limit]) -> Table | None:
    """The first context that will not fit, predicted, beside the first of the grid that did not."""
    found = [limit for limit in found if limit.predicted or limit.failed]
    if not found:
        return None
    but = ("context", "repeat")
    columns = [*leading(memory, but), Column("predicted to be too long from", "tokens")]
    columns += [Column("longest that fits", "tokens", group="in the grid")]
    columns += [Column("shortest that does not", "tokens", group="in the grid"), Column("", number=False)]
    rows = []
    for limit in found:
        line = [*_names(memory, limit.row, but), _contexts(limit), _tokens(limit.fitted), _tokens(limit.failed)]
        rows.append([*line, Cell(limit.verdict or "–")])
    caption = "The first context that will not fit, predicted from the memory that was free before the program began."
    note = (
        "The prediction counts what tensors ask for; the allocator's rounding and unused parts come on top, so that a "
        "context just below it can fail too. Not reached: the grid has no context that long."
    )
    return Table("memory-limits", caption, columns, rows, [note], grouped=True)


def _names(memory: Memory, row: dict, but: tuple[str, ...]) -> list[Cell]:
    """The leading cells without the marks of the one cell."""
    first, *rest = lead(row, memory, but)
    return [Cell(first.text), *rest]


def _tokens(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(formatting.count(value), sort=float(value))


def _contexts(limit: Limit) -> Cell:
    if limit.predicted is None:
        return Cell("–")
    return Cell(" to ".join(dict.fromkeys(map(formatting.count, limit.predicted))), sort=float(limit.predicted[0]))


def difference_text(memory: Memory, row: dict) -> str:
    """`predicted −0.40 %` of a cell's peak; empty where there is no such difference."""
    found = difference(memory, row)
    return "" if found is None else f"predicted {percent_change(found)}"
