"""Figures of the profile study: what is drawn, against numbers worked out from small tables by hand."""

import functools

import matplotlib
import numpy as np
import pandas as pd
import pytest
from drawing import Made, draw, texts
from drawing import cell_row as row_of
from matplotlib.patches import PathPatch, Rectangle
from stepscope import colours
from stepscope.config.training import figure_name
from stepscope.figures import figures_of, theme
from stepscope.figures.facets import cells_in_order
from stepscope.figures.labels import tick
from stepscope.figures.marks import beside, text_width
from stepscope.figures.profile.bound import bound_rows, draw_bound
from stepscope.figures.profile.cell import LANE, draw_cell
from stepscope.figures.profile.data import by_category
from stepscope.figures.profile.kernels import draw_categories, draw_launches, draw_matmul_share, matmul_shares

# ms a step by category: matmul is 6 of 10, 15 of 20, and 21 of 35 of the whole step, whose optimizer has none.
TIMES = {
    "forward": {"matmul": 6.0, "elementwise": 3.0, "copy/cast": 1.0},
    "backward": {"matmul": 15.0, "elementwise": 5.0},
    "optimizer": {"elementwise": 5.0},
    "step": {"matmul": 21.0, "elementwise": 13.0, "copy/cast": 1.0},
}
KERNELS = {"step": (100, 61), "forward": (40, 40), "backward": (40, 1), "optimizer": (20, 20)}
cell_row = functools.partial(row_of, "profile", profiler="nsys")


def timeline_rows(cell: str, host: bool = False) -> list[dict]:
    """A step of 100 ms with two attentions at 10 to 14 and 20 to 24 ms; the zoom goes on until 30 ms."""

    def of(view, lane, start, end, label="", category="range"):
        return {"cell": cell, "view": view, "lane": lane, "start_us": start, "end_us": end, "label": label,
                "category": category, "span_us": {"step": 1e5, "attention": 1e4}[view]}  # fmt: skip

    device = "operators" if host else "GPU 0, stream 7"
    rows = [
        of("step", "ranges 0", 0, 1e5, "step"),
        of("step", "ranges 1", 0, 4e4, "forward"),
        of("step", "ranges 1", 4e4, 1e5, "backward"),
        of("step", "ranges 2", 1e4, 1.4e4, "attention"),
        of("step", "ranges 2", 2e4, 2.4e4, "attention"),
        of("step", "ranges 2", 2.5e4, 3e4, "FFN"),
        of("step", "ranges 3", 2e4, 2.2e4, "softmax"),
        of("step", device, 1e3, 2e3, category="matmul"),
        of("step", device, 5e3, 7e3, category="matmul"),
        of("step", device, 2e3, 3e3, category="elementwise"),
        of("attention", "ranges 0", 0, 4e3, "attention"),
        of("attention", "ranges 0", 5e3, 1e4, "FFN"),
        of("attention", "ranges 1", 100, 2e3, "softmax"),
        of("attention", "ranges 1", 2.1e3, 2.2e3, "a label without room"),
        of("attention", device, 0, 9e3, category="matmul"),
    ]
    if not host:
        rows += [
            of("step", "CUDA calls, thread 0", 0, 500, category="call"),
            of("attention", "CUDA calls, thread 0", 0, 500, category="call"),
        ]
    return rows


