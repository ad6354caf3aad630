"""The whole report, as parsers see it."""

import re

import pandas as pd
import pytest
from pages import Page, frame_of, markdown_page
from report_maker import ROOT, make_report, request_of

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z*"


def read(folder, name="data.html"):
    return (folder / name).read_text(encoding="utf-8")


def in_markdown(folder):
    """All data in Markdown, which is read more easily."""
    return frame_of(request_of(folder.parent)).data()


@pytest.mark.parametrize("name", ["index.html", "data.html"])
def test_the_pages_need_no_network(h100, name):
    html = read(h100, name)
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        for name in ("src", "href", "xlink:href", "action"):
            target = attributes.get(name) or ""
            assert not re.match(r"(?:[a-z]+:)?//|(?:http|data|javascript):", target), (tag, target)
    assert "@import" not in html and "url(http" not in html
    assert "default-src 'none'" in html


@pytest.mark.parametrize("name", ["index.html", "data.html"])
def test_ids_are_distinct_and_references_resolve(h100, name):
    html = read(h100, name)
    names = [attributes["id"] for _, attributes in Page(html).elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert set(re.findall(r"url\(#([^)]+)\)", html)) <= set(names)
    assert {target[1:] for target in re.findall(r'href="(#[^"]+)"', html)} <= set(names)


def test_every_figure_has_words_and_takes_the_theme(h100):
    html = read(h100)
    images = [attributes for tag, attributes in Page(html).elements if tag == "svg"]
    assert len(images) == 6
    assert all(attributes["role"] == "img" and len(attributes["aria-label"]) > 20 for attributes in images)
    assert "var(--figure-ink)" in html and "var(--figure-bf16)" in html
    assert html.count("<figcaption>") == 6


def test_both_outputs_have_the_same_tables(h100):
    rich, plain = Page(read(h100)).tables, markdown_page(in_markdown(h100)).tables
    assert len(rich) == len(plain) > 8
    for left, right in zip(rich, plain, strict=True):
        heads = len(left) - len(right) + 1
        assert len(left[heads:]) == len(right[1:])
        assert all(len(row) == len(right[0]) for row in right)
        assert [len(row) for row in left[heads:]] == [len(row) for row in right[1:]]


def test_markdown_links_figures_and_captions(h100):
    text = in_markdown(h100)
    found = re.findall(r"!\[[^\]]+\]\(\.\./figures/(\w+)\.svg\)", text)
    assert len(found) == text.count("**Figure ") == 6
    assert all((h100.parent / "figures" / f"{name}.svg").exists() for name in found)


def test_a_value_of_the_table_is_the_measured_one(h100):
    timing = pd.read_csv(h100.parent / "tables" / "timing.csv")
    row = timing[timing["cell"].str.endswith("/xl/ctx256/fp32")].iloc[0]
    table = next(t for t in Page(read(h100)).tables if t[0][:3] == ["size", "parameters", "contexttokens"])
    shown = next(r for r in table if r[0] == "xl" and r[2] == "256")
    assert float(shown[4].split(" ± ")[0]) == pytest.approx(row["free_forward_mean_ms"], rel=1e-3)
    assert float(shown[-1]) == pytest.approx(row["backward_over_forward"], abs=0.005)


def test_shares_are_of_the_same_precision(h100):
    timing = pd.read_csv(h100.parent / "tables" / "timing.csv")
    ceilings = pd.read_csv(h100.parent / "tables" / "ceilings.csv").set_index(["operation", "precision"])
    text = in_markdown(h100)
    part = text[text.index("Throughput and memory, bf16") :]
    line = next(line for line in part.splitlines() if line.startswith("| medium") and "| 1,024 |" in line)
    row = timing[timing["cell"].str.endswith("/medium/ctx1024/bf16")].iloc[0]
    share = 100 * row["step_tflops"] / ceilings.loc[("matmul", "bf16"), "tflops"]
    assert f"<br>{share:.0f} %" in line


def test_out_of_memory_is_shown_in_both(h100):
    assert read(h100).count('class="badge oom"') >= 20
    assert in_markdown(h100).count("**OOM**") == read(h100).count('class="badge oom"')


def test_what_ran_lists_the_run(cpu):
    text = read(cpu, "report.md")
    for fact in ("**Study timing**: 12 cells (12 ok)", "**Warm-up steps**: 5", "**Seed**: 0", "**Vocabulary**: 10,000"):
        assert fact in text


@pytest.mark.parametrize("name", ["index.html", "report.md"])
def test_the_method_of_each_study_is_told(h100, name):
    text = re.sub(r"\s+", " ", read(h100, name))
    for study, sentence in (
        ("Method of timing", "A timing cell measures two kinds of steps."),
        ("Method of ceilings", "not taken from a data"),
    ):
        assert text.index(f"{study}") < text.index(sentence)


def test_cpu_report_shows_resident_memory_and_no_gpu_columns(cpu):
    text = in_markdown(cpu)
    assert "peak resident memory (GiB)" in text
    assert "SM clock" not in text and "power limit" not in text


def test_the_machine_says_how_many_cpus_its_cells_had(tmp_path, h100):
    def change(frames):
        frames["timing"]["cpus"] = 1
        frames["timing"].loc[0, "cpus"] = 62

    text = read(make_report(tmp_path, "h100", change), "report.md")
    assert "| CPUs that a cell may use | 1, 62 |" in text
    assert "CPUs that a cell may use" not in read(h100, "report.md")  # records that do not say


def test_hostile_text_stays_text(tmp_path):
    def change(frames):
        frames["timing"]["device_name"] = BAD
        frames["timing"].loc[0, "command"] = BAD
        frames["timing"].loc[1, ["status", "reason"]] = ["unsupported", BAD]
        frames["timing"].loc[frames["timing"]["size"] == "tiny", "size"] = BAD
        frames["timing"].loc[2, ["status", "reason", "log"]] = ["failed", BAD, "x](y)|/" + BAD]
        for name in ("timing", "timing_samples"):
            frames[name]["hardware"] = "cpu<img src=x>|`"
        frames["timing"]["throttle"] = BAD

    folder = make_report(tmp_path, "cpu", change, partial=True)
    rich, plain = Page(read(folder)), markdown_page(in_markdown(folder))
    assert sum(tag == "script" and "type" not in own for tag, own in rich.elements) == 1
    assert not any(
        tag in ("script", "img") and a.get("src", "").startswith("x") for tag, a in plain.elements + rich.elements
    )
    assert not any(tag == "script" for tag, _ in plain.elements)
    assert all(len(row) == len(table[0]) for table in plain.tables for row in table)
    for page in (rich, plain):
        assert sum(BAD in cell for table in page.tables for row in table for cell in row) >= 4


def test_a_partial_report_opens_with_what_is_missing(tmp_path):
    def change(frames):
        frames["timing"].loc[0, ["status", "reason", "log"]] = ["failed", "exit code 3", "cpu/a/log.txt"]
        frames["timing"].loc[1, ["status", "reason"]] = ["missing", "not run"]
        values = [name for name in frames["timing"] if name.endswith("_ms") or name.endswith("_status")]
        frames["timing"].loc[[0, 1], [*values, "parameters", "d_model"]] = None

    folder = make_report(tmp_path, "cpu", change, partial=True, draw=False)
    text = read(folder, "report.md")
    for html in (read(folder, "index.html"), read(folder, "data.html")):
        assert html.index("This report is partial.") < html.index("</h2>") and "2 of 15 cells" in html
    assert text.index("> [!WARNING]") < text.index("## ") and "exit code 3" in text


def test_unsupported_cells_give_the_reason(tmp_path):
    def change(frames):
        bf16 = frames["timing"]["precision"] == "bf16"
        values = [name for name in frames["timing"] if re.search(r"_(ms|tflops|tokens_per_s|bytes)$", name)]
        statuses = [name for name in frames["timing"] if name.endswith("_status")]
        frames["timing"].loc[bf16, values] = None
        frames["timing"].loc[bf16, [*statuses, "status"]] = "unsupported"
        frames["timing"].loc[bf16, "reason"] = "no bf16 on this device"

    folder = make_report(tmp_path, "cpu", change, draw=False)
    assert "no bf16 on this device" in read(folder) and 'class="badge unsupported"' in read(folder)
    assert "**n/a**" in in_markdown(folder)


def test_writing_is_reproducible_and_leaves_nothing_else(cpu, tmp_path):
    first, second = cpu, make_report(tmp_path, "cpu")
    assert sorted(path.name for path in first.iterdir()) == ["data.html", "index.html", "report.md", "tables"]
    made = [path.relative_to(first) for path in first.rglob("*.*")]
    assert len(made) > 20 and all(read(first, name) == read(second, name) for name in made)
    for picture in (first.parent / "figures").iterdir():
        assert picture.read_bytes() == (second.parent / "figures" / picture.name).read_bytes()


def test_each_figure_has_a_caption_for_snakemake():
    from stepscope.figures import figures_of

    for study in ("timing", "ceilings"):
        for name in figures_of(study):
            assert (ROOT / "report" / "snakemake_captions" / f"{name}.rst").exists()
