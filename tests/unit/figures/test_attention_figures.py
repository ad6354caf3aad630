"""Figures of the attention study: what is drawn, against numbers worked out from small tables by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from drawing import Made, crosses, draw, line, texts
from stepscope import colours
from stepscope.figures import figures_of, marks
from stepscope.figures.attention.data import measured, of_one_shape, precision_groups, shape_words, without_number
from stepscope.figures.attention.growth import draw_head_dimension, draw_memory, draw_time, longest_that_most_ran
from stepscope.figures.attention.rates import draw_rates, matmul_rate
from stepscope.tables.reader import Tables

MIB = 2**20
LENGTHS = (256, 1024, 4096)
TIME = {"naive": 0.1, "triton": 0.05}  # ms at length 256 and d_head 64; grows with the square of length, with d_head


def row(implementation="naive", d_head=64, precision="bf16", length=256, direction="forward", status="ok", **more):
    """Backward takes twice as long; before it, 2 MiB at length 256 and four times as much at each next length."""
    ms = TIME[implementation] * (length / 256) ** 2 * d_head / 64 * (2 if direction == "backward" else 1)
    is_ok, counted = status == "ok", status == "ok" and direction == "backward"
    found = {"cell": f"gpu/attention/{implementation}/d{d_head}/{precision}", "hardware": "gpu",
             "implementation": implementation, "d_head": d_head, "precision": precision, "heads": 0, "causal": "no",
             "tokens": np.nan, "batch": 8, "length": length, "direction": direction, "status": status,
             "median_ms": ms if is_ok else np.nan, "ci_low_ms": 0.9 * ms if is_ok else np.nan,
             "ci_high_ms": 1.2 * ms if is_ok else np.nan, "noisy": False, "throttle": None,
             "tflops": 10 / ms if is_ok else np.nan, "peak_bytes": 3.0 * MIB * length / 256,
             "before_backward_bytes": 2.0 * MIB * length / 256 if counted else np.nan}  # fmt: skip
    return found | more


def rows(lengths=LENGTHS, **more) -> list[dict]:
    return [row(length=length, direction=way, **more) for length in lengths for way in ("forward", "backward")]


def causal(**more) -> list[dict]:
    """Rows of a fixed batch × length, as the literature has them."""
    found = []
    for length in LENGTHS:
        found += rows((length,), heads=32, causal="yes", tokens=16384, batch=16384 // length, **more)
    return found


def made(found: list[dict], ceilings=()) -> Made:
    tables = Made(attention=pd.DataFrame(found))
    if ceilings:
        names = ("hardware", "operation", "precision", "tflops")
        tables["ceilings"] = pd.DataFrame([dict(zip(names, each, strict=True)) for each in ceilings])
    return tables


def on(figure) -> list:
    return [each for each in figure.axes if each.axison]


# Rows ---------------------------------------------------------------------------------------------------------------


def test_the_shape_with_a_fixed_batch_is_told_from_the_other():
    found = measured(made(rows() + causal() + rows((256,), batch=4)))
    assert set(of_one_shape(found, varying_batch=False)["batch"]) == {8}
    other = of_one_shape(found, varying_batch=True)
    assert set(other["tokens"]) == {16384} and len(other) == 6
    assert shape_words(other) == "batch × length = 16,384, heads × d_head = 2,048, causal"
    assert shape_words(of_one_shape(found, varying_batch=False)) == "batch 8, no dimension of heads, not causal"


def test_without_cells_of_a_kind_the_other_is_taken():
    assert set(of_one_shape(measured(made(causal())), varying_batch=False)["tokens"]) == {16384}
    lost = [each | {"status": "missing", "median_ms": np.nan} for each in causal()]
    assert set(of_one_shape(measured(made(rows() + lost)), varying_batch=True)["batch"]) == {8}


def test_a_row_that_is_not_ok_has_no_time():
    found = measured(made([row(status="failed", median_ms=3.0), row(length=1024, median_ms=np.nan)]))
    assert found["median_ms"].isna().all() and list(found["status"]) == ["failed", "missing"]


def test_fp32_stands_beside_tf32_below_the_others():
    found = pd.DataFrame({"precision": ["tf32", "bf16", "fp32", "fp16"]})
    assert precision_groups(found) == [["bf16"], ["fp16"], ["fp32", "tf32"]]


def test_what_has_no_number_is_told():
    found = [*rows(status="unsupported"), row("triton"), row("triton", length=1024, status="failed")]
    own = measured(made([*found, row("triton", length=4096, status="oom")]))
    assert without_number(own[own["direction"] == "forward"], "median_ms") == [
        "unsupported: naive", "failed: triton at 1,024"
    ]  # fmt: skip


# Time ---------------------------------------------------------------------------------------------------------------


def test_time_over_length_by_direction_and_dimension():
    found = [each for name in TIME for d in (64, 128) for each in rows(implementation=name, d_head=d)]
    figure = draw(draw_time, made(found))
    panels = figure.axes
    assert len(panels) == 4
    assert line(panels[0], "naive") == ([256, 1024, 4096], pytest.approx([0.1, 1.6, 25.6]))
    assert line(panels[1], "triton") == ([256, 1024, 4096], pytest.approx([0.1, 1.6, 25.6]))
    assert line(panels[3], "naive") == ([256, 1024, 4096], pytest.approx([0.4, 6.4, 102.4]))
    assert [panel.get_ylabel() for panel in panels[::2]] == ["bf16 forward (ms)", "bf16 backward (ms)"]
    assert {"d_head 64", "d_head 128", "naive", "triton"} <= set(texts(figure))
    assert all(panel.get_xscale() == panel.get_yscale() == "log" for panel in panels)


def test_the_interval_is_drawn():
    panel = draw(draw_time, made(rows((256, 1024)))).axes[0]
    (own,) = (each for each in panel.lines if each.get_linewidth() == 3.2)
    assert own.get_ydata()[[0, 1, 3, 4]] == pytest.approx([0.09, 0.12, 1.44, 1.92])


def test_the_guide_grows_with_the_square_below_the_fastest():
    found = rows(implementation="naive") + rows((256, 1024), implementation="triton")
    x, y = line(draw(draw_time, made(found)).axes[0], "∝ length²")
    assert y[1] / y[0] == pytest.approx((x[1] / x[0]) ** 2)
    assert x[1] == 4096 and y[1] == pytest.approx(0.05 * 256 / 1.7)  # triton would take 12.8 ms at 4,096


def test_the_guide_is_linear_where_batch_times_length_is_fixed():
    panel = draw(draw_time, made(causal())).axes[0]
    x, y = line(panel, "∝ length")
    assert y[1] / y[0] == pytest.approx(x[1] / x[0])
    assert not any(each.get_label() == "∝ length²" for each in panel.lines)


def test_out_of_memory_is_marked_where_it_was():
    found = rows((256, 1024)) + rows((4096,), status="oom") + rows(implementation="triton")
    for panel in draw(draw_time, made(found)).axes:
        assert crosses(panel) == [(4096, colours.ATTENTION["naive"])] and "OOM" in texts(panel)
        assert line(panel, "naive")[0] == [256, 1024]
        low, high = panel.get_ylim()
        top = np.log(max(line(panel, "triton")[1]) / low) / np.log(high / low)
        assert top < 0.965 - marks.OOM_STEP  # the cross is above the lines


def test_noisy_and_throttled_points_are_hollow():
    found = [row(noisy=True), row(length=1024, throttle="power"), row(length=4096)]
    panel = draw(draw_time, made(found)).axes[0]
    (own,) = (each for each in panel.lines if each.get_label() == "naive, doubtful")
    assert list(own.get_xdata()) == [256, 1024] and own.get_markerfacecolor() == colours.PAPER


def test_fp32_and_tf32_share_a_panel_and_are_told_apart():
    found = rows(precision="fp32") + rows(precision="tf32") + rows(precision="bf16")
    figure = draw(draw_time, made(found))
    assert len(figure.axes) == 4 and figure.axes[2].get_ylabel() == "fp32, tf32 forward (ms)"
    styles = {each.get_label(): each.get_linestyle() for each in figure.axes[2].lines}
    assert styles["naive fp32"] == "-" and styles["naive tf32"] == "--"


def test_where_a_precision_was_not_measured_the_place_is_left_empty():
    found = [each for d in (64, 128) for each in rows(d_head=d)] + rows(d_head=128, precision="fp32")
    panels = draw(draw_time, made(found)).axes
    assert [panel.axison for panel in panels] == [True] * 4 + [False, True] * 2
    assert [panel.get_ylabel() for panel in panels[5::2]] == ["fp32 forward (ms)", "fp32 backward (ms)"]
    shown = [bool(panel.xaxis.get_tick_params()["labelbottom"]) for panel in panels if panel.axison]
    assert shown == [False, False, True, False, False, True]  # the lowest of each column


def test_labels_are_apart_and_not_above_the_panel():
    names = list(colours.ATTENTION)
    found = [each | {"implementation": name} for name in names for each in rows()]
    figure = draw(draw_time, made(found))
    for panel in figure.axes:
        own = [each for each in panel.texts if each.get_text() in names]
        assert len(own) == 7 and max(each.get_position()[1] for each in own) <= 1
        boxes = [each.get_window_extent().shrunk(0.9, 0.9) for each in own]
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_each_machine_has_its_own_columns():
    found = [each for d in (16, 64) for each in rows(d_head=d)] + rows((128, 512), d_head=32, hardware="cpu")
    figure = draw(draw_time, made(found))
    assert [panel.axison for panel in figure.axes] == [True] * 4 + [True, False] * 2
    words = texts(figure)
    assert {"cpu", "gpu", "d_head 16", "d_head 32", "d_head 64"} <= set(words)
    assert line(figure.axes[4], "naive")[0] == [128, 512]


# Memory -------------------------------------------------------------------------------------------------------------


def test_memory_before_backward_and_its_peak():
    panel = draw(draw_memory, made(rows())).axes[0]
    assert line(panel, "naive") == ([256, 1024, 4096], [2, 8, 32])
    (peak,) = (each for each in panel.lines if each.get_alpha() == 0.6)
    assert list(peak.get_ydata()) == [3, 12, 48] and panel.get_ylabel() == "bf16 memory (MiB)"
    x, y = line(panel, "∝ length")
    assert y[1] / y[0] == pytest.approx(x[1] / x[0]) and y[1] == pytest.approx(32 / 1.7)
    assert not any(each.get_label() == "∝ length²" for each in panel.lines)


def test_memory_that_grows_with_the_square_has_its_guide():
    square = [
        each | {"before_backward_bytes": MIB * each["length"] ** 2 / 256} for each in rows(implementation="triton")
    ]
    panel = draw(draw_memory, made(rows() + square)).axes[0]
    x, y = line(panel, "∝ length²")
    assert y[1] == pytest.approx(4096**2 / 256 / 1.7) and y[1] / y[0] == pytest.approx((x[1] / x[0]) ** 2)
    assert line(panel, "∝ length")[1][1] == pytest.approx(32 / 1.7)


def test_a_peak_of_what_ran_out_of_memory_is_not_drawn():
    panel = draw(draw_memory, made(rows((256, 1024)) + rows((4096,), status="oom"))).axes[0]
    (peak,) = (each for each in panel.lines if each.get_alpha() == 0.6)
    assert list(peak.get_ydata()) == [3, 12] and crosses(panel) == [(4096, colours.ATTENTION["naive"])]


# Head dimension -----------------------------------------------------------------------------------------------------


def test_time_over_the_head_dimension():
    found = [each for d in (16, 64, 128) for each in rows(d_head=d)]
    forward, backward = draw(draw_head_dimension, made(found)).axes
    assert line(forward, "naive") == ([16, 64, 128], pytest.approx([6.4, 25.6, 51.2]))
    assert line(backward, "naive") == ([16, 64, 128], pytest.approx([12.8, 51.2, 102.4]))
    x, y = line(forward, "∝ d_head")
    assert x[1] == 128 and y[1] == pytest.approx(51.2 / 1.7) and y[1] / y[0] == pytest.approx(x[1] / x[0])
    assert forward.get_title(loc="left") == "bf16, length 4,096, forward"


def test_the_length_is_the_longest_that_more_than_half_ran():
    two_of_three = rows() + rows(implementation="triton")
    two_of_three += [each | {"implementation": "flex"} for each in rows((256,)) + rows((1024, 4096), status="oom")]
    assert longest_that_most_ran(measured(made(two_of_three))) == 4096
    one_of_two = (
        rows() + rows((256,), implementation="triton") + rows((1024, 4096), implementation="triton", status="oom")
    )
    assert longest_that_most_ran(measured(made(one_of_two))) == 256
    backward_gone = [*rows((256,)), row(length=1024), row(length=1024, direction="backward", status="oom")]
    assert longest_that_most_ran(measured(made(backward_gone))) == 256


# Rates --------------------------------------------------------------------------------------------------------------


CEILINGS = [("gpu", "matmul", "bf16", 150.0), ("gpu", "matmul", "fp32", 50.0), ("gpu", "copy", "bf16", 999.0),
            ("other", "matmul", "bf16", 800.0)]  # fmt: skip


def bars(panel) -> dict[str, float]:
    return {each.get_label(): each.patches[0].get_width() for each in panel.containers}


def test_rates_are_those_of_the_literatures_shapes_and_stand_against_the_matmul():
    found = rows() + [each for name in TIME for each in causal(implementation=name)]
    figure = draw(draw_rates, made(found, CEILINGS))
    panels = figure.axes
    assert len(panels) == 6  # three lengths, two directions
    assert bars(panels[0]) == pytest.approx({"naive": 100, "triton": 200})
    assert bars(panels[1]) == pytest.approx({"naive": 50, "triton": 100})
    assert bars(panels[2]) == pytest.approx({"naive": 6.25, "triton": 12.5})
    assert [each.get_xlim()[1] for each in panels] == pytest.approx([244] * 6)
    for panel in panels:
        assert set(line(panel, "matmul")[0]) == {150}
    words = texts(figure)
    assert words.count("matmul 150") == 2 and {"length 256", "forward, d_head 64", "200", "6.25"} <= set(words)
    assert any("TFLOP/s, bf16; batch × length = 16,384" in each for each in words)


def test_the_ceiling_is_of_the_same_machine_and_precision():
    tables = made(rows(), CEILINGS)
    assert [matmul_rate(tables, "gpu", each) for each in ("bf16", "fp32", "tf32")] == [150, 50, None]
    assert matmul_rate(made(rows()), "gpu", "bf16") is None


def test_a_ceiling_far_beyond_is_told_and_not_drawn():
    panel = draw(draw_rates, made(causal(), [("gpu", "matmul", "bf16", 5000.0)])).axes[0]
    assert "matmul 5,000, far beyond ▸" in texts(panel) and panel.get_xlim()[1] == pytest.approx(122)
    assert not any(each.get_label() == "matmul" for each in panel.lines)


def test_what_has_no_rate_is_a_word_and_what_is_noisy_is_hatched():
    found = causal(noisy=True) + causal(implementation="triton", status="oom")
    found += [each | {"implementation": "flex"} for each in causal(status="unsupported")]
    panel = draw(draw_rates, made(found)).axes[0]
    assert {"OOM", "unsupported"} <= set(texts(panel)) and list(bars(panel)) == ["naive"]
    assert panel.containers[0].patches[0].get_hatch()


def test_without_such_shapes_the_bars_are_of_what_there_is():
    panels = draw(draw_rates, made(rows((128, 512), precision="fp32", hardware="cpu"))).axes
    assert len(panels) == 4 and bars(panels[0]) == pytest.approx({"naive": 400})


# Nothing to draw ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["missing", "failed", "unsupported", "oom"])
def test_without_numbers_every_figure_says_so(status):
    for tables in (Made(), made(rows(status=status)), made([])):
        for name, function in figures_of("attention").items():
            assert "nothing to draw" in texts(draw(function, tables))[0], name


def test_a_cpu_has_no_memory_to_draw():
    found = [each | {"before_backward_bytes": np.nan, "peak_bytes": np.nan} for each in rows(hardware="cpu")]
    assert "nothing to draw" in texts(draw(draw_memory, made(found)))[0]
    assert line(draw(draw_time, made(found)).axes[0], "naive")[0] == [256, 1024, 4096]


def test_one_row_is_drawn():
    for name in figures_of("attention"):
        if name != "attention_memory":
            assert on(draw(figures_of("attention")[name], made([row()]))), name
    assert line(draw(draw_memory, made([row(direction="backward")])).axes[0], "naive") == ([256], [2])


def test_numbers_that_are_none_do_not_fell_it():
    odd = [row(median_ms=value, before_backward_bytes=value, peak_bytes=value, tflops=value, direction="backward",
               implementation=name) for name, value in (("naive", np.inf), ("triton", -1.0))]  # fmt: skip
    odd += [row(d_head=np.nan), row(length=np.nan), row() | {"implementation": None}]
    panels = draw(draw_time, made(odd + rows((1024,)))).axes
    assert line(panels[0], "naive")[0] == [1024]


def test_tables_as_they_are_written(tmp_path):
    """Through files, as the figures read them."""
    for name, table in made(rows() + causal(), CEILINGS).items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    tables = Tables(tmp_path, ["attention", "ceilings"])
    panels = draw(draw_rates, tables).axes
    assert bars(panels[0]) == pytest.approx({"naive": 100}) and set(line(panels[0], "matmul")[0]) == {150}
    assert line(draw(draw_time, tables).axes[0], "naive")[1] == pytest.approx([0.1, 1.6, 25.6])


def test_shapes_with_keys_or_a_mask_of_their_own_are_not_drawn_beside_plain_ones():
    plain, more = rows(), {"heads": 32, "causal": "yes"}
    ways = [{"key_value_heads": 8}, {"key_value_heads": 32, "window": 64}, {"key_value_heads": 32, "keys": 9000}]
    special = [each for way in ways for each in rows(lengths=(*LENGTHS, 8192), **more, **way)]
    drawn = of_one_shape(measured(made([*special, *plain])), varying_batch=False)
    assert drawn["length"].tolist() == of_one_shape(measured(made(plain)), varying_batch=False)["length"].tolist()
    assert shape_words(drawn) == "batch 8, no dimension of heads, not causal"


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"key_value_heads": 8}, "causal, 8 key and value heads"),
        ({"key_value_heads": 32, "window": 64}, "causal, window 64"),
        ({"keys": 9000, "mask": "causal-lower-right"}, "causal to the last key, 9,000 keys"),
        ({"key_value_heads": 32, "mask": "causal"}, "causal"),
    ],
)
def test_a_shape_by_itself_is_named(way, words):
    drawn = of_one_shape(measured(made(rows(heads=32, causal="yes", **way))), varying_batch=False)
    assert shape_words(drawn) == f"batch 8, heads × d_head = 2,048, {words}"
