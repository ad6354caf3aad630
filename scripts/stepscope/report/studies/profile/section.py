"""The profile study's part of the report."""

from stepscope.report.data.occupation import busy_time, occupation
from stepscope.report.data.profile import GPU, Profile, count_text, title
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Fold
from stepscope.report.kit.escaping import Prose, markdown, relative_link
from stepscope.report.provenance import commands_table
from stepscope.report.studies.profile import findings as profile_findings
from stepscope.report.studies.profile.captions import cell_picture, pictures
from stepscope.report.studies.profile.cell_attention import attention_table, layers_table, softmax_sentence
from stepscope.report.studies.profile.cell_device import (
    busy_table,
    calls_table,
    checks,
    gaps_table,
    lines_table,
    modules_table,
)
from stepscope.report.studies.profile.cell_kernels import (
    categories_table,
    kernels_table,
    names_table,
    others_sentence,
    phases_table,
    top_sentence,
)
from stepscope.report.studies.profile.cost import agreement, cost_table, costs
from stepscope.report.studies.profile.tables import (
    bounds_table,
    launches_table,
    products_table,
    tiles_table,
    verdicts_table,
)
from stepscope.tables.reader import Tables

# Of more cells than these the Markdown, of which GitHub shows 512 KiB at most, leaves out some of each one's tables.
MOST_IN_MARKDOWN = 8
_LEFT_OUT = ("categories", "layers", "busy", "gaps", "modules", "lines", "api_calls", "os_calls")


def findings(tables: Tables) -> list[str]:
    """Sentences for the summary."""
    return profile_findings.findings(Profile(tables))


def context(tables: Tables) -> dict:
    """What report/sections/profile.md.j2 is filled with."""
    profile = Profile(tables)
    cost, cells = costs(profile), profile.profiled()
    return {
        "on_gpu": profile.words_of_all() is GPU,
        "opening": profile_findings.opening(profile),
        "options": profile_findings.shared_options(profile),
        "pictures": pictures(profile, tables),
        "verdicts": verdicts_table(profile),
        "products": products_table(profile),
        "launches": launches_table(profile),
        "tiles": tiles_table(profile),
        "bounds": bounds_table(profile),
        "cost": cost_table(profile, cost),
        "agreement": agreement(profile, cost),
        "cells": [_cell(profile, row, many=len(cells) > MOST_IN_MARKDOWN) for row in cells],
        "commands_of_cells": commands_table(profile.cells, "profile"),
    }


def _cell(profile: Profile, row: dict, many: bool) -> dict:
    """The folded part of one cell, of `many` or of a few."""
    name, words = title(row, profile.cells), profile.words(row)
    complete, checked = checks(profile, row)
    kinds = {
        "phases": phases_table,
        "kernels": kernels_table,
        "names": names_table,
        "categories": categories_table,
        "attention": attention_table,
        "layers": layers_table,
        "busy": busy_table,
        "gaps": gaps_table,
        "modules": modules_table,
        "lines": lines_table,
    }
    tables = {kind: make(profile, row, name) for kind, make in kinds.items()}
    tables |= {kind: calls_table(profile, row, name, kind) for kind in ("api_calls", "os_calls")}
    for kind in _LEFT_OUT:
        if tables[kind]:
            tables[kind].page_only = many
    return {
        "fold": Fold(name, _facts(profile, row)),
        "picture": cell_picture(profile, row, name),
        "words": words,
        "tables": tables,
        "top": top_sentence(profile, row),
        "others": others_sentence(profile, row),
        "softmax": softmax_sentence(profile, row),
        "complete": complete,
        "checked": checked,
        "options": row.get("profiler_options") or "",
        "trace": _link(row.get("trace")),
    }


def _facts(profile: Profile, row: dict) -> str:
    """The summary line: tool, operations a step, how busy, matmul share."""
    words, cell = profile.words(row), row["cell"]
    parts = [{"nsys": "nsys", "torch": "torch.profiler"}.get(row.get("profiler"), str(row.get("profiler") or "?"))]
    launched = profile.row("phases", cell, phase="step").get("kernels_per_step")
    parts += [f"{count_text(launched)} {words.operations} a step"] if formatting.known(launched) else []
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


def _link(path: str | None) -> Prose:
    """A link to a file below results/, named by its last part."""
    return Prose(f"[{markdown(path.rsplit('/', 1)[-1])}]({relative_link(path)})" if path else "")
