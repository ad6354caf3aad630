"""What every section is made with: comparisons, tables from columns, findings."""

import math
from functools import partial

import pandas as pd
import pytest
from stepscope.report.kit import table
from stepscope.report.kit.blocks import Column, TableCell
from stepscope.report.kit.compare import Comparison, by_fields, pairs
from stepscope.report.kit.finding import (
    Finding,
    Number,
    by_machine,
    counted,
    enough,
    speed,
    texts,
    without_verdict,
)
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.kit.order import options, plainly_recorded, way_of
from stepscope.report.kit.web_table import files_line
from stepscope.report.kit.webpage import WebBlocks
from stepscope.report.studies.page_one.tables import time_cell
from stepscope.report.studies.timing.tables import phase_cell


def compared(ratio=2.0, verdict="faster", low=1.9, high=2.1, margin=1.02) -> Comparison:
    return Comparison(ratio, low, high, verdict, margin, (ratio, 1.0))


SINGLE = compared(verdict="unclear", low=None, high=None)


def test_what_is_enough_for_a_sentence():
    assert enough(comparison=compared()) and not enough(comparison=SINGLE)
    assert enough(comparison=compared(verdict="not comparable", low=None, high=None))
    assert enough(change=compared(1.03)) and enough(change=compared(0.97)) and not enough(change=compared(1.01))
    assert not enough(change=compared(1.03, margin=1.05))


def test_verdicts_are_counted_with_the_names_of_all_but_the_faster_ones():
    found = [("a", compared()), ("b", compared(verdict="same")), ("c", compared()), ("d", SINGLE)]
    assert counted(found) == ("faster in 2 of 4 cells, same in 1 (b)", ["faster", "same"])
    assert counted([("d", SINGLE)]) == ("", [])
    most = [("a", compared(verdict="slower")), ("b", compared(verdict="slower")), ("c", compared())]
    assert counted(most, is_most_first=True)[0] == "slower in 2 of 3 cells, faster in 1 (c)"


def test_single_processes_are_told_once():
    assert [each.text for each in without_verdict([SINGLE, SINGLE, None])] == [
        "Single process, or two that disagree: no verdict."
    ]
    (told,) = without_verdict([compared(), SINGLE])
    assert told.text == "Single process, or two that disagree: no verdict in 1 of 2 comparisons."
    assert without_verdict([compared()]) == without_verdict([None]) == []


def test_a_ratio_is_printed_with_its_interval():
    assert str(speed(compared(), ("a",))) == "2.0 [1.9, 2.1]" and str(speed(SINGLE, ())) == "2.00"


@pytest.mark.parametrize(
    ("found", "text", "below"),
    [
        (compared(), "2.00", "[1.9, 2.1]"),
        (compared(0.5, "slower", 0.48, 0.52), "0.50", "[0.48, 0.52] slower"),
        (compared(1.0, "same", 0.99, 1.01), "1.000", "[0.990, 1.010] same"),
        (compared(1.05, "unclear", 0.95, 1.15), "(1.05)", "[0.9, 1.1]"),
        (compared(2.0, "not comparable", None, None), "(2.00)", "not comparable"),
        (SINGLE, "2.00", ""),
    ],
)
def test_a_ratio_in_a_table(found, text, below):
    cell = table.times_as_fast(found)
    assert (cell.text, cell.sort) == (text, found.ratio)
    assert cell.below.split("] ")[-1] == below.split("] ")[-1] and cell.below.startswith(below[:4])


def test_a_table_says_only_what_its_ratios_need():
    assert (
        table.verdict_note([SINGLE, None]) == "Single process, or two that disagree: no verdict."
        and table.verdict_note([]) == ""
    )
    note = table.verdict_note([compared(), SINGLE])
    assert (
        note.endswith("Without an interval: a single process, or two that disagree; no verdict.")
        and "brackets" not in note
    )
    assert "Same: within ± 2.0 %" in table.verdict_note([compared(1.0, "same", 0.99, 1.01)])
    assert "In brackets" in table.verdict_note([compared(1.05, "unclear", 0.95, 1.15)])


def test_pairs_are_of_the_same_point_and_differ_in_the_axis():
    rows = [
        {"size": size, "batch": batch, "precision": precision}
        for size, batch, precision in [
            ("s", math.nan, "bf16"),
            ("s", math.nan, "fp32"),
            ("m", 4.0, "fp32"),
            ("m", 8.0, "bf16"),
        ]
    ]
    assert list(pairs(rows, "precision", "fp32", by_fields("size", "batch"))) == [(rows[0], rows[1])]


COLUMNS = [
    Column("name", value="name", number=False),
    Column("count", value="count", show=lambda value: f"{value:,.0f}"),
    Column("half", value=lambda row: row["count"] / 2),
    Column("marks", value=lambda row: TableCell("!", badges=row["badges"])),
    Column("never", value="never", optional=True),
]


def test_a_table_has_a_line_for_each_row_and_omits_optional_columns_without_values():
    rows = [
        {"name": "a", "count": 1200.0, "badges": ("noisy",)},
        {"name": None, "count": math.nan, "badges": ()},
    ]
    made = table.build("name", "Caption.", COLUMNS, rows, ["Note.", ""], grouped=True)
    assert [column.label for column in made.columns] == ["name", "count", "half", "marks"]
    assert [[cell.text for cell in line] for line in made.rows] == [["a", "1,200", "600", "!"], ["–", "–", "–", "!"]]
    assert made.rows[0][1].sort == 1200.0
    assert made.notes == [
        "Note.",
        "~: noisy: the 95 % confidence interval is wider than the configured mark.",
    ]
    assert made.grouped and not made.folded
    assert table.build("name", "Caption.", COLUMNS, []) is None


