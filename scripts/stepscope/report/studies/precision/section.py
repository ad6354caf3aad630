"""The precision study's part of the report, and what mixed precision brought in the studies that are timed."""

from stepscope.report.data.mixed import Mixed
from stepscope.report.data.precision import Precision
from stepscope.report.data.profile import Profile
from stepscope.report.kit.commands import commands_table
from stepscope.report.studies.precision import findings as precision_findings
from stepscope.report.studies.precision import mixed_findings
from stepscope.report.studies.precision.captions import pictures
from stepscope.report.studies.precision.mixed_tables import slower_table, speedup_tables
from stepscope.report.studies.precision.norms import forced_tables, operators_table, summary_table
from stepscope.report.studies.precision.tables import (
    accumulation_table,
    attention_table,
    dtypes_table,
    gradients_table,
)
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[str]:
    """Sentences for the summary."""
    return precision_findings.findings(Precision(tables)) + mixed_findings.findings(Mixed(tables), Profile(tables))


def context(tables: Tables) -> dict:
    """What report/sections/precision.md.j2 is filled with."""
    precision, mixed, profile = Precision(tables), Mixed(tables), Profile(tables)
    return {
        "opening": _opening(precision),
        "pictures": pictures(precision, mixed),
        "accumulation": accumulation_table(precision),
        "toy": _of_each(precision, lambda hardware: dtypes_table(precision, hardware, "toy")),
        "own": _of_each(precision, lambda hardware: dtypes_table(precision, hardware, "own")),
        "attention": _of_each(precision, lambda hardware: attention_table(precision, hardware)),
        "gradients": gradients_table(precision),
        "normalisations": _of_each(precision, lambda hardware: summary_table(precision, hardware)),
        "operators": _of_each(precision, lambda hardware: operators_table(precision, hardware)),
        "forced": [table for hardware in precision.hardware for table in forced_tables(precision, hardware)],
        "mixed": mixed_findings.findings(mixed, profile, with_memory=True),
        "speedups": speedup_tables(mixed),
        "slower": slower_table(mixed, profile),
        "commands_of_cells": commands_table(precision.probes, "precision"),
    }


def _of_each(precision: Precision, make) -> list:
    return [table for hardware in precision.hardware if (table := make(hardware))]


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
