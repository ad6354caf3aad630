"""A cell of several devices, measured on the CPU."""

import os

import pytest
from common import picked
from stepscope.config.flags import Settings
from stepscope.measure import processes
from stepscope.measure.found import rows_of, summary
from stepscope.parallel import measuring
from stepscope.parallel.cell import ParallelMeasurement
from stepscope.parallel.strategies import Flat

NAMES = ["alone", "flat", "sharded"]


def measured(spec):
    """What is found of a cell of these variants, and its summary of each; in a process of its own,
    which the frame of a cell changes."""
    spec = spec | {"variants": [{"name": name, "strategy": name} for name in NAMES]}

    def run(_number):
        with ParallelMeasurement("time_parallel.py", spec, Settings(None, 5.0)) as cell:
            return measuring.measure(cell)

    ((found, more),) = processes.each(1, run)
    return rows_of(found), more, summary(found)["variants"]


def test_a_strategy_whose_loss_is_no_number_fails_by_itself(tiny, monkeypatch):
    kept = Flat._forward

    def spoilt(work):
        kept(work)
        work._loss = work._loss * float("nan")

    monkeypatch.setattr(Flat, "_forward", spoilt, raising=False)
    rows, more, about = measured(tiny)
    assert [about[name]["status"] for name in NAMES] == ["ok", "failed", "ok"]
    assert about["flat"]["reason"].endswith("loss is NaN at step 0")
    assert set(picked(rows, "variant")) == {"alone", "sharded"}
    losses = picked(more["checks"].values(), "loss")
    assert losses == pytest.approx([losses[0]] * 2, rel=1e-5)


def test_fewer_devices_than_are_asked_for_are_unsupported(tiny):
    there = len(os.sched_getaffinity(0))
    rows, more, about = measured(tiny | {"devices": there + 1})
    reason = f"{there + 1} processor cores are asked for, {there} can be used"
    assert [*about.values()] == 3 * [{"status": "unsupported", "reason": reason}]
    assert rows == [] == more["tables"]["collectives"]
