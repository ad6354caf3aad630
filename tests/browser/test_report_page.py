"""The report's pages in a browser: sorting, filters, copies, themes, a phone's width, print, without scripts."""

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
from stepscope.report import content  # noqa: E402
from stepscope.report.kit import web_table  # noqa: E402
from stepscope.report.kit.blocks import Column, Picture, Table, TableCell  # noqa: E402
from stepscope.report.kit.chapter import Chapter, Part  # noqa: E402
from stepscope.report.kit.finding import Finding  # noqa: E402

TIMES = "table:has(caption:has-text('Time of each phase, fp32'))"
COMMANDS = ".table-block:has(table[data-names*=command])"
ROWS = [
    [TableCell("small", badges=("noisy",)), TableCell("1.5", sort=1.5)],
    [TableCell("xl"), TableCell("10", sort=10.0)],
]
CHAPTER = Chapter(
    "time",
    "Where the time goes",
    (Finding("q", "A step takes 5 ms."),),
    (
        Part("How long is a step?", (Finding("q", "It depends."),), (Picture("timing_phases", "Phases.", "Bars."),)),
        Part(
            "Which is fastest?",
            (Finding("q", "The small."),),
            (Table("t", "T.", [Column("size"), Column("ms")], ROWS),),
        ),
    ),
    ("timing", "ceilings"),
)
BAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)> a|b `c` \"d\" 'e'"