def made(cells: list[dict], timed: dict | None = None) -> Made:
    """Tables in which each cell that is ok has TIMES and KERNELS, 35 ms of GPU time in a step of 60 ms."""
    ok = [cell for cell in cells if cell["status"] == "ok"]
    tables = Made(profile=pd.DataFrame(cells))
    phases = {cell["cell"]: ["inference", "step"] if cell["mode"] == "inference" else list(TIMES) for cell in ok}
    times = TIMES | {"inference": TIMES["forward"]}
    kernels = KERNELS | {"inference": KERNELS["forward"]}
    rows = [(name, phase) for name, found in phases.items() for phase in found]
    tables["profile_categories"] = pd.DataFrame(
        [
            {"cell": name, "phase": phase, "category": category, "ms_per_step": spent}
            for name, phase in rows
            for category, spent in times[phase].items()
        ],
        columns=["cell", "phase", "category", "ms_per_step"],
    )
    tables["profile_phases"] = pd.DataFrame(
        [
            {"cell": name, "phase": phase, "kernels_per_step": float(kernels[phase][0]),
             "kernels_by_thread_rule_per_step": float(kernels[phase][1])}
            for name, phase in rows
        ]
    )  # fmt: skip
    tables["profile_busy"] = pd.DataFrame(
        [{"cell": name, "phase": "step", "busy_ms_per_step": 35.0, "wall_ms_per_step": 60.0} for name in phases]
    )
    lanes = [row for cell in ok for row in timeline_rows(cell["cell"], cell["hardware"] == "cpu")]
    tables["profile_timeline"] = pd.DataFrame(lanes)
    if timed:
        steps = [
            cell | {"cell": cell["cell"].replace("/profile/", "/timing/"), "mode": "step"} | timed for cell in cells
        ]
        tables["timing"] = pd.DataFrame(steps).drop_duplicates("cell")
    return tables


def bars(panel) -> list[tuple]:
    """(left, width, colour, alpha) of each bar that is wider than nothing, in data units."""
    found = [each for each in panel.patches if isinstance(each, Rectangle) and each.get_width() > 0]
    return [
        (each.get_x(), each.get_width(), matplotlib.colors.to_hex(each.get_facecolor()), each.get_alpha())
        for each in found
    ]


def lanes(panel) -> dict[str, np.ndarray]:
    """Colour → (start, end) of the rectangles that one thick line stands for."""
    found = {}
    for patch in (each for each in panel.patches if isinstance(each, PathPatch)):
        assert patch.get_linewidth() == pytest.approx(72 * LANE)
        ends = patch.get_path().vertices[:, 0].reshape(-1, 2)
        colour = matplotlib.colors.to_hex(patch.get_edgecolor())
        found[colour] = np.vstack([found[colour], ends]) if colour in found else ends
    return found


# Names --------------------------------------------------------------------------------------------------


def test_a_figure_names_its_cell():
    name = figure_name("nvidia-h100-80gb-hbm3/profile/small/ctx256/bf16/mode=inference")
    assert name == "profile_cell_nvidia-h100-80gb-hbm3_small_ctx256_bf16_mode-inference"


def test_the_study_has_a_figure_for_each_cell():
    tables = made([cell_row(), cell_row("medium", status="oom")])
    names = ["profile_cell_gpu_small_ctx256_fp32", "profile_cell_gpu_medium_ctx256_fp32"]
    across = list(figures_of("profile"))
    assert list(figures_of("profile", tables)) == across + names
    assert list(figures_of("profile", Made())) == across
    assert "timing_by_size" in figures_of("timing", tables)


# Across cells -------------------------------------------------------------------------------------------------------


def test_matmul_share_is_of_the_phases_own_time():
    tables = made([cell_row()])
    shares = matmul_shares(cell_row(), by_category(tables))
    assert {phase: share for phase, (share, _) in shares.items()} == pytest.approx(
        {"forward": 60, "backward": 75, "step": 60}
    )
    panel = draw(draw_matmul_share, tables).axes[0]
    assert list(panel.lines[0].get_ydata()) == pytest.approx([60, 75, 60])
    assert [each.get_text() for each in panel.get_xticklabels()] == ["forward", "backward", "step"]


def test_inference_begins_the_line_of_the_training_step():
    tables = made([cell_row(), cell_row(mode="inference"), cell_row(precision="bf16", status="oom")])
    figure = draw(draw_matmul_share, tables)
    assert list(figure.axes[0].lines[0].get_ydata()) == pytest.approx([60, 60, 75, 60])
    assert "bf16: OOM" in texts(figure) and "fp32 60 %" in texts(figure)


