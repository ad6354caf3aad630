"""comparisons.csv from samples whose true ratios are known."""

import math

import pytest
from pytest import approx
from scipy import stats
from stepscope.results import cells as reading
from stepscope.results import comparisons, series

from tests.unit.results.cells import SHAPE, attention, sample, turns

RUNGS = [
    {"name": "fp32", "precision": "fp32"},
    {"name": "sdpa", "precision": "fp32", "attention": "sdpa", "after": "fp32"},
    {
        "name": "fused",
        "precision": "fp32",
        "attention": "sdpa",
        "optimizer": "fused",
        "after": "sdpa",
    },
    {"name": "checkpoint=1", "precision": "fp32", "checkpoint": 1, "after": "fp32"},
]
TIMES = {"fp32": 0.1, "sdpa": 0.08, "fused": 0.08, "checkpoint=1": 0.13}


def compared(results):
    found, samples, _ = reading.read(results.plan(), results.folder)
    return comparisons.of(found, samples, series.of(found, samples))


def ladder(results, rows, device="cpu"):
    results.add("lab/ladder/nano/ctx32", SHAPE | {"variants": RUNGS, "device": device}, rows)


def test_rungs_are_compared_with_what_they_come_after_and_with_the_first(results):
    """What slows all alike, rounds and processes by 10 %, does not widen a ratio of samples that
    differ by 1 %: one of three processes of four rounds is within 3 %."""
    ladder(results, turns(TIMES))
    got = compared(results).set_index(["a", "b"])
    assert list(got.index) == [
        ("fp32", "sdpa"),
        ("sdpa", "fused"),
        ("fp32", "checkpoint=1"),
        ("fp32", "fused"),
    ]
    assert got["verdict"].tolist() == ["faster", "same", "slower", "faster"]
    assert got["in_turns"].all()
    assert set(got["rounds"]) == {12}
    for (a, b), row in got.iterrows():
        assert row["low"] < TIMES[a] / TIMES[b] < row["high"] < 1.06 * row["low"]


def test_the_ratio_of_a_process_is_the_median_over_its_rounds(results):
    ratios = {1: [1.0, 1.2, 9.0], 2: [1.1, 1.1, 1.3], 3: [0.9, 1.3, 1.4]}
    rows = []
    for process, own in ratios.items():
        for number, ratio in enumerate(own, 1):
            rows += [
                sample("fp32", process, ratio, round=number),
                sample("sdpa", process, 1.0, round=number),
            ]
    ladder(results, rows)
    (got,) = compared(results).to_dict("records")
    medians = [math.log(each) for each in (1.2, 1.1, 1.3)]
    expected = stats.ttest_1samp(medians, 0).confidence_interval(0.95)
    assert got["ratio"] == approx(stats.gmean([1.2, 1.1, 1.3]))
    assert (got["low"], got["high"]) == approx((math.exp(expected.low), math.exp(expected.high)))


def test_where_a_process_takes_one_after_another_its_medians_are_compared(results):
    rows = [
        sample(name, p, s * f) for name, s in TIMES.items() for p in (1, 2, 3) for f in (1, 1.01, 2)
    ]
    ladder(results, rows)
    got = compared(results)
    assert not got["in_turns"].any()
    assert got["rounds"].tolist() == [0] * 4
    assert got["ratio"].tolist() == approx([0.1 / 0.08, 1, 0.1 / 0.13, 0.1 / 0.08])


def test_warm_up_and_phased_steps_are_not_compared(results):
    rows = turns({"fp32": 0.1, "sdpa": 0.1})
    rows += [sample("fp32", p, 9.0, warmup=True, round=1) for p in (1, 2, 3)]
    rows += [sample("fp32", p, 9.0, kind="phased", phase="forward", round=1) for p in (1, 2, 3)]
    ladder(results, rows)
    (got,) = compared(results).to_dict("records")
    assert got["phase"] == "step"
    assert got["low"] < 1 < got["high"]


@pytest.mark.parametrize("device, verdict", [("cuda", "faster"), ("cpu", "same")])
def test_a_difference_within_two_percent_is_one_only_where_the_gpu_limits_both_in_turns(
    results, device, verdict
):
    rows = turns({"fp32": 1.017, "sdpa": 1.0}, noise=0.0005)
    rows += [sample(name, 1, 1.0, kind="host-free") for name in ("fp32", "sdpa")]
    ladder(results, rows, device)
    found = compared(results)
    (got,) = found[found["quantity"] == "time"].to_dict("records")
    assert (got["verdict"], got["limits"]) == (verdict, "gpu" if device == "cuda" else "cpu")


def test_all_implementations_of_attention_are_compared_at_each_length(results):
    names = ["naive", "sdpa-flash", "flex"]
    rows = [
        attention(name, process, number, 0.1 * (1 + at) * (1 + 0.001 * process), length=length)
        for length in (256, 1024)
        for process in (1, 2, 3)
        for number in (1, 2)
        for at, name in enumerate(names)
    ]
    spec = {
        "d_head": 16,
        "precision": "fp32",
        "batch": 8,
        "variants": [{"name": name} for name in names],
    }
    results.add("lab/attention/d16/fp32", spec, rows)
    got = compared(results)
    assert got.groupby("length")["b"].apply(list).tolist() == [["sdpa-flash", "flex", "flex"]] * 2
    assert got["ratio"].tolist() == approx([1 / 2] * 2 + [1 / 3] * 2 + [2 / 3] * 2)


def test_steps_without_the_host_are_compared_where_launches_hide_what_differs(results):
    """Clocks that differ by 30 % between processes, replays by 0.1 %: only the replays tell a true
    1.5."""
    clock, replays = {1: 1.3, 2: 1.0, 3: 0.7}, {1: 1.001, 2: 1.0, 3: 0.999}
    rows = []
    for process in (1, 2, 3):
        rows += [
            sample("fp32", process, 0.05 * clock[process], round=1),
            sample("sdpa", process, 0.05, round=1),
        ]
        rows += [sample("fp32", process, 0.015 * replays[process], kind="host-free")]
        rows += [sample("sdpa", process, 0.01, kind="host-free")]
    ladder(results, rows, "cuda")
    got = compared(results).query("a == 'fp32' and b == 'sdpa'").set_index("quantity")
    assert got["verdict"].to_dict() == {"time": "unclear", "host_free_time": "faster"}
    assert got.loc["host_free_time", "ratio"] == approx(1.5, rel=1e-3)
    assert got.loc["host_free_time", "limits"] == "gpu"
