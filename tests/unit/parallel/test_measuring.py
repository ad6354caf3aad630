"""A cell of several devices, measured on the CPU."""

import os

import pytest
from stepscope.config.flags import Settings
from stepscope.measure import processes
from stepscope.measure.found import rows_of, summary
from stepscope.parallel import measuring
from stepscope.parallel.cell import ParallelMeasurement
from stepscope.parallel.strategies import Flat

NAMES = ("alone", "flat", "sharded")
SERIES = {"processes": 1, "warmup": 1, "steps": 2, "max_steps": 2, "max_seconds": 0.0}


def measured(spec):
    """What is found of a cell; in a process of its own, which the frame of a cell changes."""

    def run(_number):
        with ParallelMeasurement("time_parallel.py", spec, Settings(None, 5.0)) as cell:
            return measuring.measure(cell)

    (found,) = processes.each(1, run)
    return found


def test_a_strategy_whose_loss_is_no_number_fails_by_itself(tiny, monkeypatch, tmp_path):
    kept = Flat._forward

    def spoilt(work):
        kept(work)
        work._loss = work._loss * float("nan")

    monkeypatch.setattr(Flat, "_forward", spoilt, raising=False)
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path))
    variants = [{"name": name, "strategy": name} for name in NAMES]
    spec = tiny | SERIES | {"variants": variants}
    found, more = measured(spec)
    about = summary(found, list(NAMES))["variants"]
    assert {name: one["status"] for name, one in about.items()} == {
        "alone": "ok",
        "flat": "failed",
        "sharded": "ok",
    }
    assert about["flat"]["reason"].endswith("loss is NaN at step 0")
    assert {row["variant"] for row in rows_of(found)} == {"alone", "sharded"}
    losses = [check["loss"] for check in more["checks"].values()]
    assert losses == pytest.approx([losses[0]] * 2, rel=1e-5)


def test_fewer_devices_than_are_asked_for_are_unsupported(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path))
    variants = [{"name": name, "strategy": name} for name in NAMES]
    there = len(os.sched_getaffinity(0))
    found, more = measured(tiny | SERIES | {"devices": there + 1, "variants": variants})
    about = summary(found, list(NAMES))["variants"]
    reason = f"{there + 1} processor cores are asked for, {there} can be used"
    assert list(about.values()) == 3 * [{"status": "unsupported", "reason": reason}]
    assert rows_of(found) == [] == more["tables"]["collectives"]
