"""What the snapshot of a cell says, in sentences."""

from stepscope.report.data.memory import Memory, is_inference, where
from stepscope.report.kit import formatting
from stepscope.report.kit.sizes import shares, size
from stepscope.report.studies.memory.predicted import difference_text


def facts(memory: Memory, row: dict) -> str:
    """The line that is seen before the cell's part is opened."""
    summary = memory.summary(row)
    parts = [f"peak {size(memory.peak(row))} in {summary.get('peak_phase') or 'no phase'}"]
    if row["status"] == "oom":
        parts = [f"out of memory at {size(memory.peak(row))}"]
    parts += [f"reserved {size(reserved)}"] if (reserved := memory.reserved(row)) else []
    told = difference_text(memory, row)
    return "; ".join([*parts, told] if told else parts)


def peak_sentence(memory: Memory, row: dict) -> str:
    """In which phase and part the peak lies, and the share of each main category."""
    summary = memory.summary(row)
    largest = shares(memory.at_peak(row), summary["peak_bytes"])
    held = f": {largest}" if largest else ""
    if row["status"] == "oom":
        text = out_of_memory(memory, row)
        return f"{text} The most that tensors held until then was {_asked_for(memory, row)}{held}."
    place = where(summary.get("peak_phase"), summary.get("peak_module"))
    return f"The peak, {_asked_for(memory, row)}, lies in {place}{held}."


def _asked_for(memory: Memory, row: dict) -> str:
    """`8.07 GiB asked for (8.08 GiB allocated)`: the snapshot's peak, beside the counter's where there is one."""
    asked, allocated = size(memory.requested(row)), row.get("peak_allocated_bytes")
    return f"{asked} asked for ({size(allocated)} allocated)" if formatting.known(allocated) else asked


def out_of_memory(memory: Memory, row: dict) -> str:
    """Where memory ran out, for how much more, and by which line."""
    summary = memory.summary(row)
    when = {"warm-up": "in the warm-up, ", "measured steps": "in the recorded steps, "}.get(str(row["recorded"]), "")
    place = where(summary.get("oom_phase"), summary.get("oom_module"))
    text = f"Memory ran out {when}in {place}" if summary.get("oom_phase") else f"Memory ran out {when}".rstrip(", ")
    text += f", at {summary['oom_frame']}" if summary.get("oom_frame") else ""
    wanted, free = summary.get("oom_requested_bytes"), summary.get("oom_free_bytes")
    if formatting.known(wanted):
        text += f": {size(wanted)} more were asked for"
        text += f" when {size(free)} of the device were free" if formatting.known(free) else ""
    return f"{text}."


def course_sentence(memory: Memory, row: dict) -> str:
    """What is active at the start of the last recorded step and at the end of each phase of it."""
    rows = [each for each in memory.rows("phases", row) if each["phase"]]
    steps = [each["step"] for each in rows if formatting.known(each["step"])]
    own = [each for each in rows if each["step"] == max(steps)] if steps else []
    if not own or row["status"] != "ok":
        return ""
    ends = [f"{size(each['end_bytes'])} after {_short(each['phase'])}" for each in own]
    return f"The step begins with {size(own[0]['start_bytes'])} and holds {formatting.listing(ends)}."


def _short(phase: str) -> str:
    return {"optimizer": "the optimizer"}.get(phase, str(phase))


def churn_sentence(memory: Memory, row: dict) -> str:
    """How much is allocated in a recorded step, over the peak; and what an allocator reserved but did not use then."""
    summary = memory.summary(row)
    total, steps, peak = (summary.get("allocated_bytes"), row.get("steps") or 1, summary["peak_bytes"])
    parts = []
    if formatting.known(total) and peak and row["status"] == "ok":
        each = total / steps
        name = "of inference" if is_inference(row) else ""
        parts.append(
            f"A step {name} allocates {size(each)}, {formatting.significant(each / peak, 2)} times its peak, in "
            f"{formatting.count(summary['allocations'] / steps)} allocations.".replace("  ", " ")
        )
    unused, reserved = summary.get("unused_at_peak_bytes"), summary.get("reserved_at_peak_bytes")
    if memory.reserved(row) and formatting.known(unused) and formatting.known(reserved) and reserved:
        parts.append(
            f"At the peak {size(unused)} of the {size(reserved)} reserved at that moment are not active "
            f"({formatting.percent(unused / reserved)})."
        )
    return " ".join(parts)


def cut_sentence(memory: Memory, row: dict) -> str:
    """A warning where the history is not whole; else nothing."""
    summary = memory.summary(row)
    parts = ["The history lacks its beginning, so that an earlier peak may be missing."] if cut(summary) else []
    unknown = summary.get("unknown_share_at_peak")
    if formatting.known(unknown) and unknown >= 0.01:
        parts.append(f"Of the bytes at the peak {formatting.percent(unknown)} are of no known category.")
    return " ".join(parts)


def cut(summary: dict) -> bool:
    """Was the start of the history overwritten?"""
    return str(summary.get("cut")).lower() in ("true", "1", "1.0")
