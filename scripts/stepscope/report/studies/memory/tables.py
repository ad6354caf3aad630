"""The memory study's tables across cells: how large each peak is and what is alive then, what another precision
changes, how far the closed form is off, and which contexts fit."""

from collections.abc import Iterable
from dataclasses import replace

from stepscope.report.data.memory import (
    NAMED_FROM,
    REFERENCE,
    Limit,
    Memory,
    PeakChange,
    limits,
    part,
    peak_apart,
    peak_changes,
    prediction_causes,
    prediction_error,
    title,
)
from stepscope.report.data.unprofiled import FREE, mode
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.order import label, ordered, precision_rank
from stepscope.report.kit.sizes import (
    Unit,
    bare_percent,
    bare_percent_change,
    change,
    changes,
    size,
    size_cell,
    unit_of,
)

_FAR = 0.05  # a wrong prediction from which on its causes are named
_TIME_NOTE = (
    "Mean ± standard deviation and tokens/s: the timing study's free steps at the same point, which nothing records; "
    "the rate divides by their median."
)
_PRECISION_NOTE = (
    "Negative: saved. The categories are named where both peaks lie in the same place: elsewhere other things are "
    f"alive. Named are changes of {100 * NAMED_FROM:.1f} % of the peak in {REFERENCE} or more. What the allocator adds "
    f"by rounding is in none of them. Peak lies in: first in {REFERENCE}, where they differ."
)
_PREDICTED_NOTE = (
    "Measured: what tensors asked for, before the allocator rounds each block up. Difference: (predicted − measured) / "
    "measured, of this and of what the allocator counts; for a cell that ran out of memory there is none. Every tensor "
    "that is predicted to be alive at the peak is in memory_predicted.csv."
)
_LIMITS_NOTE = (
    "The prediction counts what tensors ask for; the allocator's rounding and unused parts come on top, so that a "
    "context just below it can fail too. Not reached: the grid has no context that long."
)


def leading(memory: Memory, but: tuple[str, ...] = (), marked: bool = True) -> list[Column]:
    """The columns that name a cell, with what varies among all cells; without those in `but`.

    marked: whether the first has the cell's marks; OOM stands at the number that was reached.
    """
    extra = [name for name in ("batch", "options", "repeat", "hardware") if memory.varies(name)]
    names = [name for name in ("size", "mode", "precision", "context", *extra) if name not in but]
    own = {
        "size": lambda row: TableCell(str(row["size"] or "–"), badges=_marks(row) if marked else ()),
        "mode": lambda row: label(mode(row)),
    }
    return [replace(column, value=own.get(column.label, column.value)) for column in table.point(*names)]


def _marks(row: dict) -> tuple[str, ...]:
    return ("unsupported",) * (row["status"] == "unsupported") + table.marks(row)


def ran_out(row: dict) -> tuple[str, ...]:
    """The badge of what was reached until memory ran out."""
    return ("oom",) * (row["status"] == "oom")


def place(memory: Memory, row: dict) -> TableCell:
    """The phase in which the peak lies, and below it the part of the model."""
    found = memory.summary(row)
    if not found:
        return table.NOTHING
    phase = found.get("peak_phase")
    text = f"{phase or 'set-up'}, then OOM" if row["status"] == "oom" else str(phase or "between steps")
    return TableCell(text, part(found.get("peak_module")))


def peaks_table(memory: Memory) -> Table | None:
    """A row a cell: peak, time and rate of the same point, baselines, and where the peak lies."""
    unit = unit_of([memory.peak(row) for row in memory.all])
    peak, timing, once = f"peak ({unit.name})", "timing study", f"allocated once … ({unit.name})"
    columns = [
        *leading(memory),
        Column("allocated", group=peak, value=lambda row: unit.cell(memory.peak(row), badges=ran_out(row))),
        Column("reserved", group=peak, value=memory.reserved, show=unit.text, optional=True),
        Column("resident", group=peak, value="peak_resident_bytes", show=unit.text, optional=True),
        Column("peak lies in", number=False, value=lambda row: place(memory, row)),
        Column("mean", "ms", timing, value=lambda row: _mean(memory.timed(row), mode(row))),
        Column("tokens/s", group=timing, value=lambda row: _rate(memory.timed(row), mode(row))),
        Column("model made", group=once, value="baseline_model_bytes", show=unit.text, optional=True),
        Column("first step done", group=once, value="baseline_first_step_bytes", show=unit.text, optional=True),
    ]
    caption = "Peak memory of each cell, and what it takes and yields when nothing is recorded."
    notes = [_peak_note(memory), _time_note(memory), *_reasons(memory)]
    return table.build("memory-peaks", caption, columns, memory.all, notes, grouped=True)


