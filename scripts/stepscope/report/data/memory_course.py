"""How a step's memory rises and falls, phase by phase, and when the optimizer's state appears."""

from dataclasses import dataclass

from stepscope.report.data.memory import Memory
from stepscope.report.kit.formatting import known

_EARLY = 0.1  # of a phase's events, within which its peak is at its start


def last_step(memory: Memory, row: dict) -> list[dict]:
    """The phases of the last recorded step, in their order; none where no phase is known."""
    rows = [each for each in memory.rows("phases", row) if each["phase"] and known(each["end_bytes"])]
    steps = [each["step"] for each in rows if known(each["step"])]
    return [each for each in rows if each["step"] == max(steps)] if steps else []


@dataclass(frozen=True)
class Course:
    """Bytes in tensors over one step. ends: after each phase. peak: the highest, in the phase and part that it names.

    is_early: whether the peak lies among the first events of its phase; None where that is not known.
    """

    row: dict
    start: float
    ends: dict[str, float]
    peak: float
    phase: str
    part: str
    is_early: bool | None

    def change(self, phase: str) -> float:
        """By what a phase raises the memory."""
        names = list(self.ends)
        before = names.index(phase) - 1
        return self.ends[phase] - (self.ends[names[before]] if before >= 0 else self.start)


def course(memory: Memory, row: dict) -> Course | None:
    """The course of a cell's last recorded step; None unless it finished and its phases are known."""
    own, summary = last_step(memory, row), memory.summary(row)
    phase = str(summary.get("peak_phase") or "")
    if not own or row["status"] != "ok" or not known(summary.get("peak_bytes")):
        return None
    ends = {str(each["phase"]): each["end_bytes"] for each in own}
    there = next((each for each in own if each["phase"] == phase), {})
    return Course(
        row, own[0]["start_bytes"], ends, summary["peak_bytes"], phase, str(summary.get("peak_module") or ""),
        _is_early(there),
    )  # fmt: skip


def _is_early(phase: dict) -> bool | None:
    first, last, peak = (phase.get(name) for name in ("start_event", "end_event", "peak_event"))
    if not (known(first) and known(last) and known(peak)) or last <= first:
        return None
    return (peak - first) / (last - first) <= _EARLY


@dataclass(frozen=True)
class FirstStep:
    """Bytes in tensors before and after a cell's first step, and what the optimizer's state is predicted to take."""

    row: dict
    before: float
    after: float
    predicted: float

    @property
    def added(self) -> float:
        return self.after - self.before


def first_step(memory: Memory, row: dict) -> FirstStep | None:
    """What the first step left; None where the allocator was not asked (CPU) or no optimizer ran."""
    before, after = row.get("baseline_model_bytes"), row.get("baseline_first_step_bytes")
    predicted = memory.account(row, "optimizer state").get("predicted_bytes")
    if not (known(before) and known(after) and known(predicted)) or not predicted:
        return None
    return FirstStep(row, before, after, predicted)


@dataclass(frozen=True)
class SecondStepLost:
    """A cell whose first step fits and a later one does not. first: the first one's peak; reached: the most, bytes."""

    row: dict
    first: float
    reached: float


def second_step_lost(memory: Memory, row: dict) -> SecondStepLost | None:
    """None unless the cell ran out of memory after its first step."""
    steps = [each for each in memory.rows("phases", row) if each["phase"] and known(each["step"])]
    if row["status"] != "oom" or not steps:
        return None
    first = [each["peak_bytes"] for each in steps if each["step"] == 0]
    later = [each["peak_bytes"] for each in steps if each["step"] > 0]
    return SecondStepLost(row, max(first), max(later)) if first and later else None
