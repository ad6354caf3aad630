"""Published figures beside ours: what the GPUs explain, what cannot be compared or be true, attention, memory."""

from stepscope.report.chapters.published import attention, doubts, memory, times
from stepscope.report.data.published import Published
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.published.findings import overall


def chapter(machine: Machine) -> Chapter | None:
    """None where no published figure is of a cell that the machine measured."""
    published = Published(machine.tables)
    found = published.beside(machine.hardware)
    opening = overall(found, machine.hardware)
    if opening is None:
        return None
    parts = (
        Part(
            "Do published times agree with ours, given the GPUs?",
            tuple(times.by_gpu(found)),
            _shown(times.by_gpu_table(found)),
        ),
        Part("Why can the others not be compared?", tuple(doubts.not_comparable(found))),
        Part(
            "Which published figures, of cells measured here or not, cannot be true?",
            _told(*doubts.untrue(published), doubts.slips(published)),
        ),
        Part(
            "How far is attention from the best that is published?",
            tuple(attention.beside_references(found)),
            _shown(attention.references_table(found)),
        ),
        memory.part(found),
    )
    return Chapter("published", "Against published figures", (opening,), parts, ("published",))


def _told(*found: Finding | None) -> tuple[Finding, ...]:
    return tuple(each for each in found if each)


def _shown(*blocks) -> tuple:
    return tuple(each for each in blocks if each)