def _mean(found: dict, own: str) -> TableCell:
    """Mean ± standard deviation of the timing study's free steps at the same point, or why there is none."""
    name = FREE.get(own, own)
    mean, status = found.get(f"{name}_mean_ms"), found.get(f"{name}_status")
    if not formatting.known(mean):
        return table.number(mean, badges=(status,) if status in ("oom", "unsupported", "failed") else ())
    badges = table.unsure(found, f"{name}_")
    return TableCell(formatting.mean_and_std(mean, found.get(f"{name}_std_ms")), sort=float(mean), badges=badges)


def _rate(found: dict, own: str) -> TableCell:
    """Tokens/s of the same steps; a dash where there is no mean."""
    rate = found.get(f"{own}_tokens_per_s") if formatting.known(_mean(found, own).sort) else None
    return table.number(rate, lambda value: formatting.significant(value, 4))


def _peak_note(memory: Memory) -> str:
    counted = [formatting.known(row.get("peak_allocated_bytes")) for row in memory.all]
    finished = [row["status"] == "ok" for row in memory.all]
    notes = {
        "Allocated: the largest value of the allocator's counter, blocks as it rounds them.": any(counted),
        "Reserved: what the allocator holds of the device, unused parts too.": any(map(memory.reserved, memory.all)),
        "On a CPU, which has no such counter, allocated is the largest sum of recorded allocations.": any(
            ok and not has_counter for ok, has_counter in zip(finished, counted, strict=True)
        ),
        "Resident: what the process held of the machine's memory, Python and libraries included.": any(
            formatting.known(row.get("peak_resident_bytes")) for row in memory.all
        ),
        "Where memory ran out: what was reached until then.": any(map(ran_out, memory.all)),
    }
    return " ".join(note for note, applies in notes.items() if applies)


def _time_note(memory: Memory) -> str:
    if any(_mean(memory.timed(row), mode(row)).sort is not None for row in memory.all):
        return _TIME_NOTE
    return "The timing study measured none of these points." if memory.recorded else ""


def _reasons(memory: Memory) -> list[str]:
    return table.reasons(
        memory.all,
        lambda row: title(row, memory),
        "{badge}: {names}. {reason}.",
        statuses=("unsupported", "failed", "missing"),
        between="; ",
    )


def categories_table(memory: Memory) -> Table | None:
    """A row a recorded cell, a column a category: bytes and share at the peak; and what is reserved but unused."""
    at_peaks = {row["cell"]: memory.at_peak(row) for row in memory.recorded}
    unit = unit_of([memory.requested(row) for row in memory.recorded])
    group = f"alive at the peak ({unit.name}, % of the sum)"
    columns = [
        *leading(memory),
        Column("peak lies in", number=False, value=lambda row: place(memory, row)),
        Column("sum", value=lambda row: unit.cell(memory.requested(row), badges=ran_out(row))),
        *(
            Column(
                name,
                group=group,
                value=lambda row, name=name: _category(at_peaks[row["cell"]].get(name), memory.requested(row), unit),
            )
            for name in _in_any(at_peaks.values())
        ),
        Column("unused", "% of reserved", value=lambda row: _unused(memory.unused(row)), optional=True),
    ]
    note = (
        "The sum is what tensors asked for, before the allocator rounds; categories with nothing in any cell are left "
        "out."
    )
    if any(map(memory.unused, memory.recorded)):
        note += " Unused: reserved, but not active at the peak, with its share of the reserved."
    caption = "What is alive at the peak of the recorded steps."
    return table.build("memory-categories", caption, columns, memory.recorded, [note], grouped=True)


def _in_any(at_peaks: Iterable[dict[str, float]]) -> list[str]:
    """The categories that hold something in any cell, in their order."""
    names = dict.fromkeys(name for at_peak in at_peaks for name in at_peak)
    return [name for name in names if any(at_peak.get(name) for at_peak in at_peaks)]


def _category(value: float | None, whole: float, unit: Unit) -> TableCell:
    if not value:
        return table.number(value, lambda _: "0")
    share = value / whole
    return unit.cell(value, 3, f"{bare_percent(share)} %" if share >= 0.0005 else "<0.1 %")


def _unused(found: tuple[float, float] | None) -> TableCell:
    """The share of the reserved that was not active at the peak, and below it the bytes."""
    return table.number(found[0] / found[1], bare_percent, size(found[0])) if found else table.NOTHING


