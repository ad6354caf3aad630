"""The chapter on published figures, against ratios worked out by hand; and the committed figures beside the example."""

import committed_example
import published_maker as made
import pytest
from chapter_checks import check, example, told, values
from golden import TEMPLATES
from pages import frame_of, markdown_page
from stepscope.report.chapters.published import chapter
from stepscope.report.data.spotlight import Machine
from stepscope.report.page import Request
from stepscope.tables import published

AGREE = "do published figures agree with ours"
H100_OVER_A100 = {"products": 66.9 / 19.5, "memory": 3350 / 2039}
BAD = "<script>alert(1)</script>|`{times}` [x](y) *b* $c$"


def own(folder, *figures, **tables):
    found = chapter(Machine(made.write(folder, figures, **tables)))
    check(found)
    return told(found)


def test_without_a_figure_of_a_measured_cell_there_is_no_chapter(tmp_path):
    assert chapter(Machine(made.write(tmp_path / "none"))) is None
    assert chapter(Machine(made.write(tmp_path / "other", [made.figure(3.0, context=12)]))) is None


def test_the_takeaway_counts_what_meets_and_what_is_explained(tmp_path):
    times = [made.figure(ms) for ms in (2.0, 3.0, 9.0, 1.0)]  # 1.31 to 4.29 are explained
    found = own(tmp_path, *times, made.figure(3.0, gpu=""), made.peak(10.0))[AGREE]
    expected = {"met": 6, "compared": 5, "times": 4}
    assert values(found) == expected | {"explained_by_the_hardware": 2, "better_here": 1, "worse_here": 1}


def test_a_gpu_stands_with_its_range_and_the_ratios_of_the_rates(tmp_path):
    found = own(tmp_path, *(made.figure(ms) for ms in (2.0, 3.0, 9.0)))["what of somebody, A100-SXM4-80GB, fp32"]
    numbers = values(found)
    assert {name: numbers[name] for name in ("times", "range", "middle")} == {
        **{"times": 3, "range": [2.0, 3.0, 9.0]},
        "middle": 3.0,
    }
    assert {name: numbers[name] for name in H100_OVER_A100} == pytest.approx(H100_OVER_A100)
    assert "Explained by the hardware: 2, better here: 1." in found.text


def test_reasons_are_told_by_how_many_they_concern(tmp_path):
    rows = [made.figure(3.0, gpu=""), made.figure(3.0, gpu=""), made.figure(3.0, doubt="a busy GPU")]
    rows += [made.figure(1e-9), *(made.figure(3.0, doubt=each) for each in ("a busy host", "a guess"))]
    tables = made.write(tmp_path, rows)
    *found, last = [each for each in chapter(Machine(tables)).findings if each.question == "what cannot be compared"]
    assert last.text == "2 more figures have 2 other reasons."  # no more than three are told
    assert [(values(each)["lost"], values(each)["reason"]) for each in found] == [
        *((2, "GPU not named"), (1, "a busy GPU")),
        (1, "cannot be true"),
    ]


def test_what_cannot_be_true_and_slips_are_told_with_their_source(tmp_path):
    rows = [made.figure(3.0), made.figure(1e-9, item="a table"), made.figure(2.0, note='slip: it says "2 s"')]
    found = own(tmp_path, *rows)
    assert found["what cannot be true"].text.startswith("1 figure of somebody (a table): it needs")
    assert values(found["where do texts slip"]) == {"figures": 1, "source": "somebody"}


