"""The memory study's tables of peaks: how large each is, beside the time; and what is alive then."""

from stepscope.report.data.memory import Memory, is_inference, lead, leading, out_of_memory, part, title
from stepscope.report.data.unprofiled import FREE, mode
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table, badge
from stepscope.report.kit.sizes import Unit, size, unit_of
from stepscope.report.kit.table import badge_legend, number

_COUNTED = ("peak_allocated_bytes", "peak_reserved_bytes")
_BASELINES = {"model": "model made", "first_step": "first step done"}


def any_known(rows: list[dict], name: str) -> bool:
    """Is there a number that is not zero in the column?"""
    return any(formatting.known(row.get(name)) and row[name] for row in rows)


def peaks_table(memory: Memory) -> Table | None:
    """A row a cell: peak, time and rate of the same point, baselines, and where the peak lies."""
    if not memory.all:
        return None
    rows, unit = memory.all, unit_of([memory.peak(row) for row in memory.all])
    reserved, resident = (any_known(rows, f"peak_{name}_bytes") for name in ("reserved", "resident"))
    baselines = [name for name in _BASELINES if any_known(rows, f"baseline_{name}_bytes")]
    group = f"peak ({unit.name})"
    columns = [*leading(memory), Column("allocated", group=group)]
    columns += [Column(name, group=group) for name, there in (("reserved", reserved), ("resident", resident)) if there]
    columns += [Column("peak lies in", number=False), Column("mean", "ms", group="timing study")]
    columns += [Column("tokens/s", group="timing study")]
    columns += [Column(_BASELINES[name], group=f"allocated once … ({unit.name})") for name in baselines]
    lines = []
    for row in rows:
        line = [*lead(row, memory), unit.cell(memory.peak(row), badges=out_of_memory(row))]
        line += [unit.cell(row["peak_reserved_bytes"] or None)] if reserved else []
        line += [unit.cell(row["peak_resident_bytes"])] if resident else []
        line += [place(memory, row), *_timed(memory, row)]
        lines.append(line + [unit.cell(row.get(f"baseline_{name}_bytes")) for name in baselines])
    notes = [_peak_note(rows, reserved, resident), _time_note(memory)]
    caption = "Peak memory of each cell, and what it takes and yields when nothing is recorded."
    return Table(
        "memory-peaks",
        caption,
        columns,
        lines,
        [*filter(None, notes), *reasons(memory), *badge_legend(lines)],
        grouped=True,
    )


def place(memory: Memory, row: dict) -> Cell:
    """The phase in which the peak lies, and below it the part of the model."""
    found = memory.summary(row)
    if not found:
        return Cell("–")
    if row["status"] == "oom":
        return Cell(f"{found.get('peak_phase') or 'set-up'}, then OOM", part(found.get("peak_module")))
    return Cell(str(found.get("peak_phase") or "between steps"), part(found.get("peak_module")))


def _timed(memory: Memory, row: dict) -> list[Cell]:
    """[mean ± standard deviation in ms, tokens/s] of the timing study's free steps at the same point."""
    found, own = memory.timed(row), mode(row)
    name = FREE.get(own, own)
    mean = found.get(f"{name}_mean_ms")
    if not formatting.known(mean):
        status = found.get(f"{name}_status")
        lost = (status,) if status in ("oom", "unsupported", "failed") else ()
        return [Cell("" if lost else "–", badges=lost), Cell("–")]
    badges = ("noisy",) if found.get(f"{name}_noisy") else ()
    text = formatting.mean_and_std(mean, found.get(f"{name}_std_ms"))
    rate = number(found.get(f"{own}_tokens_per_s"), lambda value: formatting.significant(value, 4))
    return [Cell(text, sort=float(mean), badges=badges), rate]


def _peak_note(rows: list[dict], reserved: bool, resident: bool) -> str:
    notes = []
    if any_known(rows, "peak_allocated_bytes"):
        notes.append("Allocated: the largest value of the allocator's counter, blocks as it rounds them.")
    if reserved:
        notes.append("Reserved: what the allocator holds of the device, unused parts too.")
    if any(row["status"] == "ok" and not formatting.known(row.get("peak_allocated_bytes")) for row in rows):
        notes.append("On a CPU, which has no such counter, allocated is the largest sum of recorded allocations.")
    if resident:
        notes.append("Resident: what the process held of the machine's memory, Python and libraries included.")
    if any(row["status"] == "oom" for row in rows):
        notes.append("Where memory ran out: what was reached until then.")
    return " ".join(notes)


