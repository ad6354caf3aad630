"""What the snapshot of one cell says."""

from collections.abc import Callable

from stepscope.report.data.memory import Memory, is_inference, part, peak_apart
from stepscope.report.data.memory_course import last_step
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.sizes import largest_shares, percent_change, shares, size

_PASSES = {
    "inference": "inference",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the optimizer's update",
}


def facts(memory: Memory, row: dict) -> Finding:
    """The line that is seen before the cell's part is opened."""
    numbers = _numbers(row, size, peak=memory.peak(row), reserved=memory.reserved(row))
    numbers |= _numbers(row, percent_change, error=peak_apart(row, memory.peak(row)))
    peak = f"peak {{peak}} in {memory.summary(row).get('peak_phase') or 'no phase'}"
    words = {
        "peak": "out of memory at {peak}" if _is_lost(row) else peak,
        "reserved": "reserved {reserved}",
        "error": "the closed form is off by {error}",
    }
    return Finding("what is the peak", "; ".join(words[name] for name in numbers), numbers)


def findings_of_cell(memory: Memory, row: dict) -> list[Finding]:
    """Where the peak lies and what fills it, how a step goes, what it allocates, and what is not known of it."""
    summary = memory.summary(row)
    found = [
        _peak(memory, row, summary),
        _course(memory, row),
        _churn(row, summary),
        _unused(memory, row),
        _cut(summary),
        _unknown(row, summary),
    ]
    return [each for each in found if each]


def _numbers(row: dict, show: Callable[[float], str], **values: float | None) -> dict[str, Number]:
    """The cell's values that are known, by name."""
    return {name: Number(value, (row["cell"],), show) for name, value in values.items() if formatting.known(value)}


def _is_lost(row: dict) -> bool:
    return row["status"] == "oom"


def _peak(memory: Memory, row: dict, summary: dict) -> Finding:
    """In which phase and part the peak lies, and the share of each main category."""
    numbers = _numbers(row, size, asked=memory.requested(row), allocated=row.get("peak_allocated_bytes"))
    asked = "{asked} asked for ({allocated} allocated)" if "allocated" in numbers else "{asked}"
    held = ""
    if largest := largest_shares(memory.at_peak(row), summary["peak_bytes"]):
        numbers["shares"] = Number(largest, (row["cell"],), shares)
        held = ": {shares}"
    if _is_lost(row):
        ran_out = _ran_out(row, summary)
        answer = f"{ran_out.answer} The most that tensors held until then was {asked}{held}."
        return Finding(ran_out.question, answer, {**ran_out.numbers, **numbers})
    place = _where(summary.get("peak_phase"), summary.get("peak_module"))
    return Finding("where is the peak", f"The peak, {asked}, lies in {place}{held}.", numbers)


def _ran_out(row: dict, summary: dict) -> Finding:
    """Where memory ran out, for how much more, and by which line."""
    when = {"warm-up": "in the warm-up, ", "measured steps": "in the recorded steps, "}.get(str(row["recorded"]), "")
    place = f"in {_where(summary['oom_phase'], summary.get('oom_module'))}" if summary.get("oom_phase") else ""
    text = f"Memory ran out {when}{place}".rstrip(", ")
    text += f", at {summary['oom_frame']}" if summary.get("oom_frame") else ""
    numbers = _numbers(row, size, wanted=summary.get("oom_requested_bytes"), free=summary.get("oom_free_bytes"))
    if "wanted" in numbers:
        text += ": {wanted} more were asked for"
        text += " when {free} of the device were free" if "free" in numbers else ""
    return Finding("where did memory run out", f"{text}.", numbers)


def _where(phase: object, module: object) -> str:
    """`the backward pass (loss)`: a phase, and the part of the model if one is known."""
    known = _PASSES.get(str(phase or ""), str(phase or "") or "no phase, between two steps")
    return f"{known} ({part(module)})" if module else known


def _course(memory: Memory, row: dict) -> Finding | None:
    """What is active at the start of the last recorded step and at the end of each phase of it."""
    own = last_step(memory, row)
    if not own or row["status"] != "ok":
        return None
    phases = ["the optimizer" if each["phase"] == "optimizer" else str(each["phase"]) for each in own]
    ends = [f"{{end_{place}}} after {phase}" for place, phase in enumerate(phases)]
    values = {f"end_{place}": each["end_bytes"] for place, each in enumerate(own)}
    numbers = _numbers(row, size, start=own[0]["start_bytes"], **values)
    answer = f"The step begins with {{start}} and holds {formatting.listing(ends)}."
    return Finding("how does a step go", answer, numbers)


def _churn(row: dict, summary: dict) -> Finding | None:
    """How much is allocated in a recorded step, over the peak."""
    total, steps, peak = (summary.get("allocated_bytes"), row.get("steps") or 1, summary["peak_bytes"])
    if not (formatting.known(total) and peak and row["status"] == "ok"):
        return None
    each = total / steps
    numbers = {
        **_numbers(row, size, bytes=each),
        **_numbers(row, lambda ratio: formatting.significant(ratio, 2), times=each / peak),
        **_numbers(row, formatting.count, allocations=summary["allocations"] / steps),
    }
    step = "A step of inference" if is_inference(row) else "A step"
    answer = f"{step} allocates {{bytes}}, {{times}} times its peak, in {{allocations}} allocations."
    return Finding("how much does a step allocate", answer, numbers)


def _unused(memory: Memory, row: dict) -> Finding | None:
    """What an allocator reserved but did not use at the peak."""
    if not memory.unused(row):
        return None
    unused, reserved = memory.unused(row)
    numbers = _numbers(row, size, unused=unused, reserved=reserved)
    numbers |= _numbers(row, formatting.percent, share=unused / reserved)
    answer = "At the peak {unused} of the {reserved} reserved at that moment are not active ({share})."
    return Finding("how much does the allocator hold in vain", answer, numbers)


def _cut(summary: dict) -> Finding | None:
    """A warning where the start of the history was overwritten."""
    if str(summary.get("cut")).lower() not in ("true", "1", "1.0"):
        return None
    answer = "The history lacks its beginning, so that an earlier peak may be missing."
    return Finding("what is not known", answer)


def _unknown(row: dict, summary: dict) -> Finding | None:
    """A warning where bytes at the peak are of no known category."""
    unknown = summary.get("unknown_share_at_peak")
    if not (formatting.known(unknown) and unknown >= 0.01):
        return None
    answer = "Of the bytes at the peak {unknown} are of no known category."
    return Finding("what is not known", answer, _numbers(row, formatting.percent, unknown=unknown))
