"""The committed examples: their links lead somewhere, they are small, and they name no folder of a machine."""

import re
from html import unescape
from urllib.parse import unquote

import pytest
from committed_example import EXAMPLES, SITE

PAGES = ("index.html", "data.html")
SITES = (SITE, EXAMPLES / "llama")


@pytest.fixture(scope="module", params=SITES, ids=lambda site: site.name)
def texts(request) -> dict[str, str]:
    """Page → what it says; the folder stands under the empty name."""
    folder = request.param / "report"
    return {name: (folder / name).read_text(encoding="utf-8") for name in (*PAGES, "report.md")} | {"": str(folder)}


def anchors(texts: dict[str, str], name: str) -> set[str]:
    """What a link may name on a page; of Markdown the headings as GitHub names them."""
    if name in PAGES:
        return set(re.findall(r'<[^<>]*\bid="([^"]+)"', texts[name]))
    headings = re.findall(r"^#+ (.*)$", texts[name], re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def targets(text: str, name: str) -> list[str]:
    """What a page links to: files in the example, and anchors. Of a drawn table too, whose cells are JSON."""
    if name == "report.md":
        return re.findall(r"\]\(([^)]+)\)", text)
    drawn = re.findall(r'"(\.\./[^"]+)"', " ".join(re.findall(r"class=rows>(.*?)</script>", text, re.DOTALL)))
    return [unescape(each) for each in re.findall(r'<a href="([^"]*)"', text)] + drawn


@pytest.mark.parametrize("name", [*PAGES, "report.md"])
def test_every_link_leads_somewhere(texts, name):
    found, dead = targets(texts[name], name), []
    known = {page: anchors(texts, page) for page in (*PAGES, "report.md")}
    for target in found:
        path, _, anchor = target.partition("#")
        page = path or name
        is_there = (SITE.parent / texts[""] / unquote(page)).exists() and (not anchor or anchor in known[page])
        if not path.startswith("https://") and not is_there:
            dead.append(target)
    assert dead == [] and len(found) > 5


@pytest.mark.parametrize(("name", "most"), [("index.html", 1e6), ("data.html", 6e6), ("report.md", 100e3)])
def test_a_page_is_small(texts, name, most):
    assert 20e3 < len(texts[name].encode()) < most


@pytest.mark.parametrize(("name", "most"), [("h200", 12e6), ("llama", 2.5e6), ("two-runs", 200e3)])
def test_an_example_is_small(name, most):
    assert 100e3 < sum(path.stat().st_size for path in (EXAMPLES / name).rglob("*") if path.is_file()) < most


def test_no_folder_of_a_machine_is_named():
    pages = [path for path in EXAMPLES.rglob("*") if path.suffix in (".html", ".md", ".csv")]
    assert len(pages) > 8
    assert [path.name for path in pages if re.search(r"/(tmp|root|home|work)/", path.read_text())] == []
