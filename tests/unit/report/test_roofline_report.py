"""The roofline section: roofs, points, tables and sentences against numbers counted by hand."""

import pytest
import roofline_maker as maker
from pages import Page
from stepscope.report.data import roofline as roofline_cells
from stepscope.report.data.roofline import Roof, RoofPoint
from stepscope.report.studies.roofline import findings as roofline_findings
from stepscope.report.studies.roofline import section as roofline


def by_phase(points):
    return {point.phase: point for point in points}


def test_the_ridge_is_where_both_roofs_are_equal():
    roof = Roof(rate=100.0, bandwidth=2000.0)
    assert roof.ridge == 50
    assert [roof.attainable(each) for each in (1, 25, 50, 400)] == [2, 50, 100, 100]
    assert [roof.limit(each) for each in (49.9, 50, 51)] == ["memory", "arithmetic", "arithmetic"]


def test_points_of_the_model(tmp_path):
    tables = maker.write(tmp_path, [maker.timing("bf16")])
    points = by_phase(roofline_cells.model_points(tables["timing"]))
    forward, backward, optimizer = (points[name] for name in ("forward", "backward", "optimizer"))
    assert (forward.flop, forward.bytes) == (maker.FORWARD, maker.FORWARD_BYTES["bf16"])
    assert forward.tflops == pytest.approx(maker.FORWARD / 1e-3 / 1e12)
    assert (backward.flop, backward.bytes) == (2 * maker.FORWARD, 27_276)
    assert backward.tflops == pytest.approx(2 * maker.FORWARD / 2e-3 / 1e12)
    assert optimizer.intensity == 13 / 28
    assert optimizer.tflops == pytest.approx(13 * maker.PARAMETERS / 0.5e-3 / 1e12)


def test_compiled_and_checkpointed_models_have_no_closed_form(tmp_path):
    rows = [maker.timing(compile="block"), maker.timing(size="tiny", compile="block")]
    assert roofline_cells.model_points(maker.write(tmp_path / "a", rows)["timing"]) == []
    rows = [maker.timing(checkpoint=4)]
    assert roofline_cells.model_points(maker.write(tmp_path / "b", rows)["timing"]) == []


def test_points_of_attention(tmp_path):
    tables = maker.write(tmp_path, passes=maker.attention())
    (group,) = roofline_cells.attention_groups(tables)
    points = {(p.series, p.tokens, p.phase): p for p in roofline_cells.attention_points(group)}
    # 4 batch length^2 d over 4 batch length d of two bytes each is half the length; backward 2.5 times over twice.
    for length in (1024, 4096, 16384):
        assert points["naive", length, "forward"].intensity == length / 2
        assert points["flex", length, "backward"].intensity == length / 2 * 1.25
    assert points["naive", 1024, "forward"].tflops == pytest.approx(4 * 8 * 1024**2 * 16 / 1e-3 / 1e12)
    assert roofline_cells.fullest_d_head(list(points.values())) == 16


def test_measured_roofs_need_a_product_of_the_precision_and_a_copy(tmp_path):
    both = maker.write(tmp_path / "a", limits=maker.ceilings(fp32=50.0, copy=2000.0))
    assert roofline_cells.measured_roof(both["ceilings"], "gpu", "fp32") == Roof(50, 2000)
    assert roofline_cells.measured_roof(both["ceilings"], "gpu", "bf16") is None
    assert roofline_cells.measured_roof(both["ceilings"], "other", "fp32") is None
    without = maker.write(tmp_path / "b", limits=maker.ceilings(fp32=50.0, copy=None))
    assert roofline_cells.measured_roof(without["ceilings"], "gpu", "fp32") is None


def test_data_sheet_roofs_follow_the_device_behind_the_label(tmp_path):
    tables = maker.write(tmp_path, [maker.timing("bf16")])
    assert roofline_cells.roofs(tables, "gpu", "bf16") == {"measured": None, "data sheet": Roof(989.4, 3350)}
    assert roofline_cells.roofs(tables, "gpu", "fp32")["data sheet"] == Roof(66.9, 3350)
    assert roofline_cells.roofs(tables, "elsewhere", "fp32")["data sheet"] is None


ROOFS = maker.ceilings(fp32=1e-3, bf16=1e-3, copy=0.1)  # TFLOP/s and GB/s: the ridge is at 10 FLOP/byte


def test_the_table_of_phases(tmp_path):
    tables = maker.write(tmp_path, [maker.timing("fp32", gpu="Unheard 9000")], ROOFS)
    (table,) = roofline.context(tables)["phases"]
    forward, backward, optimizer = ([cell.text for cell in row] for row in table.rows)
    assert forward[:3] == ["nano", "6", "forward"]
    assert float(forward[3]) == pytest.approx(maker.FORWARD / 33_064, rel=5e-3)
    assert float(forward[4]) == pytest.approx(maker.FORWARD / 33_064 * 0.1 / 1000, rel=5e-3)
    assert float(forward[6]) == pytest.approx(maker.FORWARD / 1e-3 / 1e12, rel=5e-3)
    # Under the memory's roof the share is that of the bandwidth: bytes over time over 0.1 GB/s.
    shares = 33_064 / 1e-3 / 1e8, 39_048 / 2e-3 / 1e8, 28 * 1496 / 0.5e-3 / 1e8
    assert [row[7] for row in (forward, backward, optimizer)] == [f"{100 * share:.0f} %" for share in shares]
    assert forward[5] == forward[8] == "–"
    assert {row[-1].text for row in table.rows} == {"memory"}


