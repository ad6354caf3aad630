"""Findings of the timing study, from small tables whose answers are worked out by hand."""

import math

import pandas as pd
import pytest
from stepscope.report.kit.order import main_grid, with_order
from stepscope.report.studies.timing.findings import findings


def cell(size, precision, step, repeat=1, status="ok", processes=3, **more):
    """Each of several processes, whose spread is 0.5 % of 60 degrees of freedom."""
    times = {"step_median_ms": step, "step_status": status, "step_processes": processes}
    if processes > 1:
        half = math.exp(2.000 * 0.005 / math.sqrt(processes))
        times |= {"step_ci_low_ms": step / half, "step_ci_high_ms": step * half, "step_limited_by": "gpu"}
        times |= {"step_spread": 0.005, "step_spread_degrees": 60}
    base = {"cell": f"{size}/{precision}/{repeat}", "hardware": "gpu", "size": size, "context": 128.0, "batch": 4.0}
    shape = {"precision": precision, "mode": "step", "repeat": repeat, "parameters": {"s": 1e8, "m": 4e8}[size]}
    return {**base, **shape, **times, "status": status, "reason": None, "step_noisy": False, "throttle": None, **more}


def found(*rows, ceilings=None):
    """Question → finding."""
    told = findings(with_order(pd.DataFrame(rows)), pd.DataFrame() if ceilings is None else ceilings)
    return {each.question: each for each in told}


def test_extremes_and_ratio():
    told = found(
        cell("s", "fp32", 10.0, forward_backward_over_forward=2.5),
        cell("m", "fp32", 40.0, forward_backward_over_forward=3.5),
    )
    extremes = told["how long does a step take"]
    assert [(number.value, number.cells) for number in extremes.numbers.values()] == [
        (10.0, ("s/fp32/1",)),
        (40.0, ("m/fp32/1",)),
    ]
    assert told["what does backward cost"].numbers["range"].value == [2.5, 3.5]
    assert {each.hardware for each in told.values()} == {"gpu"}


def test_of_a_single_process_there_is_no_verdict_and_that_is_said_once():
    rows = [cell("s", name, ms, processes=1) for name, ms in (("fp32", 20.0), ("bf16", 10.0), ("fp16", 30.0))]
    told = found(*rows)
    assert told["what does bf16 bring"].text == "bf16 against fp32, a training step: 2.00 times the speed in 1 cell."
    assert told["what does bf16 bring"].cells == ("s/fp32/1", "s/bf16/1")
    assert told["what has no verdict"].text == "Single process, or two that disagree: no verdict."
    words = " ".join(each.text for each in told.values())
    assert words.count("no verdict") == 1 and "faster" not in words and "slower" not in words


def test_what_has_a_verdict_in_one_precision_is_not_said_of_another():
    told = found(cell("s", "fp32", 20.0), cell("s", "bf16", 10.0), cell("s", "fp16", 10.0, processes=1))
    assert "faster in 1 of 1 cell" in told["what does bf16 bring"].text
    assert "faster" not in told["what does fp16 bring"].text
    assert told["what has no verdict"].text == "Single process, or two that disagree: no verdict in 1 of 2 comparisons."


def test_only_differences_beyond_the_floor_count():
    # Unchanged cells differ by up to 10 % (fp32: 20 to 22); m differs by 5 %.
    rows = [cell("s", "fp32", 20.0), cell("s", "fp32", 22.0, repeat=2), cell("s", "bf16", 10.0)]
    rows += [cell("s", "bf16", 10.4, repeat=2), cell("m", "fp32", 42.0), cell("m", "bf16", 40.0)]
    told = found(*rows)
    assert "faster in 1 of 2 cells, same in 1 (m at 128)" in told["what does bf16 bring"].text
    floor = told["what do unchanged cells differ by"].numbers["gpu"]
    assert floor.value == pytest.approx(0.1) and floor.cells == ("s/fp32/1", "s/fp32/2", "s/bf16/1", "s/bf16/2")


def test_slower_is_said_and_a_single_ratio_has_its_interval():
    told = found(cell("s", "fp32", 10.0), cell("s", "bf16", 20.0))["what does bf16 bring"]
    assert told.text == (
        "bf16 against fp32, a training step: 0.500 [0.496, 0.504] times the speed; slower in 1 of 1 cell (s at 128)."
    )


def test_a_range_says_of_how_many_cells_it_is():
    rows = [cell(size, precision, ms) for size, precision, ms in
            (("s", "fp32", 10.0), ("s", "bf16", 5.0), ("m", "fp32", 40.0))]  # fmt: skip
    lost = cell("m", "bf16", float("nan"), status="oom")
    told = found(*rows, lost, cell("m", "fp32", 40.0, context=256.0), cell("m", "bf16", 10.0, context=256.0))
    assert "2.00 to 4.00 times the speed in the 2 of 3 cells that have a time in both" in (
        told["what does bf16 bring"].text
    )


def ceiling(precision, tflops):
    return pd.DataFrame({"hardware": "gpu", "operation": "matmul", "precision": [precision], "tflops": [tflops]})


def test_ceilings_of_another_precision_are_not_used():
    rows = [cell("s", "fp32", 20.0, step_tflops=40.0), cell("s", "bf16", 10.0, step_tflops=100.0)]
    told = found(*rows, ceilings=ceiling("bf16", 400.0))["how near is it to the machine's ceiling"]
    assert {name: number.value for name, number in told.numbers.items()} == {"bf16": [25.0]}


def test_a_share_above_the_ceiling_is_explained():
    told = found(cell("s", "fp32", 20.0, step_tflops=40.0), ceilings=ceiling("fp32", 10.0))
    told = told["how near is it to the machine's ceiling"]
    assert told.numbers["fp32"].value == [400.0] and "is no ceiling" in told.text


def test_out_of_memory_and_marks():
    lost = cell("m", "fp32", float("nan"), status="oom")
    told = found(cell("s", "fp32", 1.0, step_noisy=True, throttle="hw_slowdown", other_processes=2.0), lost)
    assert told["what does not fit"].numbers["lost"].value == 1
    assert told["what does not fit"].cells == ("m/fp32/1",)
    marks = told["what not to trust"].numbers
    assert {name: number.value for name, number in marks.items()} == {"noisy": 1, "throttled": 1, "shared": 1}


def test_figures_draw_neutral_options_and_first_runs():
    rows = [
        cell("s", "fp32", 1.0, attention="naive"),
        cell("s", "fp32", 2.0, attention="sdpa"),
        cell("s", "fp32", 3.0, repeat=2),
    ]
    assert list(main_grid(pd.DataFrame(rows))["step_median_ms"]) == [1.0]


def test_nothing_measured():
    (told,) = findings(pd.DataFrame(), pd.DataFrame())
    assert told.text == "No timing cell is in the tables."