def _time_note(memory: Memory) -> str:
    times = [cells for row in memory.all if (cells := _timed(memory, row))[0].text not in ("", "–")]
    if not times:
        return "The timing study measured none of these points." if memory.recorded else ""
    return (
        "Mean ± standard deviation and tokens/s: the timing study's free steps at the same point, which nothing "
        "records; the rate divides by their median."
    )


def reasons(memory: Memory) -> list[str]:
    """Why cells have no result, each reason once."""
    found: dict[tuple[str, str], list[dict]] = {}
    for row in memory.all:
        if row["status"] not in ("ok", "oom"):
            found.setdefault((str(row["status"]), str(row["reason"] or "no reason was recorded")), []).append(row)
    notes = []
    for (status, reason), rows in sorted(found.items(), key=lambda entry: entry[0]):
        names = formatting.listing([title(row, memory) for row in rows], 4, "; ")
        notes.append(f"{badge(status)[0]}: {names}. {reason.rstrip('.')}.")
    return notes[:8]


def categories_table(memory: Memory) -> Table | None:
    """A row a recorded cell, a column a category: bytes and share at the peak; and what is reserved but unused."""
    rows = memory.recorded
    if not rows:
        return None
    at_peaks = [memory.at_peak(row) for row in rows]
    names = _in_any(at_peaks)
    unit = unit_of([memory.requested(row) for row in rows])
    unused = any_known([memory.summary(row) for row in rows if memory.reserved(row)], "unused_at_peak_bytes")
    columns = [*leading(memory), Column("peak lies in", number=False), Column("sum")]
    columns += [Column(name, group=f"alive at the peak ({unit.name}, % of the sum)") for name in names]
    columns += [Column("unused", "% of reserved")] if unused else []
    lines = []
    for row, at_peak in zip(rows, at_peaks, strict=True):
        whole = memory.requested(row)
        line = [*lead(row, memory), place(memory, row), unit.cell(whole, badges=out_of_memory(row))]
        line += [_category(at_peak.get(name), whole, unit) for name in names]
        lines.append(line + ([_unused(memory, row)] if unused else []))
    caption = "What is alive at the peak of the recorded steps."
    notes = [
        "The sum is what tensors asked for, before the allocator rounds; categories with nothing in any cell are left "
        "out." + (" Unused: reserved, but not active at the peak, with its share of the reserved." if unused else "")
    ]
    return Table("memory-categories", caption, columns, lines, [*notes, *badge_legend(lines)], grouped=True)


def _in_any(at_peaks: list[dict[str, float]]) -> list[str]:
    """The categories that hold something in any cell, in their order."""
    names = dict.fromkeys(name for at_peak in at_peaks for name in at_peak)
    return [name for name in names if any(at_peak.get(name) for at_peak in at_peaks)]


def _category(value: float | None, whole: float, unit: Unit) -> Cell:
    if not value:
        return Cell("–" if value is None else "0", sort=None if value is None else 0.0)
    share = value / whole
    return unit.cell(value, 3, f"{formatting.fixed(100 * share, 1)} %" if share >= 0.0005 else "<0.1 %")


def _unused(memory: Memory, row: dict) -> Cell:
    """The share of the reserved that was not active at the peak, and below it the bytes; a dash without one."""
    summary = memory.summary(row) if memory.reserved(row) else {}
    value, reserved = summary.get("unused_at_peak_bytes"), summary.get("reserved_at_peak_bytes")
    if not (formatting.known(value) and formatting.known(reserved) and reserved):
        return Cell("–")
    return Cell(formatting.fixed(100 * value / reserved, 1), size(value), sort=value / reserved)


def largest_ok(memory: Memory) -> list[dict]:
    """The cells that are shown openly: the largest peak of inference, and of what runs backward."""
    shown = []
    for kind in (True, False):
        own = [row for row in memory.measured if is_inference(row) is kind]
        shown += [max(own, key=lambda row: memory.peak(row) or 0)] if own else []
    return shown
