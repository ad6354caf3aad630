"""The explorer in a browser: what it shows are the numbers of the CSVs, wherever a reader finds
them."""

import csv
import re

import made_up
import pytest
from common import ROOT, aggregated, picked
from stepscope.report import explorer, links

CELL = "gpu-a/attention/d64/bf16"
TASKS = re.findall(r"\| `(#[^`]+)` \| (.+)", (ROOT / "docs/report.md").read_text())
FORWARD = {"cell": CELL, "rows": "variant", "columns": "length", "direction": "forward"}
KINDS = ["CSV", "Markdown"]  # what is copied
DRAWN = "document.documentElement.dataset.drawn"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The made-up GPU and CPU, with a log of one cell."""
    folder = made_up.write_tables(
        tmp_path_factory.mktemp("results") / "tables", made_up.gpu(), made_up.cpu()
    )
    log = folder.parent / CELL / "measure.log"
    log.parent.mkdir(parents=True)
    log.write_text("measured")
    return folder


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Address of the explorer of the committed example's records."""
    root = tmp_path_factory.mktemp("h200")
    page = root / explorer.FILE
    page.write_text(explorer.document({"": aggregated(root)}, root, "snakemake", ROOT / "report"))
    return page.as_uri()


@pytest.fixture
def viewed(opened, tables):
    """A view as a reader opens it by its address; `runs` beside the tables."""

    def made(width=1280, theme="light", runs=None, **state):
        path = tables.parent / "report" / ("two.html" if runs else explorer.FILE)
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(
                explorer.document(runs or {"": tables}, path.parent, "snakemake", ROOT / "report")
            )
        page = opened(
            path.as_uri() + links.explorer_link(**state).removeprefix(explorer.FILE), width, theme
        )
        page.wait_for_function(DRAWN)
        return page

    return made


def rows_of(tables, name, **where):
    """Rows of a CSV, by Python's own reader."""
    with open(tables / f"{name}.csv", newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if all(row[key] == value for key, value in where.items())
        ]


def choose(page, name, value):
    """Choose in a menu, and wait for the view."""
    page.evaluate("delete document.documentElement.dataset.drawn")
    page.locator(f"#control-{name}").select_option(value)
    page.wait_for_function(DRAWN)


def place(page, row, column):
    """The field of the pivot at a row's and a column's heading."""
    at = page.locator("#view thead th").all_inner_texts().index(column)
    return (
        page.locator("#view tbody tr")
        .filter(has=page.locator(f'th:text-is("{row}")'))
        .locator("td")
        .nth(at - 1)
    )


def copied(page, kind):
    """What the page copies as CSV or as Markdown."""
    page.get_by_role("button", name=f"Copy as {kind}").click()
    said = f"document.querySelectorAll('#said button')[{KINDS.index(kind)}].textContent"
    page.wait_for_function(f"{said} === 'Copied'")
    return page.evaluate("navigator.clipboard.readText()")


def rows_copied(page):
    return list(csv.DictReader(copied(page, "CSV").splitlines()))


def test_a_pivot_has_the_median_its_interval_and_the_status(viewed, tables):
    page = viewed(of="series.time", **FORWARD)
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
    page = viewed(of="series.rate", **FORWARD)
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
    wanted = picked(wanted, phase="step", precision="fp32")
    page.wait_for_function(f"document.querySelectorAll('#view tbody tr').length === {len(wanted)}")
    page.get_by_role("searchbox").press("Tab")
    page.get_by_role("button", name="median", exact=True).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    assert [float(row["median"]) for row in rows_copied(page)] == pytest.approx(
        sorted(float(row["median"]) for row in wanted), rel=1e-4
    )
    assert copied(page, "Markdown").count("\n") == len(wanted) + 2


def test_a_pivot_is_compared_with_one_of_its_columns(viewed, tables):
    of_big = {"study": "timing", "machine": "gpu-a", "phase": "step", "size": "big"}
    page = viewed(of="series.time", rows="precision", columns="context", **of_big)
    choose(page, "than", "256")
    where = {"quantity": "time", "machine": "gpu-a", "study": "timing", "size": "big"}
    rows = rows_of(tables, "series", phase="step", mode="step", precision="bf16", **where)
    by_context = {int(float(row["context"])): float(row["median"]) for row in rows}
    shown = place(page, "bf16", "1024").inner_text()
    assert f"× {by_context[1024] / by_context[256]:.2f}" in shown
    assert f"(+{1e3 * (by_context[1024] - by_context[256]):.0f}" in shown.replace(",", "")
    assert "×" not in place(page, "bf16", "256").inner_text()


