"""The pages of a comparison: index.html and compare.md of one text, and compare.csv."""

from pathlib import Path

from stepscope.files import write_whole
from stepscope.recordings.text import plain
from stepscope.report.frame import block_functions, environment, without_gaps
from stepscope.report.kit.blocks import Box
from stepscope.report.kit.document import document, style_of
from stepscope.report.kit.files import Files
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.kit.webpage import WebBlocks
from stepscope.report.runs import recorded, tables, words
from stepscope.report.runs.changes import changes
from stepscope.report.runs.judging import AFTER, BEFORE, Compared, common_cells

FILES = PAGE, MARKDOWN, CSV = "index.html", "compare.md", "compare.csv"
TEMPLATE = "compare.md.j2"


def write(found: Compared, out: Path, templates: Path, command: str) -> list[str]:
    """Write the pages into a folder; returns the sentences that they open with."""
    content = _content(found, command)
    here = Files(out, out, out, out)
    web, plain_text = WebBlocks(here, style_of(templates)), MarkdownBlocks(here)
    body, headings = web.page(_rendered(templates, web, content))
    page = document(templates, content["title"], body, [each for each in headings if each[0] == 2])
    write_whole(
        {
            out / PAGE: [page],
            out / MARKDOWN: [_rendered(templates, plain_text, content)],
            out / CSV: [tables.as_csv(found.pairs)],
        }
    )
    return content["sentences"]


def _rendered(templates: Path, blocks, content: dict) -> str:
    surroundings = environment(templates)
    return without_gaps(surroundings.get_template(TEMPLATE).render(**content, **block_functions(blocks)))


def _content(found: Compared, command: str) -> dict:
    common = common_cells(found.before, found.after, found.machines)
    changed = changes(found.before, found.after, common)
    fired = [alarm for own in found.alarms.values() for alarm in own]
    box = fired and Box("The control fired.", words.alarm(found), tables.alarms(fired))
    kernels = recorded.kernels(found.before, found.after, common)
    fillings = recorded.fillings(found.before, found.after, common)
    damaged = [(name, cell, why) for name, results in ((BEFORE, found.before), (AFTER, found.after))
               for cell, why in results.left_out.items()]  # fmt: skip
    return {
        "title": plain(f"{found.after.name} compared with {found.before.name}"),
        "box": box or None,
        "sentences": words.summary(found, changed),
        "worst": tables.worst(found),
        "best": tables.best(found),
        "counts": tables.counts(found),
        "provenance": tables.provenance(changed),
        "lost": tables.lost(found.lost),
        "kernels": words.about_kernels(kernels),
        "kernel_table": tables.kernels(kernels or []),
        "memory": words.about_memory(fillings),
        "memory_table": tables.fillings(fillings or []),
        "left_out": tables.left_out(damaged),
        "every": tables.every(found),
        "command": command,
    }
