"""Which of several GPUs a job gets."""

import fcntl
import os
import subprocess
import sys

import pytest
from stepscope.plan import free_gpu
from stepscope.plan.machine import Gpu

A, B, C = (Gpu("A100", f"GPU-{letter}", 80, "1") for letter in "abc")
SMALLER, OTHER = Gpu("A100", "GPU-d", 40, "1"), Gpu("T4", "GPU-e", 16, "1")


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """Folder of the locks."""
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path / "locks"))
    (tmp_path / "locks").mkdir()
    return tmp_path / "locks"


def test_only_gpus_of_the_first_ones_type_are_taken():
    assert free_gpu.alike([A, SMALLER, B, OTHER, C]) == ["GPU-a", "GPU-b", "GPU-c"]
    assert free_gpu.alike([OTHER, A]) == ["GPU-e"]
    assert free_gpu.alike([]) == []


def test_each_taker_gets_another_one_and_none_that_is_measured_on_by_hand(locks):
    with open(locks / "GPU-a.lock", "w") as by_hand:
        fcntl.flock(by_hand, fcntl.LOCK_EX)
        assert free_gpu.take(["GPU-a", "GPU-b", "GPU-c"]) == "GPU-b"
        assert free_gpu.take(["GPU-a", "GPU-b", "GPU-c"]) == "GPU-c"
    assert free_gpu.take(["GPU-a", "GPU-b", "GPU-c"]) == "GPU-a"


def test_a_place_lasts_as_long_as_the_program_that_the_taker_becomes(locks):
    take = "import os, sys; from stepscope.plan import free_gpu; print(free_gpu.take(['GPU-a']), flush=True)\n"
    become = "os.execv(sys.executable, [sys.executable, '-c', 'input()'])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    first = subprocess.Popen([sys.executable, "-c", take + become], **pipes)
    assert first.stdout.readline() == "GPU-a\n"
    second = subprocess.Popen([sys.executable, "-c", take], stderr=subprocess.PIPE, **pipes)
    assert "waiting for a free GPU: all 1 are measured on" in second.stderr.readline()
    first.communicate("\n", timeout=60)
    out, errors = second.communicate(timeout=60)
    assert (out, errors) == ("GPU-a\n", "got GPU-a\n")