def test_a_pivot_is_sorted_by_its_headings_and_copied(viewed, tables):
    page = viewed(of="series.time", **FORWARD)
    for end in ("ascending", "descending"):
        page.locator("#control-sort-2048").click()
        page.wait_for_selector(f"th[aria-sort={end}]")
    shown = [row["length 2048"] for row in rows_copied(page)]
    known = [float(each) for each in shown if each]
    where = {"cell": CELL, "quantity": "time", "direction": "forward", "status": "ok"}
    rows = [row for row in rows_of(tables, "series", **where) if float(row["length"]) == 2048]
    assert known == pytest.approx(sorted((float(row["median"]) for row in rows), reverse=True))
    choose(page, "than", "1024")
    assert "length 2048 over 1024" in copied(page, "Markdown")


def test_rungs_have_the_order_and_the_names_of_the_report(viewed):
    page = viewed(of="series.time", study="ladder", size="big", rows="variant", columns="context")
    assert page.locator("#view tbody th").all_inner_texts()[:7] == [
        "fp32",
        "TF32",
        "bf16",
        "fused attention (SDPA)",
        "blocks compiled",
        "CUDA graphs",
        "fused AdamW",
    ]


def test_results_are_no_axes(opened, example):
    page = opened(example + "#of=kernels.time&columns=phase")
    page.wait_for_function(DRAWN)
    rows = page.locator("#control-rows option")
    names = [rows.nth(at).get_attribute("value") for at in range(rows.count())]
    assert "name" in names and not {"tile", "layer_modules", "full_name", "data_type"} & set(names)
    assert {"forward", "backward", "step"} <= set(page.locator("#view thead th").all_inner_texts())
    assert page.locator("#view tbody th").count() > 20


@pytest.mark.parametrize("show", ["pivot", "chart", "rows"])
def test_an_empty_selection_says_so(viewed, show):
    page = viewed(show=show, of="series.time", study="timing", size="d64")
    assert "No row has" in page.locator("#said").inner_text()
    page.get_by_role("link", name="Choose anew").click()
    page.wait_for_selector("#view tbody tr, #view svg")


def test_a_choice_of_rows_swaps_no_axis(viewed):
    page = viewed(of="series.time", study="timing", machine="gpu-a")
    axes = [page.locator(f"#control-{name}").input_value() for name in ("rows", "columns")]
    choose(page, "precision", "fp32")
    assert [page.locator(f"#control-{name}").input_value() for name in ("rows", "columns")] == axes


def test_quantities_are_grouped_and_filters_fold_on_a_phone(viewed):
    page = viewed(400)
    groups = page.locator("#control-of optgroup")
    labels = [groups.nth(at).get_attribute("label") for at in range(groups.count())]
    assert labels[0] == "times" and {"memory", "rates", "table kernels"} <= set(labels)
    assert page.locator("#view tbody tr").first.bounding_box()["y"] < 500
    assert not page.locator("#control-phase").is_visible()
    page.locator("#filters summary").click()
    choose(page, "phase", "forward")
    assert page.locator("#control-phase").is_visible()  # it stays open


@pytest.mark.parametrize("address, actions", TASKS)
def test_ten_questions_are_answered_in_three_actions(opened, example, address, actions):
    def seen(page):
        page.wait_for_function(DRAWN)
        return page.locator("#view").inner_text()

    answer = seen(opened(example + address))
    page = opened(example)
    page.wait_for_function(DRAWN)
    taken = re.findall(r"`([^`]+)`", actions)
    assert len(taken) <= 3
    for action in taken:
        name, _, value = action.partition("=")
        if value:
            choose(page, name, value)
        else:
            page.evaluate("delete document.documentElement.dataset.drawn")
            page.get_by_role("link", name=name).click()
            page.wait_for_function(DRAWN)
    assert seen(page) == answer and len(answer) > 80
    assert page.complaints == []


def test_a_chart_has_a_mark_for_each_measured_row(viewed, tables):
    both = {"cell": CELL, "rows": "variant", "columns": "length", "facet": "direction"}
    page = viewed(show="chart", of="series.time", **both)
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
