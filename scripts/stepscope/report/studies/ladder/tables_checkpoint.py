"""The ladder study's tables of checkpointing: memory and time for each k, and the rule for the best k."""

from dataclasses import replace

from stepscope.report.data.ladder import Recomputed, every, peak, shared_phase, time, whole_peak
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.sizes import change_cell, size_cell
from stepscope.report.studies.ladder.tables_rungs import losses
from stepscope.tables.ladder_checkpoint import ALIKE

_NOTE = (
    "± %: against no checkpointing. Added over forward: the time that a step takes longer, over that of a forward pass "
    "without checkpointing, where it is sure to be slower. Every block is computed once more, whatever k is: 1 "
    "if nothing else changed."
)
_BOTH_NOTE = (
    " f+b: of forward and backward, as the step without checkpointing has no time; over the cell's own forward pass."
)
_COMPILED_NOTE = "The closed form is of the code as it is written; compiled blocks keep what the compiler chooses."
_PROCESS_NOTE = "Measured is the whole process's memory, with its libraries; the closed form counts tensors alone."
_RULE_NOTE = (
    "b: one version of the residual stream, kept at a group's boundary. a: what a block saves for backward, with "
    "autocast's copies of its weights. A rule below 1 means that each block is a group of its own. Closed form: the k "
    "that keeps least, of those whose peak of a step, gradients and optimizer included, is within "
    f"{formatting.percent(ALIKE)} of the lowest. Found: of those that ran within it, the fastest."
)

_Line = tuple[Recomputed, dict]  # a cell and those that it belongs to


def checkpoint_table(hardware: str, found: list[Recomputed]) -> Table | None:
    """A row for each k, the rung without checkpointing first; None without such cells."""
    lines = [(one, row) for one in found for row in [one.base, *one.rows] if row is not None]
    columns = [
        Column("cells", number=False, wrap=True, value=lambda line: line[0].place),
        Column("k", value=_k_cell),
        Column("measured", group="peak memory", value=_measured),
        Column("± %", group="peak memory", value=lambda line: change_cell(_varied(Recomputed.saved_share, line))),
        Column("predicted", group="peak memory", value=lambda line: size_cell(line[1].get("predicted_peak_bytes"))),
        Column("off by %", group="peak memory", value=lambda line: change_cell(_off(*line))),
        Column("step", "ms", value=_step),
        Column("step", "over none", value=_longer),
        Column("added over forward", value=lambda line: _over_none(line, Recomputed.added_over_forward, _two_decimals)),
    ]
    has_both = any(shared_phase(row, one.base) == "forward_backward" for one in found for row in one.rows)
    notes = [
        _NOTE + _BOTH_NOTE * has_both,
        _COMPILED_NOTE * any(one.is_compiled for one in found),
        _PROCESS_NOTE * any(not one.is_of_tensors and any(map(whole_peak, one.rows)) for one in found),
        *losses([row for _, row in lines]),
    ]
    caption = f"Checkpointing every k blocks, on {hardware}: peak memory, measured and predicted, and time of a step."
    return table.build(f"ladder-checkpoint-{hardware}", caption, columns, lines, notes, grouped=True)


def _k_cell(line: _Line) -> TableCell:
    one, row = line
    k = every(row)
    return TableCell(f"{k}" if k else "none", "best" if row is one.best else "", k)


def _measured(line: _Line) -> TableCell:
    """The peak of a step; where memory ran out, what was reached in any mode until then."""
    _, row = line
    if row["status"] != "oom":
        return size_cell(peak(row))
    reached = row.get("reached_bytes")
    return size_cell(reached if formatting.known(reached) else peak(row), badges=("oom",))


def _varied(value, line: _Line) -> float | None:
    """A number of a cell with checkpointing; none of the rung that it varies."""
    one, row = line
    return value(one, row) if every(row) else None


def _off(one: Recomputed, row: dict) -> float | None:
    """By how much the closed form is off, a share of the measured peak; None where that is of a process."""
    predicted = row.get("predicted_peak_bytes")
    is_comparable = one.is_of_tensors and formatting.known(predicted) and whole_peak(row)
    return predicted / whole_peak(row) - 1 if is_comparable else None


def _step(line: _Line) -> TableCell:
    _, row = line
    value = time(row, "step")
    if value:
        return table.number(value, badges=table.unsure(row, "step_"))
    # That it ran out of memory stands at the peak.
    return table.number(None, badges=() if row["status"] == "oom" else table.lost(row))


def _over_none(line: _Line, value, show) -> TableCell:
    """A number against the rung without checkpointing, and what it is of unless it is of a step."""
    one, row = line
    of = "f+b" if shared_phase(row, one.base) == "forward_backward" else ""
    found = _varied(value, line)
    return table.number(found, show, of)


def _longer(line: _Line) -> TableCell:
    """`× 1.25` over its interval."""
    one, row = line
    cell, speed = _over_none(line, Recomputed.longer, formatting.times), one.speed(row) if every(row) else None
    if speed is None or not speed.has_interval:
        return cell
    interval = formatting.median_beside_interval(one.longer(row), 1 / speed.high, 1 / speed.low)[1]
    return replace(cell, below=" ".join(filter(None, [cell.below, interval])))


def rule_table(hardware: str, found: list[Recomputed]) -> Table | None:
    """What the rule for the best k is made of, and the best that was found."""
    needed = ("boundary_bytes", "block_saved_bytes", "num_layers")
    rows = [
        one.rows[0] | {"of": one} for one in found if all(formatting.known(one.rows[0].get(name)) for name in needed)
    ]
    columns = [
        Column("cells", number=False, wrap=True, value=lambda row: row["of"].place),
        Column("blocks n", value="num_layers", show=formatting.count),
        Column("boundary b", value=lambda row: size_cell(row["boundary_bytes"])),
        Column("saved by a block a", value=lambda row: size_cell(row["block_saved_bytes"])),
        Column("a / b", value=lambda row: row["block_saved_bytes"] / row["boundary_bytes"]),
        Column("√(n b / a)", group="best k", value="predicted_checkpoint", show=_two_decimals),
        Column("√n", group="best k", value=lambda row: row["num_layers"] ** 0.5, show=_two_decimals),
        Column("of closed form", group="best k", value="predicted_best_checkpoint", show=formatting.count),
        Column("found", group="best k", value=lambda row: _found(row["of"])),
    ]
    return table.build(f"ladder-rule-{hardware}", f"The rule for k, on {hardware}.", columns, rows, [_RULE_NOTE])


def _found(one: Recomputed) -> TableCell:
    tried = [str(every(row)) for row in one.rows if row["status"] in ("ok", "oom")]
    below = f"of {formatting.listing(tried, 10)}" if tried else ""
    return TableCell(str(every(one.best)), below, every(one.best)) if one.best else TableCell("–", below)


def _two_decimals(value: float) -> str:
    return formatting.fixed(value, 2)
