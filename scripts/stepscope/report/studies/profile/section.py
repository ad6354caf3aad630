"""The profile study's part of the report."""

from stepscope.report.data.bound import busy_time, occupation
from stepscope.report.data.profile import GPU, Profile
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Fold
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding, texts
from stepscope.report.kit.order import ordered
from stepscope.report.studies.profile import findings as profile_findings
from stepscope.report.studies.profile.captions import cell_picture, pictures
from stepscope.report.studies.profile.tables import (
    bounds_table,
    launches_table,
    products_table,
    tiles_table,
    verdicts_table,
)
from stepscope.report.studies.profile.tables_cost import cost_table
from stepscope.report.studies.profile.tables_device import (
    busy_table,
    calls_table,
    gaps_table,
    lines_table,
    memory_table,
    modules_table,
)
from stepscope.report.studies.profile.tables_kernels import (
    attention_table,
    categories_table,
    kernels_table,
    layers_table,
    names_table,
    phases_table,
)
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return profile_findings.findings(Profile(tables))


def context(tables: Tables) -> dict:
    """What report/sections/profile.md.j2 is filled with."""
    profile = Profile(tables)
    cells = profile.profiled()
    return {
        "on_gpu": profile.words_of(cells) is GPU,
        "opening": texts(profile_findings.opening(profile)),
        "options": _shared_options(cells),
        "pictures": pictures(profile, tables),
        "verdicts": verdicts_table(profile),
        "products": products_table(profile),
        "launches": launches_table(profile),
        "tiles": tiles_table(profile),
        "bounds": bounds_table(profile),
        "cost": cost_table(profile),
        "agreement": _text(profile_findings.agreement(profile)),
        "cells": [_cell(profile, row) for row in cells],
        "commands_of_cells": commands_table(profile.cells, "profile"),
    }


def _text(finding: Finding | None) -> str:
    return finding.text if finding else ""


def _shared_options(cells: list[dict]) -> str:
    """The profiler's options, if they are the same in all cells."""
    options = ordered([row.get("profiler_options") for row in cells])
    return options[0] if len(options) == 1 else ""


def _cell(profile: Profile, row: dict) -> dict:
    """The folded part of one cell."""
    name, words = profile.title(row), profile.words(row)
    complete, checked = profile_findings.checks(profile, row)
    kinds = {
        "phases": phases_table,
        "kernels": kernels_table,
        "names": names_table,
        "categories": categories_table,
        "attention": attention_table,
        "layers": layers_table,
        "busy": busy_table,
        "gaps": gaps_table,
        "memory": memory_table,
        "modules": modules_table,
        "lines": lines_table,
    }
    tables = {kind: make(profile, row, name) for kind, make in kinds.items()}
    tables |= {kind: calls_table(profile, row, name, kind) for kind in ("api_calls", "os_calls")}
    return {
        "fold": Fold(name, _facts(profile, row), table.place_of(row)),
        "picture": cell_picture(profile, row, name),
        "words": words,
        "tables": tables,
        "top": _text(profile_findings.top(profile, row)),
        "others": _text(profile_findings.others(profile, row)),
        "softmax": _text(profile_findings.softmax(profile, row)),
        "complete": complete,
        "checked": checked.text,
        "options": row.get("profiler_options") or "",
        "trace": row.get("trace") or "",
    }


def _facts(profile: Profile, row: dict) -> str:
    """The summary line: tool, operations a step, how busy, matmul share."""
    words, cell = profile.words(row), row["cell"]
    parts = [{"nsys": "nsys", "torch": "torch.profiler"}.get(row.get("profiler"), str(row.get("profiler") or "?"))]
    launched = profile.row("phases", cell, phase="step").get("kernels_per_step")
    parts += [f"{formatting.mean_count(launched)} {words.operations} a step"] if formatting.known(launched) else []
    found, busy = occupation(profile, row), busy_time(profile, cell)
    if found:
        times = f"{formatting.significant(found.busy)} of {formatting.significant(found.step)} ms"
        parts.append(f"GPU busy {times} ({formatting.percent(found.share)}): {found.verdict}")
    elif formatting.known(busy):
        what = "GPU busy" if words is GPU else "operators take"
        parts.append(f"{what} {formatting.significant(busy)} ms a step")
    matmul = profile.row("categories", cell, phase="step", category="matmul").get("share_of_phase_gpu_time")
    parts += [f"matmul {formatting.percent(matmul)}"] if formatting.known(matmul) else []
    return "; ".join(parts)
