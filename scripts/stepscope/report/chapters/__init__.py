"""The chapters, a module each: `chapter(machine) -> Chapter | None`, None where nothing was measured for it."""

from importlib import import_module

from stepscope.config.studies import CHAPTERS
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import Chapter, fitted


def chapters(machine: Machine) -> list[Chapter]:
    """Those that have something to say, within their words."""
    found = [import_module(f"stepscope.report.chapters.{name}").chapter(machine) for name in CHAPTERS]
    return [fitted(each) for each in found if each]
