"""The roofline figures: their roofs, points and words."""

import pytest
import roofline_maker as maker
from drawing import draw, lines_of, svg
from stepscope import colours
from stepscope.figures.roofline import draw_roofline, draw_roofline_attention, limits
from stepscope.report.data.roofline import Roof, RoofPoint


@pytest.fixture
def tables(tmp_path):
    """Two sizes and three contexts in bf16 on an H100; the measured roofs are 500 TFLOP/s and 2,500 GB/s."""
    rows = [
        maker.timing("bf16", size, context=context, cell=f"{size}{context}", parameters=many)
        for size, many in (("little", 1000), ("big", 2000))
        for context in (6, 12, 24)
    ]
    return maker.write(tmp_path, rows, maker.ceilings(bf16=500.0, copy=2500.0), maker.attention())


def test_roofs_meet_at_their_ridges(tables):
    products, optimizer = map(lines_of, draw(draw_roofline, tables).axes)
    # 500 TFLOP/s over 2,500 GB/s are 200 FLOP/byte; the data sheet's 989.4 over 3,350 are 295.3.
    for name, rate, bandwidth in (("measured", 500.0, 2500.0), ("data sheet", 989.4, 3350.0)):
        x, y = products[name]
        assert x[1] == pytest.approx(1000 * rate / bandwidth)
        assert y == [pytest.approx(x[0] * bandwidth / 1000), rate, rate]
        x, y = optimizer[name]
        assert y == [pytest.approx(each * bandwidth / 1000) for each in x]


def test_a_line_a_size_and_phase_over_the_contexts(tables):
    products, optimizer = map(lines_of, draw(draw_roofline, tables).axes)
    for phase in ("forward", "backward"):
        for size in ("little", "big"):
            assert len(products[f"{phase} {size}"][0]) == 3
    x, y = products["forward big"]
    assert x[0] == pytest.approx(maker.FORWARD / maker.FORWARD_BYTES["bf16"])
    assert y[0] == pytest.approx(maker.FORWARD / 1e-3 / 1e12)
    assert optimizer["optimizer little"][0] == pytest.approx([13 / 28] * 3)


def test_ridges_roofs_sizes_and_units_are_named(tables):
    text = svg(draw_roofline, tables)
    for word in ("ridge 200", "ridge 295", "measured: 500 TFLOP/s, 2,500 GB/s", "little", "big", "0.464",
                 "FLOP/byte", "roof, measured", "roof, data sheet"):  # fmt: skip
        assert word in text, word
    assert colours.PHASE["forward"] in text and colours.PHASE["backward"] in text


def test_an_unknown_gpu_has_the_measured_roof_alone(tmp_path):
    rows = [maker.timing("fp32", gpu="Unheard")]
    tables = maker.write(tmp_path, rows, maker.ceilings(gpu="Unheard", fp32=50.0, copy=1000.0))
    text = svg(draw_roofline, tables)
    assert "data sheet: unknown" in text and "roof, data sheet" not in text
    assert "ridge 50.0" in text


def test_no_roof_at_all_still_draws_the_points(tmp_path):
    tables = maker.write(tmp_path, [maker.timing(gpu="Unheard")], passes=maker.attention(device_name="Unheard"))
    for function in (draw_roofline, draw_roofline_attention):
        text = svg(function, tables)
        assert "measured: unknown" in text and "nothing to draw" not in text


def test_what_has_no_result_is_named(tmp_path):
    lost = {"optimizer_median_ms": None, "optimizer_status": "oom", "status": "oom"}
    times = {name: None for name in maker.timing() if name.endswith(("_ms", "_status", "_noisy"))}
    rows = [maker.timing(), maker.timing(context=8, cell="b", **lost)]
    rows += [maker.timing(context=10, cell="c", **times | {"status": "failed", "reason": "x"})]
    text = svg(draw_roofline, maker.write(tmp_path, rows))
    assert "OOM: nano at 8 (optimizer)" in text and "failed: nano at 10" in text


def test_doubtful_points_are_hollow(tmp_path):
    tables = maker.write(tmp_path, [maker.timing(forward_noisy=True)])
    figure = draw(draw_roofline, tables)
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == colours.PAPER]
    assert [len(line.get_xdata()) for line in hollow if line.get_color() == colours.PHASE["forward"]] == [1]
    assert [len(line.get_xdata()) for line in hollow if line.get_color() == colours.PHASE["backward"]] == [0]


def test_a_cell_without_optimizer_has_no_panel_for_it(tmp_path):
    rows = [maker.timing(optimizer_median_ms=None, optimizer_status=None, mode="forward-backward")]
    figure = draw(draw_roofline, maker.write(tmp_path, rows))
    assert [panel.axison for panel in figure.axes] == [True, False]


def test_attention_is_a_line_an_implementation_over_the_lengths(tables):
    forward, backward = map(lines_of, draw(draw_roofline_attention, tables).axes)
    assert forward["naive"][0] == [512, 2048, 8192]
    assert backward["flex"][0] == [640, 2560, 10240]
    assert forward["naive"][1] == pytest.approx([4 * 8 * 1024**2 * 16 / 1e-3 / 1e12] * 3)
    text = svg(draw_roofline_attention, tables)
    assert "bf16, d = 16, forward" in text and "batch 8, no heads, not causal" in text


def test_attention_that_ran_out_of_memory_is_named(tmp_path):
    passes = [
        row
        | ({"status": "oom", "median_ms": None} if row["implementation"] == "naive" and row["length"] > 4096 else {})
        for row in maker.attention()
    ]
    assert "OOM: naive at 16,384" in svg(draw_roofline_attention, maker.write(tmp_path, passes=passes))


def test_several_machines_have_rows_of_their_own(tmp_path):
    rows = [maker.timing(hardware=name, cell=name) for name in ("one", "two")]
    figure = draw(draw_roofline, maker.write(tmp_path, rows))
    assert [panel.get_title(loc="left") for panel in figure.axes[::2]] == ["one, fp32", "two, fp32"]


def test_limits_hold_all_points_and_ridges():
    point = RoofPoint("gpu", "fp32", "nano", 6, "forward", 1.0, 1.0, 3.0, "ok", False, False)
    (left, right), (low, high) = limits([point], [Roof(100.0, 1000.0)])
    assert left < 1 and right > 100 and low < 3 and high > 100
    assert limits([point], [], lines=3)[1][0] < limits([point], [])[1][0]