def precision_table(memory: Memory) -> Table | None:
    """A row a pair of precisions: both peaks, their difference, what shrank and what grew."""
    found = peak_changes(memory)
    precisions = ordered([each.row["precision"] for each in found], key=precision_rank)
    several = len(precisions) > 1
    but = ("repeat",) if several else ("repeat", "precision")
    columns = [
        *table.about(lambda each: each.row, leading(memory, but, marked=False)),
        Column(REFERENCE, group="peak", value=lambda each: _reached(each.reference, each.peaks[0])),
        Column(
            "this" if several else "".join(precisions),
            group="peak",
            value=lambda each: _reached(each.row, each.peaks[1]),
        ),
        Column("bytes", group="difference", value=lambda each: each.difference, show=change),
        Column("%", group="difference", value=lambda each: each.share, show=bare_percent_change),
        Column("less of", number=False, wrap=True, value=_less),
        Column("more of", number=False, wrap=True, value=lambda each: _changed(each, 1)),
        Column("peak lies in", number=False, value=lambda each: _both_places(memory, each)),
    ]
    caption = f"{formatting.listing(precisions)} against {REFERENCE}: the peak, and what makes the difference."
    return table.build("memory-precision", caption, columns, found, [_PRECISION_NOTE], legend=False, grouped=True)


def _reached(row: dict, peak: float | None) -> TableCell:
    return size_cell(peak, badges=ran_out(row))


def _less(found: PeakChange) -> str:
    """What shrank, or that the peak moved; or which of the two fits, where not both do."""
    if found.share is not None and found.is_moved:
        return "the peak moved"
    if found.share is not None:
        return _changed(found, -1)
    return f"fits only in {found.fitting[0]}" if found.fitting else "fits in neither"


def _changed(found: PeakChange, sign: int) -> str:
    return formatting.listing(changes(found.named(sign))) if found.share is not None else ""


def _both_places(memory: Memory, found: PeakChange) -> str:
    return " → ".join(dict.fromkeys(place(memory, row).text for row in (found.reference, found.row)))


def predicted_table(memory: Memory) -> Table | None:
    """A row a recorded cell: predicted and measured peak, their difference, and where each lies."""
    rows = [row for row in memory.recorded if formatting.known(row.get("predicted_peak_bytes"))]
    columns = [
        *leading(memory),
        Column("predicted", group="peak", value="predicted_peak_bytes", show=size),
        Column("measured", group="peak", value=lambda row: _reached(row, memory.requested(row))),
        Column(
            "as asked for",
            group="difference (%)",
            value=lambda row: prediction_error(memory, row),
            show=bare_percent_change,
        ),
        Column(
            "as allocated",
            group="difference (%)",
            value=lambda row: peak_apart(row, row.get("peak_allocated_bytes")),
            show=bare_percent_change,
        ),
        Column(
            "predicted",
            group="it lies in",
            number=False,
            value=lambda row: TableCell(str(row["predicted_phase"] or "–"), part(row["predicted_part"])),
        ),
        Column("measured", group="it lies in", number=False, value=lambda row: place(memory, row)),
        Column(
            "predicted less measured", number=False, wrap=True, value=lambda row: _causes(memory, row), optional=True
        ),
    ]
    far = f"Categories are named where the difference is more than {100 * _FAR:.0f} %."
    notes = [_PREDICTED_NOTE, far if any(_causes(memory, row) for row in rows) else ""]
    caption = "The peak in closed form beside the peak of the recorded steps."
    return table.build("memory-predicted", caption, columns, rows, notes, grouped=True)


def _causes(memory: Memory, row: dict) -> str:
    """Which categories make the difference, where it is large."""
    is_far = abs(prediction_error(memory, row) or 0) > _FAR
    return formatting.listing(changes(prediction_causes(memory, row))) if is_far else ""


def limits_table(memory: Memory) -> Table | None:
    """The first context that will not fit, predicted, beside the first of the grid that did not."""
    found = [limit for limit in limits(memory) if limit.predicted or limit.failed]
    grid = "in the grid"
    columns = [
        *table.about(lambda limit: limit.rows[0], leading(memory, ("context", "repeat"), marked=False)),
        Column("predicted to be too long from", "tokens", value=_predicted),
        Column("longest that fits", "tokens", grid, value=lambda limit: limit.fitted, show=formatting.count),
        Column("shortest that does not", "tokens", grid, value=lambda limit: limit.failed, show=formatting.count),
        Column("", number=False, value=lambda limit: limit.verdict),
    ]
    caption = "The first context that will not fit, predicted from the memory that was free before the program began."
    return table.build("memory-limits", caption, columns, found, [_LIMITS_NOTE], grouped=True)


def _predicted(limit: Limit) -> TableCell:
    if limit.predicted is None:
        return table.NOTHING
    return TableCell(" to ".join(dict.fromkeys(map(formatting.count, limit.predicted))), sort=float(limit.predicted[0]))
