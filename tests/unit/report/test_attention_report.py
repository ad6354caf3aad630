"""The attention section in a whole report, as parsers see it."""

import re

import pytest
import synthetic_attention as made
from pages import Page, markdown_page, undrawn_pages

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z* </details>"
FIGURES = ("attention_time", "attention_memory", "attention_head_dimension", "attention_rates", "ceilings")


def pages(folder, rows, limits=(), studies=("ceilings", "attention")):
    """(Markdown, HTML) of a report with these rows; every figure is an empty one."""
    tables = made.write(folder / "tables", rows, limits)
    return undrawn_pages(folder, tables, studies, FIGURES)


def section(text: str) -> str:
    return text[text.index("## Attention by itself") :]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    rows = made.grid()
    lost = [row for row in rows if row["implementation"] == "flex" and row["d_head"] == 16]
    rows = [row for row in rows if row not in lost] + made.without_result(lost, "unsupported", "no kernel")
    return pages(tmp_path_factory.mktemp("whole"), rows, made.ceilings())


def test_sections_figures_and_tables(whole):
    text, html = whole
    headings = re.findall(r"^### (.+)$", section(text), re.MULTILINE)
    assert headings == [
        "Time by length", "Memory before backward", "Growth with the length and with d",
        "What TF32 changes in attention", "Arithmetic rates", "Where memory runs out", "What compiling and tuning cost",
        "Every shape",
        "Commands of the attention cells",
    ]  # fmt: skip
    for name in FIGURES[:4]:
        assert text.count(f"figures/{name}.svg") == 1
    numbers = [int(number) for number in re.findall(r"\*\*Table (\d+)\.\*\*", text)]
    assert numbers == sorted(numbers) and html.count('<div class=table-block id="table-') == len(numbers)
    assert "not causal: time and memory by length" in html
    assert "python scripts/time_attention.py --implementation triton" in html


def test_a_command_for_each_cell(whole):
    cells = {row["cell"] for row in made.grid()}
    (table,) = [table for table in Page(whole[1]).tables if table[0][:2] == ["cell", "command"] and len(table) > 5]
    assert {row[0] for row in table[1:]} == cells and len(table) == 1 + len(cells)


def test_every_row_has_the_columns_of_its_head(whole):
    for table in markdown_page(whole[0]).tables:
        assert all(len(row) == len(table[0]) for row in table)


def test_nothing_is_left_to_be_filled_in(whole):
    assert not re.search(r"[{}]|\bnan\b|\bNone\b", section(whole[0]))
    assert "n/a (flex, d = 16): no kernel." in whole[0]


def test_what_comes_from_outside_stays_text(tmp_path):
    rows = made.cell() + made.without_result(made.cell("flex"), "failed", BAD)
    rows += [row | {"implementation": BAD, "precision": BAD} for row in made.cell("triton")]
    rows = [row | {"hardware": BAD, "command": BAD, "throttle": BAD} for row in rows]
    text, html = pages(tmp_path, rows)
    rich, plain = Page(html), markdown_page(text)
    assert sum(tag == "script" and "type" not in own for tag, own in rich.elements) == 1
    assert not any(tag == "script" for tag, _ in plain.elements)
    assert html.count("<details") == html.count("</details>")
    assert all(len(row) == len(table[0]) for table in plain.tables for row in table)
    assert any(BAD in cell for table in rich.tables for row in table for cell in row)


def test_without_any_cell(tmp_path):
    text, html = pages(tmp_path, [])
    assert "No pass of attention was timed." in text and "No attention cell is in the tables." in html


@pytest.mark.parametrize("status", ["unsupported", "failed", "missing"])
def test_only_lost_cells(tmp_path, status):
    lost = ("device", "device_name", "device_memory_bytes", "throttle", "other_processes")
    rows = [row | dict.fromkeys(lost) for row in made.without_result(made.cell(), status, "a reason")]
    text, html = pages(tmp_path, rows)
    assert "a reason" in text and "No pass of attention was timed." in html and "attention_time.svg" not in text
    assert "nan" not in section(text) and "None" not in section(text)


def test_on_a_cpu(tmp_path):
    names = ("naive", "compiled", "sdpa-flash")
    rows = [row for name in names for row in made.cpu(made.cell(name, precision="fp32", lengths=[128, 512]))]
    text, _ = pages(tmp_path, rows)
    assert "MiB" not in section(text).replace("mebibytes", "") and "attention_memory.svg" not in text
    assert "| 16 | 128 | 0.0625 / 0.125 |" in text


def test_machines_side_by_side(tmp_path):
    text, _ = pages(tmp_path, [*made.cell(), *made.cell(hardware="other")])
    for name in ("gpu", "other"):
        assert f"Median time of a pass in ms, forward / backward, bf16, on {name}; batch 8" in text
        assert f"*On {name}*\n\n- From length" in text