def test_fused_attention_is_drawn_on_top_of_matmul():
    tables = made([cell_row()])
    fused = pd.DataFrame([{"cell": cell_row()["cell"], "phase": "forward", "category": "fused attention",
                           "ms_per_step": 10.0}])  # fmt: skip
    tables["profile_categories"] = pd.concat([tables["profile_categories"], fused])
    panel = draw(draw_matmul_share, tables).axes[0]
    assert panel.lines[0].get_ydata()[0] == pytest.approx(100 * 6 / 20)
    assert panel.lines[1].get_ydata()[0] == pytest.approx(100 * 16 / 20)


def test_launches_tell_what_another_thread_launched():
    figure = draw(draw_launches, made([cell_row()]))
    drawn = bars(figure.axes[0])
    assert [(left, width) for left, width, _, _ in drawn] == [(0, 40), (40, 1), (41, 39), (80, 20)]
    assert [alpha is None for *_, alpha in drawn] == [True, True, False, True]
    assert drawn[1][2] == colours.PHASE["backward"]
    assert "100" in texts(figure) and "paler: launched by another thread" in texts(figure)


def test_launches_over_sizes_and_over_contexts():
    cells = [cell_row(), cell_row("medium"), cell_row("medium", context=128.0), cell_row("medium", precision="bf16")]
    figure = draw(draw_launches, made(cells))
    by_size, by_context = figure.axes
    names = [[each.get_text() for each in panel.get_yticklabels()] for panel in figure.axes]
    assert names == [["small  fp32", "medium  fp32", "medium  bf16"], ["128  fp32", "256  fp32", "256  bf16"]]
    assert by_size.get_xlim() == by_context.get_xlim()


def test_busy_time_is_a_share_of_the_step_without_a_profiler():
    tables = made([cell_row()], {"step_median_ms": 50.0, "step_noisy": True})
    figure = draw(draw_bound, tables)
    panel = figure.axes[0]
    assert [(left, width) for left, width, _, _ in bars(panel)] == [(0, 70), (70, 30)]  # 35 of 50 ms
    assert [100, 120] in [list(line.get_xdata()) for line in panel.lines]  # 60 of 50 ms
    assert {"70 %", "35.0", "50.0", "60.0", "small, 256, fp32 (noisy)"} <= set(texts(figure))


def test_a_profiled_step_that_is_very_slow_does_not_flatten_the_others():
    cells = [cell_row(), cell_row("medium")]
    tables = made(cells, {"step_median_ms": 50.0})
    tables["timing"].loc[tables["timing"]["size"] == "small", "step_median_ms"] = 1.0
    figure = draw(draw_bound, tables)
    assert figure.axes[0].get_xlim()[1] < 320
    assert {"3,500 %", "70 %"} <= set(texts(figure))


def test_a_cell_that_was_not_timed_is_compared_with_its_profiled_step():
    figure = draw(draw_bound, made([cell_row(), cell_row("medium", status="unsupported")]))
    panel = figure.axes[0]
    assert [width for _, width, _, _ in bars(panel)] == pytest.approx([100, 100 * 35 / 60])
    assert not any(each.get_fill() for each in panel.patches)
    assert {"unsupported", "–", "not timed: % of the profiled step"} <= set(texts(figure))


def test_on_a_cpu_operators_are_a_share_of_the_profiled_step():
    tables = made([cell_row(hardware="cpu", profiler="torch", device="cpu")], {"step_median_ms": 20.0})
    figure = draw(draw_bound, tables)
    panel = figure.axes[0]
    shares = [35 / 60, 25 / 60]  # of the profiled 60 ms; of the 20 ms without a profiler they would be 175 %
    assert [width for _, width, _, _ in bars(panel)] == pytest.approx([100 * share for share in shares])
    assert {"58 %", "20.0", "time (% of the profiled step)", "not in operators"} <= set(texts(figure))
    assert "end of the profiled step" not in texts(figure)


