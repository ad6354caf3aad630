"""Figures of the ladder study: what is drawn, against numbers worked out from synthetic_ladder by hand."""

import itertools

import matplotlib
import numpy as np
import pytest
import synthetic_ladder as made
from drawing import crosses, draw, line, texts
from stepscope import colours
from stepscope.figures import figures_of
from stepscope.figures.ladder import draw_checkpoint, draw_rates, draw_steps, names_of
from stepscope.report.data.ladder import ladders
from stepscope.tables.reader import Tables


def tables_of(folder, cells) -> Tables:
    return Tables(made.write(folder, cells), ["ladder"])


def bars(panel, name: str) -> list[tuple[float, float]]:
    """(left, width) of the bars of a phase."""
    colour = colours.PHASE.get(name, colours.SHADE)
    found = [each for each in panel.patches if matplotlib.colors.to_hex(each.get_facecolor()) == colour]
    return [(each.get_x(), each.get_width()) for each in found]


# Steps ----------------------------------------------------------------------------------------------------------------


def test_phases_are_stacked_and_the_free_step_is_a_tick(tmp_path):
    panel = draw(draw_steps, tables_of(tmp_path, [*made.chain(), made.whole()])).axes[0]
    # The first rung: 36 ms forward and backward, 4 ms optimizer, 5 % more in phased steps.
    assert bars(panel, "forward")[0] == pytest.approx((0, 9.45))
    assert bars(panel, "backward")[0] == pytest.approx((9.45, 28.35))
    assert bars(panel, "optimizer")[0] == pytest.approx((37.8, 4.2))
    ticks = [each.get_xdata()[0] for each in panel.lines if each.get_label() == "free step"]
    assert ticks == pytest.approx([40, 25, 20, 16, 15, 10, 5, 4, 9])
    assert [each.get_text() for each in panel.get_yticklabels()][-2:] == ["fused AdamW", "whole model compiled"]
    assert {"40.0", "25.0, × 1.60 [1.59, 1.61]", "4.00, × 1.25 [1.24, 1.26]"} <= set(texts(panel))
    places = panel.get_yticks()
    assert places[8] - places[7] > places[7] - places[6] == 1  # a gap before what stands beside the chain


def test_what_has_no_step_is_told(tmp_path):
    cells = made.chain()
    cells[0] = made.without_step(cells[0], both=True)
    cells[1] = made.without_step(cells[1])
    cells[2] = made.without_step(cells[2], "unsupported", "none", both=True)
    cells[3] = made.unmeasured(cells[3])
    cells[4].record["summary"]["ladder"]["loss"] = 1.0
    cells[5] = made.cell("small", 128, "bf16", made.BLOCK, 10.0, scatter=0.1, launch=0.95)
    figure = draw(draw_steps, tables_of(tmp_path, cells))
    words = texts(figure)
    assert {"OOM", "21.0, OOM", "unsupported", "missing", "15.0, differs: no rung", "forward+backward, no step"} <= set(
        words
    )
    # Blocks compiled against TF32, forward and backward: 21 of 6 ms.
    assert "10.0, f+b × 3.50 [3.1, 4.0] over TF32, ~" in words
    assert bars(figure.axes[0], "forward+backward") == [(0, pytest.approx(21))]


def test_a_panel_for_each_ladder_and_no_more_than_eight(tmp_path):
    cells = [cell for context in range(100, 111) for cell in made.chain(context=context)]
    figure = draw(draw_steps, tables_of(tmp_path, cells))
    assert sum(panel.axison for panel in figure.axes) == 8
    assert any("3 more are in the tables" in each for each in texts(figure))


def test_machines_are_named_where_there_are_several(tmp_path):
    figure = draw(draw_steps, tables_of(tmp_path, made.chain() + made.chain(hardware="other")))
    assert [panel.get_title(loc="left").split("\n")[0] for panel in figure.axes] == ["gpu", "other"]
    assert figure.axes[0].get_title(loc="left").endswith("small · 129M, context 128")


# Rates ----------------------------------------------------------------------------------------------------------------


def test_rates_below_the_peak_of_their_precision(tmp_path):
    panel = draw(draw_rates, tables_of(tmp_path, made.chain() + made.chain("medium", 512, 4))).axes[0]
    x, y = line(panel, "small, context 128")
    assert x == list(range(8)) and np.diff(np.log(y)) == pytest.approx(
        np.log([40 / 25, 25 / 20, 20 / 16, 16 / 15, 15 / 10, 2, 5 / 4])
    )
    levels = [each.get_ydata()[0] for each in panel.lines if each.get_label() == "peak"]
    assert levels == [66.9, 494.7, *[989.4] * 6]
    assert {"fp32 peak 67", "tf32 peak 495", "bf16 peak 989", "small, 128: 9.6 %"} <= set(texts(panel))


