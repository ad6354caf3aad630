"""Findings of the timing study, from small tables whose answers are worked out by hand."""

import pandas as pd
import pytest
from stepscope.report.data.repeats import spreads
from stepscope.report.kit.order import main_grid, with_order
from stepscope.report.studies.timing.findings import findings


def cell(size, precision, step, repeat=1, status="ok", **more):
    times = {
        "step_median_ms": step,
        "step_ci_low_ms": step * 0.99,
        "step_ci_high_ms": step * 1.01,
        "step_status": status,
    }
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


def test_speed_up_has_no_verdict_without_repeats():
    told = found(cell("s", "fp32", 20.0), cell("s", "bf16", 10.0))["what does bf16 bring"]
    assert (told.numbers["gain"].value, told.cells) == ([2.0], ("s/bf16/1", "s/fp32/1"))
    assert "spread" not in told.numbers
    assert "No verdict" in told.text


def test_only_the_spread_between_runs_decides():
    # Runs differ by 10 % (fp32: 20 to 22) and 4 % (bf16); m differs by 5 % only, which is less than both together.
    rows = [cell("s", "fp32", 20.0), cell("s", "fp32", 22.0, repeat=2), cell("s", "bf16", 10.0)]
    rows += [cell("s", "bf16", 10.4, repeat=2), cell("m", "fp32", 42.0), cell("m", "bf16", 40.0)]
    told = found(*rows)["what does bf16 bring"]
    assert told.numbers["spread"].value == pytest.approx(2 / 21)
    assert "faster in 1 of 2 cells, about equal in 1 (m at 128)" in told.text


def test_slower_is_said():
    rows = [
        cell("s", p, t, repeat=r)
        for p, t, r in [("fp32", 10, 1), ("fp32", 10.1, 2), ("bf16", 20, 1), ("bf16", 20.1, 2)]
    ]
    told = found(*rows)["what does bf16 bring"]
    assert told.numbers["gain"].value == [2.0]
    assert "2.00 times as long" in told.text and "slower in 1 of 1 cell (s at 128)" in told.text


def test_spread_between_runs():
    found = spreads(
        with_order(pd.DataFrame([cell("s", "fp32", 10.0), cell("s", "fp32", 11.0, repeat=2), cell("m", "fp32", 9.0)]))
    )
    assert len(found) == 1
    assert found["medians"][0] == [10.0, 11.0]
    assert found["spread"][0] == pytest.approx(1 / 10.5)
    assert found["interval"][0] == pytest.approx(0.02)


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
