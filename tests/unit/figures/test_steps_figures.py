"""Timing: marks stand where the data are."""

import math

import made
from common import picked
from made import SHARES, step_time
from pytest import approx
from stepscope.figures import across, steps


def test_a_steps_phases_stand_one_after_another(tables):
    figure = made.draw(steps.step_parts, tables)
    panel = made.panels(figure)["context 512"]
    names = made.rows_named(figure.axes[0])
    assert names == ["small fp32", "small bf16", "large fp32", "large bf16"]
    step = 1e3 * step_time("large", 512, "bf16")  # 1,024 ms
    left = 0.0
    for (start, width), share in zip(made.bars(panel, 3), SHARES.values(), strict=True):
        assert (start, width) == (approx(left), approx(share * step))
        left += width
    assert (3.0, approx(0.99 * step), approx(1.01 * step)) in made.spans(panel, horizontal=True)
    assert {"1,024", "out of memory"} <= set(made.texts(panel)) and made.bars(panel, 2) == []


def test_what_the_machine_cannot_do_has_no_panel(tmp_path):
    rows = made.timing()["series"]
    refused = [row | made.lost("unsupported") for row in picked(rows, precision="bf16")]
    tables = made.tables(tmp_path, series=[*picked(rows, precision="fp32"), *refused])
    assert list(made.panels(made.draw(steps.time_by_context, tables))) == ["fp32"]
    assert made.texts(made.draw(steps.step_parts, tables).axes[0]).count("small bf16") == 0


def test_what_ran_out_of_memory_has_a_cross_and_no_mark(tables):
    panels = made.panels(made.draw(steps.time_by_context, tables))
    assert made.lines(panels["fp32"]) == {"small": [(128, 128), (512, 512)], "large": [(128, 512)]}
    assert made.crosses(panels["fp32"]) == [512] and made.crosses(panels["bf16"]) == []
    assert made.lines(panels["bf16"])["large"] == [(128, 256), (512, 1024)]
    assert (512, approx(1013.76), approx(1034.24)) in made.spans(panels["bf16"])
    low, high = panels["bf16"].get_ylim()
    assert low < 0.9 * 64 and high > 1034.24 and panels["bf16"].get_yscale() == "log"


def test_launches_compares_the_clock_with_the_step_without_the_host(tables):
    panel = made.draw(steps.launches, tables).axes[0]
    assert made.rows_named(panel) == [
        f"{size} {context} bf16" for size in ("small", "large") for context in (128, 512)
    ]
    marks = {
        (each.get_label(), float(each.get_ydata()[0])): float(each.get_xdata()[0])
        for each in panel.lines
        if each.get_label() in ("by the clock", "without the host")
    }
    assert marks["by the clock", 2] == approx(256) and marks["without the host", 2] == approx(128)
    joined = [list(each.get_xdata()) for each in panel.lines if each.get_label() == "_launches"]
    assert joined == [approx([32, 64]), approx([128, 256])]
    assert made.texts(panel).count("1,000") >= 4


def test_speedup_is_the_ratio_with_both_intervals(tables):
    panel = made.panels(made.draw(steps.precision_speedup, tables))["bf16"]
    assert made.lines(panel) == {"small": [(128, 2), (512, 2)], "large": [(128, 2)]}
    factor = math.exp(math.sqrt(2) * math.log(1.01 / 0.99) / 2)
    assert made.spans(panel)[0] == (128, approx(2 / factor), approx(2 * factor))


def test_machines_are_compared_at_each_place(tmp_path):
    panel = made.draw(across.machines, made.tables(tmp_path, None)).axes[0]
    marks = [float(each.get_xdata()[0]) for each in panel.lines if each.get_label() == "other"]
    assert len(marks) == 7 and marks == approx([2.0] * 7)


def test_published_numbers_stand_at_their_ratio(tmp_path):
    figure = made.draw(across.published, made.tables(tmp_path, None))
    panel = figure.axes[0]
    assert sorted(made.lines(panel)["write-up 1"]) == [(2, 0), (4, 0)]
    assert "write-up 1, T4: timing" in made.texts(panel) and "3 (median of 2)" in made.texts(panel)
