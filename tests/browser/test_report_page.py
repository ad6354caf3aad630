"""The report's page in a browser: sorting, themes, a phone's width, print, without scripts."""

import importlib.util
import re
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

from playwright.sync_api import sync_playwright  # noqa: E402
from report_maker import make_report  # noqa: E402

TIMES = "table:has(caption:has-text('Time of each phase, fp32'))"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = make_report(tmp_path_factory.mktemp("page"), "h100")
    return (folder / "index.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    contexts = []

    def open_with(width=1300, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.seen = []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on("console", lambda message: page.seen.append(message.text) if message.type == "error" else None)
        page.goto(address)
        return page

    yield open_with
    for context in contexts:
        context.close()


def _column(page, place):
    cells = page.locator(f"{TIMES} tbody tr > :nth-child({place})")
    return [cells.nth(i).get_attribute("data-sort") for i in range(cells.count())]


def test_nothing_else_is_loaded_and_nothing_fails(open_page, address):
    assert open_page().seen == [address]


def test_numbers_sort_by_value_and_missing_ones_come_last(open_page):
    page = open_page()
    heading = page.locator(f"{TIMES} thead th", has_text=re.compile("^step"))
    step = 3 + ["inference", "forward", "forward+backward", "step"].index("step") + 1
    for direction, reverse in (("ascending", False), ("descending", True)):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == direction
        values = _column(page, step)
        numbers = [float(value) for value in values if value is not None]
        assert numbers == sorted(numbers, reverse=reverse) and len(numbers) > 10
        assert values[len(numbers) :] == [None] * (len(values) - len(numbers)) and len(values) > len(numbers)


def test_columns_below_a_group_sort_too_and_by_keyboard(open_page):
    page = open_page()
    heading = page.locator(f"{TIMES} thead th", has_text=re.compile("^b / f"))
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    numbers = [float(value) for value in _column(page, 12) if value is not None]
    assert numbers == sorted(numbers) and len(numbers) > 10


def test_text_sorts_and_only_one_column_is_marked(open_page):
    page = open_page()
    page.locator(f"{TIMES} thead th button").first.click()
    names = page.locator(f"{TIMES} tbody th").all_inner_texts()
    assert names == sorted(names, key=lambda name: name.split()[0].lower())
    assert page.locator(f"{TIMES} [aria-sort]").count() == 1


@pytest.mark.parametrize("width", [390, 820, 1300])
def test_the_page_does_not_scroll_sideways(open_page, width):
    page = open_page(width)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator(f"div.scroll:has({TIMES})")
    if width == 390:
        assert box.evaluate("one => one.scrollWidth > one.clientWidth")
        box.evaluate("one => one.scrollLeft = 300")
        first = page.locator(f"{TIMES} tbody th").first
        assert first.bounding_box()["x"] >= 0


def test_on_a_phone_the_summary_stands_on_the_first_screen(open_page):
    page = open_page(390)
    assert page.locator("h2").first.bounding_box()["y"] < 844
    assert not page.locator("nav.contents .level-3").first.is_visible()
    assert open_page(1300).locator("nav.contents .level-3").first.is_visible()


CONTRAST = """() => {
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
  const behind = (one) => { for (; one; one = one.parentElement) { const c = getComputedStyle(one).backgroundColor;
    if (!/rgba\\(0, 0, 0, 0\\)|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  const found = [];
  const texts = 'h1,h2,p,li,a,th,td,small,caption span,figcaption,.badge,button,summary,svg text';
  for (const one of document.querySelectorAll(texts)) {
    if (one.outerHTML.includes('#111213')) continue; // stands in a bar of a light colour, in both themes
    const own = one.closest('svg') ? getComputedStyle(one).fill : getComputedStyle(one).color;
    const [a, b] = [luminance(own), luminance(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([one.tagName, one.textContent.slice(0, 30), own, ratio]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(open_page, scheme):
    page = open_page(color_scheme=scheme)
    assert page.evaluate(CONTRAST) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


def test_the_button_changes_the_theme(open_page):
    page = open_page(color_scheme="light")
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"
    assert page.evaluate(CONTRAST) == []


def test_everything_is_there_without_scripts(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("table").count() > 8 and page.locator("svg").count() == 6
    assert page.locator("main").inner_text().count("Table ") > 6
    assert page.locator("button").count() == 0
    page.locator("details summary").last.click()
    assert page.locator("details td code").last.is_visible()


def test_print_fits_the_sheet(open_page):
    # A4 less the margins of 12 mm is 186 mm, 703 CSS pixels.
    page = open_page(703)
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    widths = page.evaluate("[...document.querySelectorAll('table, svg')].map(one => one.getBoundingClientRect().width)")
    assert max(widths) <= 712
    assert not page.locator("nav.contents").is_visible()
