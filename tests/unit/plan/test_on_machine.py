"""What a cell is given that runs on a machine with several GPUs, before its program takes the process over."""

import sys

import on_machine
import pytest
from stepscope.plan import arrival, free_gpu, machine, own_core
from stepscope.plan.hardware import Hardware
from stepscope.plan.machine import Gpu

CELL = ["scripts/time_step.py", "--precision", "bf16", "--threads", "1"]


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A function: the cell's command and the machine's GPUs → (environment of its program, what it does with cores)."""

    def start(command, names):
        asked, became = [], []
        gpus = [Gpu(name, f"GPU-{i}", 80, "1") for i, name in enumerate(names)]
        monkeypatch.setattr(machine, "visible_gpus", lambda: gpus)
        monkeypatch.setattr(machine, "identity", lambda _device: {})
        monkeypatch.setattr(free_gpu, "take", lambda uuids: uuids[-1])
        monkeypatch.setattr(own_core, "take", lambda uuid, uuids: asked.append((uuid, uuids)))
        monkeypatch.setattr(own_core, "leave", lambda uuids: asked.append(("leave", uuids)))
        monkeypatch.setattr(on_machine, "_become", lambda words, environment: became.append((words, environment)))
        arrival.write(tmp_path / "machines.json", [Hardware("a", "cuda", 1)], {})
        words = ["on_machine.py", str(tmp_path / "machines.json"), "python", "a", *command]
        monkeypatch.setattr(sys, "argv", words)
        on_machine.main()
        ((program, environment),) = became
        assert program == ["python", *command]
        return environment, asked

    return start


def test_a_free_gpu_of_the_first_ones_type_and_a_core_beside_others_on_such(started):
    gpus = ["GPU-0", "GPU-1", "GPU-3"]
    assert started(CELL, ["A", "A", "B", "A"]) == ({"CUDA_VISIBLE_DEVICES": "GPU-3"}, [("GPU-3", gpus)])


def test_a_program_that_starts_others_leaves_those_cores(started):
    command = ["scripts/profile_step.py", *CELL[1:]]
    assert started(command, ["A", "A"]) == ({"CUDA_VISIBLE_DEVICES": "GPU-1"}, [("leave", ["GPU-0", "GPU-1"])])


def test_the_only_gpu_of_its_type_is_taken_as_it_is(started):
    assert started(CELL, ["A", "B"]) == ({}, [])
