"""The precision study's part of the report, and what mixed precision brought in the studies that are timed."""

from collections.abc import Callable

from stepscope.report.data.mixed import Mixed
from stepscope.report.data.precision import Precision
from stepscope.report.data.profile import Profile
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding, texts
from stepscope.report.studies.precision import findings as precision_findings
from stepscope.report.studies.precision import findings_mixed, tables_mixed
from stepscope.report.studies.precision import tables as precision_tables
from stepscope.report.studies.precision.captions import pictures
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return precision_findings.findings(Precision(tables)) + findings_mixed.findings(Mixed(tables), Profile(tables))


def context(tables: Tables) -> dict:
    """What report/sections/precision.md.j2 is filled with."""
    precision, mixed, profile = Precision(tables), Mixed(tables), Profile(tables)
    told = findings_mixed.findings(mixed, profile, with_memory=True)
    return {
        "opening": _opening(precision),
        "pictures": pictures(precision, mixed),
        "accumulation": precision_tables.accumulation_table(precision),
        "toy": _of_each(precision, precision_tables.dtypes_table, "toy"),
        "own": _of_each(precision, precision_tables.dtypes_table, "own"),
        "attention": _of_each(precision, precision_tables.attention_table),
        "gradients": precision_tables.gradients_table(precision),
        "normalisations": _of_each(precision, precision_tables.summary_table),
        "operators": _of_each(precision, precision_tables.operators_table),
        "forced": [each for own in _of_each(precision, precision_tables.forced_tables) for each in own],
        "mixed": texts(told, several_machines=len(mixed.hardware) > 1),
        "speedups": tables_mixed.speedup_tables(mixed),
        "slower": tables_mixed.slower_table(mixed, profile),
        "commands_of_cells": commands_table(precision.probes, "precision"),
    }


def _of_each(precision: Precision, make: Callable, *more: object) -> list:
    """What `make` gives for each machine, where it gives anything."""
    return list(filter(None, (make(precision, hardware, *more) for hardware in precision.hardware)))


def _opening(precision: Precision) -> list[str]:
    """What was probed, and which probes have no result and why."""
    rows = precision.probes.to_dict("records") if len(precision.probes) else []
    sentences = []
    if not any(row["status"] == "ok" for row in rows):
        sentences.append("No probe of precision finished.")
    for row in (row for row in rows if row["status"] not in ("ok", None)):
        reason = str(row.get("reason") or "").rstrip(".")
        sentences.append(f"{row['cell']}: {row['status']}{f', {reason}' if reason else ''}.")
    return sentences