def test_each_size_stands_at_its_largest_context_with_a_result(tmp_path):
    lost = dict.fromkeys(f"{phase}_median_ms" for phase in ("forward", "backward", "optimizer", "step"))
    lost |= dict.fromkeys((f"{phase}_status" for phase in ("forward", "backward", "optimizer", "step")), "oom")
    partly = {"optimizer_median_ms": None, "optimizer_status": "oom", "status": "oom"}
    rows = [
        maker.timing(),
        maker.timing(context=8, cell="b"),
        maker.timing(context=10, cell="c", **partly),
        maker.timing(context=12, cell="d", **lost | {"status": "oom"}),
    ]
    (table,) = roofline.context(maker.write(tmp_path, rows, ROOFS))["phases"]
    assert [row[1].text for row in table.rows] == ["10"] * 3
    assert [row[6].badges for row in table.rows] == [(), (), ("oom",)]
    assert "Without any result: nano at 12." in table.notes
    assert "OOM: out of memory." in table.notes


def test_what_is_missing_or_failed_is_shown_as_such(tmp_path):
    times = {name: None for name in maker.timing() if name.endswith(("_ms", "_status", "_noisy"))}
    rows = [maker.timing(**times | {"status": "missing", "reason": "not run", "device_name": None})]
    (table,) = roofline.context(maker.write(tmp_path, rows))["phases"]
    assert [row[6].badges for row in table.rows] == [("missing",)] * 3


def test_noisy_and_throttled_phases_are_marked(tmp_path):
    rows = [maker.timing(backward_noisy=True, throttle="power cap")]
    (table,) = roofline.context(maker.write(tmp_path, rows, ROOFS))["phases"]
    assert [row[6].badges for row in table.rows] == [("throttled",), ("noisy", "throttled"), ("throttled",)]


def found(tables):
    """Question → findings."""
    told = {}
    for each in roofline_findings.findings(tables):
        told.setdefault(each.question, []).append(each)
    return told


PEAK = "which share of the peak is used"


def test_findings_of_one_cell(tmp_path):
    told = found(maker.write(tmp_path, [maker.timing("fp32", peak_tflops=66.9, step_mfu=0.5)], ROOFS))
    assert [number.value for number in told[PEAK][0].numbers.values()] == [0.5, 0.5]
    # Bytes over time over 0.1 GB/s: see the table of phases.
    shares = {"forward": 33.064, "backward": 39_048 / 2e-3 / 1e6, "optimizer": 28 * 1496 / 0.5e-3 / 1e6}
    for phase, share in shares.items():
        (number,) = told[f"what limits {phase}"][0].numbers.values()
        assert number.value == [pytest.approx(share)]
        assert number.cells == ("gpu/timing/nano/ctx6/fp32",)
        assert "memory in the only cell" in told[f"what limits {phase}"][0].text


def test_the_lowest_and_the_highest_mfu_have_their_cells(tmp_path):
    rows = [
        maker.timing("bf16", "a", step_mfu=0.25),
        maker.timing("bf16", "b", step_mfu=0.5),
        maker.timing("bf16", "c", step_mfu=0.125),
        maker.timing("fp32", "a", step_mfu=0.75),
        maker.timing("fp32", "b"),
    ]
    (first,) = found(maker.write(tmp_path, rows, ROOFS))[PEAK]
    assert {name: (number.value, number.cells[0].split("/")[2]) for name, number in first.numbers.items()} == {
        "fp32_least": (0.75, "a"),
        "fp32_most": (0.75, "a"),
        "bf16_least": (0.125, "c"),
        "bf16_most": (0.5, "b"),
    }


@pytest.mark.parametrize(
    "limits, instead",
    [
        (ROOFS, "rates are compared with the measured ceilings alone"),
        ([], "where no ceiling was measured either, rates are compared with nothing"),
    ],
)
def test_an_unknown_gpu_has_no_mfu_and_only_the_measured_roof(limits, instead, tmp_path):
    tables = maker.write(tmp_path, [maker.timing(gpu="NVIDIA Unheard 9000")], limits)
    told = found(tables)
    assert told[PEAK][0].text.startswith("No data sheet of NVIDIA Unheard 9000") and instead in told[PEAK][0].text
    assert len(told) == (4 if limits else 1)
    assert "No data sheet of NVIDIA Unheard 9000 is in the list." in roofline.context(tables)["roofs"].notes


def test_a_format_that_the_gpu_does_not_have(tmp_path):
    rows = [maker.timing("bf16", gpu="Tesla T4"), maker.timing("fp16", gpu="Tesla T4", step_mfu=0.5)]
    mfu, lacking = found(maker.write(tmp_path, rows, maker.ceilings(bf16=1, fp16=1)))[PEAK]
    assert mfu.numbers["fp16_most"].value == 0.5
    assert "The data sheet of Tesla T4 has no rate in bf16" in lacking.text


