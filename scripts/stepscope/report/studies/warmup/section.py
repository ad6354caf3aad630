"""The warm-up study's part of the report."""

from stepscope.report.data.warmup import Warmups
from stepscope.report.kit.blocks import Table
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding, texts
from stepscope.report.studies.warmup import findings as warmup_findings
from stepscope.report.studies.warmup.captions import pictures
from stepscope.report.studies.warmup.tables import means_table, rates_table, steps_table, verdicts_table
from stepscope.report.studies.warmup.tables_first import calls_table, excess_table, parts_table
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return warmup_findings.findings(Warmups(tables))


def context(tables: Tables) -> dict:
    """What report/sections/warmup.md.j2 is filled with."""
    warmups = Warmups(tables)
    return {
        "opening": texts(warmup_findings.opening(warmups)),
        "pictures": pictures(warmups),
        "verdicts": _each(warmups, verdicts_table),
        "means": _each(warmups, means_table),
        "rates": _each(warmups, rates_table),
        "steps": _each(warmups, steps_table),
        "first": _each(warmups, excess_table),
        "parts": [*_each(warmups, parts_table), *_each(warmups, calls_table)],
        "commands_of_cells": commands_table(warmups.cells, "warmup"),
    }


def _each(warmups: Warmups, make) -> list[Table]:
    """`make(warmups, setting)` of every setting, where there is something to show."""
    return [table for setting in warmups.settings if (table := make(warmups, setting))]
