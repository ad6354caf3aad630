"""A series of steps: when it ends, and what becomes of its samples."""

import math

import pytest
from stepscope.measure.series import TIMES, FixedNumber, Series, StoppingRule
from stepscope.measure.telemetry import Telemetry


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self):
        return self.now


NARROW, WIDE = 1.0, 0.0


def series(n, *kinds):
    """n samples for each phase: all alike, or spread out."""
    return [[1.0 if kind == NARROW else 1.0 + i for i in range(n)] for kind in kinds]


def ends_at(rule, *kinds, limit=100):
    return next((n for n in range(1, limit) if rule.enough(series(n, *kinds))), None)


def test_a_narrow_series_ends_at_the_least_number():
    assert ends_at(StoppingRule(10, 60, 1, Clock()), NARROW) == 10
    assert ends_at(StoppingRule(7, 60, 1, Clock()), NARROW, NARROW) == 7


def test_a_wide_series_goes_on_to_the_most_number():
    assert ends_at(StoppingRule(10, 60, 1, Clock()), WIDE) == 60
    assert ends_at(StoppingRule(10, 23, 1, Clock()), WIDE) == 23
    assert ends_at(StoppingRule(10, 10, 1, Clock()), WIDE) == 10
    assert ends_at(StoppingRule(10, 3, 1, Clock()), WIDE) == 10


def test_all_phases_must_be_narrow():
    assert ends_at(StoppingRule(10, 60, 1, Clock()), NARROW, WIDE, NARROW) == 60


def test_the_least_number_is_measured_even_when_the_time_is_over():
    clock = Clock()
    rule = StoppingRule(10, 60, 4, clock)
    clock.now += 1000
    assert ends_at(rule, WIDE) == 10


def test_a_wide_series_ends_when_the_time_is_over():
    clock = Clock()
    rule = StoppingRule(10, 60, 4, clock)
    clock.now += 3.99
    assert not any(rule.enough(series(n, WIDE)) for n in range(1, 60))
    clock.now += 0.01
    assert ends_at(rule, WIDE) == 10
    assert rule.enough(series(33, WIDE))


def test_the_interval_is_looked_at_every_five_samples():
    rule = StoppingRule(10, 60, 1, Clock())
    assert [n for n in range(1, 60) if rule.enough(series(n, NARROW))] == [10, 15, 20, 25, 30, 35, 40, 45, 50, 55]


@pytest.mark.parametrize("count, least, seconds, ends", [(5, 0, math.inf, 5), (5, 3, 0.0, 3), (2, 3, 0.0, 2)])
def test_a_fixed_number_ends_earlier_only_where_the_time_is_over(count, least, seconds, ends):
    assert ends_at(FixedNumber(count, least, seconds), WIDE) == ends


def test_every_phase_of_every_step_is_a_row_and_only_measured_ones_count():
    rows, number = [], iter(range(100))

    def step():
        yield "forward", (float(next(number)), None, None)
        yield "backward", (float(next(number)), 0.5, 0.25)

    series = Series(Telemetry(None), rows, {"mode": "step"}, first=7)
    series.warm_up(step, 1)
    series.measure(step, FixedNumber(2))
    readings = dict.fromkeys(("sm_clock_mhz", "power_w", "temperature_c"))
    assert rows[0] == {"mode": "step", "step": 7, "phase": "forward", "warmup": True, "seconds": 0.0, **readings} | {
        **{"process": 1, "event_seconds": None, "launch_seconds": None}
    }
    assert (rows[1]["event_seconds"], rows[1]["launch_seconds"]) == (0.5, 0.25)
    assert [(row["step"], row["phase"], row["warmup"], row["seconds"]) for row in rows[1:]] == [
        (7, "backward", True, 1.0),
        *((8, "forward", False, 2.0), (8, "backward", False, 3.0)),
        *((9, "forward", False, 4.0), (9, "backward", False, 5.0)),
    ]
    assert series.measured == {"forward": [2.0, 4.0], "backward": [3.0, 5.0]}
    assert (series.step, TIMES) == (10, ("seconds", "event_seconds", "launch_seconds"))


def test_a_phase_that_ended_before_its_step_failed_is_kept():
    rows = []

    def step():
        yield "forward", (1.0, None, None)
        raise MemoryError

    with pytest.raises(MemoryError):
        Series(Telemetry(None), rows).warm_up(step, 1)
    assert [row["phase"] for row in rows] == ["forward"]


def test_at_least_one_step_is_measured():
    rows = []
    Series(Telemetry(None), rows).measure(lambda: [("step", (1.0, None, None))], StoppingRule(0, 0, 0))
    assert len(rows) == 1
