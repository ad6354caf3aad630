"""The attention study's part of the report."""

from stepscope.report.data.attention import Attention, Group
from stepscope.report.kit.blocks import Table
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding, texts
from stepscope.report.studies.attention import findings as attention_findings
from stepscope.report.studies.attention.captions import pictures
from stepscope.report.studies.attention.tables import (
    detail_tables,
    memory_table,
    ours_table,
    rates_table,
    tf32_table,
    times_table,
)
from stepscope.report.studies.attention.tables_host import host_table
from stepscope.report.studies.attention.tables_series import accounting_table, costs_table, growth_table, limits_table
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return attention_findings.findings(Attention(tables))


def context(tables: Tables) -> dict:
    """What report/sections/attention.md.j2 is filled with."""
    attention = Attention(tables)
    commands = commands_table(attention.cells(), "attention")
    accounts = [accounting_table(attention, hardware) for hardware in attention.hardware]
    return {
        "opening": texts(attention_findings.opening(attention)),
        "pictures": pictures(attention),
        "times": _of_each(attention, times_table),
        "memory": _of_each(attention, memory_table),
        "growth": _of_batches(attention, growth_table),
        "tf32": _made(tf32_table(group) for group in attention.groups),
        "rates": _of_each(attention, lambda group, precision: rates_table(attention, group, precision), papers=True),
        "ours": _of_each(attention, ours_table, papers=True),
        "limits": _made(limits_table(group) for group in attention.groups),
        "accounts": _made(accounts),
        "host": _of_batches(attention, host_table),
        "costs": _of_batches(attention, costs_table),
        "details": [table for group in attention.groups for table in detail_tables(group)],
        "commands_of_cells": commands,
    }


def _of_each(attention: Attention, make, papers: bool = False) -> list[Table]:
    """`make(group, precision)` of every group and precision.

    Those of the groups with a fixed batch are open, or of the papers' shapes, with a fixed number of tokens, and of
    shapes with keys, heads or a mask of their own; all where there is but one kind.
    """
    kinds = {_of_paper(group) for group in attention.groups}
    found = []
    for group in attention.groups:
        made = _made(make(group, precision) for precision in group.values("precision"))
        found += made if len(kinds) == 1 or _of_paper(group) is papers else _closed(made)
    return found


def _of_batches(attention: Attention, make) -> list[Table]:
    """`make(group)` of every group; those of the papers' and of special shapes beside others are closed."""
    both = len({_of_paper(group) for group in attention.groups}) > 1
    found = []
    for group in attention.groups:
        made = _made([make(group)])
        found += _closed(made) if both and _of_paper(group) else made
    return found


def _of_paper(group: Group) -> bool:
    return bool(group.setting.tokens) or group.setting.is_special


def _made(tables) -> list[Table]:
    return [table for table in tables if table]


def _closed(tables: list[Table]) -> list[Table]:
    """The same tables, closed until the reader opens them."""
    for table in tables:
        table.folded = True
    return tables
