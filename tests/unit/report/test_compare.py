"""What may be called faster, slower or the same: simulated processes with a fixed seed, and cases done by hand."""

import math
import random

import pytest
from stepscope.confidence import Spread, centre, pooled
from stepscope.report.kit.compare import (
    Comparison,
    Floors,
    Timed,
    compare,
    interval_text,
    judged,
    ratio_and_interval,
    timed,
)

NONE = Floors()


def series(median=10.0, spread=0.005, degrees=60, processes=3, **more) -> Timed:
    half = math.exp(2.0 * spread / math.sqrt(processes))
    ends = (median / half, median * half) if processes > 1 else (None, None)
    own = Spread(spread, degrees) if processes > 1 else None
    return Timed(median, *ends, processes=processes, spread=own, **{"hardware": "gpu", "limited_by": "gpu"} | more)


def simulated(random_state, truths, spread) -> list[Timed]:
    """A series of three processes for each true time; the spread is pooled over all of them, as in a table."""
    cells = [[truth * math.exp(random_state.gauss(0.0, spread)) for _ in range(3)] for truth in truths]
    found = pooled(cells)
    return [Timed(centre(cell), 1.0, 1.0, processes=3, spread=found, hardware="gpu") for cell in cells]


@pytest.mark.parametrize("spread", [0.002, 0.01, 0.05])
def test_unchanged_cells_are_hardly_ever_called_different(spread):
    # The floor is what 20 cells that were measured twice differ by: all but one of them.
    random_state, different, pairs = random.Random(11), 0, 0
    for _ in range(20):
        made = simulated(random_state, [10.0] * 120, spread)
        control = sorted(abs(math.log(a.median / b.median)) for a, b in zip(made[:20], made[20:40], strict=True))
        floors = Floors({("gpu", None): control[18]})
        found = judged(list(zip(made[40:80], made[80:], strict=True)), floors)
        different += sum(each.is_different for each in found)
        pairs += len(found)
    assert pairs == 800 and different <= 8


def test_a_planted_five_per_cent_is_found():
    # With a spread of 0.5 % of three processes, 5 % less the margin of 2 % is 7 standard errors.
    made = simulated(random.Random(5), [10.0] * 40 + [10.5] * 10, 0.005)
    found = judged([*zip(made[20:40], made[:20], strict=True), *zip(made[40:], made[:10], strict=True)], NONE)
    assert [each.verdict for each in found[20:]] == ["slower"] * 10
    assert not any(each.is_different for each in found[:20])


@pytest.mark.parametrize(
    ("ms", "word"),
    # The difference's interval is ± 2.000 × 0.5 % × √(2/3), 0.82 %.
    [(9.0, "faster"), (9.9, "same"), (9.82, "unclear"), (10.0, "same"), (10.18, "unclear"), (11.0, "slower")],
)
def test_the_words(ms, word):
    found = compare(series(ms), series(10.0), NONE)
    half = math.exp(2.0003 * 0.005 * math.sqrt(2 / 3))
    assert found.verdict == word and found.ratio == pytest.approx(10.0 / ms)
    assert (found.low, found.high) == (pytest.approx(10 / ms / half, rel=1e-5), pytest.approx(10 / ms * half, rel=1e-5))
    assert found.times == (10.0, ms) and found.margin == pytest.approx(1.02)
    assert found.is_different == (word in ("faster", "slower"))


def test_a_floor_widens_what_is_the_same():
    floors = Floors({("gpu", "gpu"): math.log(1.2), ("gpu", "launches"): math.log(1.5), ("other", "gpu"): 1.0})
    assert compare(series(9.0), series(10.0), floors).verdict == "same"
    assert floors.margin(series()) == pytest.approx(math.log(1.2))
    # Of a class without a control, the largest floor of its machine; of a machine without one, 2 %.
    assert floors.of(series(limited_by=None)) == pytest.approx(math.log(1.5))
    assert floors.margin(series(hardware="third")) == pytest.approx(math.log(1.02))


def test_a_single_process_has_no_verdict():
    for own, other in ((series(5.0, processes=1), series()), (series(5.0), series(processes=1))):
        found = compare(own, other, NONE)
        assert (found.verdict, found.has_interval, found.ratio) == ("unclear", False, 2.0)
        assert found.is_beyond_margin and interval_text(found) == "" and ratio_and_interval(found) == "2.00"
    assert compare(None, series(), NONE) is None and compare(series(), None, NONE) is None


