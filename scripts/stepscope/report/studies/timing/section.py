"""The timing study's part of the report."""

from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding
from stepscope.report.kit.order import main_grid, with_order
from stepscope.report.studies.timing import findings as timing_findings
from stepscope.report.studies.timing.captions import pictures
from stepscope.report.studies.timing.tables import (
    control_table,
    first_steps_table,
    machine_state_table,
    times_and_rates,
)
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return timing_findings.findings(with_order(tables["timing"]), tables["ceilings"])


def context(tables: Tables) -> dict:
    """What report/sections/timing.md.j2 is filled with."""
    timing = with_order(tables["timing"])
    times, rates = times_and_rates(timing, tables["ceilings"])
    return {
        "pictures": pictures(main_grid(tables["timing"])),
        "times": times,
        "rates": rates,
        "control": control_table(timing),
        "first_steps": first_steps_table(timing),
        "state": machine_state_table(timing),
        "commands_of_cells": commands_table(timing, "timing"),
    }
