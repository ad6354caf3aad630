"""Where the time goes: kinds of kernels, the waterfall, the timeline, the ladder."""

import math

import made
import pandas as pd
from pytest import approx
from stepscope.figures import ladder, roofline, timeline, where

LARGE = {"size": "large", "context": 512, "batch": 4}


def test_panels_of_kinds_have_one_scale(tables):
    """A wide bar is a long time in each of them."""
    figure = made.draw(where.categories, tables)
    (limits,) = {panel.get_xlim() for panel in figure.axes}
    assert limits == (0, approx(1.3 * 450))  # forward and backward have 0.45 s of kernels


def test_a_steps_parts_are_its_kernels_and_what_the_clock_exceeds_it_without_the_host(tables):
    run = tables.row("series", study="ladder", variant="bf16", phase="step", quantity="time")
    run |= {"profile": made.PLAIN["cell"]}
    kernels = {"matmul": 0.4, "fused attention": 0.0, "copy/cast": 0.2, "elementwise": 0.3}
    assert dict(where.parts(tables, run)) == approx(kernels | {"optimizer": 0.1, "idle": 1.0})
    # Not by the profiler's clock: its kernels take 1.0 s of a step that has 1.0 s without the host.
    assert where.parts(tables, run | {"median": 1.2})["idle"] == approx(0.2)
    assert where.parts(tables, run | {"median": 0.8})["idle"] == 0
    assert where.parts(tables, run | {"variant": "tf32"})["idle"] == 0  # unknown


def test_bounds_are_flop_and_bytes_over_the_best_rates(tmp_path):
    """Products of linear layers: 6 operations a token for each weight of attention's four, of the
    FFN's three, and of the head."""
    shape = {"d_model": 64, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 1000}
    models = [row | shape | {"key_value_heads": 0} for row in made.everything()["models"]]
    tables = made.tables(tmp_path, models=models)
    found = where.bounds(tables, LARGE, "bf16")
    weights = 2 * (4 * 64**2 + 3 * 64 * 128) + 64 * 1000
    tokens = LARGE["batch"] * LARGE["context"]
    assert found["matmul"] == approx(6 * weights * tokens / 2.5e14)
    assert found["optimizer"] == approx(1e9 * (16 + 12) / 2e12)
    assert math.isnan(where.bounds(tables, LARGE, "fp32")["matmul"])
    assert where.bounds(tables, LARGE | {"size": "unknown"}, "fp32") == {}


def test_of_a_model_of_ones_own_the_products_alone_are_not_known(tmp_path):
    """With a vocabulary or without: attention's are among the operations that were counted."""
    models = [row | {"vocab_size": 32_000} for row in made.everything()["models"]]
    found = where.bounds(made.tables(tmp_path, models=models), LARGE, "bf16")
    assert math.isnan(found["matmul"]) and found["optimizer"] == approx(1e9 * (16 + 12) / 2e12)


def test_the_waterfall_leads_from_the_plain_step_to_the_fastest_rung(tables):
    runs = where.led(tables)
    assert list(runs["profile"]) == [made.PLAIN["cell"], made.TOP["cell"]]
    assert list(runs["median"]) == [2.0, 1.6]
    panel = made.draw(where.waterfall, tables).axes[0]
    # ms: products, casts, other, optimizer, idle; without attention there is no row
    lefts = [0, 400, 600, 900, 1000]
    plain, left = [400, 200, 300, 100, 1000], [200, 100, 150, 50, 1100]
    for at, (start, before, after) in enumerate(zip(lefts, plain, left, strict=True), start=1):
        widths = [(approx(start), approx(width)) for width in (before, after)]
        assert made.bars(panel, at) == widths, at
    assert [width for _, width in made.bars(panel, 6)] == approx([200, 100, 150, 50, 1100])
    bounds = {
        each.get_label(): each.get_segments()[0][0]
        for each in panel.collections
        if each.get_label().startswith("bound")
    }
    assert bounds["bound optimizer"][0] == approx(900 + 14)
    assert "2,000 ms" in made.texts(panel) and "400 → 200" in made.texts(panel)


def test_without_the_profile_of_the_top_the_waterfall_has_one_end(tmp_path):
    cells = [row for row in made.everything()["cells"] if row != made.TOP]
    tables = made.tables(tmp_path, cells=cells)
    assert len(where.led(tables)) == 1
    assert "all changes" not in made.texts(made.draw(where.waterfall, tables))


def test_a_place_that_is_profiled_but_no_ladder_is_second_choice(tmp_path):
    series = [row for row in made.everything()["series"] if row["study"] != "ladder"]
    runs = where.led(made.tables(tmp_path, series=series))
    assert list(runs["median"]) == [made.step_time("large", 512, "bf16")]