def _hostile(frames):
    frames["timing"]["command"] = BAD
    frames["timing"].loc[frames["timing"]["size"] == "small", "size"] = BAD


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports with a chapter, and with the rows of tables of more than 30 as JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "chapters", lambda machine: [CHAPTER])
        patch.setattr(web_table, "MOST_PLAIN", 30)
        made = {"plain": make_report(tmp_path_factory.mktemp("page"), "h100")}
        made["hostile"] = make_report(tmp_path_factory.mktemp("hostile"), "h100", _hostile, draw=False)
    return made


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, reports):
    contexts = []

    def open_with(width=1300, name="data.html", report="plain", **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.seen = []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on("console", lambda message: page.seen.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.seen.append(str(error)))
        page.on("dialog", lambda dialog: page.seen.append(dialog.message) or dialog.dismiss())
        page.goto((reports[report] / name).as_uri())
        return page

    yield open_with
    for context in contexts:
        context.close()


BOTH = pytest.mark.parametrize("name", ["index.html", "data.html"])


def _column(page, place):
    cells = page.locator(f"{TIMES} tbody tr > :nth-child({place})")
    return [cells.nth(i).get_attribute("data-sort") for i in range(cells.count())]


@BOTH
def test_nothing_else_is_loaded_and_nothing_fails(open_page, reports, name):
    assert open_page(name=name).seen == [(reports["plain"] / name).as_uri()]


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


@pytest.mark.parametrize("width", [360, 820, 1300])
def test_the_page_does_not_scroll_sideways(open_page, width):
    chapters = open_page(width, "index.html")
    assert chapters.evaluate("document.documentElement.scrollWidth") <= width
    page = open_page(width)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator(f"div.scroll:has({TIMES})")
    if width == 360:
        assert box.evaluate("one => one.scrollWidth > one.clientWidth")
        box.evaluate("one => one.scrollLeft = 300")
        first = page.locator(f"{TIMES} tbody th").first
        assert first.bounding_box()["x"] >= 0


def test_on_a_phone_the_summary_stands_on_the_first_screen(open_page):
    page = open_page(390, "index.html")
    assert page.locator("h2").first.bounding_box()["y"] < 844
    assert not page.locator("nav.contents .level-3").first.is_visible()
    assert open_page(1300, "index.html").locator("nav.contents .level-3").first.is_visible()


CONTRAST = """() => {
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
  const behind = (one) => { for (; one; one = one.parentElement) { const c = getComputedStyle(one).backgroundColor;
    if (!/rgba\\(0, 0, 0, 0\\)|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  const found = [];
  const texts = 'h1,h2,p,li,a,th,td,small,caption span,figcaption,.badge,button,summary,svg text';
  for (const one of document.querySelectorAll(texts)) {
    // #111213 stands in a bar of a light colour, in both themes.
    if (one.closest('svg') && getComputedStyle(one).fill === 'rgb(17, 18, 19)') continue;
    const own = one.closest('svg') ? getComputedStyle(one).fill : getComputedStyle(one).color;
    const [a, b] = [luminance(own), luminance(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([one.tagName, one.textContent.slice(0, 30), own, ratio]);
  }
  return found;
}"""


@BOTH
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(open_page, scheme, name):
    page = open_page(name=name, color_scheme=scheme)
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
    assert page.locator("button, form").count() == 0
    page.locator("details:has(table[data-names*=command]) > summary").first.click()
    block = page.locator(COMMANDS).first
    assert "Its 72 rows are in the CSV." in block.inner_text()
    assert block.get_by_role("link", name="CSV of").get_attribute("href") == "tables/commands-timing.csv"


def test_chapters_are_whole_without_scripts(open_page):
    text = open_page(name="index.html", java_script_enabled=False).locator("main").inner_text()
    for words in ("A step takes 5 ms.", "How long is a step?", "It depends.", "Figure 1.", "Table 1.", "small", "10"):
        assert words in text


def test_a_long_table_is_drawn_when_it_is_opened(open_page, reports):
    page = open_page()
    rows = page.locator(f"{COMMANDS} >> nth=0 >> tbody tr")
    assert rows.count() == 0
    page.locator("details:has(table[data-names*=command]) > summary").first.click()
    rows.nth(71).wait_for(state="attached")
    assert rows.count() == 72  # the cells of the timing study
    command = rows.first.locator("code").first.inner_text()
    assert command.startswith("python scripts/measure_timing.py --size small --context 128")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rows.first.get_by_role("button", name="Copy").click()
    rows.first.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == command


def _choose(page, axis, value):
    page.locator(f"form.filter [name={axis}]").select_option(value)


def test_a_filter_keeps_the_rows_of_a_cell(open_page):
    page = open_page()
    _choose(page, "size", "xl")
    _choose(page, "context", "256")
    block = page.locator(f".table-block:has({TIMES})")
    block.scroll_into_view_if_needed()
    block.get_by_text("1 of 20 rows").wait_for()
    assert block.locator("tbody tr").count() == 1 and block.locator("tbody tr th").inner_text() == "xl"
    _choose(page, "precision", "bf16")
    assert not block.is_visible()  # all of it is about fp32
    assert page.locator(".table-block:has(table:has(caption:has-text('Time of each phase, bf16')))").is_visible()
    for axis in ("size", "context", "precision"):
        _choose(page, axis, "")
    block.locator("tbody tr").nth(19).wait_for(state="attached")
    assert "of 20 rows" not in block.inner_text()


def test_free_text_is_sought_in_every_column_of_a_table_that_is_opened_later(open_page):
    page = open_page()
    page.locator("form.filter [name=text]").fill("--PRECISION BF16")
    page.locator("details:has(table[data-names*=command]) > summary").first.click()
    block = page.locator(COMMANDS).first
    block.locator("tbody tr").first.wait_for(state="attached")
    shown = block.locator("tbody tr").all_inner_texts()
    assert 10 < len(shown) < 72 and all("--precision bf16" in text for text in shown)


def test_a_drawn_table_sorts(open_page):
    page = open_page()
    page.locator("details:has(table[data-names*=command]) > summary").first.click()
    block = page.locator(COMMANDS).first
    block.locator("thead button", has_text="cell").click()
    block.locator("thead button", has_text="cell").click()
    names = block.locator("tbody th").all_inner_texts()
    assert len(names) == 72 and names[0].startswith("nvidia-h100-80gb-hbm3/timing/xl/")


@pytest.mark.parametrize(
    ("button", "lines"),
    [
        ("Copy as CSV", ['size,"size, remark",ms', "xl,,10", "small,~,1.5"]),
        ("Copy as Markdown", ["| size | ms |", "| ---: | ---: |", "| xl | 10 |", r"| small \~ | 1.5 |"]),
    ],
)
def test_a_table_is_copied_as_it_is_sorted(open_page, button, lines):
    page = open_page(name="index.html", permissions=["clipboard-read", "clipboard-write"])
    block = page.locator(".table-block:has(table:has(caption:has-text('T.')))").first
    heading = block.locator("thead button", has_text="ms")
    heading.click()
    heading.click()
    block.get_by_role("button", name=button).click()
    block.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == lines


def test_hostile_names_stay_text_in_what_the_script_draws(open_page):
    page = open_page(report="hostile")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    block = page.locator(COMMANDS).first
    block.scroll_into_view_if_needed()
    block.locator("tbody tr").first.wait_for(state="attached")
    assert BAD in block.locator("tbody tr").first.inner_text()
    _choose(page, "size", BAD)
    assert page.locator("main img").count() == 0 and page.locator("main script:not([type])").count() == 0
    assert page.seen == [page.url]


@BOTH
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_a_keyboard_or_a_screen_reader(open_page, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(name=name, color_scheme=scheme)
    found = axe.run(page).response["violations"]
    bad = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
    assert bad == []


@BOTH
def test_print_fits_the_sheet(open_page, name):
    # A4 less the margins of 12 mm is 186 mm, 703 CSS pixels, and 273 mm for tables that lie on their side.
    wide = ".table-block:has(tr > :nth-child(15)) table"
    for room, selector in ((703, f"table:not({wide}), svg"), (1031, wide)):
        page = open_page(room, name)
        page.emulate_media(media="print")
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        widths = page.eval_on_selector_all(selector, "all => all.map(one => one.getBoundingClientRect().width)")
        assert max(widths, default=0) <= room + 9
        sizes = page.eval_on_selector_all("td, th", "all => all.map(one => parseFloat(getComputedStyle(one).fontSize))")
        assert min(sizes) >= 7 / 0.75 - 0.1  # points, of which a CSS pixel has three quarters
    assert not page.locator("nav.contents").is_visible()
