"""The committed example: its links lead somewhere, and its pages are as small as they should be."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from report_maker import ROOT

EXAMPLE = ROOT / "report/example/report"
PAGES = ("index.html", "data.html")


def text_of(name: str) -> str:
    return (EXAMPLE / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def anchors() -> dict[str, set[str]]:
    """Page → what a link may name on it; of Markdown the headings as GitHub names them."""
    found = {name: set(re.findall(r'<[^<>]*\bid="([^"]+)"', text_of(name))) for name in PAGES}
    headings = re.findall(r"^#+ (.*)$", text_of("report.md"), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return found | {"report.md": slugs}


def targets(name: str) -> list[str]:
    """What a page links to: files in the example, and anchors. Of a drawn table too, whose cells are JSON."""
    text = text_of(name)
    if name == "report.md":
        return re.findall(r"\]\(([^)]+)\)", text)
    drawn = re.findall(r'"(\.\./[^"]+)"', " ".join(re.findall(r"class=rows>(.*?)</script>", text, re.DOTALL)))
    return [unescape(each) for each in re.findall(r'<a href="([^"]*)"', text)] + drawn


@pytest.mark.parametrize("name", [*PAGES, "report.md"])
def test_every_link_leads_somewhere(name, anchors):
    dead = []
    for target in targets(name):
        path, _, anchor = target.partition("#")
        if path.startswith("https://"):
            continue
        page = path or name
        if not (EXAMPLE / unquote(page)).exists() or (anchor and anchor not in anchors[page]):
            dead.append(target)
    assert dead == [] and len(targets(name)) > 5


@pytest.mark.parametrize(("name", "most"), [("index.html", 3e6), ("data.html", 20e6), ("report.md", 100e3)])
def test_a_page_is_small(name, most):
    assert (EXAMPLE / name).stat().st_size < most


def test_the_pages_tables_are_files_too():
    stems = set(re.findall(r'href="tables/([^"]+)\.csv"', text_of("index.html") + text_of("data.html")))
    kinds = {
        suffix: {path.stem for path in Path(EXAMPLE / "tables").glob(f"*{suffix}")}
        for suffix in (".csv", ".tex", ".typ")
    }
    assert len(stems) > 100 and set(map(frozenset, kinds.values())) == {frozenset(stems)}
