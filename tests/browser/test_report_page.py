"""The report in a browser: themes, a phone's width, print, keyboard and screen readers."""

import made_up
import pytest
from common import ROOT
from stepscope.figures import draw_all
from stepscope.report import book


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Address of the page of the made-up GPU, with its figures."""
    root = tmp_path_factory.mktemp("report")
    tables = made_up.write_tables(root / "tables", made_up.gpu())
    draw_all(tables, root / "figures")
    book.write(
        book.Request(
            tables, root / "figures", ROOT / "report", root / "out", "snakemake --cores 1 report"
        )
    )
    return (root / "out" / "index.html").as_uri()


def test_it_needs_no_network_and_no_script(opened, report):
    page = opened(report)
    assert page.complaints == [] and page.locator("script").count() == 0
    assert page.locator("figure svg").count() > 10


@pytest.mark.parametrize("width", [400, 768, 1280])
def test_nothing_is_wider_than_the_screen(opened, report, width):
    page = opened(report, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    hidden = """() => [...document.querySelectorAll('main > *')]
        .filter(each => each.getBoundingClientRect().right > innerWidth + 1)
        .map(each => each.outerHTML.slice(0, 80))"""
    assert page.evaluate(hidden) == []


@pytest.mark.parametrize("width", [360, 400, 1280])
def test_a_figure_is_seen_whole(opened, report, width):
    """And no narrower than makes its smallest letters 7 pixels high on a phone of 400."""
    page = opened(report, width)
    measure = "each => [each.clientWidth, each.scrollWidth]"
    figures = page.locator(".figure")
    for at in range(figures.count()):
        shown, whole = figures.nth(at).evaluate(measure)
        assert whole <= shown and (width < 400 or shown >= 385)


def test_dark_is_dark_and_paper_is_light(opened, report):
    page = opened(report, theme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(13, 17, 23)"
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    of_figures = "getComputedStyle(document.documentElement).getPropertyValue('--figure-paper')"
    assert page.evaluate(of_figures) == "#fffffe"
    assert not page.locator("nav").is_visible()


def test_contents_lead_to_their_chapters(opened, report):
    page = opened(report)
    links = page.locator("nav a")
    for at in range(links.count()):
        links.nth(at).click()
        target = page.evaluate(
            "document.querySelector(decodeURIComponent(location.hash)).getBoundingClientRect().top"
        )
        assert -5 <= target <= 900


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(opened, report, violations, theme):
    assert violations(opened(report, theme=theme)) == []
