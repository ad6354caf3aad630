"""Numbers as text, against values worked out by hand."""

import math

import pytest
from markdown_it import MarkdownIt
from pages import markdown_page
from stepscope.report.kit import escaping, formatting


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (12.3456, 0.0512, "12.35 ± 0.05"),
        (129.189, 48.891, "129 ± 49"),
        (5.8193, 0.0214, "5.819 ± 0.021"),
        (1234.567, 3.2, "1,235 ± 3"),
        (0.01234, 0.00056, "0.01234 ± 0.00056"),
        (250.0, 0.00001, "250.0 ± <0.1"),
        (250.0, math.nan, "250.0"),
    ],
)
def test_mean_and_standard_deviation(mean, std, text):
    assert formatting.mean_and_std(mean, std) == text


def test_interval_decides_the_digits_of_the_median():
    assert formatting.median_and_interval(12.34567, 12.30, 12.39) == "12.35 [12.30, 12.39]"
    assert formatting.median_and_interval(565.81, 556.2, 575.4) == "566 [556, 575]"
    assert formatting.median_and_interval(12.34567, math.nan, math.nan) == "12.35"


def test_units():
    assert formatting.gib(80 * 2**30) == "80.0"
    assert formatting.parameters(128_625_408) == "128.6 M"
    assert formatting.parameters(3_406_809_600) == "3.41 B"
    assert formatting.percent(0.4567) == "46 %"
    assert [formatting.plus_minus(share) for share in (0.0037, 1, 40.87)] == ["± 0.37 %", "± 100 %", "over ± 100 %"]
    assert formatting.duration(7500) == "2 h 05 min"
    assert formatting.significant(88_000.4, 4) == "88,000"
    assert formatting.significant(-0.04321, 2) == "\N{MINUS SIGN}0.043"
    assert formatting.significant(math.nan) == ""


def test_listing_counts_what_it_leaves_out():
    assert formatting.listing(["a"]) == "a"
    assert formatting.listing(["a", "b", "c"]) == "a, b and c"
    assert formatting.listing(list("abcdef"), most=4) == "a, b, c, d and 2 more"


HOSTILE = [
    "<script>alert(1)</script>",
    "a|b",
    "`code` ``more``",
    "\"quotes\" 'single'",
    "*bold* _slanted_ ~~gone~~",
    "[link](javascript:alert(1))",
    "![image](http://example.invalid/x.png)",
    "&lt;b&gt; &amp;",
    "back\\slash \\| pipe",
    "# no heading",
    "- no list",
    "1. no list",
    "line\nbreak\r\nand\ttab",
    "$x$",
    "\ue0003\ue001",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_reads_as_it_was(text):
    plain = escaping.one_line(text)
    page = markdown_page(escaping.markdown(text))
    assert [tag for tag, _ in page.elements] == ["p"]
    assert "".join(page.text).strip() == plain
    safe = MarkdownIt("commonmark", {"html": False}).render(escaping.markdown(text))
    assert "<script" not in safe and "<img" not in safe


@pytest.mark.parametrize("text", HOSTILE)
def test_a_table_keeps_its_columns(text):
    row = f"| {escaping.markdown(text)} | {escaping.markdown_code(text)} | end |"
    page = markdown_page(f"| a | b | c |\n| --- | --- | --- |\n{row}\n")
    assert page.tables == [[["a", "b", "c"], [escaping.one_line(text)] * 2 + ["end"]]]


@pytest.mark.parametrize("told, every, text", [(1, 1, "1 cell"), (5, 5, "all 5 cells"), (4, 5, "4 of 5 cells")])
def test_over_how_many_cells_a_range_is(told, every, text):
    assert formatting.of_cells(told, every) == text


def test_an_error_of_double_precision_is_no_share():
    assert formatting.percent(1 - math.exp(math.log(0.7)) / 0.7 + 2.2e-16) == "0.0 %"
    assert formatting.percent(-2e-16) == "0.0 %"
    assert formatting.percent(1e-9) != "0.0 %"
