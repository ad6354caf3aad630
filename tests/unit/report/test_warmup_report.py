"""The warm-up section in a whole report, as parsers see it."""

import re

import pytest
import synthetic_warmup as made
from pages import Page, data_pages, markdown_page
from report_maker import ROOT
from stepscope.figures import theme
from stepscope.report.page import Request

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z*"
FIGURES = ("warmup_means", "warmup_steps", "warmup_first_step")


def pages(folder, plan):
    """(Markdown, HTML) of a report with these cells; every figure is an empty one."""
    tables = plan.write(folder / "tables")
    for name in FIGURES:
        theme.write(lambda _tables: theme.empty("not drawn in this test"), None, folder / "figures", name)
    request = Request(
        ["warmup"], tables, folder / "figures", ROOT / "report", folder / "report", "Title", "snakemake report", True
    )
    return data_pages(request)


def section(text: str) -> str:
    return text[text.index("## Warm-up and the first step") :]


def table(text: str, heading: str) -> list[list[str]]:
    """The first table whose head has a column of this name."""
    return next(rows for rows in markdown_page(text).tables if any(heading in cell for cell in rows[0]))


@pytest.fixture(scope="module")
def believable(tmp_path_factory):
    folder = tmp_path_factory.mktemp("believable")
    return pages(folder, made.believable(made.Plan(folder / "results")))


def test_headings_and_figures(believable):
    text, html = believable
    headings = re.findall(r"^### (.+)$", section(text), re.MULTILINE)
    assert headings == [
        "How much warm-up is enough", "Step by step", "What the first step contains",
        "Commands of the warm-up cells",
    ]  # fmt: skip
    for name in FIGURES:
        assert text.count(f"figures/{name}.svg") == 1
    assert html.count("<svg ") == html.count("<figure ") == len(FIGURES)
    assert len(text) < 100_000
    assert "python scripts/time_warmup.py --size small --warmup 0" in html


def test_nothing_is_left_to_be_filled_in(believable):
    text, html = believable
    assert not re.search(r"[{}]|\bnan\b|\bNone\b|\binf\b", section(text))
    assert not re.search(r">(nan|None|inf)<", html)
    for rows in markdown_page(text).tables:
        assert all(len(row) == len(rows[0]) for row in rows)


def test_out_of_memory_is_seen(believable):
    text, _ = believable
    means = [rows for rows in markdown_page(text).tables if "first measured step" in " ".join(rows[0])]
    (lost,) = [row for row in means[0] if row[:2] == ["2.7B", "10"]]
    assert lost[2:] == ["OOM"] * 6 + ["–", "–"]
    first = [rows for rows in markdown_page(text).tables if "set-up over" in " ".join(rows[0])]
    assert first[0][-1][:2] == ["2.7B", "OOM"]


def test_numbers_of_the_means_table(tmp_path):
    text, _ = pages(tmp_path, made.points(made.Plan(tmp_path / "results"), ("s",)))
    rows = table(text, "first measured step")
    assert rows[1] == [
        "s", "0", "1,285", "110 ± 316× 11.0", "41 ± 63× 2.03", "10 ± 16× 2.03", "151 ± 379× 5.03", "161 ± 395× 4.60",
        "245 %", "1.000"
    ]  # fmt: skip
    assert rows[2][:4] == ["s", "1", "42.0", "10.30 ± 0.67× 1.030"]
    assert rows[-1] == ["s", "steady state", "–", "10.00", "20.00", "5.000", "30.00", "35.00", "–", "–"]
    assert "15 steps from index 10 on of 2 processes." in text
    steps = table(text, "at step: 0")
    assert steps[4] == ["s", "step", "36.7", "1.20", "1.10", "1.00", "1.00", "1.00", "1.00"]
    verdicts = table(text, "that are enough: step")
    assert verdicts[1] == ["s", "1,285× 36.7", "35.00± 0.0 %", "× 4.60", "× 1.000", "245 %", "1", "1", "1", "1"]


def test_numbers_of_the_first_step(tmp_path):
    text, _ = pages(tmp_path, made.points(made.Plan(tmp_path / "results"), ("s",)))
    rows = table(text, "module loading")
    assert rows[1] == [
        "s", "78057 %", "19014 %", "14010 %", "50.03.7 %", "90.06.6 %", "1,25092 %", "40.0", "10.0",
        "35.0", "25.0", "1,360", "1,250", "0.92", "1.00", "1.09",
    ]  # fmt: skip
    assert "below zero in a step whose threads overlap" not in text
    parts, calls = (
        next(rows for rows in markdown_page(text).tables if rows[0][1] == name) for name in ("part", "call or operator")
    )
    assert parts[1] == ["s", "module loading", "800", "20.0", "900", "800"]
    assert parts[-1] == ["s", "page faults", "–", "–", "54,321", "12"]
    assert calls[1] == ["s", "cudaLaunchKernel", "module loading", "720", "20.0", "700", "700", "650"]


def test_a_part_below_zero_is_explained(tmp_path):
    plan = made.Plan(tmp_path / "results")
    steady = made.IN_STEADY | {"Python and the rest": -0.01}
    made.points(plan, ("s",), (0, 5), parts=(made.IN_FIRST, steady))
    assert "below zero in a step whose threads overlap" in pages(tmp_path, plan)[0]


def test_a_first_step_that_was_faster_has_no_shares(tmp_path):
    plan = made.Plan(tmp_path / "results")
    plan.cell("s", 5, profiled=True, parts=(made.IN_STEADY, made.IN_FIRST))
    rows = table(pages(tmp_path, plan)[0], "module loading")
    assert rows[1][1:6] == ["−780", "−190", "−140", "−50.0", "−90.0"] and rows[1][11:] == [
        "−1,360",
        "–",
        "0.92",
        "–",
        "–",
    ]


def test_few_cells_and_strange_words(tmp_path):
    plan = made.Plan(tmp_path / "results")
    plan.cell("s", 0, status="unsupported", reason=BAD)
    plan.cell("s", 1, measure=False)
    plan.cell("m", 5)
    plan.cell("m", 5, profiled=True, status="oom")
    text, html = pages(tmp_path, plan)
    assert "n/a (s at 128)" in text and "<script>alert" not in html.split("</head>")[1].replace("&lt;script&gt;", "")
    assert "not measured" in html or "missing" in html
    assert not re.search(r"\bnan\b|\bNone\b", section(text))
    assert "What the first step contains" not in text  # nothing was profiled


@pytest.mark.parametrize("status", ["oom", None])
def test_nothing_measured(tmp_path, status):
    plan = made.Plan(tmp_path / "results")
    plan.cell("s", 0, status=status or "ok", measure=bool(status))
    text, html = pages(tmp_path, plan)
    assert "No warm-up cell was measured." in text
    assert Page(html).tables and not any(f"{name}.svg" in text for name in FIGURES)


def test_no_table(tmp_path):
    places = tmp_path, tmp_path, ROOT / "report", tmp_path / "report"
    request = Request(["warmup"], *places, "Title", "snakemake report")
    text, _ = data_pages(request)
    assert "No warm-up cell is in the tables." in text and "### How much" not in text
