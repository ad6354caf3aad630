"""Reports of all, few and no tables: nothing is printed as missing, nothing is said twice, links
live."""

import math
import re

import made_up
import pytest
from common import ROOT, one_line
from stepscope.config.studies import STUDIES
from stepscope.report import book
from stepscope.results.schema import TABLES

TEMPLATES = sorted((ROOT / "report" / "chapters").glob("*.md.j2"))


@pytest.fixture
def written(request_for, folders):
    """(report.md, index.html) of the report of a kind of tables."""

    def made(kind):
        request = request_for(folders[kind])
        book.write(request)
        return (request.out / "report.md").read_text(), (request.out / "index.html").read_text()

    return made


def assert_sound(text):
    found = re.search(
        r"\0|None|\bnan\b|Undefined|Quantity\(|Name\(|\{\{|\}\}|\{%| \(\)|\S  \S", text
    )
    assert not found, text[max(0, found.start() - 80) : found.end() + 80]


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
@pytest.mark.parametrize(
    "left_out", [*sorted({*TABLES} - {"cells"}), *(study.name for study in STUDIES)]
)
def test_each_table_and_each_study_may_be_missing(request, pages, kind, left_out):
    data = request.getfixturevalue(kind)
    tables = {name: data[name].iloc[:0] if name == left_out else data[name] for name in TABLES}
    with_study = {name: table for name, table in tables.items() if "study" in table}
    tables |= {name: table[table["study"] != left_out] for name, table in with_study.items()}
    for page in pages(made_up.planted(data, **tables)).values():
        assert_sound(page)


@pytest.mark.parametrize("kind", ["gpu", "cpu", "both"])
def test_every_chapter_that_has_data_is_there(written, kind):
    markdown, html = written(kind)
    assert_sound(markdown)
    # Published needs figures of the GPU, attention its cells.
    expected = {"gpu": 12, "cpu": 10, "both": 13}[kind]
    assert len(re.findall(r"^## .*$", markdown, re.M)) >= expected
    assert len(re.findall(r'<h2 class="chapter"', html)) == expected - 1


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_links_live(written, kind):
    markdown, html = written(kind)
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(re.findall(r'id="([^"]+)"', html))
    assert not re.findall(r"\]\(\w+\.md", markdown)


def words(text: str) -> int:
    """Words of its prose: without headings, tables, figures, captions, code blocks and addresses of
    links."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = [block for block in text.split("\n\n") if not re.match(r"[#|!*](?!\*)", block.strip())]
    return len(re.sub(r"\]\([^)]*\)|[*\[`]|^- ", "", "\n".join(prose), flags=re.MULTILINE).split())


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_chapters_are_short(request, pages, kind):
    data = request.getfixturevalue(kind)
    assert max(words(page) for page in pages(data).values()) <= 600


def test_several_machines_have_a_page_each(folders, request_for):
    request = request_for(folders["both"])
    book.write(request)
    others = {"explorer.html", "facts.json", "fits.html", "report.md"}
    assert {path.name for path in request.out.iterdir()} == others | {"index.html", "cpu-b.html"}
    assert 'href="cpu-b.html"' in (request.out / "index.html").read_text()
    assert 'href="index.html"' in (request.out / "cpu-b.html").read_text()


def test_cells_that_cannot_be_used_are_named_with_what_measures_them_again(written):
    markdown, _ = written("gpu")
    huge = "gpu-a/timing/huge/ctx"
    assert f"- {huge}512/bf16: record.json is damaged" in markdown
    assert f"--forcerun results/{huge}512/bf16/record.json` measures exactly them" in markdown
    assert f"- {huge}256/bf16: loss is NaN at step 3" in markdown


def test_names_of_records_do_no_harm(written):
    markdown, html = written("gpu")
    assert "Accelerator \\<A\\>" in markdown
    assert "Accelerator &lt;A&gt;" in html and "<A>" not in html


@pytest.fixture
def pages_of(gpu, pages):
    """The chapters of the GPU if its models were of one's own."""

    def made(**own):
        of_file = {"reference": "models/own.py:build"} | own
        return pages(made_up.planted(gpu, models=gpu["models"].assign(**of_file)))

    return made


def test_a_model_of_ones_own_is_not_told_as_ours(pages_of):
    own = {"class": "GPT", "flop_from": "counter"}
    made = pages_of(d_model=math.nan, **own)
    assert "an existing model as it was built" in made["page_one"]
    assert "SwiGLU" not in made["setup"] and "GPT" in made["setup"]


def test_a_model_that_is_built_in_another_type_is_not_held_against_fp32(pages_of):
    made = pages_of(dtype="float64")
    assert "parameters of float64" in made["page_one"]
    assert "in plain float64" in made["time"]
    assert "The predictions know two mechanisms" not in made["time"]
    assert "If you still train in fp32" not in made["page_one"]
    assert "Plain bf16 steps" not in made["page_one"] + made["kernels"]
    assert "over time in the format" not in made["precision"]
    for page in made.values():
        assert "largest batch" not in page  # no closed form of its memory
        assert_sound(page)


def test_what_only_some_models_have_is_not_told_of_others(gpu, pages_of):
    """Images, half of the weights frozen, no blocks."""
    models = gpu["models"]
    trained, forward = models["parameters"] / 2, models["flop"] * 0.36
    made = pages_of(item="images", num_layers=math.nan, trained=trained, forward_flop=forward)
    told = "".join(made.values())
    for word in (
        "block by block",
        "16 bytes a parameter",
        "6 ×",
        " tokens, batch",
        "become cheaper",
    ):
        assert word not in told, word
    assert "should be as 1 to 1.78" in made["time"]


def test_figures_stand_where_they_were_drawn(written, tmp_path):
    svg = '<svg viewBox="0 0 10 10" xmlns="http://www.w3.org/2000/svg"><path d="M0 0h1"/></svg>'
    (tmp_path / "figures/waterfall.svg").write_text(svg)
    markdown, html = written("gpu")
    assert markdown.count("](../figures/waterfall.svg)") == 1 and markdown.count("![") == 1
    assert html.count("<figure>") == 1


def test_templates_do_no_arithmetic():
    for path in TEMPLATES:
        for code in re.findall(r"\{\{-?(.*?)-?\}\}", path.read_text(), re.DOTALL):
            bare = re.sub(r'"[^"]*"', "", code)
            assert not re.search(r"[+*/]|\bround\b|\bformat\b|(?<!\w)-\s*\w", bare), (
                f"{path.name}: {code}"
            )


def test_a_site_needs_nothing_beside_it(folders, request_for):
    request = request_for(folders["gpu"])
    book.write_site(request)
    assert (request.out / "tables" / "series.csv").exists() and (request.out / ".nojekyll").exists()
    assert (request.out / "index.html").exists()


def test_nothing_measured_is_an_error(folders, request_for):
    request = request_for(folders["none"])
    assert "no machine has a measured cell in" in one_line(book.ReportError, book.write, request)
    assert not request.out.exists()
