"""The profile study's part of the report."""

from stepscope.report.tables import Tables


def findings(tables: Tables) -> list[str]:
    """Sentences for the summary."""
    return []


def context(tables: Tables) -> dict:
    """What report/sections/profile.md.j2 is filled with."""
    return {}
