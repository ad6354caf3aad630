"""The profile section in a whole report, as parsers see it."""

import re

import pytest
import synthetic_profile as made
from pages import Page, markdown_page, undrawn_pages
from stepscope.config.training import figure_name
from stepscope.report.kit.blocks import Fold
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.kit.webpage import WebBlocks

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z* </details>"
LONG = "void kernel<" + "x" * 2000 + ">(T1)"
ACROSS = ("profile_matmul_share", "profile_launches", "profile_bound", "profile_categories")


def pages(folder, cells, timings=(), rates=(), change=None, studies=("timing", "ceilings", "profile")):
    """(Markdown, HTML) of a report with these cells; every figure is an empty one."""
    tables = made.write(folder / "tables", cells, timings, rates, change)
    names = [*ACROSS, *(figure_name(row["cell"]) for row in cells), "ceilings", "timing_by_size"]
    names += ["timing_by_context", "timing_phases", "timing_samples", "timing_distribution"]
    return undrawn_pages(folder, tables, studies, names)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    rows = [made.cell(), made.cell("bf16", busy=9.5), made.cell("fp16", status="oom", reason="CUDA out of memory")]
    rows[-1]["peak_allocated_bytes"] = 79 * 2**30
    timings = [made.timing(row, 20.0) for row in rows]
    return pages(tmp_path_factory.mktemp("whole"), rows, timings, made.ceilings())


def test_each_profiled_cell_is_a_folded_part(whole):
    text, html = whole
    parts = re.findall(r"<details[^>]* class=part><summary><b>([^<]+)</b> <span>([^<]+)</span></summary>", html)
    assert [name for name, _ in parts] == ["s, context 128, fp32", "s, context 128, bf16"]
    assert parts[0][1] == "nsys; 1,000 kernels a step; GPU busy 12.0 of 20.0 ms (60 %): launch-bound; matmul 67 %"
    assert html.count("</details>") == html.count("<details")
    opened = [line for line in text.splitlines() if line.startswith("<details><summary><b>")]
    assert len(opened) == 2 and text.count("<details>") == text.count("</details>")


def test_the_parts_stand_between_empty_lines_in_markdown(whole):
    lines = whole[0].splitlines()
    for at, line in enumerate(lines):
        if line.startswith("<details>"):
            assert lines[at - 1] == "" and lines[at + 1] == ""
        if line == "</details>":
            assert lines[at - 1] == "" and (at + 1 == len(lines) or lines[at + 1] == "")


def test_contents_list_nothing_of_what_is_folded(whole):
    contents = re.search(r"<nav.*?</nav>", whole[1], re.DOTALL)[0]
    assert "Cell by cell" in contents and "Inside attention" not in contents
    names = [attributes["id"] for _, attributes in Page(whole[1]).elements if "id" in attributes]
    assert len(names) == len(set(names))


def test_both_outputs_have_the_same_tables(whole):
    rich, plain = Page(whole[1]).tables, markdown_page(whole[0]).tables
    assert len(rich) == len(plain) > 20
    for left, right in zip(rich, plain, strict=True):
        heads = len(left) - len(right) + 1
        assert [len(row) for row in left[heads:]] == [len(row) for row in right[1:]]
        assert all(len(row) == len(right[0]) for row in right)


def test_links_point_to_the_tables_and_the_trace(whole):
    assert r"[profile\_kernels.csv](../tables/profile_kernels.csv)" in whole[0]
    assert 'href="../gpu/profile/s/ctx128/fp32/trace/trace.sqlite"' in whole[1]
    assert "python scripts/profile_step.py --precision bf16" in whole[1]


def nasty(frames):
    frames["profile_kernels"]["name"] = BAD
    frames["profile_kernels"]["full_name"] = [f"{BAD}{at}{LONG}" for at in range(len(frames["profile_kernels"]))]
    frames["profile_kernels"]["layer_modules"] = f"2 {BAD}"
    frames["profile_attention"].loc[frames["profile_attention"]["kind"] == "part", "part"] = BAD
    frames["profile_attention"]["top_kernel"] = LONG
    frames["profile_api_calls"]["name"] = BAD
    frames["profile_phases"].loc[frames["profile_phases"]["phase"] == "loss", "phase"] = BAD
    key = {name: frames["profile"][name].iloc[0] for name in ("cell", "hardware", "size", "context", "precision")}
    module = {**key, "module": BAD, "kernels_per_step": 3, "gpu_ms_per_step": 1.0, "share_of_backward_gpu_time": 0.5}
    place = {**key, "file": f"/home/{BAD}.py", "line": 12, "operations_per_step": 3, "gpu_ms_per_step": 1.0}
    call = {
        **key,
        "name": BAD,
        "calls_per_step": 1,
        "ms_per_step": 1.0,
        "mean_us": 1.0,
        "median_us": 1.0,
        "max_us": 1.0,
    }
    frames |= {
        f"profile_{name}": type(frames["profile"])([row])
        for name, row in {"modules": module, "lines": place | {"share_of_gpu_time": 0.5}, "os_calls": call}.items()
    }
    frames["profile"]["profiler_options"] = BAD


def test_names_from_a_trace_stay_text(tmp_path):
    text, html = pages(tmp_path, [made.cell()], change=nasty, studies=("profile",))
    rich, plain = Page(html), markdown_page(text)
    assert sum(tag == "script" and "type" not in own for tag, own in rich.elements) == 1
    assert not any(tag == "script" for tag, _ in plain.elements)
    assert html.count("<details") == html.count("</details>") and text.count("<details>") == text.count("\n</details>")
    assert all(len(row) == len(table[0]) for table in plain.tables for row in table)
    for page in (rich, plain):
        assert sum(BAD[:30] in cell for table in page.tables for row in table for cell in row) >= 10
    shown = [cell for table in rich.tables for row in table for cell in row]
    assert max(map(len, shown)) < 900
    assert any(LONG in (attributes.get("title") or "") for _, attributes in rich.elements)
    assert any(".py" in cell for cell in shown) and "12" in shown


def test_a_fold_escapes_its_summary():
    fold = Fold(BAD, BAD)
    text = MarkdownBlocks(None).fold(fold, lambda: "inside")
    summary = re.search(r"<summary>(.*?)</summary>", text)[1]
    assert "<script" not in summary and "`" not in summary and "</details>" not in summary
    assert Page(text).text.count(BAD) == 1 and "inside" in text
    web = WebBlocks(None)
    html, _ = web.page(web.fold(fold, lambda: "#### A heading\n\ninside"))
    assert "<script" not in html and html.count("</details>") == 1
    assert re.search(r"<div class=inside>\s*<h4 id=[^>]+>A heading</h4>", html)


def test_without_any_cell(tmp_path):
    text, html = pages(tmp_path, [], studies=("profile",))
    assert "No cell was profiled." in text and "No profile cell is in the tables." in html


def test_only_lost_cells(tmp_path):
    rows = [made.cell(status="failed", reason="exit code 3"), made.cell("bf16", status="missing", reason="not run")]
    text, html = pages(tmp_path, rows, studies=("profile",))
    for page in (text, html):
        assert "exit code 3" in page and "not run" in page and "No cell was profiled." in page
    assert " class=part>" not in html


@pytest.mark.parametrize("lacking", ["kernels", "categories", "attention", "busy", "api_gaps", "api_calls", "checks"])
def test_a_table_may_be_missing(tmp_path, lacking):
    text, html = pages(
        tmp_path, [made.cell()], change=lambda frames: frames.pop(f"profile_{lacking}"), studies=("profile",)
    )
    assert " class=part>" in html and "#### Phases" in text