def test_without_measured_roofs_the_data_sheet_counts(tmp_path):
    told = found(maker.write(tmp_path, [maker.timing("fp32")]))["what limits forward"][0]
    assert told.numbers["fp32"].value == [pytest.approx(100 * 33_064 / 1e-3 / 3350e9)]
    assert "of the data sheet's roof" in told.text


def test_both_sides_of_the_ridge_are_counted():
    def point(intensity):
        return RoofPoint("gpu", "fp32", "nano", 6, "forward", intensity, 1.0, 1.0, "ok", False, False)

    text = roofline_findings.limits([point(2.0), point(8.0), point(9.0)], Roof(4.0, 1000.0))  # the ridge is at 4
    assert text == "memory in 1 of 3 cells, arithmetic in 2"


def test_a_share_above_the_roof_is_explained(tmp_path):
    told = found(maker.write(tmp_path, [maker.timing()], maker.ceilings(fp32=1, copy=0.01)))["what limits forward"][0]
    assert told.numbers["fp32"].value == [pytest.approx(33_064 / 1e-3 / 1e7 * 100)]
    assert "Above 100 % data stayed in the caches" in told.text


def test_each_finding_is_of_its_machine(tmp_path):
    rows = [maker.timing(), maker.timing(hardware="other", gpu="Unheard")]
    told = roofline_findings.findings(maker.write(tmp_path, rows, ROOFS))
    assert {each.hardware for each in told} == {"gpu", "other"}


def test_nothing_measured_is_said(tmp_path):
    markdown, html = maker.pages(tmp_path, maker.write(tmp_path / "tables"))
    assert roofline_findings.findings(maker.write(tmp_path / "more")) == []
    for text in (markdown, html):
        assert "there is nothing to set below a roof" in text


def test_the_section_comes_last_with_its_figures(tmp_path):
    tables = maker.write(tmp_path / "tables", [maker.timing(step_mfu=0.5)], ROOFS, maker.attention())
    markdown, html = maker.pages(tmp_path, tables, ("timing", "ceilings", "attention"))
    headings = [line for line in markdown.splitlines() if line.startswith("## ")]
    assert headings[-1] == "## Roofline and MFU"
    for name in ("roofline", "roofline_attention"):
        assert f"(../figures/{name}.svg)" in markdown
    assert "**Study roofline**" not in markdown
    names = [table[0][0] for table in Page(html).tables]
    assert "implementation" in names  # the table of attention below the roofs


def test_the_table_of_attention(tmp_path):
    tables = maker.write(tmp_path, limits=maker.ceilings(bf16=1000.0, copy=1000.0), passes=maker.attention())
    (table,) = roofline.context(tables)["attention"]
    rows = {(row[0].text, row[3].text): [cell.text for cell in row] for row in table.rows}
    assert table.folded
    line = rows["naive", "forward"]
    assert line[1:5] == ["16", "16,384", "forward", "8,192"]
    # 4 batch length^2 d in 256 ms, of 1,000 TFLOP/s.
    rate = 4 * 8 * 16384**2 * 16 / 0.256 / 1e12
    assert float(line[7]) == pytest.approx(rate, rel=5e-3)
    assert (line[5], line[-1]) == ("1,000", "arithmetic")


def test_attention_that_ran_out_of_memory_shows_its_longest_result(tmp_path):
    passes = [row | ({"status": "oom", "median_ms": None} if row["length"] > 1024 else {}) for row in maker.attention()]
    (table,) = roofline.context(maker.write(tmp_path, passes=passes))["attention"]
    assert {row[2].text for row in table.rows} == {"1,024"}
    gone = [row | {"status": "oom", "median_ms": None} for row in maker.attention()]
    (table,) = roofline.context(maker.write(tmp_path, passes=gone))["attention"]
    assert {row[7].badges for row in table.rows} == {("oom",)}


def rates_of(folder, **over):
    """The timing section's table of rates, as Markdown."""
    tables = maker.write(folder / "tables", [maker.timing("bf16", **over)], maker.ceilings(bf16=1e-4))
    markdown, _ = maker.pages(folder, tables, ("timing", "ceilings"))
    return markdown.split("Throughput and memory, bf16")[1].split("### ")[0]


def test_the_timing_section_shows_mfu_beside_the_share_of_the_ceiling(tmp_path):
    text = rates_of(tmp_path, step_mfu=0.125, peak_tflops=989.4)
    share = 100 * 3 * maker.FORWARD / 3.5e-3 / 1e12 / 1e-4
    assert f"<br>{share:.0f} %, 12 %" in text
    assert "TFLOP/s, share of the measured ceiling, MFU: step" in text
    assert "MFU is the share of the data sheet's 989 TFLOP/s in bf16." in text


def test_the_timing_section_says_why_there_is_no_mfu(tmp_path):
    text = rates_of(tmp_path, gpu="Unheard")
    assert "share of the measured ceiling: step" in text
    assert "No data sheet in the list gives this device's rate in bf16: no MFU." in text
