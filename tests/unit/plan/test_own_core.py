"""Which core a cell gets that runs beside others."""

import errno
import os
import subprocess
import sys

import pytest
from stepscope.plan import own_core

ALONE = ["scripts/time_step.py", "--precision", "bf16", "--threads", "1"]


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host of two nodes with four cores each, two processors a core (n and n + 8), and a GPU on the second node."""
    for processor in range(16):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{processor}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{processor % 8},{processor % 8 + 8}\n")
    pci = tmp_path / "sys/bus/pci/devices/0000:8a:00.0"
    pci.mkdir(parents=True)
    (pci / "local_cpulist").write_text("4-7,12-15\n")
    gpu = tmp_path / "proc/driver/nvidia/gpus/0000:8a:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text("Model: \t\t Fake\nIRQ:   \t\t 99\nGPU UUID: \t GPU-a\n")
    monkeypatch.setattr(own_core, "SYS", tmp_path / "sys")
    monkeypatch.setattr(own_core, "PROC", tmp_path / "proc")
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path / "locks"))
    given = {"usable": set(range(16)), "taken": []}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: given["usable"])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _process, cores: given["taken"].append(cores))
    return given


def takers(count, uuid, gpus):
    """The cores that so many takers get, one after the other, on a machine with so many GPUs."""
    return [own_core.take(uuid, [uuid] * gpus) for _ in range(count)]


def test_each_taker_gets_a_core_of_the_gpus_node_far_from_the_others_then_any_other(host):
    assert takers(9, "GPU-a", gpus=1) == [7, 4, 6, 5, 3, 0, 2, 1, None]
    assert host["taken"] == [{7}, {4}, {6}, {5}, {3}, {0}, {2}, {1}]


def test_a_program_that_needs_more_cores_leaves_those_that_others_get_first(host):
    own_core.leave(["GPU-a", "GPU-b"])  # one asks for 7 and 6, the other for 7 and 4; 15, 14 and 12 are on these, too
    assert host["taken"] == [set(range(16)) - {7, 15, 6, 14, 4, 12}]
    assert takers(1, "GPU-b", gpus=2) + takers(1, "GPU-a", gpus=2) == [7, 6]


def test_it_keeps_all_where_the_others_get_none(host):
    own_core.leave([f"GPU-{i}" for i in range(8)])
    assert host["taken"] == []


def test_where_the_gpus_node_is_unknown_any_core_will_do(host):
    assert takers(9, "GPU-b", gpus=2) == [7, 4, 1, 6, 3, 0, 5, 2, None]


def test_no_two_get_processors_of_one_core(host):
    host["usable"] = {0, 1, 9, 10}
    assert takers(4, "GPU-a", gpus=1) == [10, 1, 0, None]
    host["usable"] = {2, 8, 15}
    assert takers(2, "GPU-a", gpus=1) == [15, None]


def test_a_core_is_left_for_everything_else(host):
    assert takers(1, "GPU-a", gpus=8) == [None]
    assert takers(1, "GPU-a", gpus=7) == [7]


def test_where_a_process_may_not_choose_it_keeps_all_cores(host, monkeypatch):
    def denied(_process, _cores):
        raise OSError(errno.EINVAL, "no such thing here")

    allowed = os.sched_setaffinity
    monkeypatch.setattr(os, "sched_setaffinity", denied)
    assert takers(1, "GPU-a", gpus=2) == [None]
    monkeypatch.setattr(os, "sched_setaffinity", allowed)
    assert takers(1, "GPU-a", gpus=2) == [7]


def test_where_the_kernel_shows_no_topology_each_processor_is_a_core(host, monkeypatch, tmp_path):
    monkeypatch.setattr(own_core, "SYS", tmp_path / "none")
    assert takers(16, "GPU-b", gpus=8) == [*range(15, -1, -1)]


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_where_the_kernel_hides_who_shares_a_core_the_takers_do_not(host, monkeypatch, tmp_path, gpus):
    monkeypatch.setattr(own_core, "SYS", tmp_path / "none")
    count = 16 * gpus
    host["usable"] = set(range(count))
    taken = takers(gpus, "GPU-b", gpus=gpus)
    assert len({core % (count // 2) for core in taken}) == gpus  # n and n + half
    assert len({core // 2 for core in taken}) == gpus  # n and n + 1


def test_a_core_lasts_as_long_as_the_program_that_its_taker_becomes(tmp_path):
    cores = sorted(os.sched_getaffinity(0))[-2:][::-1]
    if len(cores) < 2:
        pytest.skip("needs two processors")
    take = "import os, pathlib, sys; from stepscope.plan import own_core; own_core.SYS = pathlib.Path('none')\n"
    take += "print(own_core.take('GPU-a', ['GPU-a']), flush=True)\n"
    shown = "import os; print(os.sched_getaffinity(0), flush=True); input()"
    become = f"os.execv(sys.executable, [sys.executable, '-c', {shown!r}])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "STEPSCOPE_LOCKS": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    first = subprocess.Popen([sys.executable, "-c", take + become], **pipes)
    assert first.stdout.readline() == f"{cores[0]}\n"
    assert first.stdout.readline() == f"{{{cores[0]}}}\n"
    second = subprocess.run([sys.executable, "-c", take], timeout=60, **pipes | {"stdin": None})
    assert second.stdout == f"{cores[1]}\n"
    first.communicate("\n", timeout=60)
    third = subprocess.run([sys.executable, "-c", take], timeout=60, **pipes | {"stdin": None})
    assert third.stdout == f"{cores[0]}\n"


@pytest.mark.parametrize(
    "command",
    [
        ["scripts/profile_step.py", "--threads", "1"],
        [*ALONE, "--compile", "block"],
        [*ALONE, "--attention", "flex"],
        ["scripts/time_attention.py", "--threads", "1", "--implementation", "compiled"],
        ["scripts/time_step.py", "--threads", "2"],
        ["scripts/time_step.py"],
    ],
)
def test_programs_with_others_beside_them_keep_all_cores(command):
    assert not own_core.is_enough_for(command)


def test_a_program_of_one_thread_needs_one_core():
    assert own_core.is_enough_for(ALONE)
    assert own_core.is_enough_for([*ALONE, "--attention", "triton"])