def test_rungs_that_are_lost_are_told_and_not_drawn(tmp_path):
    cells = made.chain()
    cells[0] = made.without_step(cells[0], both=True)
    cells[1] = made.without_step(cells[1])
    cells[3].record["summary"]["ladder"]["loss"] = 1.0
    panel = draw(draw_rates, tables_of(tmp_path, cells)).axes[0]
    assert line(panel, "small, context 128")[0] == [1, 2, 4, 5, 6, 7]
    assert {"1 OOM", "1 differs"} <= set(texts(panel))
    faces = panel.collections[0].get_facecolors()
    assert [matplotlib.colors.to_hex(face) for face in faces[:2]] == [colours.PAPER, colours.INK]


def test_noisy_points_are_marked(tmp_path):
    cells = [*made.chain()[:2], made.cell("small", 128, "bf16", step=20.0, scatter=0.1, launch=0.95)]
    assert texts(draw(draw_rates, tables_of(tmp_path, cells)).axes[0]).count("~") == 1


def test_noisy_checkpoints_are_marked(tmp_path):
    cells = [
        *made.chain()[:3],
        made.cell("small", 128, "bf16", {"checkpoint": 2}, step=22.0, scatter=0.1, launch=0.95, peak=2**31),
    ]
    assert {"2 ~", "none"} <= set(texts(draw(draw_checkpoint, tables_of(tmp_path, cells)).axes[1]))


def test_a_cpu_has_no_peak(tmp_path):
    cells = made.chain("nano", 64, hardware="cpu", steps=made.STEPS[:1])
    panel = draw(draw_rates, tables_of(tmp_path, cells)).axes[0]
    assert not any(each.get_label() == "peak" for each in panel.lines) and "nano, 64" in texts(panel)


def test_the_order_of_rungs_of_different_ladders(tmp_path):
    short = [made.cell("nano", 64, "fp32"), made.cell("nano", 64, "fp32", made.SDPA)]
    ways = (("fp32", {}), ("bf16", {}), ("bf16", made.SDPA))
    other = [made.cell("medium", 64, precision, options) for precision, options in ways]
    assert names_of(ladders(tables_of(tmp_path, short + other))) == ["fp32, naive", "bf16", "SDPA"]


# Checkpointing --------------------------------------------------------------------------------------------------------


def test_peaks_over_k_and_over_time(tmp_path):
    left, right = draw(draw_checkpoint, tables_of(tmp_path, [*made.chain(), *made.checkpoints()])).axes
    assert line(left, "measured")[1] == pytest.approx([1.5, 1.8, 2.4, 4 * 0.9**3])
    assert [each.get_text() for each in left.get_xticklabels()] == ["1", "2", "4", "none"]
    assert len(line(left, "closed form")[1]) == 4 and left.get_ylim()[0] == 0
    assert line(right, "k none") == ([pytest.approx(16.0)], [pytest.approx(4 * 0.9**3)])
    assert line(right, "k 2") == ([pytest.approx(20.0)], [pytest.approx(1.8)])
    assert any("lowest peak found: k = 1" in each for each in texts(left))


def test_names_of_points_near_each_other_are_apart(tmp_path):
    cells = made.checkpoints(every=(1, 2, 3, 4, 6))
    for at, cell in enumerate(cells):
        cell.record["summary"]["modes"]["step"]["peak_allocated_bytes"] = 2**30 + at * 2**20
    right = draw(draw_checkpoint, tables_of(tmp_path, [*made.chain(), *cells])).axes[1]
    own = [each for each in right.texts if each.get_text() in ("1", "2", "3", "4", "6")]
    boxes = [each.get_window_extent().shrunk(0.9, 0.8) for each in own]
    assert len(own) == 5 and not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_what_ran_out_of_memory_is_a_cross(tmp_path):
    cells = [*made.chain(), *made.checkpoints()]
    cells[3], cells[-1] = (made.without_step(each) for each in (cells[3], cells[-1]))
    left, right = draw(draw_checkpoint, tables_of(tmp_path, cells)).axes
    assert [x for x, _ in crosses(left)] == [2, 3] and "OOM" in texts(left)
    assert np.isnan(line(left, "measured")[1][2:]).all() and line(right, "k 1")[0] == [20.0]
    lost = [made.without_step(each) for each in [*made.chain(), *made.checkpoints()]]
    assert "no step ran" in texts(draw(draw_checkpoint, tables_of(tmp_path / "lost", lost)))


# All ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["missing", "failed", "unsupported"])
def test_without_numbers_every_figure_says_so(status, tmp_path):
    lost = [made.unmeasured(each, status) for each in [*made.chain(), *made.checkpoints()]]
    for at, cells in enumerate((lost, [])):
        for name, function in figures_of("ladder").items():
            assert "nothing to draw" in texts(draw(function, tables_of(tmp_path / str(at), cells)))[0], name
