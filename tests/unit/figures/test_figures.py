"""What figures share: places of labels, what gets a panel; and the samples that the timing study's figures show."""

import itertools

import pandas as pd
import pytest
from drawing import Made, cell_row, draw
from stepscope import colours
from stepscope.figures import marks
from stepscope.figures.facets import apart, pick
from stepscope.figures.timing import draw_by_size, noisiest, selection, series_of
from stepscope.tables.reader import Tables


def test_labels_are_moved_apart_evenly():
    assert marks.spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert marks.spread([0.1, 0.9], 0.1) == [0.1, 0.9]
    placed = sorted(marks.spread([0.50, 0.52, 0.54, 0.9], 0.1))
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(placed))


def test_picking_keeps_the_ends():
    assert pick([1, 2, 3], 5) == [1, 2, 3]
    assert pick(list(range(10)), 4) == [0, 3, 6, 9]
    assert apart([1.0, 1.01, 10.0]) == [True, False, True]


def test_the_noisiest_is_the_one_whose_samples_scatter_most():
    base = {"hardware": "gpu", "context": 128, "precision": "fp32", "parameters": 1.0, "step_median_ms": 10.0}
    rows = [
        {**base, "cell": n, "size": n, "step_iqr_ms": 2 * w, "step_ci_low_ms": 9, "step_ci_high_ms": 11}
        for n, w in (("a", 1), ("b", 2))
    ]
    found = noisiest(pd.DataFrame(rows))
    assert list(found["cell"]) == ["b", "a"]
    assert found["width"].iloc[0] == pytest.approx(0.4)


def test_no_interval_is_cut_and_a_median_without_one_is_hollow():
    times = {"step_status": "ok", "step_unsteady": False, "step_ci_high_ms": 30.0}
    rows = [cell_row("timing", "small") | times | {"step_median_ms": 10.0, "step_ci_low_ms": 2.0}]
    rows += [cell_row("timing", "medium") | times | {"step_median_ms": 20.0, "step_unsteady": True}]
    rows[1] |= {"step_ci_low_ms": None, "step_ci_high_ms": None}
    (panel,) = draw(draw_by_size, Made(timing=pd.DataFrame(rows))).axes
    low, high = panel.get_ylim()
    assert low < 2.0 and high > 30.0
    hollow = [line for line in panel.lines if line.get_markerfacecolor() == colours.PAPER]
    assert [list(line.get_xdata()) for line in hollow] == [[4e8]]


def test_samples_are_of_as_many_cells_of_every_machine():
    keys = itertools.product("ab", ("fp32", "bf16", "fp16"), range(5))
    rows = [
        {"cell": f"{machine}{precision}{size}", "hardware": machine, "precision": precision, "context": 128}
        for machine, precision, size in keys
    ]
    grid = pd.DataFrame(rows).assign(status="ok")
    assert list(selection(grid)["hardware"]) == ["a"] * 3 + ["b"] * 3
    alone = selection(grid[grid["hardware"] == "a"])
    assert list(alone["cell"]) == ["afp320", "afp324", "abf160", "abf164", "afp160", "afp164"]


def test_a_phase_is_shown_by_the_samples_that_its_numbers_come_from():
    rows = [("forward", "free", 1.0), ("forward-backward", "phased", 2.0), ("step", "phased", 3.0)]
    samples = pd.DataFrame(rows, columns=["mode", "kind", "seconds"]).assign(phase="forward")
    assert list(series_of(samples, "forward")["seconds"]) == [3.0]
    assert list(series_of(samples[:2], "forward")["seconds"]) == [2.0]
    assert list(series_of(samples[:1], "forward")["seconds"]) == [1.0]
    assert series_of(samples, "step").empty


def test_samples_of_a_few_cells_are_read_alone(tmp_path):
    cells = ["a", 'a,b "c"', "ab"]
    frame = pd.DataFrame({"cell": cells * 2, "seconds": range(6), "warmup": [True] * 3 + [False] * 3})
    frame.to_csv(tmp_path / "timing_samples.csv", index=False)
    found = Tables(tmp_path, ["timing"]).samples("timing", cells[:2], ["cell", "seconds", "warmup"])
    assert list(found["seconds"]) == [0, 1, 3, 4]
    assert list(found["warmup"]) == [True, True, False, False]
