"""What a process of a timing cell measures, on a tiny real model on the CPU."""

import json

import pytest
import torch
from common import TINY_TIMING, one_line, picked
from stepscope.axes import MODES
from stepscope.measure import timing
from stepscope.measure.found import rows_of, summary
from stepscope.measure.telemetry import Telemetry
from stepscope.measure.workload import Workload

pytestmark = pytest.mark.usefixtures("one_thread")

WHOLE = {
    "inference": "inference",
    "forward": "forward",
    "forward-backward": "forward+backward",
    "step": "step",
}
PHASES = {
    "inference": {"inference"},
    "forward": {"forward"},
    "forward-backward": {"forward", "backward"},
    "step": {"forward", "backward", "optimizer"},
}


def measured(spec, process=1):
    return timing.measure(spec, Telemetry(None), process)


def kept(found, *keys, warmup=False):
    return [tuple(row[key] for key in keys) for row in found.rows if row["warmup"] == warmup]


def test_a_loss_that_is_no_number_fails_its_modes_and_names_the_step(monkeypatch):
    """Steps 0 to 2 are phased, and the third of them spoils the weights."""
    steps_run = []

    def spoil(work):
        steps_run.append(work)
        if len(steps_run) == 3:
            with torch.no_grad():
                for parameter in work.parameters:
                    parameter.fill_(float("nan"))

    monkeypatch.setattr(Workload, "_optimizer", spoil)
    process = measured(TINY_TIMING)
    found = {one["mode"]: (one["status"], one["reason"]) for one in process.statuses}
    assert found["step"] == ("failed", "loss is NaN at step 3")
    assert found["forward-backward"][0] == found["forward"][0] == "failed"
    assert found["inference"] == ("ok", "")  # it computes no loss
    about = summary([process])
    assert about["variants"]["step"]["status"] == "failed"
    assert set(picked(rows_of([process]), "mode")) == {"inference"}
    assert set(picked(about["values"], "mode")) <= {"inference"}
    json.dumps(about, allow_nan=False)


@pytest.mark.parametrize("mode", MODES)
def test_phased_steps_of_the_heaviest_mode_come_first_then_free_ones_of_all(mode):
    found = measured(TINY_TIMING | {"mode": mode, "processes": 2})
    modes = list(MODES)[: list(MODES).index(mode) + 1]
    assert picked(found.statuses, "mode", "status") == [(one, "ok") for one in reversed(modes)]
    expected = {(mode, "phased", phase) for phase in PHASES[mode]} | {
        (one, "free", WHOLE[one]) for one in modes
    }
    assert set(kept(found, "mode", "kind", "phase")) == expected
    assert (found.rows[0]["kind"], found.rows[0]["step"], found.rows[0]["warmup"]) == (
        "phased",
        0,
        True,
    )


def test_every_step_is_numbered_from_the_very_first_and_without_time_the_fewest_are_run():
    found = measured(TINY_TIMING | {"warmup": 3, "steps": 2, "mode": "forward", "processes": 2})
    assert kept(found, "mode", "kind", "step", warmup=True) == [
        *(("forward", "phased", step) for step in range(3)),
        ("forward", "free", 5),
        ("inference", "free", 8),
    ]
    assert kept(found, "mode", "kind", "step") == [
        *(("forward", "phased", step) for step in (3, 4)),
        *(("forward", "free", step) for step in (6, 7)),
        *(("inference", "free", step) for step in (9, 10)),
    ]
    (first,) = picked(found.values, quantity="first_step_time")
    assert first["value"] == found.rows[0]["seconds"]


def test_operators_are_counted_in_the_last_process():
    by_process = {process: measured(TINY_TIMING | {"processes": 2}, process) for process in (1, 2)}
    counted = {
        process: picked(found.values, quantity="operators") for process, found in by_process.items()
    }
    assert counted[1] == []
    (operators,) = counted[2]
    assert operators["value"] > 100 and operators["process"] is None


def fail_in(monkeypatch, name, error):
    def failing(self):
        raise error

    monkeypatch.setattr(Workload, name, failing)


@pytest.mark.parametrize(
    "phase, first", {"_optimizer": 1, "_backward": 2, "_forward": 3, "_inference": 4}.items()
)
def test_a_mode_that_runs_out_of_memory_leaves_the_lighter_ones(phase, first, monkeypatch):
    fail_in(monkeypatch, phase, torch.OutOfMemoryError("CUDA out of memory. Tried\nto allocate"))
    found = measured(TINY_TIMING)
    modes = list(reversed(MODES))
    lighter = modes[first:] if phase != "_inference" else modes[:3]
    statuses = {one["mode"]: (one["status"], one["reason"]) for one in found.statuses}
    for mode in modes:
        assert statuses[mode] == (
            ("ok", "") if mode in lighter else ("oom", "CUDA out of memory. Tried")
        )
    if 0 < first < 4:
        assert {
            row["phase"] for row in found.rows if row["kind"] == "phased" and not row["warmup"]
        } == PHASES[lighter[0]]


def test_other_errors_pass_through(monkeypatch):
    fail_in(monkeypatch, "_backward", RuntimeError("illegal memory access"))
    assert "illegal memory access" in one_line(RuntimeError, measured, TINY_TIMING)
