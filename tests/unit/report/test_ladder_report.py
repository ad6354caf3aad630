"""The ladder's tables against numbers worked out from synthetic_ladder, and the whole report."""

import re

import pytest
import synthetic_ladder as made
from pages import Page, data_pages, markdown_page
from report_maker import ROOT
from stepscope.figures import theme
from stepscope.report.data.ladder import ladders, recomputed
from stepscope.report.kit.formatting import times
from stepscope.report.page import Request
from stepscope.report.studies.ladder import section as section_module
from stepscope.report.studies.ladder.tables_checkpoint import checkpoint_table, rule_table
from stepscope.report.studies.ladder.tables_rungs import gains_table, rungs_table
from stepscope.tables.reader import Tables

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z* </details>"
FIGURES = ("ladder_steps", "ladder_rates", "ladder_checkpoint")


def tables_of(folder, cells) -> Tables:
    return Tables(made.write(folder / "tables", cells), ["ladder"])


def all_cells(size="small", context=128, scale=1.0, hardware="gpu"):
    place = (size, context, scale, hardware)
    return [*made.chain(*place), made.whole(*place), *made.checkpoints(*place)]


def pages(folder, cells):
    """(Markdown, HTML) of a report with these cells; every figure is an empty one."""
    tables = made.write(folder / "tables", cells)
    for name in FIGURES:
        theme.write(lambda _tables: theme.empty("not drawn in this test"), None, folder / "figures", name)
    return data_pages(
        Request(["ladder"], tables, folder / "figures", ROOT / "report", folder / "report", "Title", "snakemake", False)
    )


def section(text: str) -> str:
    return text[text.index("## The ladder: one change at a time") :]


def column(table, name: str, group: str = "", below: bool = False) -> list[str]:
    at = next(i for i, each in enumerate(table.columns) if each.label == name and group in each.group)
    return [row[at].below if below else row[at].text for row in table.rows]


# Tables ---------------------------------------------------------------------------------------------------------------


def test_rungs_in_the_plans_order(tmp_path):
    (ladder,) = ladders(tables_of(tmp_path, all_cells()))
    table = rungs_table(ladder)
    assert column(table, "rung")[::4] == ["fp32, naive", "Triton attention", "whole model compiled"]
    assert column(table, "step")[:2] == ["40.0", "25.0"] and column(table, "step", below=True)[0] == "[39.8, 40.2]"
    assert column(table, "rung before")[:3] == ["–", "× 1.60", "× 1.25"]
    assert column(table, "rung before", below=True)[-1] == "[1.102, 1.120], against blocks compiled"
    assert column(table, "first rung")[-2:] == ["× 10.0", "× 4.44"]
    assert column(table, "peak memory")[0] == "4.00" and column(table, "launches")[7] == "14"
    assert column(table, "compiling")[4:6] == ["–", "21.5"] and column(table, "MFU")[-2] == "9.57"
    assert "forward+backward" not in [each.label for each in table.columns]


def test_what_has_no_step_is_visible(tmp_path):
    cells = made.chain()
    cells[0] = made.without_step(cells[0])
    cells[1] = made.without_step(cells[1], "unsupported", "no TF32 here", both=True)
    cells[2] = made.unmeasured(cells[2], "failed", "it broke")
    (ladder,) = ladders(tables_of(tmp_path, cells))
    table = rungs_table(ladder)
    at = [each.label for each in table.columns].index("step")
    assert [row[at].badges for row in table.rows[:3]] == [("oom",), ("unsupported",), ("failed",)]
    assert column(table, "forward+backward")[0] == "36.0"
    # SDPA against fp32, naive: forward and backward, 12 of 36 ms.
    assert (column(table, "rung before")[3], column(table, "rung before", below=True)[3]) == (
        "× 3.00", "[2.98, 3.02], f+b against fp32, naive",
    )  # fmt: skip
    assert "n/a (TF32): no TF32 here." in table.notes and "failed (bf16): it broke." in table.notes


def test_only_the_first_rung_with_a_time_is_called_the_first(tmp_path):
    cells = [*made.chain(), made.whole()]
    cells[0], cells[5] = made.unmeasured(cells[0]), made.unmeasured(cells[5])
    table = gains_table("gpu", ladders(tables_of(tmp_path, cells)))
    first = [name for name, below in zip(column(table, "change"), column(table, "small 128", below=True), strict=True)
             if below == "first"]  # fmt: skip
    assert first == ["TF32"]


def test_checkpoints_by_k_and_what_they_cost(tmp_path):
    (one,) = recomputed(ladders(tables_of(tmp_path, all_cells())))
    table = checkpoint_table("gpu", [one])
    assert column(table, "k") == ["none", "1", "2", "4"] and column(table, "k", below=True)[1] == "best"
    # 3 GiB × (0.4 + 0.1 k) against 2.916 GiB.
    assert column(table, "± %") == ["–", "−49", "−38", "−18"]
    assert column(table, "step") == ["16.0", "20.0", "20.0", "20.0"]
    # 4 ms more; the phased forward pass of the rung takes 1.05 × 12 / 4 ms.
    assert one.added_over_forward(one.rows[0]) == pytest.approx(4 / 3.15)
    (rule,) = rule_table("gpu", [one]).rows
    assert [cell.text for cell in rule][1:3] == ["12", "1.50 MiB"] and rule[6].text == "3.46"
    assert (rule[-1].text, rule[-1].below) == ("1", "of 1, 2 and 4")


