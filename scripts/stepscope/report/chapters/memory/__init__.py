"""The chapter on memory."""

from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import Chapter


def chapter(machine: Machine) -> Chapter | None:
    return None
