"""Sentences of the summary, from small tables whose answers are worked out by hand."""

import pandas as pd
import pytest
from stepscope.report.data.repeats import spreads, verdict
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


def say(*rows, ceilings=None):
    return findings(with_order(pd.DataFrame(rows)), pd.DataFrame() if ceilings is None else ceilings)


def one(sentences, start):
    return next(sentence for sentence in sentences if sentence.startswith(start))


def test_extremes_and_ratio():
    sentences = say(
        cell("s", "fp32", 10.0, forward_backward_over_forward=2.5),
        cell("m", "fp32", 40.0, forward_backward_over_forward=3.5),
    )
    assert one(sentences, "A training step takes").startswith(
        "A training step takes from 10.0 ms (s, context 128, fp32) to 40.0 ms (m, context 128, fp32)"
    )
    assert "2.50 to 3.50 times" in one(sentences, "Forward and backward")


def test_speed_up_has_no_verdict_without_repeats():
    sentence = one(say(cell("s", "fp32", 20.0), cell("s", "bf16", 10.0)), "bf16 against fp32")
    assert "2.00 times the speed in 1 cell" in sentence and "No verdict" in sentence


def test_only_the_spread_between_runs_decides():
    # Runs differ by 10 % (fp32: 20 to 22) and 4 % (bf16); m differs by 5 % only, which is less than both together.
    rows = [cell("s", "fp32", 20.0), cell("s", "fp32", 22.0, repeat=2), cell("s", "bf16", 10.0)]
    rows += [cell("s", "bf16", 10.4, repeat=2), cell("m", "fp32", 42.0), cell("m", "bf16", 40.0)]
    sentence = one(say(*rows), "bf16 against fp32")
    assert "faster in 1 of 2 cells, about equal in 1 (m at 128)" in sentence


def test_slower_is_said():
    rows = [
        cell("s", p, t, repeat=r)
        for p, t, r in [("fp32", 10, 1), ("fp32", 10.1, 2), ("bf16", 20, 1), ("bf16", 20.1, 2)]
    ]
    sentence = one(say(*rows), "bf16 against fp32")
    assert "2.00 times as long" in sentence and "slower in 1 of 1 cell (s at 128)" in sentence


def test_verdict():
    assert verdict(20.0, 10.0, 0.1) == "faster"
    assert verdict(10.0, 20.0, 0.1) == "slower"
    assert verdict(10.5, 10.0, 0.1) == "equal"


def test_spread_between_runs():
    found = spreads(
        with_order(pd.DataFrame([cell("s", "fp32", 10.0), cell("s", "fp32", 11.0, repeat=2), cell("m", "fp32", 9.0)]))
    )
    assert len(found) == 1
    assert found["medians"][0] == [10.0, 11.0]
    assert found["spread"][0] == pytest.approx(1 / 10.5)
    assert found["interval"][0] == pytest.approx(0.02)


def test_ceilings_of_another_precision_are_not_used():
    ceilings = pd.DataFrame({"hardware": "gpu", "operation": "matmul", "precision": ["bf16"], "tflops": [400.0]})
    rows = [cell("s", "fp32", 20.0, step_tflops=40.0), cell("s", "bf16", 10.0, step_tflops=100.0)]
    sentence = one(say(*rows, ceilings=ceilings), "A training step reaches")
    assert "25 % in bf16" in sentence and "fp32" not in sentence


def test_a_share_above_the_ceiling_is_explained():
    ceilings = pd.DataFrame({"hardware": "gpu", "operation": "matmul", "precision": ["fp32"], "tflops": [10.0]})
    sentence = one(say(cell("s", "fp32", 20.0, step_tflops=40.0), ceilings=ceilings), "A training step reaches")
    assert "400 % in fp32" in sentence and "is no ceiling" in sentence


def test_out_of_memory_and_marks():
    lost = cell("m", "fp32", float("nan"), status="oom")
    sentences = say(cell("s", "fp32", 1.0, step_noisy=True, throttle="hw_slowdown", other_processes=2.0), lost)
    assert "1 of 2 cells" in one(sentences, "Out of memory") and "m at context 128 (fp32)" in one(
        sentences, "Out of memory"
    )
    marks = one(sentences, "Of 2 cells")
    assert "1 noisy" in marks and "1 throttled" in marks and "1 shared" in marks


def test_figures_draw_neutral_options_and_first_runs():
    rows = [
        cell("s", "fp32", 1.0, attention="naive"),
        cell("s", "fp32", 2.0, attention="sdpa"),
        cell("s", "fp32", 3.0, repeat=2),
    ]
    assert list(main_grid(pd.DataFrame(rows))["step_median_ms"]) == [1.0]


def test_nothing_measured():
    assert findings(pd.DataFrame(), pd.DataFrame()) == ["No timing cell is in the tables."]
