"""The memory study's part of the report."""

from stepscope.report.data.memory import Memory, title
from stepscope.report.kit.blocks import Fold, Table
from stepscope.report.kit.escaping import Prose, markdown, relative_link
from stepscope.report.provenance import commands_table
from stepscope.report.studies.memory import findings as memory_findings
from stepscope.report.studies.memory.blocks import accounting_table, block_table, contributors_table, saved_table
from stepscope.report.studies.memory.captions import cell_picture, pictures
from stepscope.report.studies.memory.cell_tables import (
    accounts_table,
    churn_table,
    largest_table,
    lines_table,
    phases_table,
)
from stepscope.report.studies.memory.peaks import categories_table, largest_ok, peaks_table
from stepscope.report.studies.memory.precision import pairs, precision_table
from stepscope.report.studies.memory.predicted import limits, limits_table, predicted_table
from stepscope.report.studies.memory.sentences import (
    churn_sentence,
    course_sentence,
    cut_sentence,
    facts,
    peak_sentence,
)
from stepscope.tables.reader import Tables

# Tables of a cell; those of a cell that is shown openly are in the Markdown too.
_OPEN = {"phases": phases_table, "largest": largest_table, "lines": lines_table, "churn": churn_table}
_FOLDED = {"accounts": accounts_table, "saved": saved_table}


def findings(tables: Tables) -> list[str]:
    """Sentences for the summary."""
    return memory_findings.findings(Memory(tables))


def context(tables: Tables) -> dict:
    """What report/sections/memory.md.j2 is filled with."""
    memory = Memory(tables)
    shown = largest_ok(memory)
    return {
        "opening": memory_findings.opening(memory),
        "pictures": pictures(memory, tables),
        "peaks": peaks_table(memory),
        "precision": precision_table(memory, pairs(memory)),
        "categories": categories_table(memory),
        "shown": [_shown(memory, row) for row in shown],
        "predicted": predicted_table(memory),
        "limits": limits_table(memory, limits(memory)),
        "accounting": accounting_table(memory),
        "block": block_table(memory),
        "contributors": contributors_table(memory),
        "cells": [_folded(memory, row, row in shown) for row in memory.recorded],
        "example": _example(memory, shown),
        "commands_of_cells": commands_table(memory.cells, "memory"),
    }


def _shown(memory: Memory, row: dict) -> dict:
    """A cell whose timeline and largest allocations stand openly."""
    name = title(row, memory)
    return {
        "title": name,
        "picture": cell_picture(memory, row, shown=True),
        "sentences": _sentences(memory, row),
        "tables": _tables(memory, row, name, _OPEN),
    }


def _folded(memory: Memory, row: dict, shown: bool) -> dict:
    """The folded part of a cell; what is shown above is not repeated."""
    name = title(row, memory)
    return {
        "fold": Fold(name, facts(memory, row)),
        "shown": shown,
        "picture": cell_picture(memory, row),
        "sentences": _sentences(memory, row),
        "tables": _tables(memory, row, name, _FOLDED if shown else _OPEN | _FOLDED, page_only=True),
        "snapshot": _link(row.get("snapshot")),
    }


def _sentences(memory: Memory, row: dict) -> str:
    makers = (peak_sentence, course_sentence, churn_sentence, cut_sentence)
    return " ".join(text for make in makers if (text := make(memory, row)))


def _tables(memory: Memory, row: dict, name: str, makers: dict, page_only: bool = False) -> list[Table]:
    made = [table for make in makers.values() if (table := make(memory, row, name))]
    for table in made:
        table.page_only = page_only
    return made


def _link(path: str | None) -> Prose:
    """A link to a file below results/, named by its last part."""
    return Prose(f"[{markdown(path.rsplit('/', 1)[-1])}]({relative_link(path)})" if path else "")


def _example(memory: Memory, shown: list[dict]) -> dict | None:
    """A snapshot to begin with, and the command that makes its tables; None without any."""
    rows = [row for row in (*reversed(shown), *memory.recorded) if row.get("snapshot")]
    if not rows:
        return None
    return {
        "title": title(rows[0], memory),
        "link": _link(rows[0]["snapshot"]),
        "command": f"python scripts/analyze_snapshot.py '{rows[0]['snapshot']}' --out tables/",
    }
