"""The frame: page one, chapters and method in one document, all data in another, and the links between them."""

import re
from types import SimpleNamespace

import pytest
from pages import Page, frame_of
from report_maker import request_of
from stepscope.report import content
from stepscope.report.kit.blocks import Column, Picture, Table, TableCell
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.page import report

BAD = "<script>alert(1)</script> a|b `tick` [x](y)"
SHOWN = Table("t", "Times.", [Column("size", number=False), Column("ms")], [[TableCell("s"), TableCell("1", sort=1.0)]])
CHAPTER = Chapter(
    "time",
    f"Time {BAD}",
    (Finding("q", "A step takes {ms} ms.", {"ms": Number(5.0)}),),
    (
        Part("Where does it go?", (Finding("q", "There."), Finding("q", "And here.", hardware="other")), (SHOWN,)),
        Part("And what else?", (Finding("q", BAD),), (Picture("timing_phases", "Phases.", "Bars."),)),
    ),
    ("timing", "roofline"),
)


@pytest.fixture
def files(h100, monkeypatch):
    monkeypatch.setattr(content, "chapters", lambda machine: [CHAPTER])
    return report(request_of(h100.parent))


def test_a_chapter_is_told_the_same_in_both(files):
    plain, rich = files["report.md"], "".join(Page(files["index.html"]).text)
    for sentence in ("In short. A step takes 5.00 ms.", "Where does it go?", "There.", "And here.", "Table 1. Times."):
        assert sentence in rich and sentence in plain.replace("**", "")
    assert plain.index("Where does it go?") < plain.index("**Table 1.** Times.") < plain.index("And what else?")
    assert plain.index("And what else?") < plain.index("**Figure 1.** Phases.") < plain.index("Method and provenance")


def test_all_tables_of_a_chapter_are_those_that_the_data_page_has(files):
    assert 'All tables of this chapter: <a href="data.html#data-timing">Time, throughput' in files["index.html"]
    assert "data-roofline" not in files["index.html"] + files["report.md"]  # the report has no such section
    assert '<h2 id="data-timing">' in files["data.html"]


def test_what_a_chapter_says_stays_text(files):
    page = Page(files["index.html"])
    assert "".join(page.text).count(BAD) == 3  # the contents, the heading, the sentence
    assert sum(tag == "script" and "type" not in own for tag, own in page.elements) == 1
    assert ("h2", {"id": "chapter-time"}) in page.elements


def test_another_machine_is_named():
    two = content.Content(None, (), "", "", False)
    two.__dict__.update(labels=["h100", "a100"], machine=SimpleNamespace(hardware="h100"))
    assert two.told(Finding("q", "So.", hardware="a100")) == "On a100: So."
    assert two.told(Finding("q", "So.", hardware="h100")) == two.told(Finding("q", "So.")) == "So."


def test_a_link_leads_to_a_chapter_or_to_the_data(h100, monkeypatch):
    monkeypatch.setattr(content, "chapters", lambda machine: [CHAPTER])
    link = frame_of(request_of(h100.parent))._link
    assert link("time") == link("timing") == "[Time](#time-scriptalert1script-ab-tick-xy)"
    assert link("ceilings") == "[Ceilings](data.html#data-ceilings)" and link("memory") == ""


@pytest.mark.parametrize("name", ["index.html", "data.html", "report.md"])
def test_numbers_run_without_gaps(h100, name):
    text = (h100 / name).read_text(encoding="utf-8")
    for kind in ("Table", "Figure"):
        pattern = rf"<b>{kind} (\d+)\.</b>" if name.endswith("html") else rf"\*\*{kind} (\d+)\.\*\*"
        found = [int(number) for number in re.findall(pattern, text)]
        assert found == list(range(1, len(found) + 1))