@pytest.mark.parametrize(
    ("cell", "ms"),
    [
        ({}, 50.0),
        ({"mode": "inference"}, 9.0),
        ({"precision": "bf16"}, None),
        ({"context": 512.0}, None),
        ({"hardware": "other"}, None),
        ({"batch": 8.0}, None),
        ({"attention": "sdpa"}, None),
    ],
)
def test_only_the_same_point_of_the_timing_study_counts(cell, ms):
    tables = made([cell_row()], {"step_median_ms": 50.0, "inference_median_ms": 9.0})
    again = tables["timing"].assign(repeat=2.0, step_median_ms=70.0)
    tables["timing"] = pd.concat([again, tables["timing"]], ignore_index=True)
    tables["profile"] = pd.DataFrame([cell_row(**cell)])
    (found,) = bound_rows(tables, cells_in_order(tables["profile"]))
    assert found["free"] == ms


def test_categories_are_stacked_by_phase_in_one_scale_for_all_precisions():
    cells = [cell_row(), cell_row(precision="bf16"), cell_row("medium", precision="bf16", status="oom")]
    figure = draw(draw_categories, made(cells))
    first, second, _, lost = figure.axes
    expected = [(0, 6, "matmul"), (6, 3, "elementwise"), (9, 1, "copy/cast"), (0, 15, "matmul"),
                (15, 5, "elementwise"), (0, 5, "elementwise")]  # fmt: skip
    assert [(left, width, colour) for left, width, colour, _ in bars(first)] == [
        (left, width, colours.CATEGORY[name]) for left, width, name in expected
    ]
    assert first.get_xlim() == second.get_xlim()
    assert not bars(lost) and "OOM" in [each.get_text() for each in lost.texts]


def test_an_unknown_category_is_not_lost():
    tables = made([cell_row()])
    strange = {"cell": cell_row()["cell"], "phase": "optimizer", "category": "strange", "ms_per_step": 2.0}
    tables["profile_categories"] = pd.concat([tables["profile_categories"], pd.DataFrame([strange])])
    panel = draw(draw_categories, tables).axes[0]
    assert bars(panel)[-1][:3] == (5.0, 2.0, colours.CATEGORY["other"])


# One cell -----------------------------------------------------------------------------------------------------------


def test_a_cell_shows_phases_a_step_and_an_attention():
    figure = draw(draw_cell, made([cell_row()]), cell_row()["cell"])
    phases, step, attention = figure.axes
    assert [each.get_text() for each in phases.get_yticklabels()] == ["forward", "backward", "optimizer"]
    assert sum(width for _, width, _, _ in bars(phases)) == pytest.approx(35)
    assert {"60 %", "10.0 ms", "20.0 ms"} <= set(texts(figure))
    drawn = lanes(step)
    assert drawn[colours.CATEGORY["matmul"]].tolist() == [[1e3, 2e3], [5e3, 7e3]]
    assert drawn[colours.CATEGORY["elementwise"]].tolist() == [[2e3, 3e3]]
    assert drawn[colours.CALL].tolist() == [[0, 500]]
    assert lanes(attention)[colours.CATEGORY["matmul"]].tolist() == [[0, 9e3]]
    assert step.get_xlim() == (0, 1e5) and attention.get_xlim() == (0, 1e4)


def test_the_attention_and_its_parts_are_darker_than_other_ranges():
    figure = draw(draw_cell, made([cell_row()]), cell_row()["cell"])
    _, step, _ = figure.axes
    drawn = lanes(step)
    assert drawn[colours.RANGE_ATTENTION][:, 0].tolist() == [1e4, 2e4, 2e4]  # two attentions and a softmax
    assert drawn[colours.RANGE][:, 0].tolist() == [0, 0, 4e4, 2.5e4]  # step, forward, backward, FFN
    assert step.get_yticklabels()[0].get_text() == "named ranges"


