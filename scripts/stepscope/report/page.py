"""Puts the report together: one Markdown source with blocks, filled in twice, once by each back end."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stepscope.report.agreement import agreement_findings, agreement_table
from stepscope.report.data.machines import labels
from stepscope.report.kit.escaping import Prose, markdown
from stepscope.report.kit.finding import by_machine
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.kit.order import column, machine_labels
from stepscope.report.kit.webpage import WebBlocks
from stepscope.report.machine import incomplete_box, machine_table, overview, sizes_table
from stepscope.report.studies import section_of
from stepscope.tables.reader import Tables

# Section -> what its findings are about.
ABOUT = {
    "timing": "Time and throughput",
    "profile": "Kernels and launches",
    "warmup": "Warm-up",
    "ladder": "One change at a time",
    "roofline": "Roofline and MFU",
    "hardware": "Machines side by side",
}

FRONT = "page_one"  # the section that opens the report
MOST_BYTES = 520_000  # of the Markdown: GitHub shows no file of more than 512 KiB


@dataclass(frozen=True)
class Request:
    """What to write: the studies in their order, the folders, and what a person typed to get it.

    comparisons: sections that belong to no study, since they compare several; they come last, but for FRONT.
    """

    studies: list[str]
    tables: Path
    figures: Path
    templates: Path
    title: str
    command: str
    partial: bool
    comparisons: tuple[str, ...] = ()

    @property
    def sections(self) -> list[str]:
        """The names of all sections, in their order."""
        return [*self.studies, *self.comparisons]


def report(request: Request) -> tuple[str, str]:
    """The report as (Markdown, HTML)."""
    tables = Tables(request.tables, request.studies)
    context = _context(request, tables)
    environment = _environment(request.templates)
    text = _markdown(environment, context)
    style = (request.templates / "style.css").read_text(encoding="utf-8")
    web = WebBlocks(request.figures, style)
    body, headings = web.page(_body(environment, web, context))
    page = Environment(loader=FileSystemLoader(request.templates), autoescape=True, undefined=StrictUndefined)
    html = page.get_template("index.html.j2").render(
        title=request.title,
        body=body,
        headings=[heading for heading in headings if heading[0] in (2, 3)],
        style=style,
        script=(request.templates / "script.js").read_text(encoding="utf-8"),
    )
    return text, html


def _markdown(environment: Environment, context: dict) -> str:
    """The whole of it if it is not too long, else as much as the limit allows."""
    for shortened in (0, 1, 2):
        text = _without_gaps(_body(environment, MarkdownBlocks(shortened), context))
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def write(request: Request, folder: Path) -> None:
    """Writes report.md and index.html into the folder, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in zip(("report.md", "index.html"), report(request), strict=True):
        beside = folder / f".{name}.{os.getpid()}"
        beside.write_text(content, encoding="utf-8")
        beside.replace(folder / name)


def _context(request: Request, tables: Tables) -> dict:
    """What the frame's template is filled with; each section's own context is under its name."""
    sections = {name: section_of(name) for name in request.sections}
    sections = {name: section for name, section in sections.items() if _applies(section, tables)}
    return {
        "title": request.title,
        "command": request.command,
        "box": incomplete_box(tables) if request.partial else None,
        "findings": [*_findings(sections, tables, labels(tables)), *_agreement(tables)],
        "overview": overview(tables),
        "machine": machine_table(tables),
        "sizes": sizes_table(tables),
        "agreement": agreement_table(tables),
        "methods": [name for name in sections if (request.templates / f"methods/{name}.md.j2").exists()],
        "sections": {name: section.context(tables) for name, section in sections.items()},
    }


def _applies(section: ModuleType, tables: Tables) -> bool:
    """Whether a section has something to say; most have always."""
    return section.applies(tables) if hasattr(section, "applies") else True


def _findings(sections: dict, tables: Tables, labels: list[str]) -> list[tuple[str, list]]:
    """(what they are about, by_machine() of the sentences) of each section that has any."""
    parts = []
    for name, section in sections.items():
        own = machine_labels(column(tables[name], "hardware"))
        alone = own[0] if len(own) == 1 < len(labels) else ""
        parts.append(
            (
                ABOUT.get(name, name.capitalize()),
                by_machine(section.findings(tables), labels, alone),
            )
        )
    return [(about, machines) for about, machines in parts if machines]


def _agreement(tables: Tables) -> list[tuple[str, list]]:
    """The same of what several studies say of one point."""
    found = by_machine(agreement_findings(tables), labels(tables))
    return [("Points of several studies", found)] if found else []


def _environment(templates: Path) -> Environment:
    """Markdown templates: every value is escaped, unless it is Prose."""
    return Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: value if isinstance(value, Prose) else markdown(value),
    )


def _body(environment: Environment, blocks, context: dict) -> str:
    _use(environment, blocks)
    sections = dict(context["sections"])
    parts = [environment.get_template("title.md.j2").render(context)]
    if FRONT in sections:
        parts.append(environment.get_template(f"sections/{FRONT}.md.j2").render(sections.pop(FRONT)))
    parts.append(environment.get_template("head.md.j2").render(context))
    for name, own in sections.items():
        parts.append(environment.get_template(f"sections/{name}.md.j2").render(own))
    parts.append(environment.get_template("foot.md.j2").render(context))
    return "\n\n".join(parts)


def _use(environment: Environment, blocks) -> None:
    """Let the templates write their blocks with a back end."""
    environment.globals.update(
        table=blocks.table,
        figure=blocks.figure,
        commands=blocks.commands,
        warning=blocks.box,
        code=blocks.command_line,
        fold=blocks.fold,
        shortened=blocks.shortened,
        link=lambda name: blocks.link(ABOUT.get(name, name.capitalize()), _title(environment, name)),
    )


def _title(environment: Environment, name: str) -> str:
    """The heading that a section begins with."""
    source, *_ = environment.loader.get_source(environment, f"sections/{name}.md.j2")
    return source.partition("\n")[0].removeprefix("## ")


def section_markdown(name: str, tables: Tables, templates: Path) -> str:
    """One section of the report as Markdown."""
    environment = _environment(templates)
    _use(environment, MarkdownBlocks())
    return _without_gaps(environment.get_template(f"sections/{name}.md.j2").render(section_of(name).context(tables)))


def _without_gaps(text: str) -> str:
    """At most one empty line in a row, and no heading of the lowest level with nothing below it."""
    lines: list[str] = []
    for line in text.split("\n"):
        if re.match(r"#{1,4} |</details>", line) and len(lines) > 1 and lines[-2].startswith("#### ") and not lines[-1]:
            del lines[-2:]  # all that stood there is on the page alone
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip() + "\n"
