"""The ladder study's part of the report."""

from collections.abc import Iterable

from stepscope.report.data.ladder import by_hardware, ladders, recomputed, time
from stepscope.report.kit.blocks import Table
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.ladder import findings as ladder_findings
from stepscope.report.studies.ladder.captions import pictures
from stepscope.report.studies.ladder.tables_checkpoint import checkpoint_table, rule_table
from stepscope.report.studies.ladder.tables_rungs import agreement_table, compiling_table, gains_table, rungs_table
from stepscope.tables.reader import Tables

MOST_OPEN = 6  # ladders


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return ladder_findings.findings(ladders(tables), tables["ceilings"])


def context(tables: Tables) -> dict:
    """What report/sections/ladder.md.j2 is filled with."""
    found = ladders(tables)
    machines = by_hardware(found)
    rungs = [rungs_table(one) for one in found]
    for table in rungs[MOST_OPEN:]:
        table.folded = True
    checkpoints = {hardware: recomputed(own) for hardware, own in machines.items()}
    return {
        "opening": "" if any(time(row) for one in found for row in one.rows) else "No rung of the ladder was measured.",
        "pictures": pictures(found),
        "gains": _made(gains_table(hardware, own) for hardware, own in machines.items()),
        "rungs": rungs,
        "compiling": _made(compiling_table(hardware, own) for hardware, own in machines.items()),
        "checkpoints": _made(checkpoint_table(hardware, own) for hardware, own in checkpoints.items()),
        "rules": _made(rule_table(hardware, own) for hardware, own in checkpoints.items()),
        "agreement": _made(agreement_table(hardware, own) for hardware, own in machines.items()),
        "commands_of_cells": commands_table(tables["ladder"], "ladder"),
    }


def _made(tables: Iterable[Table | None]) -> list[Table]:
    return [table for table in tables if table]
