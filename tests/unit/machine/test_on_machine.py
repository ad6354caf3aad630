"""What a cell is given that runs on a machine with several GPUs, before its program takes the process over."""

import sys

import on_machine
import pytest
from stepscope.machine import arrival, cores, gpus, identity, locks
from stepscope.machine.gpus import Gpu
from stepscope.machine.labels import Hardware

CELL = ["scripts/time_step.py", "--precision", "bf16", "--threads", "1"]


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A function: the cell's command and the machine's GPUs → (environment of its program, what is asked for cores)."""

    def start(command, names):
        asked, became = [], []
        visible = [Gpu(name, f"GPU-{i}", 80, "1") for i, name in enumerate(names)]
        monkeypatch.setattr(gpus, "visible_gpus", lambda: visible)
        monkeypatch.setattr(identity, "identity", lambda _device: {})
        monkeypatch.setattr(locks, "take_free_gpu", lambda uuids: uuids[-1])
        monkeypatch.setattr(cores, "keep_to", lambda *given: asked.append(given))
        monkeypatch.setattr(on_machine, "_become", lambda words, environment: became.append((words, environment)))
        monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path / "locks"))
        arrival.write(tmp_path / "machines.json", [Hardware("a", "cuda", 1)], {})
        words = ["on_machine.py", str(tmp_path / "machines.json"), "python", "a", *command]
        monkeypatch.setattr(sys, "argv", words)
        on_machine.main()
        ((program, environment),) = became
        assert program == ["python", *command]
        return environment, asked

    return start


def test_a_free_gpu_of_the_first_ones_type_and_its_core(started):
    asked = (CELL, "GPU-3", ["GPU-0", "GPU-1", "GPU-3"])
    assert started(CELL, ["A", "A", "B", "A"]) == ({"CUDA_VISIBLE_DEVICES": "GPU-3"}, [asked])


def test_the_only_gpu_of_its_type_is_taken_as_it_is(started):
    assert started(CELL, ["A", "B"]) == ({}, [])


def test_a_node_without_a_place_for_locks_is_refused_in_one_line(started, monkeypatch, tmp_path):
    (tmp_path / "locks").touch()
    with pytest.raises(SystemExit) as refused:
        started(CELL, ["A"])
    assert str(refused.value).startswith(
        f"error: cannot write in {tmp_path}/locks: File exists; set STEPSCOPE_LOCKS to "
    )
