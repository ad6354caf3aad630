"""One HTML file that needs nothing else: its prose in the frame with the style, the scripts and what they need."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from stepscope.report.kit.web_table import badge_facts, embedded

STYLE, SCRIPTS = "style.css", ("script.js", "tables.js")


def style_of(templates: Path) -> str:
    """The style sheet of all pages."""
    return (templates / STYLE).read_text(encoding="utf-8")


def document(
    templates: Path,
    title: str,
    body: Markup,
    headings: Sequence[tuple[int, str, str]],
    other: tuple[str, str] | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The whole page.

    headings: (level, id, words) of those in the contents. other: (file, words) of the page beside it. axes: what its
    tables can be filtered by, with their values.
    """
    page = Environment(loader=FileSystemLoader(templates), autoescape=True, undefined=StrictUndefined)
    return page.get_template("page.html.j2").render(
        title=title,
        body=body,
        headings=headings,
        other=other,
        facts=embedded({"badges": badge_facts(), "axes": axes or {}}),
        style=style_of(templates),
        script="\n".join((templates / name).read_text(encoding="utf-8") for name in SCRIPTS),
    )
