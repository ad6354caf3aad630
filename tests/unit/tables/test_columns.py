"""Statistics over processes, and intervals that borrow the spread from all series that the same limits."""

import math

import pytest
from stepscope.tables.columns import GPU, LAUNCHES, PROCESSOR, statistics_columns, with_intervals

# Student's t for 95 % by printed tables (Abramowitz and Stegun 26.10): degrees of freedom → t.
T = {2: 4.303, 4: 2.776}


def process(median, launch=None, **over):
    own = {"count": 4, "mean": median, "std": 0.1, "median": median, "iqr": 0.2, "outliers": 0, "launch": launch}
    return own | over


def row(*medians, launch=None, hardware="h200", device="cuda", mark=0.05):
    """A row with one series, its medians in seconds; `launch` is the share of the time until all is launched."""
    parts = [process(median, None if launch is None else launch * median) for median in medians]
    own = {"hardware": hardware, "device": device, "noise_mark": mark}
    return own | statistics_columns("", {"processes": parts})


def test_processes_are_put_together_and_steps_are_not_pooled():
    parts = [process(1.0, 0.5, mean=2.0, std=0.3, count=3, outliers=1), process(4.0, 3.0, mean=4.0, std=0.6, count=5)]
    columns = statistics_columns("step_", {"processes": parts})
    expected = {
        **{"processes": 2, "samples": 8, "outliers": 1, "mean_ms": 3000.0, "iqr_ms": 200.0},
        "median_ms": 2000.0,  # the geometric mean of 1 s and 4 s
        "std_ms": 1000 * math.sqrt((2 * 0.3**2 + 4 * 0.6**2) / 6),  # by degrees of freedom
        "launch_share": (0.5 + 0.75) / 2,
    }
    assert {name: columns[f"step_{name}"] for name in expected} == pytest.approx(expected)
    assert columns["step_process_medians_ms"] == "1000.0 4000.0"
    assert columns["step_ci_low_ms"] is None


def test_a_series_without_a_result_has_empty_columns():
    assert set(statistics_columns("x_", {}).values()) == {None}


def test_the_spread_is_pooled_over_the_series_of_a_class_and_the_interval_uses_it():
    # Logarithms of the medians: 0, 0.1, 0.2 and 0, 0.05, 0.1: squares of 0.02 + 0.005 over 4 degrees of freedom.
    wide = row(1.0, math.exp(0.1), math.exp(0.2), launch=0.3)
    narrow = row(1.0, math.exp(0.05), math.exp(0.1), launch=0.3)
    with_intervals([wide, narrow], [""])
    for each, middle in ((wide, 1000 * math.exp(0.1)), (narrow, 1000 * math.exp(0.05))):
        assert each["spread"] == pytest.approx(math.sqrt(0.025 / 4))
        assert (each["spread_degrees"], each["spread_cells"], each["unsteady"]) == (4, 0, False)
        half = T[4] * math.sqrt(0.025 / 4) / math.sqrt(3)
        ends = (each["ci_low_ms"], each["ci_high_ms"])
        assert ends == pytest.approx((middle * math.exp(-half), middle * math.exp(half)), rel=1e-4)
        assert each["noisy"] is True  # about 13 %


def test_a_series_that_is_unsteady_in_its_class_has_its_own_spread_and_lends_none():
    calm = [row(1.0, 1.001 + i / 1e4, 1.002, launch=0.3) for i in range(5)]
    wild = row(3.9, 7.9, 7.9, launch=0.3)
    with_intervals([*calm, wild], [""])
    assert [each["unsteady"] for each in (*calm, wild)] == [False] * 5 + [True]
    assert (wild["spread_degrees"], calm[0]["spread_degrees"]) == (2, 10)
    assert calm[0]["spread"] < 0.0015
    logarithms = [math.log(median) for median in (3.9, 7.9, 7.9)]
    own = math.sqrt(sum((each - sum(logarithms) / 3) ** 2 for each in logarithms) / 2)
    assert wild["spread"] == pytest.approx(own)
    assert wild["ci_low_ms"] == pytest.approx(wild["median_ms"] * math.exp(-T[2] * own / math.sqrt(3)), rel=1e-3)


