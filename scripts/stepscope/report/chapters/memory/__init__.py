"""The chapter on memory: how it rises and falls over a step, what fills it, what does not fit, and what saves it."""

from stepscope.report.chapters.memory.cells import Recorded, recorded
from stepscope.report.chapters.memory.changes import change_findings
from stepscope.report.chapters.memory.course import course_findings, state_findings, takeaway
from stepscope.report.chapters.memory.fitting import fitting_findings, largest_findings
from stepscope.report.chapters.memory.parts import part_findings
from stepscope.report.chapters.memory.saving import saving_findings
from stepscope.report.chapters.memory.tables import parts_table, peaks_table
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.blocks import Picture, Table
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.studies.memory.captions import cell_picture, pictures


def chapter(machine: Machine) -> Chapter | None:
    """None unless the memory of a whole step was recorded."""
    own = recorded(machine)
    if own is None:
        return None
    parts = (
        Part("How does memory rise and fall over a step?", course_findings(own), (_timeline(own),)),
        Part("When does the optimizer's state appear?", state_findings(own)),
        Part("What is alive at the peak?", part_findings(own), _those(_categories(machine, own), parts_table(own))),
        Part("What do inference and mixed precision change?", change_findings(own), _those(peaks_table(own))),
        Part("Which step does not fit, and why?", fitting_findings(machine, own)),
        Part("What are the largest allocations?", largest_findings(own)),
        Part("What does recomputation change?", saving_findings(machine)),
    )
    return Chapter("memory", "What fills the memory", takeaway(own), parts, ("memory",))


def _timeline(own: Recorded) -> Picture:
    return cell_picture(own.memory, own.row, shown=True)


def _categories(machine: Machine, own: Recorded) -> Picture | None:
    return pictures(own.memory, machine.tables).get("memory_peak_categories")


def _those(*shown: Picture | Table | None) -> tuple[Picture | Table, ...]:
    return tuple(each for each in shown if each)