def test_the_zoom_is_framed_in_the_step():
    figure = draw(draw_cell, made([cell_row()]), cell_row()["cell"])
    _, step, attention = figure.axes
    (frame,) = [each for each in step.patches if isinstance(each, Rectangle)]
    assert (frame.get_x(), frame.get_width()) == (2e4, 1e4)  # the second of two, as long as the zoom
    assert "framed above" in attention.get_title(loc="left")


def test_a_label_without_room_stands_below_its_range():
    figure = draw(draw_cell, made([cell_row()]), cell_row()["cell"])
    _, _, attention = figure.axes
    found = {each.get_text(): each for each in attention.texts}
    assert found["softmax"].get_position()[0] == pytest.approx(1050)
    outside, inside = found["a label without room"], found["softmax"]
    assert outside.get_position()[1] > inside.get_position()[1] + LANE / 2
    assert not outside.get_window_extent().overlaps(inside.get_window_extent())


def test_a_tick_label_is_as_exact_as_its_tick():
    assert [tick(value) for value in (0, 0.3, 2.5, 12.5, 1000)] == ["0", "0.3", "2.5", "12.5", "1,000"]


def test_labels_are_moved_aside_until_they_are_too_far_away():
    assert beside([10.0, 100.0], [20.0, 20.0], 30, 200) == [10.0, 100.0]
    assert beside([50.0, 60.0], [20.0, 20.0], 30, 200) == pytest.approx([42.5, 67.5])
    assert beside([50.0, 52.0], [80.0, 80.0], 30, 200) is None
    assert beside([10.0, 100.0], [20.0, 20.0], 30, 105) is None
    assert text_width("output projection") > text_width("mask") > 0


def test_operators_of_a_cpu_stand_where_kernels_would():
    tables = made([cell_row(hardware="cpu", profiler="torch")])
    figure = draw(draw_cell, tables, "cpu/profile/small/ctx256/fp32")
    words = texts(figure)
    assert "operators" in words and "time in operators by category" in words
    assert not any("CUDA" in word or "GPU" in word or "launched" in word for word in words)
    assert "one step under torch.profiler, of median length: 100 ms" in words
    for function, sentence in (
        (draw_launches, "operators run in a step"),
        (draw_categories, "time in operators (ms per step)"),
    ):
        assert sentence in texts(draw(function, tables))


@pytest.mark.parametrize(
    ("status", "words"),
    [("oom", "ran out of memory"), ("failed", "failed"), (None, "missing"), ("ok", "left no trace")],
)
def test_a_cell_without_a_trace_says_so_in_one_sentence(status, words):
    tables = Made(profile=pd.DataFrame([cell_row(status=status)]))
    figure = draw(draw_cell, tables, cell_row()["cell"])
    assert texts(figure) == [f"small, context 256, fp32: {words}. Nothing to draw."]


def test_without_a_trace_every_figure_across_cells_says_so():
    for name, function in figures_of("profile").items():
        figure = draw(function, Made(profile=pd.DataFrame([cell_row(status="oom")])))
        assert "nothing to draw" in texts(figure)[0], name


def test_a_full_timeline_is_a_small_file():
    """1,200 rectangles in each of four lanes of both views, as many as a table can hold."""
    tables = made([cell_row()])
    start = np.linspace(0, 1e5, 1201)[:-1]
    for view, scale in (("step", 1.0), ("attention", 0.1)):
        for at, lane in enumerate(("CUDA calls, thread 0", "GPU 0, stream 7")):
            names = ["call"] if at == 0 else list(colours.CATEGORY)[:5]
            full = pd.DataFrame({"view": view, "lane": lane, "start_us": start * scale, "label": "",
                                 "end_us": (start + 40) * scale, "span_us": 1e5 * scale,
                                 "category": [names[i % len(names)] for i in range(1200)]})  # fmt: skip
            full["cell"] = cell_row()["cell"]
            tables["profile_timeline"] = pd.concat([tables["profile_timeline"], full], ignore_index=True)
    svg = theme.render(lambda tables: draw_cell(tables, cell_row()["cell"]), tables)["svg"]
    assert len(svg) < 250_000
    assert svg.count(b"<path") < 150
