"""What CUDA graphs brought, and how far the ladder's host is to thank for it."""

from stepscope.report.chapters.kernels.words import gain, where, work_of
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import count, known, times
from stepscope.report.studies.page_one.changes import Change, changes

_QUESTION = "what did CUDA graphs do"
_SLOW = 1.25  # times as long for the same step, from which on a host is called slow


def graph_findings(machine: Machine) -> tuple[Finding, ...]:
    """Launches and gain at the smallest place of the ladders, whether its host was slow; the gain at the largest."""
    made = sorted(changes(machine.ladders, "compile", lambda value: value == "graphs"), key=work_of)
    if not made:
        return ()
    found = [_launches(machine, made[0]), _slow_host(machine, made[0])]
    if len(made) > 1:
        answer = f"In {where(made[-1])} they bring {{gain}}."
        found.append(Finding(_QUESTION, answer, {"gain": gain(made[-1])}, machine.hardware))
    return tuple(each for each in found if each)


def _launches(machine: Machine, made: Change) -> Finding:
    """The launches before and after, the gain, and what fewer launches alone would give."""
    numbers = {"gain": gain(made)}
    before, after = (made.ladder.at(cell).get("launches") for cell in made.cells)
    if not known(before) or not known(after):
        return Finding(_QUESTION, f"In {where(made)} they bring {{gain}}.", numbers, machine.hardware)
    numbers |= {"before": Number(before, made.cells, count), "after": Number(after, made.cells, count)}
    word = "cut" if after < before else "do not cut"
    answer = f"They {word} a compiled step's launches from {{before}} to {{after}} ({where(made)}) and bring {{gain}}."
    if made.speed.ratio > before / after > 1:
        numbers["alone"] = Number(before / after, made.cells, times)
        answer += " Fewer launches alone would give {alone}."
    return Finding(_QUESTION, answer, numbers, machine.hardware)


def _slow_host(machine: Machine, made: Change) -> Finding | None:
    """That a step took longer on that ladder than in the timing study, so that another host may be part of a gain."""
    both = {cell: each.speed.times for cell, each in made.ladder.again.items() if each.phase == "step"}
    cell = max(both, key=lambda each: both[each][1] / both[each][0], default=None)
    if cell is None or both[cell][1] < _SLOW * both[cell][0]:
        return None
    timing, ladder = both[cell]
    cells = (cell, made.ladder.again[cell].cell)
    numbers = {"ladder": Number(ladder, cells), "timing": Number(timing, cells)}
    precision = (made.ladder.at(cell) or {}).get("precision", "")
    answer = f"That ladder ran slowly: plain {precision} took {{ladder}} ms, in the timing study {{timing}}."
    return Finding(_QUESTION, answer, numbers, machine.hardware)
