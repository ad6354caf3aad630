"""Memory, attention, formats and the first steps: marks stand where the data are."""

import made
import numpy as np
import pandas as pd
import pytest
from common import picked
from pytest import approx
from stepscope.figures import attention, formats, marks, memory, start, words


def test_what_is_alive_adds_up_at_each_moment(tables):
    figure = made.draw(memory.memory_over_step, tables)
    panel = figure.axes[0]
    tops = [each.get_paths()[0].vertices[:, 1].max() for each in panel.collections]
    assert tops[0] == approx(10) and max(tops) == approx(25)
    assert made.lines(panel)["peak"] == [(500, 25)] and made.lines(panel)["reserved"][0][1] == 30
    assert "peak (triangle) 25 GiB, reserved (dashed) 30" in " ".join(made.texts(figure))
    assert {"parameters", "activations", "gradients"} - {*made.texts(panel)} == {"gradients"}


def test_a_strangers_recording_needs_no_phase_and_keeps_its_peak():
    bytes_alive = [100 * 2**20] * 5000
    bytes_alive[3333] = 200 * 2**20
    frame = pd.DataFrame({"time": np.arange(5000) / 1e3, "unknown": bytes_alive})
    figure = made.draw(lambda rows: memory.of_recording(rows, "snapshot.pickle"), frame)
    panel = figure.axes[0]
    assert made.lines(panel) == {"peak": [(3333, 200)]}
    assert {"snapshot.pickle; peak (triangle) 200 MiB", "unknown"} <= {*made.texts(figure)}
    assert len(panel.collections[0].get_paths()[0].vertices) < 3000
    assert memory.of_recording(frame[:0], "") is None


def test_peaks_grow_below_the_memory_of_the_gpu(tables):
    panels = made.panels(made.draw(memory.memory_growth, tables))
    assert made.lines(panels["bf16"])["large"] == [(128, 2), (512, 8)]
    assert made.lines(panels["bf16"])["the GPU's memory"][0][1] == approx(100e9 / 2**30)
    assert made.crosses(panels["fp32"]) == [512]


def test_attention_over_the_length(tables):
    panels = made.panels(made.draw(attention.attention_time, tables))
    forward, backward = panels["forward"], panels["backward"]
    assert made.lines(forward)["naive"] == [(1024, 4), (2048, 16)]
    assert made.lines(backward)["naive"] == [(1024, 8), (2048, 32)]
    assert made.lines(forward)["triton"][-1] == (2048, 0.5)
    assert made.crosses(forward) == [4096]
    assert (1024, approx(3.96), approx(4.04)) in made.spans(forward)


def test_rates_stand_below_the_rate_of_a_large_product(tables):
    panel = made.panels(made.draw(attention.attention_rates, tables))["forward"]
    assert made.lines(panel)["large product"][0][1] == 250
    tera = 4 * 8 * 1024**2 * 64 / 2e-4 / 1e12
    assert made.lines(panel)["triton"][0] == (1024, approx(tera))


def test_the_attention_cell_with_most_lengths_is_drawn_and_bf16_of_equal_ones(tmp_path):
    every = made.everything()["series"]
    own = picked(every, study="attention", size="d64")
    others = [row | {"cell": "x", "precision": "fp32"} for row in own]
    short = [row | {"cell": "y", "size": "d256"} for row in picked(own, length=1024)]
    tables = made.tables(tmp_path, series=[*others, *short, *own])
    assert set(attention.subject_rows(tables, "time")["precision"]) == {"bf16"}
    assert set(attention.subject_rows(tables, "time")["size"]) == {"d64"}


def test_an_error_of_nothing_is_drawn_at_the_least(tables):
    panel = made.panels(made.draw(formats.forced, tables))["dropout"]
    assert made.lines(panel)["fp16"] == [(0, 1e-3), (1, 1e-9)]
    assert [each.get_text() for each in panel.get_xticklabels()] == ["1", "10"]


def test_warm_up_is_told_in_steady_steps(tables):
    panel = made.panels(made.draw(start.warmup, tables))["small 128 fp32"]
    assert made.lines(panel)["mean"] == [(0, 1.6), (1, 1.1), (2, 1.02), (3, 1), (4, 1)]
    assert made.spans(panel)[0] == (0, approx(1.58), approx(1.62))


def test_the_first_step_stands_above_a_later_one(tables):
    panel = made.draw(start.first_step, tables).axes[0]
    assert [width for _, width in made.bars(panel, 0)] == [1000, 500]
    assert [width for _, width in made.bars(panel, 1)] == [300]
    assert "1,500" in made.texts(panel)


def test_labels_move_apart_as_little_as_they_can():
    positions = [0.5, 0.52, 0.1, 0.51]
    moved = marks.spread(positions, 0.1)
    assert min(np.diff(sorted(moved))) >= 0.1 - 1e-9 and moved[2] == 0.1
    assert [moved[i] for i in (0, 3, 1)] == approx([0.41, 0.51, 0.61])
    assert marks.spread([], 0.1) == []


@pytest.mark.parametrize(
    "low, high, ticks",
    [
        (1, 2, [1, 1.5, 2]),
        (0.8, 7, [1, 1.5, 2, 3, 5, 7]),
        (3, 900, [5, 10, 20, 50, 100, 200, 500]),
        (1e-2, 1e6, [1e-2, 1, 1e2, 1e4, 1e6]),
    ],
)
def test_ticks_of_a_log_axis(low, high, ticks):
    panel = made.matplotlib.figure.Figure().subplots()
    panel.set_xscale("log")
    marks.log_axis(panel.xaxis, low, high)
    found = list(panel.xaxis.get_major_locator()())
    assert sorted(found) == approx(ticks)


@pytest.mark.parametrize(
    "text, value",
    {
        "0.0123": 0.01234,
        "4.5": 4.5,
        "424": 424.2,
        "1,514": 1514.3,
        "0": 0,
        "": float("nan"),
        "100": 99.96,
    }.items(),
)
def test_numbers(value, text):
    assert words.number(value) == text
