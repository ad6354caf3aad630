"""Tables of the other studies with the machines beside each other: attention, memory and the ladder."""

from collections.abc import Iterable
from functools import partial

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import setting_of
from stepscope.report.data.points import Point
from stepscope.report.data.side_by_side import Shared, peaks, predicted_peaks, shared_phase, whole_ladders
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import ratio_text
from stepscope.report.kit.order import label
from stepscope.report.kit.sizes import Unit, change, percent_change, unit_of
from stepscope.report.studies.hardware.tables import (
    SIZE,
    comparison_table,
    lines,
    machine_columns,
    speed_cell,
    speed_columns,
)
from stepscope.tables.ladder import TIMES


def everyone(found: Shared) -> str:
    """`all machines`, or the names of those that a study has, where it lacks some."""
    return formatting.listing(found.machines) if found.lacking else "all machines"


def absent(found: Shared) -> str:
    """A sentence on the machines that a study has no cells of; empty where it has all."""
    return f"The {found.study} study has no cells of {formatting.listing(found.lacking)}." if found.lacking else ""


def _of(found: Shared) -> str:
    return "each machine" if len(found.others) > 1 else found.others[0]


def attention_tables(found: Shared) -> list[Table]:
    """A table a setting: a row an implementation, precision and d, a column a direction and machine."""
    settings = dict.fromkeys(setting_of(point.row) for point in found.points)
    return [
        _attention_table(found, [point for point in found.points if setting_of(point.row) == setting], at)
        for at, setting in enumerate(settings)
    ]


def _attention_table(found: Shared, points: list[Point], at: int) -> Table:
    columns = [
        Column("implementation", value="implementation", number=False),
        *table.point("precision"),
        Column("d", value="d_head", show=formatting.count),
        Column("length", "tokens", value="length", show=formatting.count),
    ]
    present = {point.value("direction") for point in points}
    for way in (way for way in DIRECTIONS if way in present):
        columns += speed_columns(found.others, way, way, partial(_pass_cell, found))
    caption = (
        f"How many times as fast attention is on {_of(found)} as on {found.baseline}, at the longest length that "
        f"{everyone(found)} finished; below it the baseline's ms → its own; {setting_of(points[0].row).title}."
    )
    notes = [table.verdict_note(found.speed(point, other) for point in points for other in found.others), absent(found)]
    names = ("implementation", "precision", "d_head", "length")
    rows = lines(points, lambda point: tuple(map(point.value, names)), lambda point: point.value("direction"))
    return comparison_table(f"attention-{at}", caption, columns, rows, notes)


def _pass_cell(found: Shared, point: Point, other: str) -> TableCell:
    both = found.baseline, other
    statuses = [point.rows[each]["status"] for each in both]
    return speed_cell(point, both, "", found.speed(point, other), statuses)


def memory_table(found: Shared) -> Table | None:
    """A row a point: the closed form, the peak on each machine, and the differences to the baseline's."""
    if not found.points:
        return None
    unit = unit_of(value for point in found.points for value in peaks(point).values())
    extra = table.varying([point.row for point in found.points], ("batch", "options"))
    columns = [
        SIZE,
        Column("mode", value=lambda row: label(mode(row)), number=False),
        *table.point("precision", "context", *extra),
        Column("closed form", unit.name, value=lambda row: _closed_form(row["at"][""], unit)),
        *machine_columns(found.machines, "", f"peak ({unit.name})", partial(_peak_cell, unit)),
        *machine_columns(found.others, "", f"more than on {found.baseline}", partial(_difference, found.baseline)),
    ]
    caption = "Peak memory of the same cells on every machine, beside the closed form."
    note = (
        "Peak: of the allocator's counter, on a CPU the largest sum of recorded allocations. The closed form is the "
        "same on every machine but for what libraries hold; two numbers are its values on different machines."
    )
    return comparison_table("memory", caption, columns, _singly(found.points), [note, absent(found)])


def _singly(points: Iterable[Point]) -> list[dict]:
    """A row a point."""
    return lines(points, id, lambda point: "")


def _closed_form(point: Point, unit: Unit) -> TableCell:
    """The number, or those of several machines."""
    numbers = [unit.cell(value) for value in predicted_peaks(point)]
    texts = dict.fromkeys(each.text for each in numbers)
    return TableCell(" or ".join(texts), sort=numbers[0].sort) if numbers else table.NOTHING


def _peak_cell(unit: Unit, point: Point, machine: str) -> TableCell:
    return unit.cell(peaks(point)[machine], badges=table.lost(point.rows[machine]))


def _difference(baseline: str, point: Point, machine: str) -> TableCell:
    own, other = peaks(point)[machine], peaks(point)[baseline]
    if not own or not other:
        return table.NOTHING
    return TableCell(change(own - other), percent_change(own / other - 1), own - other)


def ladder_table(found: Shared) -> Table | None:
    """A row a ladder and rung, a column a machine: its speed over the baseline's."""
    if not found.points:
        return None
    columns = [
        SIZE,
        *table.point("context", *table.varying([point.row for point in found.points], ["batch"])),
        Column("rung", value=_rung, number=False),
        *speed_columns(found.others, "", "times as fast", partial(_rung_cell, found)),
    ]
    last = f"the last that {everyone(found)} finished"
    caption = f"The first rung of each ladder and {last}, on {_of(found)} over {found.baseline}."
    notes = [
        "Below each: the baseline's ms → its own.",
        table.verdict_note(found.speed(point, other) for point in found.points for other in found.others),
        _whole_ladders(found),
        absent(found),
    ]
    return comparison_table("ladder", caption, columns, _singly(found.points), notes)


def _rung(row: dict) -> TableCell:
    """Its name, and what its times are of if that is not a whole step."""
    phase = shared_phase(row["at"][""])
    return TableCell(str(row["name"]), "" if phase in ("step", None) else TIMES[phase])


def _rung_cell(found: Shared, point: Point, other: str) -> TableCell:
    both, phase = (found.baseline, other), found.phase(point)
    statuses = [row.get(f"{phase}_status") or row["status"] for row in (point.rows[each] for each in both)]
    return speed_cell(point, both, phase, found.speed(point, other), statuses)


def _whole_ladders(found: Shared) -> str:
    """What the whole ladder brings on each machine, place by place."""
    parts = []
    for last, gains in whole_ladders(found):
        told = [f"× {ratio_text(gain)} on {machine}" for machine, gain in gains.items()]
        parts.append(f"{last.size}, context {last.context:,.0f}: {formatting.listing(told)}")
    return f"Last rung over first: {'; '.join(parts)}." if parts else ""
