"""The explorer in a browser: what it shows are the numbers of the CSVs, wherever a reader finds
them."""

import csv
from pathlib import Path

import made_up
import pytest
from stepscope.report import explorer

ROOT = Path(__file__).resolve().parents[2]
CELL = "gpu-a/attention/d64/bf16"
DRAWN = "document.documentElement.dataset.drawn"


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """The made-up GPU and CPU, with a log of one cell."""
    folder = made_up.write_tables(tmp_path_factory.mktemp("results") / "tables", gpu=True, cpu=True)
    log = folder.parent / CELL / "measure.log"
    log.parent.mkdir(parents=True)
    log.write_text("measured")
    return folder


@pytest.fixture
def viewed(opened, tables):
    """A view as a reader opens it by its address; `runs` beside the tables."""

    def made(width: int = 1280, theme: str = "light", runs: dict | None = None, **state: str):
        path = tables.parent / "report" / ("two.html" if runs else explorer.FILE)
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(
                explorer.document(runs or {"": tables}, path.parent, "snakemake", ROOT / "report")
            )
        page = opened(
            path.as_uri() + explorer.explorer_link(**state).removeprefix(explorer.FILE),
            width,
            theme,
        )
        page.wait_for_function(DRAWN)
        return page

    return made


def rows_of(tables: Path, name: str, **where: str) -> list[dict]:
    """Rows of a CSV, by Python's own reader."""
    with open(tables / f"{name}.csv", newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if all(row[key] == value for key, value in where.items())
        ]


def choose(page, name: str, value: str) -> None:
    """Choose in a menu, and wait for the view."""
    page.evaluate("delete document.documentElement.dataset.drawn")
    page.locator(f"#control-{name}").select_option(value)
    page.wait_for_function(DRAWN)


def place(page, row: str, column: str):
    """The field of the pivot at a row's and a column's heading."""
    at = page.locator("#view thead th").all_inner_texts().index(column)
    return (
        page.locator("#view tbody tr")
        .filter(has=page.locator(f'th:text-is("{row}")'))
        .locator("td")
        .nth(at - 1)
    )


def test_a_pivot_has_the_median_its_interval_and_the_status(viewed, tables):
    page = viewed(
        of="series.time", cell=CELL, rows="variant", columns="length", direction="forward"
    )
    measured = rows_of(
        tables, "series", cell=CELL, quantity="time", direction="forward", status="ok"
    )
    scale = 1e3 if "(ms)" in page.locator("#view caption").inner_text() else 1e6
    for row in measured:
        shown = place(page, row["variant"], str(int(float(row["length"])))).inner_text().split()
        value, low, high = (float(each.strip("[],").replace(",", "")) / scale for each in shown)
        assert [value, low, high] == pytest.approx(
            [float(row[each]) for each in ("median", "low", "high")], rel=0.02
        )
    assert place(page, "naive", "4096").inner_text() == "oom"
    assert page.complaints == []


def test_heat_can_be_switched_off_and_stays_off(viewed):
    page = viewed(of="series.time", study="timing", machine="gpu-a")
    assert page.locator("td.heat").count() == 3
    choose(page, "heat", "off")
    assert "heat=off" in page.url
    page.reload()
    page.wait_for_selector("#view td")
    assert page.locator("td.heat").count() == 0


