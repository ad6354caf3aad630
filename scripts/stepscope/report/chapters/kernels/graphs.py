"""What CUDA graphs brought, and how far the ladder's host is to thank for it."""

from stepscope.report.chapters.kernels.words import gains, where, work_of
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.studies.page_one.changes import Change, changes

_QUESTION = "what did CUDA graphs do"
_SLOW = 1.25  # times as long for the same step, from which on a host is called slow


def graph_findings(machine: Machine) -> tuple[Finding, ...]:
    """The gain at the smallest and at the largest place of the ladders, and whether the ladder's host was slow."""
    made = sorted(changes(machine.ladders, "compile", lambda value: value == "graphs"), key=work_of)
    if not made:
        return ()
    ends = {"first": made[0], "last": made[-1]} if len(made) > 1 else {"first": made[0]}
    numbers, once = gains(ends)
    told = formatting.listing([f"{{{name}}} ({where(each)})" for name, each in ends.items()])
    answer = f"They replay a compiled step with one launch{once}: {told}."
    found = Finding(_QUESTION, answer, numbers, machine.hardware)
    return tuple(each for each in (found, _slow_host(machine, made[0])) if each)


def _slow_host(machine: Machine, made: Change) -> Finding | None:
    """That a step took longer on that ladder than in the timing study: a slow host makes launches dearer."""
    both = {cell: each.speed.times for cell, each in made.ladder.again.items() if each.phase == "step"}
    cell = max(both, key=lambda each: both[each][1] / both[each][0], default=None)
    if cell is None or both[cell][1] < _SLOW * both[cell][0]:
        return None
    timing, ladder = both[cell]
    cells = (cell, made.ladder.again[cell].cell)
    numbers = {"ladder": Number(ladder, cells), "timing": Number(timing, cells)}
    precision = (made.ladder.at(cell) or {}).get("precision", "")
    answer = (
        f"The ladder's host was slow: its {precision} step ({made.place}) took {{ladder}} ms, {{timing}} in timing."
    )
    return Finding(_QUESTION, answer, numbers, machine.hardware)
