"""One package a study; its module `section` is found by the study's name.

It offers `context(tables) -> dict`, what report/sections/<study>.md.j2 is filled with,
and `findings(tables) -> list[Finding]`, sentences for the summary. It may offer `applies(tables) -> bool`: whether the
report has the section at all, its heading and methods included.
"""

from importlib import import_module
from types import ModuleType


def section_of(study: str) -> ModuleType:
    """The section module of a study."""
    return import_module(f"stepscope.report.studies.{study}.section")