def test_kinds_of_kernels_of_each_pass(tables):
    panels = made.panels(made.draw(where.categories, tables))
    assert [width for _, width in made.bars(panels["forward"], 0)] == approx([200, 150, 100])
    assert [width for _, width in made.bars(panels["optimizer"], 0)] == approx([100])
    assert "450" in made.texts(panels["backward"])


def test_a_timelines_kernels_stand_where_they_ran(tables):
    panel = made.draw(timeline.timeline, tables).axes[0]
    kernels = [list(each.get_xdata()) for each in panel.lines if each.get_label() == "_bars"]
    assert [each[:2] for each in kernels] == [approx([100, 400]), approx([500, 900])]
    assert made.rows_named(panel) == ["ranges", "GPU"] and "step" in made.texts(panel)


def test_a_strangers_trace_is_drawn_with_its_own_views():
    row = {"lane": "GPU 0", "start": 0.0, "end": 2e-5, "label": "gemm", "category": "matmul"}
    frame = pd.DataFrame([row | {"view": "step 3"}])
    figure = made.draw(lambda rows: timeline.of_recording(rows, "trace.sqlite"), frame)
    panel = made.panels(figure)["step 3"]
    assert panel.get_xlabel() == "µs" and panel.get_xlim() == (0, approx(20))
    assert timeline.of_recording(frame[:0], "") is None


def test_rungs_know_the_one_before_and_asides_are_none(tables):
    rows = ladder.rungs(tables).set_index("variant")
    assert rows["after"].to_dict() == {"fp32": "", "bf16": "fp32", "sdpa": "bf16"}
    assert rows.loc["sdpa", "ratio"] == approx(1.25)


def test_a_ladders_bars_are_split_as_the_phases_and_a_long_first_one_is_cut(tables):
    panel = made.draw(ladder.ladder, tables).axes[0]
    assert made.rows_named(panel) == ["fp32", "bf16", "fused attention (SDPA)"]
    # The phases, 50 ms of optimizer among them, as shares of a whole step.
    assert [width for _, width in made.bars(panel, 2)] == approx(
        [1600 * phase / 1490 for phase in (480, 960, 50)]
    )
    limit = 1050 * 2.0 * 1.01  # of the longest that is left, with its interval
    # What is left of a bar that is cut keeps its scale: forward of a step of 4 s, then backward.
    forward = approx(4000 * 1200 / 3650)
    (_, cut) = made.bars(panel, 0)
    assert made.bars(panel, 0)[0] == (0, forward) and sum(cut) == approx(limit)
    assert (2.0, approx(1584), approx(1616)) in made.spans(panel, horizontal=True)
    words = made.texts(panel)
    assert "cut short: 4,000 ms" in words and "1,600 ms,  × 1.25" in words


def test_what_is_not_faster_is_told_by_its_verdict(tmp_path):
    same = [row | {"verdict": "same"} for row in made.ladder()["comparisons"]]
    figure = made.draw(ladder.ladder, made.tables(tmp_path, comparisons=same))
    assert "1,600 ms,  × 1.25 same" in made.texts(figure)


def test_a_rung_out_of_memory_keeps_its_place(tmp_path):
    rows = made.ladder()["series"]
    series = [row | (made.lost("oom") if row["variant"] == "sdpa" else {}) for row in rows]
    panel = made.draw(ladder.ladder, made.tables(tmp_path, series=series)).axes[0]
    assert made.bars(panel, 2) == [] and "out of memory" in made.texts(panel)


def test_a_parts_mark_stands_at_its_operations_a_byte_and_its_rate(tables):
    (panel,) = made.draw(roofline.roofline, tables).axes
    marks = {line.get_label(): line.get_xydata()[0].tolist() for line in panel.lines}
    del marks["roof"]
    # TFLOP/s over FLOP a byte; ranges of one kind are one mark.
    assert marks == {
        "FFN": approx([200, 200]),
        "softmax": approx([0.2, 0.2]),
        "RoPE": approx([0.2, 0.2]),
        "optimizer": approx([0.1, 0.1]),
    }
    areas = {line.get_label(): line.get_markersize() ** 2 for line in panel.lines}
    assert areas["FFN"] == approx(areas["softmax"]) == approx(2 * areas["optimizer"])
    (roof,) = (line.get_xydata() for line in panel.lines if line.get_label() == "roof")
    # A copy of 2 TB/s up to the rate of a product.
    assert roof[0, 1] == approx(roof[0, 0] * 2)
    assert roof[1, 1] == approx(roof[1, 0] * 2) == roof[2, 1]
