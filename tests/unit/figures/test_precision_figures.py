"""Figures of the precision study: what is drawn, against tables made by hand."""

import matplotlib
import numpy as np
import pytest
import synthetic_precision as made_up
from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.precision import OF_SQUARES, draw_accumulation, draw_forced, draw_speedup


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context(theme.STYLE):
        yield


@pytest.fixture
def tables(tmp_path):
    return lambda **frames: made_up.write(tmp_path / "tables", {"precision": [made_up.probe()], **frames})


def lines(panel, colour):
    """(x, y) of the lines of more than one point in a colour, without the bars of intervals."""
    drawn = [line for line in panel.get_lines() if line.get_color() == colour and len(line.get_xdata()) > 1]
    points = [(list(line.get_xdata()), list(line.get_ydata())) for line in drawn]
    return [pair for pair in points if not np.isnan(np.array(pair[1], dtype=float)).any()]


def samples(variant, sums):
    return [
        {"cell": "gpu/precision/accumulation", "hardware": "gpu", "variant": variant, "step": i, "sum": value}
        for i, value in enumerate(sums, start=1)
    ]


def test_the_error_of_a_sum_is_its_distance_to_001_times_the_additions(tables):
    rows = samples("bf16 += bf16", [0.03, 0.06]) + samples("fp32 += bf16", [0.02, 0.04])
    rows += samples("fp32 += bf16 cast to fp32", [0.02, 0.04])
    kinds = [made_up.summed(name) for name in ("bf16 += bf16", "fp32 += bf16", "fp32 += bf16 cast to fp32")]
    figure = draw_accumulation(tables(precision_samples=rows, precision_accumulation=kinds))
    (panel,) = figure.axes
    drawn = lines(panel, colours.precision("bf16"))
    assert [pair[0] for pair in drawn] == [[1, 2], [1, 2]]  # equal sums are one line
    assert np.allclose([pair[1] for pair in drawn], [[0.02, 0.04], [0.01, 0.02]])
    names = [text.get_text() for text in panel.texts]
    assert names == ["bf16 += bf16", "fp32 += bf16, cast or not"]


def test_a_lost_result_breaks_the_line_and_is_a_cross(tables):
    tried = made_up.tried
    rows = [tried(value=1.0, error=0.25), tried(value=255.0, error=0.5), tried(value=256.0, error=1.0, zero=8)]
    rows += [tried("LayerNorm", "mean of x", value, way=OF_SQUARES, error=value) for value in (1.0, 10.0)]
    figure = draw_forced(tables(precision_forced=rows))
    first, second, *_ = figure.axes
    (line,) = (line for line in first.get_lines() if line.get_color() == colours.precision("fp16")
               and line.get_marker() == "o")  # fmt: skip
    assert list(line.get_ydata())[:2] == [0.25, 0.5] and np.isnan(line.get_ydata()[2])
    (cross,) = (line for line in first.get_lines() if line.get_marker() == "X")
    assert round(cross.get_xdata()[0]) == 2 and cross.get_markeredgecolor() == colours.precision("fp16")
    assert [text.get_text() for text in first.get_xticklabels()] == ["1", "255", "256"]
    assert lines(second, colours.precision("fp16")) == [([0, 1], [1.0, 10.0])]


def test_the_speed_up_is_drawn_over_parameters_with_what_ran_out_of_memory(tables):
    timing, lost = made_up.timing, made_up.lost
    rows = [timing(), timing(precision="bf16", ms=5.0), timing(size="medium"), timing(size="medium", precision="bf16")]
    rows += [lost(size="large", phases=["step"]), lost(size="large", phases=["step"], precision="bf16")]
    figure = draw_speedup(tables(timing=rows))
    assert len(figure.axes) == 5  # inference, forward, backward, optimizer, step
    step = figure.axes[-1]
    assert lines(step, colours.precision("bf16")) == [([1e8, 4e8], [2.0, 1.0])]
    assert [line.get_xdata()[0] for line in step.get_lines() if line.get_marker() == "X"] == [1e9]
    assert "OOM" in [text.get_text() for text in step.texts]
    assert step.get_ylim()[0] < 1 < step.get_ylim()[1]


def test_a_ratio_without_an_interval_is_hollow_where_others_have_one(tables):
    both, sizes = ("fp32", "bf16"), ("small", "medium")
    rows = [made_up.timing(size=size, precision=precision) for size in sizes for precision in both]
    judged = draw_speedup(tables(timing=rows)).axes[-1]
    assert not [line for line in judged.get_lines() if line.get_markerfacecolor() == colours.PAPER]
    panel = draw_speedup(tables(timing=[*rows[:3], made_up.timing(size="medium", precision="bf16", processes=1)])).axes[
        -1
    ]
    hollow = [line for line in panel.get_lines() if line.get_markerfacecolor() == colours.PAPER]
    assert [list(line.get_xdata()) for line in hollow] == [[4e8]]


def test_several_machines_show_the_step_of_each(tables):
    rows = [made_up.timing(hardware=name, precision=precision) for name in ("a", "b") for precision in ("fp32", "bf16")]
    figure = draw_speedup(tables(timing=rows))
    assert [panel.get_ylabel() for panel in figure.axes] == ["step", "step"]
    names = [[text.get_text() for text in panel.texts if text.get_text() in "ab"] for panel in figure.axes]
    assert names == [["a"], ["b"]]


def test_one_batch_size_is_drawn(tables):
    rows = [made_up.timing(precision=precision, batch=batch, ms=ms, size=size)
            for precision, ms in (("fp32", 10.0), ("bf16", 5.0))
            for batch, size in ((4, "small"), (4, "medium"), (8, "small"))]  # fmt: skip
    figure = draw_speedup(tables(timing=rows))
    assert lines(figure.axes[-1], colours.precision("bf16")) == [([1e8, 4e8], [2.0, 2.0])]


def test_a_precision_that_the_last_column_lacks_is_named_in_the_last_one_that_has_it(tables):
    rows = [made_up.timing(context=context, precision=precision, ms=5.0)
            for context, names in ((128, ("fp32", "bf16", "fp16")), (256, ("fp32", "bf16")))
            for precision in names]  # fmt: skip
    figure = draw_speedup(tables(timing=rows))
    first, last = ([text.get_text() for text in panel.texts] for panel in figure.axes[-2:])
    assert (first, last) == (["fp16"], ["bf16"])