def test_an_unsteady_series_has_no_narrower_interval_than_its_class():
    calm = [row(1.0, 1.001 + i / 1e4, 1.002, launch=0.3) | {"at": i} for i in range(5)]
    again, wild = (row(*times, launch=0.3) | {"at": at} for times, at in (((1.1, 1.101, 1.102), 0), ((1, 1, 1.02), 9)))
    with_intervals([*calm, again, wild], [""], point=lambda each: each["at"])
    assert [each["unsteady"] for each in (*calm, again, wild)] == [False] * 6 + [True]
    # The cells' share is that of ln 1.1 / sqrt(2), with 1 degree of freedom: Student's t is 12.7. Its own spread, of
    # ln 1.02 / sqrt(3), would bring degrees of freedom, and so a narrower interval.
    assert wild["spread_cells"] == calm[0]["spread_cells"] == pytest.approx(math.log(1.1) / math.sqrt(2), rel=1e-3)
    widths = [math.log(each["ci_high_ms"] / each["ci_low_ms"]) / 2 for each in (calm[0], wild)]
    assert widths == pytest.approx([12.7 * math.log(1.1) / math.sqrt(2)] * 2, rel=5e-3)


def test_what_cells_differ_by_that_were_measured_twice_widens_all_intervals_of_the_class():
    first, again, other = (
        row(value, value * 1.001, launch=0.3) | {"at": at} for value, at in ((1, 1), (1.2, 1), (5, 2))
    )
    with_intervals([first, again, other], [""], point=lambda each: each["at"])
    spread = math.log(1.001) / math.sqrt(2)
    cells = math.sqrt(math.log(1.2) ** 2 / 2 - spread**2 / 2)
    for each in (first, again, other):
        assert (each["spread"], each["spread_cells"]) == pytest.approx((spread, cells))
        # Nearly all of it is that of one cell that was measured again: Student's t of 1 degree.
        half = 12.706 * math.hypot(spread / math.sqrt(2), cells)
        assert each["ci_high_ms"] == pytest.approx(each["median_ms"] * math.exp(half), rel=1e-3)


def test_the_timing_studys_control_widens_the_intervals_of_another_study():
    series, free = row(5, 5 * 1.001, launch=0.3), row(0.007, 0.007 * 1.001, launch=0.999)
    with_intervals([series, free], [""], control={(series["hardware"], GPU): (0.04, 5)})
    assert (series["spread_cells"], free["spread_cells"]) == (0.04, 0.0)
    half = 2.571 * math.hypot(math.log(1.001) / 2, 0.04)  # Student's t of 5 degrees; deviation / sqrt(2)
    assert series["ci_high_ms"] == pytest.approx(series["median_ms"] * math.exp(half), rel=1e-3)


def test_classes_do_not_lend_each_other_their_spread():
    launches, gpu = row(1.0, 1.1, 1.2, launch=0.999), row(1.0, 1.0, 1.0, launch=0.3)
    other = row(1.0, 1.5, 2.0, launch=0.3, hardware="h100")
    processor = row(1.0, 1.01, 1.02, device="cpu")
    with_intervals([launches, gpu, other, processor], [""])
    assert [each["limited_by"] for each in (launches, gpu, other, processor)] == [LAUNCHES, GPU, GPU, PROCESSOR]
    assert gpu["spread"] == 0
    assert (gpu["ci_low_ms"], gpu["ci_high_ms"], gpu["noisy"]) == (1000, 1000, False)
    assert len({each["spread"] for each in (launches, gpu, other, processor)}) == 4
    assert {each["spread_degrees"] for each in (launches, gpu, other, processor)} == {2}


def test_a_host_that_waits_for_a_full_queue_does_not_limit():
    # Of 150 ms the host is done after 95 %: the GPU still works for 7.5 ms. Of 10 ms: for 0.5 ms.
    queued, bare = row(0.150, 0.150, launch=0.95), row(0.010, 0.010, launch=0.95)
    with_intervals([queued, bare], [""])
    assert (queued["limited_by"], bare["limited_by"]) == (GPU, LAUNCHES)


@pytest.mark.parametrize(
    "step, backward, limit",
    # A step of 133 ms; at its end the GPU works on for 2.3 ms, at the optimizer's long kernels. Of 12 % it works alone.
    [(0.983, 0.99, LAUNCHES), (0.983, 0.5, GPU), (0.88, 0.99, GPU)],
)
def test_a_step_whose_passes_launches_limit_is_limited_by_them(step, backward, limit):
    parts = {"forward_": (0.043, 0.99), "backward_": (0.065, backward), "step_": (0.133, step)}
    whole = row(1.0, 1.0)
    for prefix, (seconds, share) in parts.items():
        series = row(seconds, seconds * 1.001, launch=share)
        whole |= {f"{prefix}{name}": value for name, value in series.items()}
    with_intervals([whole], list(parts))
    assert whole["forward_limited_by"] == LAUNCHES and whole["step_limited_by"] == limit