def test_a_k_without_a_result_was_not_tried(tmp_path):
    cells = [*made.chain(), *made.checkpoints()]
    cells[-1] = made.unmeasured(cells[-1])
    (rule,) = rule_table("gpu", recomputed(ladders(tables_of(tmp_path, cells)))).rows
    assert (rule[-1].text, rule[-1].below) == ("1", "of 1 and 2")


def test_the_best_k_is_the_fastest_of_those_alike(tmp_path):
    cells = made.checkpoints(every=(1,)) + made.checkpoints(scale=0.9, every=(2,))
    cells[1].record["summary"]["modes"]["step"]["peak_allocated_bytes"] = 1.505 * 2**30  # 1.5 GiB is k = 1
    (one,) = recomputed(ladders(tables_of(tmp_path, [*made.chain(), *cells])))
    assert one.best["checkpoint"] == "2"


def test_where_a_step_ran_out_of_memory_what_it_reached_is_shown(tmp_path):
    (lost,) = made.checkpoints(every=(2,))
    lost = made.without_step(lost)  # forward and backward fit
    for mode, peak in (("forward-backward", 63.5), ("step", 76.5)):
        lost.record["summary"]["modes"][mode]["peak_allocated_bytes"] = peak * 2**30
    (one,) = recomputed(ladders(tables_of(tmp_path, [*made.chain(), lost])))
    table = checkpoint_table("gpu", [one])
    assert ["76.5 GiB", ("oom",)] in [[cell.text, cell.badges] for cell in table.rows[-1]]


def test_compiled_cells_have_their_note(tmp_path):
    cells = [made.cell("small", 128, "bf16", made.BLOCK | {"checkpoint": 2}, peak=2**30)]
    table = checkpoint_table("gpu", recomputed(ladders(tables_of(tmp_path, cells))))
    assert any("compiled blocks keep what the compiler chooses" in note for note in table.notes)


@pytest.mark.parametrize("ratio, text", [(0.632, "× 0.63"), (1.0, "× 1.00"), (12.34, "× 12.3"), (None, "")])
def test_ratios_as_text(ratio, text):
    assert times(ratio) == text


# The report -----------------------------------------------------------------------------------------------------------


def test_sections_figures_and_tables(tmp_path):
    text, _ = pages(tmp_path, all_cells())
    assert re.findall(r"^### (.+)$", section(text), re.MULTILINE) == [
        "Step by step", "Arithmetic rate over the rungs", "Compiled block by block, or as a whole",
        "Memory for time: checkpointing", "The same step on every rung", "Commands of the ladder cells",
    ]  # fmt: skip
    for name in FIGURES:
        assert text.count(f"figures/{name}.svg") == 1
    assert not re.search(r"[{}]|\bnan\b|\bNone\b", section(text)) and "None" not in section(text)
    for table in markdown_page(text).tables:
        assert all(len(row) == len(table[0]) for row in table)


def test_only_what_ran_has_its_part(tmp_path):
    text, _ = pages(tmp_path, made.chain())
    assert (
        "### Memory for time" not in text and "ladder_checkpoint.svg" not in text and "as a whole" not in section(text)
    )


@pytest.mark.parametrize("status", ["unsupported", "failed", "missing"])
def test_only_lost_cells(tmp_path, status):
    cells = [
        made.without_step(cell, status, "a reason", both=True)
        if status == "unsupported"
        else made.unmeasured(cell, status, "a reason")
        for cell in all_cells()
    ]
    text, html = pages(tmp_path, cells)
    assert "No rung of the ladder was measured." in text and "ladder_steps.svg" not in text
    assert not re.search(r"\bnan\b|\bNone\b", section(text)) and "fused AdamW" in html


def test_without_any_cell(tmp_path):
    text, _ = pages(tmp_path, [])
    assert "No rung of the ladder was measured." in text and "No ladder cell is in the tables." in text


def test_what_comes_from_outside_stays_text(tmp_path):
    cells = [*made.chain(), made.unmeasured(made.whole(), "failed", BAD)]
    cells[1].record["telemetry"]["throttle"] = [BAD]
    text, html = pages(tmp_path, cells)
    rich, plain = Page(html), markdown_page(text)
    assert sum(tag == "script" and "type" not in own for tag, own in rich.elements) == 1
    assert not any(tag == "script" for tag, _ in plain.elements)
    assert html.count("<details") == html.count("</details>")
    assert all(len(row) == len(table[0]) for table in plain.tables for row in table)


def test_of_many_ladders_the_last_are_closed(tmp_path):
    cells = [cell for context in range(100, 110) for cell in all_cells("small", context)]
    context = section_module.context(tables_of(tmp_path, cells))
    assert [table.folded for table in context["rungs"]] == [False] * 6 + [True] * 4
    assert context["agreement"][0].folded and "2 more" in " ".join(context["gains"][0].notes)