def test_a_badge_can_mean_something_else_in_one_table():
    rows = [{"name": "a", "count": 1.0, "badges": ("oom",)}]
    assert table.build("t", "", COLUMNS, rows, meanings={"oom": "too large"}).notes == ["OOM: too large."]
    assert table.build("t", "", COLUMNS, rows, legend=False).notes == []


def test_reasons_are_told_once_with_the_rows_that_they_are_about():
    rows = [
        {"status": "unsupported", "reason": "no bf16.", "name": "a"},
        {"status": "failed", "reason": None, "name": "b"},
        {"status": "unsupported", "reason": "no bf16.", "name": "c"},
        {"status": "ok", "reason": None, "name": "d"},
    ]
    assert table.reasons(rows, lambda row: row["name"]) == [
        "failed (b): no reason was recorded.",
        "n/a (a and c): no bf16.",
    ]


def test_the_badges_of_a_cell():
    assert table.marks({"status": "failed", "throttle": "power", "other_processes": 2.0}) == (
        "failed",
        "throttled",
        "shared",
    )
    assert table.marks({"status": "ok", "throttle": None, "other_processes": math.nan}) == ()
    assert table.lost({"status": "oom"}) == ("oom",)
    assert table.lost({"status": "ok"}) == ()


def test_an_unsteady_series_has_a_badge_of_its_own():
    unsteady = {"step_median_ms": 2.0, "step_mean_ms": 2.0, "step_noisy": True, "step_unsteady": True}
    noisy = unsteady | {"step_unsteady": False}
    for cell_of in (time_cell, partial(phase_cell, phase="step")):
        assert [cell_of(row).badges for row in (unsteady, noisy)] == [("unsteady",), ("noisy",)]


def test_text_is_made_of_numbers_and_leaves_other_braces_alone():
    numbers = {"time": Number(12.345, ("a", "b")), "most": Number(0.5, ("b", "c"), lambda value: f"{value:.0%}")}
    found = Finding("why", "It takes {time} ms {or so}.", numbers, cause="{most} is idle.", advice="Fuse.")
    assert found.text == "It takes 12.3 ms {or so}. 50% is idle. Fuse."
    assert found.cells == ("a", "b", "c")


def test_findings_are_listed_machine_by_machine():
    told = [Finding("", "One.", hardware="b"), Finding("", "Two."), Finding("", "Three.", hardware="a")]
    assert by_machine(told, ["a", "b"]) == [("", ["Two."]), ("a", ["Three."]), ("b", ["One."])]
    assert by_machine(told, ["a", "b"], alone="a") == [("a", ["Two.", "Three."]), ("b", ["One."])]
    assert by_machine(told, ["b"]) == [("", ["One.", "Two.", "Three."])]
    assert texts(told[:2], several_machines=True) == ["On b: One.", "Two."]


def test_a_findings_answer_and_its_reasons_can_stand_apart():
    whole = Finding("q", "It takes {ms} ms.", {"ms": Number(5.0)}, cause="Since {ms}.", advice="Do less.")
    assert (whole.verdict, whole.reasons) == ("It takes 5.00 ms.", "Since 5.00. Do less.")
    assert whole.text == "It takes 5.00 ms. Since 5.00. Do less."
    assert Finding("q", "Yes.").reasons == "" and Finding("q", "Yes.").text == "Yes."


def test_an_anchor_is_a_headings_name_in_either_page():
    words = "Time, throughput: one [x]"
    web, plain = WebBlocks(None), MarkdownBlocks(None)
    html, headings = web.page(web.heading(2, words, "chapter-time"))
    assert headings == [(2, "chapter-time", words)] and html == f'<h2 id="chapter-time">{words}</h2>\n'
    assert web.anchor(words, "chapter-time") == "#chapter-time"
    assert plain.heading(2, words, "chapter-time") == r"## Time, throughput: one \[x\]"
    assert plain.anchor(words, "chapter-time") == "#time-throughput-one-x"  # as GitHub names it


@pytest.mark.parametrize(
    ("stem", "kinds", "rows", "line"),
    [
        ("t", ("csv",), 2, '<p class=files><a href="tables/t.csv" aria-label="CSV of Table 1">CSV</a></p>'),
        ("t", (), 2, "<p class=files></p>"),
        ("t", (), 1000, "<p class=files><noscript>A script draws its 1,000 rows.</noscript></p>"),
        ("", (), 1000, "<p class=files><noscript>A script draws its 1,000 rows.</noscript></p>"),
        ("", (), 2, ""),
    ],
)
def test_below_a_table_there_is_room_for_its_tools_with_and_without_files(stem, kinds, rows, line):
    # The page's script puts copying, the count of filtered rows and the rows that it does not draw at first there.
    assert files_line(stem, kinds, rows, "Table 1.") == line


def test_what_was_recorded_is_an_option_but_no_other_way_to_run():
    rows = [{}, {"detail": "python"}, {"start": "cold", "attention": "sdpa"}, {"start": "warm", "detail": "kernels"}]
    frame = pd.DataFrame(rows)
    found = options(frame).tolist()
    assert found == ["", "detail=python", "attention=sdpa start=cold", ""]
    assert [way_of(each) for each in found] == ["", "", "attention=sdpa", ""]
    assert plainly_recorded(frame).index.tolist() == [0, 3]
    assert plainly_recorded(frame[[]]).index.tolist() == [0, 1, 2, 3]  # a table of before these columns