def test_what_is_queued_before_it_begins_is_limited_by_the_gpu():
    each = row(1.0, 1.0, launch=0.999)
    with_intervals([each], [""], is_queued=True)
    assert each["limited_by"] == GPU


def test_a_single_process_has_no_interval_but_may_stand_beside_others():
    alone, others = row(1.0, launch=0.3), row(1.0, 1.1, 1.2, launch=0.3)
    with_intervals([alone, others], [""])
    assert (alone["ci_low_ms"], alone["noisy"]) == (None, None)
    assert alone["spread"] == others["spread"]
    older = row(1.0)
    with_intervals([older], [""])
    assert (older["limited_by"], older["spread"], older["ci_low_ms"]) == (None, None, None)


@pytest.mark.parametrize("mark, noisy", [(0.11, True), (0.13, False), (None, False)])
def test_noisy_is_half_the_interval_beyond_the_mark(mark, noisy):
    half = T[2] * 0.05 / math.sqrt(3)  # 12.4 %
    each = row(math.exp(-0.05), 1.0, math.exp(0.05), launch=0.3, mark=mark)
    with_intervals([each], [""])
    assert each["noisy"] is noisy
    assert math.sinh(half) == pytest.approx((each["ci_high_ms"] - each["ci_low_ms"]) / 2 / each["median_ms"], rel=1e-3)


def test_cells_of_slow_moments_are_marked_by_the_quickest_of_their_machine():
    times = [("a", 2.0), ("a", 2.5), ("a", 2.51), ("b", 9.0), ("b", None)]
    rows = [row(1.0, hardware=hardware) | {"host_python_ms": time} for hardware, time in times]
    with_intervals(rows, [""])
    assert [each.get("slow_host") for each in rows] == [False, False, True, False, None]


def test_an_unsteady_series_of_two_processes_has_no_interval_and_is_noisy():
    calm = [row(1.0, 1.001 + i / 1e4, launch=0.3) for i in range(8)]
    wild = row(1.0, 9.0, launch=0.3, mark=None)
    with_intervals([*calm, wild], [""])
    assert (wild["unsteady"], wild["noisy"], wild["ci_low_ms"], wild["spread"]) == (True, True, None, None)
    assert calm[0]["spread_degrees"] == 8


def test_what_one_step_of_the_clock_explains_is_not_unsteady_and_lends_nothing():
    # Two processes a step of 0.5 us apart: squares of 0.125 us² over 0.5² × 2 / 12 are 3, chi-squared 0.083; four steps
    # apart 48, 4e-12.
    calm = [row(10e-3, 10.01e-3, 10e-3 + i * 1e-6) for i in range(8)]
    near, far = row(5.0e-6, 5.5e-6), row(5.0e-6, 7.0e-6)
    with_intervals([*calm, near, far], [""], is_queued=True)
    assert [each["unsteady"] for each in (calm[0], near, far)] == [False, False, True]
    assert (near["spread_degrees"], near["spread"]) == (16, calm[0]["spread"])
    # 0.204 us of 5.24 is 3.89 %, the class's 0.03 % nothing beside it; of many degrees of freedom t is 1.96.
    assert near["ci_high_ms"] / near["median_ms"] == pytest.approx(math.exp(1.96 * 0.0389), rel=2e-3)


def test_a_short_pass_between_cuda_events_is_as_unsure_as_their_clock():
    short, long = row(10e-6, 10e-6, 10e-6), row(10e-3, 10e-3, 10e-3)
    with_intervals([short, long], [""], is_queued=True)
    # Two time stamps in steps of 0.5 us, each uniform over a step: 0.5 / sqrt(12) * sqrt(2) = 0.204 us of 10.
    assert short["spread_cells"] == pytest.approx(0.0204, rel=1e-2) and long["spread_cells"] < 3e-5
    half = T[4] * short["spread_cells"]  # the clock is known, and no degree is lost by it
    assert short["ci_high_ms"] == pytest.approx(short["median_ms"] * math.exp(half), rel=1e-3)