def test_what_is_faster_by_the_clock_alone_is_not_faster():
    own, other = series(9.0, clock_mhz=1980.0), series(10.0, clock_mhz=1782.0)  # a ninth of the clock, too
    assert compare(own, other, NONE).verdict == "unclear"
    assert compare(own, series(10.0, clock_mhz=1980.0), NONE).verdict == "faster"
    # Where launches fill the time, the GPU's clock does not set it.
    both = [series(ms, limited_by="launches", clock_mhz=mhz) for ms, mhz in ((9.0, 1980.0), (10.0, 1782.0))]
    assert compare(*both, NONE).verdict == "faster"


@pytest.mark.parametrize(
    ("limited_by", "host", "word"),
    [
        ("launches", (2.0, 4.0), "faster"),
        ("launches", (2.1, 4.3), "faster"),  # 5 and 7.5 %
        ("launches", (2.0, 5.0), "not comparable"),
        ("launches", (2.0,), "not comparable"),
        ("launches", (), "not comparable"),
        ("gpu", (), "faster"),
    ],
)
def test_launches_of_two_machines_need_hosts_that_are_as_fast(limited_by, host, word):
    own = series(5.0, hardware="other", limited_by=limited_by, host=host)
    assert compare(own, series(10.0, limited_by=limited_by, host=(2.0, 4.0)), NONE).verdict == word


def test_the_more_are_asked_for_the_surer_one_must_be():
    # 2.8 %: less 2 %, 1.9 standard errors, a p-value of 0.03. Alone it counts; among 40 that are none it does not.
    one = (series(10.0), series(10.278))
    assert judged([one], NONE)[0].verdict == "faster"
    assert judged([one, *[(series(10.0), series(10.0))] * 39], NONE)[0].verdict == "unclear"


def test_pairs_without_a_time_keep_their_place():
    found = judged([(None, series()), (series(5.0), series()), (series(), None)], NONE)
    assert [each and each.verdict for each in found] == [None, "faster", None]


def test_a_rows_series():
    row = {"hardware": "gpu", "step_median_ms": 2.0, "step_ci_low_ms": 1.9, "step_ci_high_ms": 2.1}
    row |= {"step_processes": 3.0, "step_spread": 0.01, "step_spread_degrees": 20.0, "step_limited_by": "launches"}
    row |= {"sm_clock_median_mhz": 1980.0, "host_python_ms": 2.0, "host_launches_ms": 4.0}
    found = timed(row, "step_")
    assert found == Timed(2.0, 1.9, 2.1, False, 3, Spread(0.01, 20), "gpu", "launches", 1980.0, (2.0, 4.0))
    old = timed(row | {"step_processes": math.nan, "step_ci_low_ms": math.nan, "step_spread": math.nan,
                       "step_limited_by": math.nan, "host_launches_ms": math.nan}, "step_")  # fmt: skip
    assert (old.processes, old.has_interval, old.spread, old.limited_by, old.host) == (1, False, None, None, (2.0,))


def test_ratios_as_text():
    found = Comparison(1.5844, 1.52, 1.65, "faster", 1.02, (1.0, 1.0))
    assert (interval_text(found), ratio_and_interval(found)) == ("[1.52, 1.65]", "1.58 [1.52, 1.65]")


@pytest.mark.parametrize(("limited_by", "word"), [("processor", "unclear"), ("gpu", "faster"), ("launches", "faster")])
def test_of_a_slow_moment_of_a_processor_nothing_is_said(limited_by, word):
    fast, slow = series(5.0, limited_by=limited_by), series(10.0, limited_by=limited_by, slow_host=True)
    assert compare(fast, slow, NONE).verdict == word
    assert compare(slow, fast, NONE).verdict == ("slower" if word == "faster" else word)


@pytest.mark.parametrize(("limited_by", "ms", "word"), [("launches", 13.8, "unclear"), ("launches", 14.4, "faster"),
                                                        ("gpu", 13.8, "faster")])  # fmt: skip
def test_what_launches_limit_has_to_differ_by_more_than_the_hosts_slowdown(limited_by, ms, word):
    # The slow one's host took 1.4 times as long; intervals are ± 0.8 %.
    fast, slow = series(10.0, limited_by=limited_by), series(ms, limited_by=limited_by, slowdown=1.4)
    found = compare(fast, slow, NONE)
    assert found.verdict == word and found.margin == pytest.approx(1.4 if limited_by == "launches" else 1.02)


def test_a_row_says_how_slow_its_host_was():
    row = {"step_median_ms": 1.0, "step_limited_by": "launches"}
    found = [timed(row | more, "step_") for more in ({}, {"host_slowdown": 1.3, "slow_host": True})]
    assert [(each.slowdown, each.slow_host) for each in found] == [(1.0, False), (1.3, True)]
