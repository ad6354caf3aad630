"""The time without the host and what limits a step, from rows written down by hand."""

import pandas as pd
import pytest
from stepscope.results import alone

CELL = "gpu/ladder/nano/ctx32"
STEP = {"cell": CELL, "mode": "step", "phase": "step", "length": 0, "direction": ""}


def row(quantity, median, variant="step", **more):
    return STEP | {"variant": variant, "quantity": quantity, "median": median} | more


def times(rows):
    found = alone.times(pd.DataFrame(rows))
    assert set(found["quantity"]) <= {"alone_time"}
    return dict(zip(found["variant"], found["median"], strict=True))


def test_it_is_host_free_else_busy():
    both = [row("time", 3.0), row("busy_time", 1.0), row("host_free_time", 2.0)]
    assert times(both) == {"step": 2.0}
    assert times(both[:2]) == {"step": 1.0}
    assert times(both[:1]) == {}


def test_rungs_are_compared_by_one_kind():
    """b cannot be replayed: a and c, which can, are busy for so long beside it."""
    rows = [row("time", 5.0, name) for name in "abc"]
    rows += [row("busy_time", 1.0, "a"), row("busy_time", 2.0, "b"), row("busy_time", 3.0, "c")]
    rows += [row("host_free_time", 1.5, "a"), row("host_free_time", 3.5, "c")]
    assert times(rows) == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert times([each for each in rows if each["quantity"] != "busy_time"]) == {"a": 1.5, "c": 3.5}


@pytest.mark.parametrize(
    "clock, device, study, said",
    [
        (1.14, "cuda", "timing", "gpu"),
        (1.16, "cuda", "timing", "launches"),
        (1.16, "cpu", "timing", "cpu"),
        (1.16, "cuda", "ceilings", ""),
    ],
)
def test_launches_limit_what_takes_15_percent_longer_than_the_gpu_alone(clock, device, study, said):
    found = pd.DataFrame([row("time", clock), row("host_free_time", 1.0), row("busy_time", 0.5)])
    limits = alone.limits(found.assign(device=device, study=study))
    assert list(limits) == [said, "", ""]


def test_without_a_time_alone_it_is_not_known_but_for_queued_passes_of_attention():
    found = pd.DataFrame([row("time", 1.0), row("time", 0.3, phase="forward")])
    found = found.assign(device="cuda", study="timing")
    assert list(alone.limits(found)) == ["unknown", ""]
    passes = {"mode": "", "phase": "forward", "direction": "forward", "length": 64}
    found = pd.DataFrame([row("time", 1.0, "naive", **passes)])
    assert list(alone.limits(found.assign(device="cuda", study="attention"))) == ["gpu"]