def test_a_number_leads_to_its_card_with_the_command_to_copy(viewed, tables):
    page = viewed(
        of="series.rate", cell=CELL, rows="variant", columns="length", direction="forward"
    )
    place(page, "naive", "1024").get_by_role("link").click()
    page.wait_for_selector("dialog[open] dl")
    (cell,) = rows_of(tables, "cells", cell=CELL)
    assert (
        page.locator("#card-title").inner_text() == CELL
        and cell["command"] in page.locator("#card pre").inner_text()
    )
    assert (
        page.get_by_role("link", name="measure.log").get_attribute("href")
        == f"../{CELL}/measure.log"
    )
    page.get_by_role("button", name="Copy the command").click()
    page.wait_for_selector("#card button:text-is('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == cell["command"]
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash.includes('card=')")
    assert not page.locator("#card").is_visible() and page.locator("#view table").is_visible()


def test_rows_are_filtered_searched_sorted_and_copied(viewed, tables):
    page = viewed(show="rows", table="series", study="timing", quantity="time")
    wanted = rows_of(tables, "series", study="timing", quantity="time")
    assert page.locator("#view tbody tr").count() == len(wanted)
    choose(page, "phase", "step")
    page.get_by_role("searchbox").fill("FP32")
    wanted = [row for row in wanted if row["phase"] == "step" and row["precision"] == "fp32"]
    page.wait_for_function(f"document.querySelectorAll('#view tbody tr').length === {len(wanted)}")
    page.get_by_role("searchbox").press("Tab")
    page.get_by_role("button", name="median", exact=True).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    page.get_by_role("button", name="Copy as CSV").click()
    page.wait_for_selector("button:text-is('Copied')")
    copied = list(csv.DictReader(page.evaluate("navigator.clipboard.readText()").splitlines()))
    assert [float(row["median"]) for row in copied] == pytest.approx(
        sorted(float(row["median"]) for row in wanted), rel=1e-4
    )
    page.get_by_role("button", name="Copy as Markdown").click()
    page.wait_for_function("document.querySelectorAll('#said button')[1].textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()").count("\n") == len(wanted) + 2


def test_a_chart_has_a_mark_for_each_measured_row(viewed, tables):
    page = viewed(
        show="chart",
        of="series.time",
        cell=CELL,
        rows="variant",
        columns="length",
        facet="direction",
    )
    measured = rows_of(tables, "series", cell=CELL, quantity="time", status="ok")
    assert page.locator("#view svg circle").count() == len(measured)
    choose(page, "log", "none")
    assert page.locator("#view svg circle").count() == len(measured)
    assert page.complaints == []


def test_machines_and_runs_are_axes(viewed, tables):
    assert viewed(of="series.rate", study="ceilings", rows="machine", columns="precision").locator(
        "#view tbody th"
    ).all_inner_texts() == ["gpu-a", "cpu-b"]
    page = viewed(
        runs={"old": tables, "new": tables},
        of="series.time",
        study="timing",
        rows="run",
        machine="gpu-a",
    )
    assert page.locator("#view tbody th").all_inner_texts() == ["old", "new"]
    old, new = (
        page.locator("#view tbody tr").nth(at).locator("td").all_inner_texts() for at in (0, 1)
    )
    assert old == new
    page.locator("#view td a").first.click()
    page.wait_for_selector("dialog[open] dl")
    assert page.locator("#card-title").inner_text().startswith("old: gpu-a/timing/")


@pytest.mark.parametrize("show", ["pivot", "chart", "rows"])
def test_nothing_is_wider_than_a_phone(viewed, show):
    page = viewed(400, show=show)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page = viewed(400, show=show, card=CELL)
    assert page.evaluate("document.getElementById('card').scrollWidth <= innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", [{"show": "pivot"}, {"show": "chart"}, {"card": CELL}])
def test_axe_finds_nothing_serious(viewed, violations, theme, state):
    assert [
        each
        for each in violations(viewed(theme=theme, **state))
        if each[2] in ("serious", "critical")
    ] == []


def test_the_keyboard_reaches_menus_numbers_and_the_card(viewed):
    page = viewed(of="series.time", study="timing")
    page.locator("#view td a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] dl")
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    choose(page, "phase", "forward")
    page.locator("#control-phase").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.activeElement.id === 'control-phase'")


def test_without_a_script_it_says_where_the_tables_are(browser, viewed, tables):
    viewed()
    page = browser.new_page(java_script_enabled=False)
    page.goto((tables.parent / "report" / explorer.FILE).as_uri())
    assert "../tables" in page.locator("noscript").inner_text()
    page.close()
