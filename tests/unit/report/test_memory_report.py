"""The memory section in a whole report, as parsers see it."""

import re

import pytest
import synthetic_memory as made
from pages import Page, markdown_page, undrawn_pages
from stepscope.config.training import figure_name
from stepscope.report.data.memory import Memory, limits
from stepscope.report.kit.finding import texts
from stepscope.report.studies.memory.findings import opening
from stepscope.report.studies.memory.section import context
from stepscope.tables.reader import Tables

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z* </details>"
ACROSS = ("memory_peaks", "memory_peak_categories", "memory_predicted")
OF_TIMING = ("timing_by_size", "timing_by_context", "timing_phases", "timing_samples", "timing_distribution")


def pages(folder, cells, timings=(), change=None, studies=("memory",)):
    """(Markdown, HTML) of a report with these cells; every figure is an empty one."""
    tables = made.write(folder / "tables", cells, timings, change)
    return undrawn_pages(folder, tables, studies, (*ACROSS, *OF_TIMING, *(figure_name(row["cell"]) for row in cells)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    inference = {"mode": "inference", "held": {"parameters": 100, "activations": 60}}
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    cells += [made.cell(**inference), made.cell("bf16", context=1024, status="failed", reason="exit code 3")]
    timings = [made.timing(row) for row in cells]
    return pages(tmp_path_factory.mktemp("whole"), cells, timings, studies=("timing", "memory"))


def folds(html: str) -> list[str]:
    return re.findall(r"<details[^>]* class=part>.*?</details>", html, re.DOTALL)


def test_each_recorded_cell_is_a_folded_part(whole):
    parts = re.findall(r"<details[^>]* class=part><summary><b>([^<]+)</b> <span>([^<]+)</span></summary>", whole[1])
    assert [name for name, _ in parts] == [
        "s, context 128, fp32, inference", "s, context 128, fp32, step", "s, context 1,024, fp32, step",
        "s, context 128, bf16, step",
    ]  # fmt: skip
    assert parts[1][1] == "peak 1.00 GiB in backward; reserved 1.22 GiB; the closed form is off by −3.3 %"
    assert parts[2][1] == "out of memory at 1.00 GiB; reserved 1.22 GiB"
    opened = [line for line in whole[0].splitlines() if line.startswith("<details><summary><b>")]
    assert len(opened) == 4 and whole[0].count("<details>") == whole[0].count("</details>")


def test_each_timeline_is_drawn_once(whole):
    text, html = whole
    for name in ("memory_cell_gpu_s_ctx128_fp32", "memory_cell_gpu_s_ctx128_fp32_mode-inference"):
        assert text.count(f"figures/{name}.svg") == 1
    labels = re.findall(r'aria-label="(Stacked areas of active memory[^"]*)"', html)
    assert len(labels) == len(set(labels)) == 4
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert [fold.count("<figure") for fold in folds(html)] == [0, 0, 1, 1]


def test_nothing_is_left_to_be_filled_in(whole):
    for page in (whole[0], "".join(Page(whole[1]).text)):
        own = page[page.rindex("What fills the memory") :]
        assert not re.search(r"[{}]|\bnan\b|\bNone\b", own)


def test_every_row_has_the_columns_of_its_head(whole):
    for table in markdown_page(whole[0]).tables:
        assert all(len(row) == len(table[0]) for row in table)


def test_snapshots_and_tables_are_linked(whole):
    text, html = whole
    link = "../gpu/memory/s/ctx128/fp32/mode=inference/snapshot/snapshot.pickle"
    assert f"[snapshot.pickle]({link})" in text and f'href="{link}"' in html
    assert 'href="https://pytorch.org/memory_viz"' in html
    assert "analyze_snapshot.py" in html and "results/gpu/memory/s/ctx128/fp32/snapshot/snapshot.pickle" in html
    assert all(f"../tables/memory_{name}.csv" in text for name in ("largest", "peak_lines", "churn", "accounting"))
    assert "python scripts/snapshot_memory.py --precision bf16" in html


def nasty(frames):
    frames["memory_largest"][["frame", "module", "op", "name", "shape", "formula", "category"]] = BAD
    frames["memory_peak_lines"][["frame", "module", "category"]] = BAD
    frames["memory_churn"][["frame", "module", "phase"]] = BAD
    frames["memory_saved"][["module", "op", "shape", "formula"]] = BAD
    frames["memory_accounting"][["formula"]] = BAD
    frames["memory_summary"][["peak_phase", "peak_module", "oom_frame", "oom_phase", "oom_module"]] = BAD
    frames["memory_phases"]["phase"] = BAD
    frames["memory_peak"].loc[frames["memory_peak"]["category"] == "activations", "category"] = BAD
    frames["memory_predicted"]["category"] = BAD
    for name in ("predicted_phase", "predicted_part", "recorder", "size", "snapshot"):
        frames["memory"][name] = BAD


def test_what_comes_from_outside_stays_text(tmp_path):
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    text, html = pages(tmp_path, cells, change=nasty)
    rich, plain = Page(html), markdown_page(text)
    assert sum(tag == "script" and "type" not in own for tag, own in rich.elements) == 1
    assert not any(tag == "script" for tag, _ in plain.elements)
    assert html.count("<details") == html.count("</details>") and text.count("<details>") == text.count("\n</details>")
    assert all(len(row) == len(table[0]) for table in plain.tables for row in table)
    for page in (rich, plain):
        assert sum(BAD[:20] in cell for table in page.tables for row in table for cell in row) >= 10


def test_without_any_cell(tmp_path):
    text, html = pages(tmp_path, [])
    assert "No cell's memory was recorded." in text and "No memory cell is in the tables." in html


def test_only_lost_cells(tmp_path):
    rows = [made.cell(status="failed", reason="exit code 3"), made.cell("bf16", status="missing", reason="not run")]
    text, html = pages(tmp_path, rows)
    for page in (text, "".join(Page(html).text)):
        assert "exit code 3" in page and "not run" in page and "No cell's memory was recorded." in page
    assert " class=part>" not in html and "memory_viz" not in html


@pytest.mark.parametrize(
    "lacking",
    ["peak", "phases", "largest", "peak_lines", "churn", "saved", "accounting", "predicted", "summary"],
)
def test_a_table_may_be_missing(tmp_path, lacking):
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    text, html = pages(tmp_path, cells, change=lambda frames: frames.pop(f"memory_{lacking}"))
    assert "### Peak memory" in text and (" class=part>" in html) == (lacking != "summary")


def test_a_cold_start_is_shown_and_compared_with_nothing(tmp_path):
    cold = made.cell(start="cold", steps=2, warmup=0)
    cold["cell"] += "/start=cold"
    other = made.cell(start="warm", context=256)
    memory = Memory(Tables(made.write(tmp_path, [made.cell(start="warm"), cold, other]), ["timing", "memory"]))
    assert [row["options"] for row in memory.all] == ["", "start=cold", ""]
    assert [row["context"] for row in memory.first_runs(memory.all)] == [128, 256]
    (limit,) = limits(memory)
    assert [row["context"] for row in limit.rows] == [128, 256]
    told = texts(opening(memory))[0]
    assert told.endswith("recorded 1 step of 2 cells after the warm-up, and the first 2 steps of one cell.")
    shown = [each["title"] for each in context(Tables(tmp_path, ["timing", "memory"]))["shown"]]
    assert shown == ["s, context 128, fp32, step", "s, context 128, fp32, step, start=cold"]