def test_attention_stands_beside_published_rates_with_their_date(tmp_path):
    rows = [made.rate(250.0, framework="Kernel 3", date="2030-01"), made.rate(320.0, length=4096, batch=4)]
    ours = [row | {"throttle": "power cap"} for row in made.attention()]
    whole = chapter(Machine(made.write(tmp_path, rows, attention=ours)))
    found = told(whole)["how far is attention from Kernel 3"]
    assert values(found)["theirs"] == [250.0] and values(found)["range"] == [1.6]  # 400 over 250
    assert "1.60 times the published rate" in found.text
    (table,) = [each for part in whole.parts for each in part.shows if each.name == "chapter-published-attention"]
    assert [cell.text for cell in table.rows[0]][:2] == ["Kernel 3, 2030-01", "H100 80GB HBM3"]
    assert [(row[-2].text, row[-2].below, row[-1].text) for row in table.rows] == [
        ("1.60", "better here", "1.000"),
        ("1.25", "", "1.000"),
    ]
    assert all(row[-3].badges == ("throttled",) for row in table.rows)


@pytest.mark.parametrize(
    ("figures", "question"),
    [
        ([made.peak(10.5)], "Do published peaks of memory agree with ours?"),
        ([made.figure(None)], "Do published limits of memory agree with ours?"),
        ([], None),
    ],
)
def test_the_question_names_what_there_is_to_agree(figures, question, tmp_path):
    found = chapter(Machine(made.write(tmp_path, [made.figure(3.0), *figures])))
    asked = [part.question for part in found.parts if part.findings and "agree" in part.question]
    assert asked == ["Do published times agree with ours, given the GPUs?", *([question] if question else [])]


def test_memory_and_what_does_not_fit_are_told(tmp_path):
    found = own(tmp_path, made.peak(10.5), made.peak(20.0), made.figure(None))
    assert values(found["does the memory agree"]) == {"peaks": 2, "alike": 1, "range": [1.05, 2.0]}
    assert values(found["what fits here only"]) == {"cells": 1}


def test_the_committed_figures_beside_the_example_keep_the_budgets(tmp_path):
    for path in committed_example.tables().glob("*.csv"):
        if "samples" not in path.name:
            (tmp_path / path.name).symlink_to(path)
    published.write(sorted((TEMPLATES / "published").glob("*.csv")), tmp_path)
    machine = example()
    machine.tables.folder = tmp_path
    whole = chapter(machine)
    check(whole)
    tables = {each.name: each for part in whole.parts for each in part.shows}
    # FlashAttention-3 at three lengths and two d, cuDNN at two lengths in two directions: all that were measured there.
    assert len(tables["chapter-published-attention"].rows) == 3 * 2 + 2 * 2
    rows = {tuple(cell.text for cell in row[:3]): row for row in tables["chapter-published"].rows}
    # An H20 by its data sheet: 44 TFLOP/s in fp32 and 4,000 GB/s; an H200 66.9 and 4,800.
    assert [cell.text for cell in rows["write-up 002", "H20", "fp32"][5:7]] == ["1.52", "1.20"]
    assert "write-up 003" in {key[0] for key in rows}


@pytest.fixture
def hostile(tmp_path):
    """A report of which every text of a published figure is hostile, its doubt too."""
    text = dict.fromkeys(("source", "item", "gpu", "framework", "size", "note", "doubt", "date"), BAD)
    rows = [made.figure(3.0, **text), made.figure(3.0, **(text | {"doubt": "", "gpu": made.A100}))]
    rows += [made.rate(400.0, **text), made.figure(1e-9, **(text | {"impossible": "True"}))]
    tables = made.write(tmp_path, [row | {"note": f"slip: {BAD}"} for row in rows], attention=made.attention())
    places = tables.folder, tmp_path / "figures", TEMPLATES, tmp_path / "report"
    return Request(["timing", "attention"], *places, "Title", "snakemake", False, ("published",))


def test_hostile_names_stay_text(hostile):
    frame = frame_of(hostile)
    (whole,) = [each for each in frame.content.chapters if each.name == "published"]
    for text in (frame.chapter(whole), frame.section("published")):
        page = markdown_page(text)
        assert not {"script", "em"} & {tag for tag, _ in page.elements}
        assert not any(tag == "a" and attributes.get("href") == "y" for tag, attributes in page.elements)
        assert all(len(row) == len(table[0]) for table in page.tables for row in table)
        assert any(BAD in cell for table in page.tables for row in table for cell in row)
