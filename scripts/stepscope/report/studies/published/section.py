"""The part of the report that sets published figures beside ours. It has no cells of its own."""

from stepscope.report.data.machines import labels
from stepscope.report.data.published import MEMORY_TOLERANCE, ROUNDED, TOLERANCE, Published
from stepscope.report.kit.finding import Finding
from stepscope.report.kit.formatting import percent
from stepscope.report.studies.published import tables as published_tables
from stepscope.report.studies.published.findings import overall
from stepscope.tables.reader import Tables


def applies(found: Tables) -> bool:
    """Without published figures the report does without the section."""
    return not found["published"].empty


def findings(found: Tables) -> list[Finding]:
    """What the summary says: a sentence a machine."""
    published = Published(found)
    each = (overall(published.beside(hardware), hardware) for hardware in labels(found))
    return [finding for finding in each if finding]


def context(found: Tables) -> dict:
    """What report/sections/published.md.j2 is filled with."""
    published = Published(found)
    beside = {hardware: published.beside(hardware) for hardware in labels(found)}
    return {
        "within": {"rates": percent(TOLERANCE), "memory": percent(MEMORY_TOLERANCE), "sum": percent(ROUNDED, 1)},
        "sources": published_tables.sources_table(published, beside),
        "compared": [table for each, own in beside.items() if (table := published_tables.compared_table(each, own))],
        "not_comparable": [
            table for each, own in beside.items() if (table := published_tables.reasons_table(each, own))
        ],
        "untrue": published_tables.untrue_table(published),
        "slips": published_tables.slips_table(published),
    }
