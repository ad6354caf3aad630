"""Tables as CSV, LaTeX and Typst, and as JSON in a page."""

import csv
import io
import json
from dataclasses import replace

import pytest
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.exports import Exports, as_csv, as_latex, as_typst, latex, typst
from stepscope.report.kit.files import Files
from stepscope.report.kit.web_table import MOST_PLAIN, embedded, pack, table_html

BAD = """</script><script>alert(1)</script> a|b `c` "d" 'e' \\ & % $ # _ { } ~ ^ [x](y)"""
COLUMNS = [Column("size", number=False), Column("step", "ms", "free"), Column("peak", "GiB", "free")]
ROWS = [
    [TableCell("small"), TableCell("1,234.5", "[1,200, 1,260]", sort=1234.5), TableCell("−2.0", sort=-2.0)],
    [TableCell("x,l", badges=("throttled",)), TableCell("", badges=("oom",)), TableCell("12 ± 3", sort=12.0)],
]
TABLE = Table("times-a b/c", "Times.", COLUMNS, ROWS, ["A note."])


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_csv_has_numbers_that_a_program_reads_and_remarks_beside_them():
    assert read(as_csv(TABLE)) == [
        ["size", "size, remark", "free: step (ms)", "free: step (ms), remark", "free: peak (GiB)"],
        ["small", "", "1234.5", "[1,200, 1,260]", "-2.0"],
        ["x,l", "throttled", "", "OOM", "12 ± 3"],
    ]


def test_csv_has_the_whole_of_a_shortened_name():
    shown = Table("t", "", COLUMNS[:1], [[TableCell("gemm…128", title="gemm_a_b_128")]])
    assert read(as_csv(shown))[1] == ["gemm_a_b_128"]


def test_latex_has_booktabs_rules_groups_and_notes():
    lines = as_latex(TABLE).splitlines()
    assert r"\begin{tabular}{lrr}" in lines and lines.count(r"\toprule") == lines.count(r"\bottomrule") == 1
    assert lines[6:9] == [r" & \multicolumn{2}{c}{free} \\", r"\cmidrule(lr){2-3}", r"size & step (ms) & peak (GiB) \\"]
    assert r"small & 1,234.5 {[}1,200, 1,260{]} & \(-\)2.0 \\" in lines
    assert r"x,l (throttled) & OOM & 12 \(\pm\) 3 \\" in lines and r"\par\footnotesize A note." in lines


@pytest.mark.parametrize(("rows", "kind"), [(45, "table"), (46, "longtable")])
def test_a_long_table_breaks_over_pages(rows, kind):
    text = as_latex(Table("t", "Times.", COLUMNS, ROWS[:1] * rows))
    assert rf"\begin{{{kind}}}" in text and rf"\end{{{kind}}}" in text and text.count(r"\caption") == 1


def test_latex_shows_hostile_text():
    assert latex("a_b & 50 % {x} #1 $y$") == r"a\_b \& 50 \% \{x\} \#1 \$y\$"
    assert latex("--precision –") == r"-{}-precision \textendash{}" and latex("[a|b]") == r"{[}a\textbar{}b{]}"
    assert latex("\\input~^<>") == r"\textbackslash{}input\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}"


def test_typst_has_strings_alone():
    assert typst('a "b" \\ #c') == r'"a \"b\" \\ #c"'
    text = as_typst(TABLE)
    assert 'caption: [#"Times."]' in text and "columns: 3," in text and "align: (left, right, right,)," in text
    assert '"x,l (throttled)", "OOM", "12 ± 3",' in text


def test_each_table_has_files_of_its_own():
    exports = Exports()
    other = Table("times-a b/c", "Others.", COLUMNS, ROWS)
    again = replace(TABLE, columns=[replace(column, value=lambda row: row) for column in COLUMNS])
    assert [exports.add(each) for each in (TABLE, other, again)] == ["times-a_b_c", "times-a_b_c-2", "times-a_b_c"]
    assert exports.add(Table("../..", "", COLUMNS, ROWS)) == "table"
    names = [name for name, _ in exports.files()]
    assert len(names) == len(set(names)) == 9 and names[0] == "tables/times-a_b_c.csv"


def test_embedded_json_ends_no_script(tmp_path):
    files = Files(tmp_path, tmp_path, tmp_path, tmp_path)
    cell = TableCell(BAD, BAD, sort=0.0, title=BAD)
    text = embedded([[pack(cell, files)], "\u2028"])
    assert "<" not in text and "&" not in text and "\u2028" not in text
    assert json.loads(text) == [[[BAD, 0.0, BAD, [], "", None, BAD]], "\u2028"]


def test_a_packed_cell_is_as_short_as_it_can_be(tmp_path):
    (tmp_path / "log").write_text("")
    files = Files(tmp_path, tmp_path, tmp_path, tmp_path)
    assert pack(TableCell("a"), files) == "a" and pack(TableCell("0", sort=0.0), files) == ["0", 0.0]
    assert pack(TableCell("log", link="log"), files) == ["log", None, "", [], "log"]
    assert pack(TableCell("log", link="gone"), files) == "log"
    assert pack(TableCell("a", code=True), files) == ["a", None, "", [], "", True]


def test_names_in_columns_that_wrap_break_at_underscores_and_never_in_numbers(tmp_path):
    text = "module.config.vocab_size=0.125, of a<b"
    columns = [Column("what", number=False, wrap=True), Column("name", number=False)]
    html = table_html(
        Table("t", "T.", columns, [[TableCell(text, "x_y"), TableCell(text)]]), "", Files(*[tmp_path] * 4)
    )
    word, below = "module.<wbr>config.<wbr>vocab_<wbr>size=<wbr>0.125,", "<span class=word>x_<wbr>y</span>"
    assert f"<span class=word>{word}</span> of a&lt;b<small>{below}</small><td" in html
    assert ">module.config.vocab_size=0.125, of a&lt;b</tbody>" in html


@pytest.mark.parametrize(("rows", "is_plain"), [(MOST_PLAIN, True), (MOST_PLAIN + 1, False)])
def test_the_rows_of_a_long_table_are_json(tmp_path, rows, is_plain):
    files = Files(tmp_path, tmp_path, tmp_path, tmp_path)
    html = table_html(Table("t", "Times.", COLUMNS, ROWS[:1] * rows), "Table 1.", files)
    assert html.count("<td") == (2 * rows if is_plain else 0)
    assert ("<script type=application/json class=rows>" in html) != is_plain
