"""The memory study's part of the report."""

from stepscope.report.data.memory import Memory, is_cold, is_inference, title
from stepscope.report.kit.blocks import Fold, Table
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding, texts
from stepscope.report.kit.table import place_of
from stepscope.report.studies.memory import findings as memory_findings
from stepscope.report.studies.memory.captions import cell_picture, pictures
from stepscope.report.studies.memory.findings_cell import facts, findings_of_cell
from stepscope.report.studies.memory.tables import (
    categories_table,
    limits_table,
    peaks_table,
    precision_table,
    predicted_table,
)
from stepscope.report.studies.memory.tables_blocks import (
    accounting_table,
    block_table,
    contributors_table,
    saved_table,
)
from stepscope.report.studies.memory.tables_cell import (
    accounts_table,
    churn_table,
    largest_table,
    lines_table,
    phases_table,
)
from stepscope.tables.reader import Tables

# Tables of a cell; those of a cell that is shown openly are in the Markdown too.
_OPEN = (phases_table, largest_table, lines_table, churn_table)
_FOLDED = (accounts_table, saved_table)


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return memory_findings.findings(Memory(tables))


def context(tables: Tables) -> dict:
    """What report/sections/memory.md.j2 is filled with."""
    memory = Memory(tables)
    shown = _largest(memory)
    return {
        "opening": texts(memory_findings.opening(memory)),
        "pictures": pictures(memory, tables),
        "peaks": peaks_table(memory),
        "precision": precision_table(memory),
        "categories": categories_table(memory),
        "shown": [_shown(memory, row) for row in shown],
        "predicted": predicted_table(memory),
        "limits": limits_table(memory),
        "accounting": accounting_table(memory),
        "block": block_table(memory),
        "contributors": contributors_table(memory),
        "cells": [_folded(memory, row, row in shown) for row in memory.recorded],
        "example": _example(memory, shown),
        "commands_of_cells": commands_table(memory.cells, "memory"),
    }


def _largest(memory: Memory) -> list[dict]:
    """The cells that are shown openly: the largest peak of what runs backward, inference at the same point, and the
    largest of the first steps.

    Where no point has both of the former, the largest of each.
    """
    cold = sorted(filter(is_cold, memory.measured), key=lambda row: memory.peak(row) or 0)[-1:]
    first = memory.first_runs(memory.measured)
    inference, backward = ([row for row in first if is_inference(row) is kind] for kind in (True, False))
    both = [row for row in backward if _point(row) in map(_point, inference)]
    if both:
        last = max(both, key=lambda row: memory.peak(row) or 0)
        return [next(row for row in inference if _point(row) == _point(last)), last, *cold]
    return [max(own, key=lambda row: memory.peak(row) or 0) for own in (inference, backward) if own] + cold


def _point(row: dict) -> tuple:
    return tuple(row[name] for name in ("hardware", "size", "context", "precision", "batch", "options", "repeat"))


def _shown(memory: Memory, row: dict) -> dict:
    """A cell whose timeline and largest allocations stand openly."""
    return {
        "title": title(row, memory),
        "picture": cell_picture(memory, row, shown=True),
        "sentences": _sentences(memory, row),
        "tables": _tables(memory, row, _OPEN),
    }


def _folded(memory: Memory, row: dict, shown: bool) -> dict:
    """The folded part of a cell; what is shown above is not repeated."""
    return {
        "fold": Fold(title(row, memory), facts(memory, row).text, place_of(row)),
        "shown": shown,
        "picture": cell_picture(memory, row),
        "sentences": _sentences(memory, row),
        "tables": _tables(memory, row, _FOLDED if shown else _OPEN + _FOLDED),
        "snapshot": row.get("snapshot") or "",
    }


def _sentences(memory: Memory, row: dict) -> str:
    return " ".join(texts(findings_of_cell(memory, row)))


def _tables(memory: Memory, row: dict, makers: tuple) -> list[Table]:
    return [table for make in makers if (table := make(memory, row))]


def _example(memory: Memory, shown: list[dict]) -> dict | None:
    """A snapshot to begin with, and the command that makes its tables; None without any."""
    rows = [row for row in (*reversed(shown), *memory.recorded) if row.get("snapshot")]
    if not rows:
        return None
    return {
        "title": title(rows[0], memory),
        "snapshot": rows[0]["snapshot"],
        "command": f"python scripts/analyze_snapshot.py '{rows[0]['snapshot']}' --out tables/",
    }
