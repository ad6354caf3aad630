"""What every section is made with: comparisons, tables from columns, findings."""

import math

import pandas as pd
import pytest
from stepscope.report.kit import table
from stepscope.report.kit.blocks import Column, TableCell
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.compare import Timed, by_fields, compare, pairs, timed, verdict
from stepscope.report.kit.finding import Finding, Number, by_machine, texts


@pytest.mark.parametrize(
    ("own", "reference", "spread", "disjoint", "word"),
    [
        (Timed(10.0, 9.9, 10.1), Timed(20.0, 19.8, 20.2), 0.0, True, "faster"),
        (Timed(20.0, 19.8, 20.2), Timed(10.0, 9.9, 10.1), 0.0, True, "slower"),
        (Timed(10.0, 9.0, 11.0), Timed(10.5, 10.4, 10.6), 0.0, True, "unclear"),  # the intervals overlap
        (Timed(10.0, 9.0, 10.4), Timed(10.5, 10.4, 10.6), 0.0, True, "unclear"),  # they touch
        (Timed(10.0, 9.0, 11.0), Timed(10.5, 10.4, 10.6), 0.0, False, "faster"),
        (Timed(10.0, 9.9, 10.1), Timed(12.0, 11.9, 12.1), math.log(1.3), True, "unclear"),  # less than runs differ by
        (Timed(10.0, 9.9, 10.1), Timed(14.0, 13.9, 14.1), math.log(1.3), True, "faster"),
        (Timed(10.0), Timed(20.0), 0.0, True, "unclear"),  # no interval, no verdict
        (Timed(10.0), Timed(20.0), 0.0, False, "faster"),
        (None, Timed(20.0), 0.0, True, "unclear"),
    ],
)
def test_a_verdict_needs_more_than_chance_and_more_than_runs_differ_by(own, reference, spread, disjoint, word):
    assert verdict(own, reference, spread, disjoint=disjoint) == word


def test_a_comparison_holds_the_ratio_and_what_the_intervals_allow():
    found = compare(Timed(5.0, 4.0, 6.0), Timed(10.0, 9.0, 12.0))
    assert (found.ratio, found.low, found.high) == (2.0, 9.0 / 6.0, 12.0 / 4.0)
    assert (found.verdict, found.by_repeats, found.times) == ("faster", False, (10.0, 5.0))
    assert compare(None, Timed(1.0)) is None


def test_repeats_of_both_decide_alone_those_of_one_beside_the_intervals():
    own, reference = Timed(10.0, 9.0, 11.0), Timed(10.5, 10.0, 11.0)
    assert compare(own, reference, (0.01, 0.01)).verdict == "faster"
    assert compare(own, reference, (0.01, 0.01)).by_repeats
    assert compare(own, reference, (0.01, None)).verdict == "unclear"
    assert compare(Timed(8.0, 7.9, 8.1), reference, (0.5, None)).verdict == "unclear"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"step_median_ms": 2.0, "step_ci_low_ms": 1.0, "step_ci_high_ms": 3.0}, Timed(2.0, 1.0, 3.0)),
        ({"step_median_ms": 2.0, "step_ci_low_ms": math.nan, "step_ci_high_ms": 3.0}, Timed(2.0)),
        ({"step_median_ms": 2.0, "step_noisy": True}, Timed(2.0, noisy=True)),
        ({"step_median_ms": math.nan}, None),
        ({"step_median_ms": 0.0}, None),
        ({}, None),
    ],
)
def test_a_series_of_a_row(row, expected):
    assert timed(row, "step_") == expected


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
    assert made.notes == ["Note.", "~: noisy: the confidence interval is wider than the mark."]
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


def test_an_accepted_edit_stands_beside_the_code_that_measured():
    row = {"cell": "gpu/timing/a", "status": "ok", "command": "python", "code": "0123456789abcdef", "log": None}
    plain = commands_table(pd.DataFrame([row | {"accepted": None}]), "timing")
    assert [column.label for column in plain.columns] == ["cell", "command", "code", "commit", "samples", "log"]
    rows = [row | {"accepted": "4567 on 2026-11-22: moved"}, row | {"accepted": None}]
    shown = commands_table(pd.DataFrame(rows), "timing")
    assert [cell.text for cell in shown.rows[0][2:4]] == ["0123456789ab", "4567 on 2026-11-22: moved"]
    assert shown.rows[1][3].text == "–"
