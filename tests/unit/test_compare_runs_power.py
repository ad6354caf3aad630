"""What compare_runs.py says of made-up runs with the spreads of an H200: of 200 unchanged ones, and of planted ones."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import compare_runs_power as power
from made_up_runs import grid, results
from stepscope.report.runs.judging import compared
from stepscope.report.runs.shift import shifts

FEW = list(grid(sizes=("small", "medium"), contexts=(128, 512)))


def test_of_unchanged_runs_hardly_a_phase_is_called_and_the_control_hardly_ever_fires():
    phases = called = fired = shifted = 0
    before = results(0, points=FEW)
    for seed in range(1, 201):
        after = results(seed, points=FEW)
        found = compared(before, after)
        phases += len(found.pairs)
        called += len(found.of("faster", "slower"))
        fired += any(found.alarms.values())
        shifted += any(shifts(found.pairs))
        before = after
    assert phases == 200 * 12 * 7
    assert called <= 0.01 * phases
    assert fired <= 10 and shifted <= 10


def test_a_shift_of_eight_per_cent_is_found_where_the_gpu_limits_and_named():
    rows = {row["limited by"]: row for row in power.tried("driver", 4, power.made_up_runs.CONTROL)}
    assert rows["gpu"]["found"] >= 0.95 * rows["gpu"]["planted in"]
    assert rows["gpu"]["shift named"] == 4


def test_five_per_cent_of_a_pass_is_found_by_a_control_that_is_large_enough():
    rows = {row["limited by"]: row for row in power.tried("backward", 4, power.made_up_runs.LARGER_CONTROL)}
    assert rows["gpu"]["found"] >= 0.8 * rows["gpu"]["planted in"] > 0
    assert rows["gpu"]["called"] == rows["launches"]["called"] == 0
