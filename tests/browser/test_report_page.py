"""The report in a browser: themes, a phone's width, print, keyboard and screen readers."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if importlib.util.find_spec("playwright") is None:
    pytest.skip("playwright is not installed", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("no chromium on this machine", allow_module_level=True)

sys.path.insert(0, str(ROOT / "tests/unit/report"))

import made_up  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
from stepscope.figures import draw_all  # noqa: E402
from stepscope.report import book  # noqa: E402


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """The page of the made-up GPU, with its figures."""
    root = tmp_path_factory.mktemp("report")
    tables = made_up.write_tables(root / "tables")
    draw_all(tables, root / "figures")
    book.write(book.Request(tables, root / "figures", ROOT / "report", root / "out", "snakemake --cores 1 report"))
    return root / "out" / "index.html"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def opened(browser, report):
    """A page as a reader opens it: width in pixels, and his theme."""
    pages = []

    def made(width: int = 1280, theme: str = "light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        pages.append(page)
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("request", lambda request: request.url.startswith("file:") or page.complaints.append(request.url))
        page.goto(report.as_uri())
        return page

    yield made
    for page in pages:
        page.close()


def test_it_needs_no_network_and_no_script(opened):
    page = opened()
    assert page.complaints == [] and page.locator("script").count() == 0
    assert page.locator("figure svg").count() > 10


@pytest.mark.parametrize("width", [400, 768, 1280])
def test_nothing_is_wider_than_the_screen(opened, width):
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    hidden = """() => [...document.querySelectorAll('main > *')].filter(
        each => each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 80))"""
    assert page.evaluate(hidden) == []


def test_dark_is_dark_and_paper_is_light(opened):
    page = opened(theme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(13, 17, 23)"
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()


def test_contents_lead_to_their_chapters(opened):
    page = opened()
    links = page.locator("nav a")
    for at in range(links.count()):
        links.nth(at).click()
        target = page.evaluate("document.querySelector(decodeURIComponent(location.hash)).getBoundingClientRect().top")
        assert -5 <= target <= 900


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(opened, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(opened(theme=theme)).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found] == []
