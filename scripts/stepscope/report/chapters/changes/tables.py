"""The chapter's tables: the rungs of a ladder with what was predicted and what was measured; and its figures."""

from stepscope.report.chapters.changes.climb import place
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.ladder import Ladder, ladders, rate, reached, recomputed, time
from stepscope.report.data.ladder_predicted import predicted
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Picture, Table, TableCell
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.studies.ladder import captions
from stepscope.report.studies.page_one.tables import time_cell


def rungs_table(machine: Machine, one: Ladder) -> Table | None:
    """A row a rung, then what was tried beside them: the whole model compiled, and the best k of checkpointing."""
    beside = [*one.wholes, *(group.best for group in recomputed([one]) if group.best)]
    rows = [*one.rungs[: MOST_ROWS - min(len(beside), 4)], *beside][:MOST_ROWS]
    speeds = [one.over_before.get(row["cell"]) for row in rows]
    columns = [
        Column("rung", number=False, value=lambda row: TableCell(str(row["name"]), badges=table.lost(row))),
        Column("step", "ms", value=time_cell),
        Column("predicted", group="times as fast", value=lambda row: _predicted(machine, one, row), optional=True),
        Column("measured", group="times as fast", value=lambda row: _measured(one, row), optional=True),
        Column("of the measured peak", "%", value=lambda row: _share(machine, row), optional=True),
        Column("peak memory", "GiB", value=lambda row: table.number(reached(row), formatting.gib), optional=True),
        Column("compiling", "s", value="compile_seconds", optional=True),
    ]
    caption = (
        f"One change at a time: {place(one)}, batch {one.batch:,.0f}, on {one.hardware}. Each rung keeps the changes "
        "before it but one that it replaces. Times as fast as the rung before, or as the one named; predicted by "
        "closed forms and by the profiled step of the same place."
    )
    name = f"chapter-changes-{one.size}-{one.context:.0f}"
    notes = [table.verdict_note(speeds)]
    if sum(formatting.known(row.get("compile_seconds")) for row in rows) > 1 and one.first_compiled:
        first = one.first_compiled["name"]
        notes.append(
            f"Compiling: what ran after {first} may have found kernels in the compiler's cache, and took less."
        )
    return table.build(name, caption, columns, rows, notes, meanings=table.PLAIN_MEANINGS)


def _predicted(machine: Machine, one: Ladder, row: dict) -> float | None:
    found = predicted(machine, one, row)
    return found.gain if found else None


def _measured(one: Ladder, row: dict) -> TableCell:
    found, other = one.over_before.get(row["cell"]), one.at(row.get("compared_with"))
    if found is None or other is None:
        return table.NOTHING
    of = "f+b" if row.get("gain_of") == "forward+backward" else ""
    named = f"over {other['name']}" if row not in one.rungs or one.is_passed_over(row) else ""
    return table.times_as_fast(found, ", ".join(filter(None, [of, named])))


def _share(machine: Machine, row: dict) -> float | None:
    """Of a whole step, per cent."""
    if not time(row, "step"):
        return None
    reached, most = rate(row, "tflops"), matmul_ceiling(machine.tables["ceilings"], row["hardware"], row["precision"])
    return 100 * reached / most if reached is not None and most else None


def pictures(machine: Machine) -> tuple[Picture | None, Picture | None]:
    """(the steps rung by rung, checkpointing), of those that there are; they draw the ladders of all machines."""
    made = captions.pictures(ladders(machine.tables))
    return made.get("ladder_steps"), made.get("ladder_checkpoint")
