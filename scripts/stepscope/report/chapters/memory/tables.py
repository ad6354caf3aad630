"""The chapter's tables: the closed form beside the peak by category, and the peaks of inference and of a step."""

from stepscope.report.chapters.memory.cells import Recorded, place
from stepscope.report.chapters.memory.parts import predicted_parts
from stepscope.report.data.memory import apart
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.formatting import count
from stepscope.report.kit.order import ordered, precision_rank
from stepscope.report.kit.sizes import Unit, bare_percent_change, unit_of

_MODES = ("inference", "step")


def parts_table(own: Recorded) -> Table | None:
    """Predicted and measured bytes of each category at the peak of the chapter's step."""
    held, predicted = own.memory.at_peak(own.row), predicted_parts(own)
    rows = [{"name": name, "measured": size, "predicted": predicted.get(name, 0.0)} for name, size in held.items()]
    rows = [row for row in rows if row["measured"] or row["predicted"]]
    whole = own.memory.requested(own.row)
    rows.append({"name": "all", "measured": whole, "predicted": own.row.get("predicted_peak_bytes")})
    unit = unit_of([whole])
    columns = [
        Column("alive at the peak", number=False, value="name"),
        Column("predicted", unit.name, value="predicted", show=unit.text),
        Column("measured", unit.name, value="measured", show=unit.text),
        Column("gap", "%", value=lambda row: apart(row["predicted"], row["measured"]), show=bare_percent_change),
    ]
    if not predicted:
        columns = [columns[0], columns[2]]
    what = "The closed form beside the peak" if predicted else "What is alive at the peak"
    caption = (
        f"{what}: {place(own.row)} in {own.row['precision']}, batch {own.row['batch']:,.0f}; {own.hardware}. Bytes "
        "that tensors asked for."
    )
    return table.build("chapter-memory-parts", caption, columns, rows[:MOST_ROWS])


def peaks_table(own: Recorded) -> Table | None:
    """The peak of inference and of a step at each size and context, a column a precision."""
    points: dict[tuple, dict[tuple, dict]] = {}
    for row in sorted(own.rows, key=lambda row: (row.get("parameters") or 0, row["context"])):
        if row["batch"] == own.row["batch"] and row["status"] in ("ok", "oom"):
            points.setdefault((row["size"], row["context"]), {})[mode(row), row["precision"]] = row
    precisions = ordered([row["precision"] for row in own.rows], key=precision_rank)
    unit = unit_of([own.memory.requested(row) for row in own.rows])

    def column(kind: str, precision: str) -> Column:
        def cell(point: tuple) -> TableCell:
            row = points[point].get((kind, precision))
            if row is None:
                return table.NOTHING
            if row["status"] == "oom":
                return TableCell(badges=("oom",), below=_expected(row, unit))
            return table.number(own.memory.requested(row), unit.text)

        return Column(precision, unit.name, group=kind, value=cell, optional=True)

    columns = [
        Column("size", number=False, value=lambda point: str(point[0])),
        Column("context", "tokens", value=lambda point: point[1], show=count),
        *(column(kind, precision) for kind in _MODES for precision in precisions),
    ]
    caption = (
        "Peaks of inference and of a step, in bytes that tensors asked for. "
        f"Batch {own.row['batch']:,.0f}; {own.hardware}."
    )
    more = len(points) - MOST_ROWS
    notes = [f"{more:,} more stand in the data."] if more > 0 else []
    meanings = {"oom": "out of memory; below it the predicted peak"}
    return table.build("chapter-memory-peaks", caption, columns, list(points)[-MOST_ROWS:], notes, meanings=meanings)


def _expected(row: dict, unit: Unit) -> str:
    size = row.get("predicted_peak_bytes")
    return unit.text(size) if formatting.known(size) else ""
