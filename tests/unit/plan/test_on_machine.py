"""What a cell is given that runs on a machine with several GPUs, before its program takes the process over."""

import sys

import on_machine
import pytest
from stepscope.plan import arrival, free_gpu, machine
from stepscope.plan.hardware import Hardware
from stepscope.plan.machine import Gpu

CELL = ["scripts/time_step.py", "--precision", "bf16", "--threads", "1"]


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A function: the names of the machine's GPUs → what the cell's program finds in its environment besides."""

    def start(names):
        became = []
        gpus = [Gpu(name, f"GPU-{i}", 80, "1") for i, name in enumerate(names)]
        monkeypatch.setattr(machine, "visible_gpus", lambda: gpus)
        monkeypatch.setattr(machine, "identity", lambda _device: {})
        monkeypatch.setattr(free_gpu, "take", lambda uuids: uuids[-1])
        monkeypatch.setattr(on_machine, "_become", lambda words, environment: became.append((words, environment)))
        arrival.write(tmp_path / "machines.json", [Hardware("a", "cuda", 1)], {})
        words = ["on_machine.py", str(tmp_path / "machines.json"), "python", "a", *CELL]
        monkeypatch.setattr(sys, "argv", words)
        on_machine.main()
        ((program, environment),) = became
        assert program == ["python", *CELL]
        return environment

    return start


def test_a_free_gpu_of_the_first_ones_type(started):
    assert started(["A", "A", "B", "A"]) == {"CUDA_VISIBLE_DEVICES": "GPU-3"}


def test_the_only_gpu_of_its_type_is_taken_as_it_is(started):
    assert started(["A", "B"]) == {}
