"""Which processors a cell keeps to that runs beside others."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from stepscope.machine import cores, gpus

ALONE = ["scripts/time_step.py", "--precision", "bf16", "--threads", "1"]
BUSY = ["scripts/profile_step.py", "--threads", "1"]
GPUS = ["GPU-a", "GPU-b", "GPU-c"]


def show(folder: Path, cores: dict[int, str], gpus: dict[str, tuple[str, str]]) -> None:
    """Fake /sys and /proc: who shares a core with a processor, and each GPU's address and the processors near it."""
    for processor, shared in cores.items():
        topology = folder / f"sys/devices/system/cpu/cpu{processor}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{shared}\n")
    for uuid, (address, near) in gpus.items():
        gpu = folder / f"proc/driver/nvidia/gpus/{address}"
        gpu.mkdir(parents=True)
        (gpu / "information").write_text(f"Model: \t\t Fake\nIRQ:   \t\t 99\nGPU UUID: \t {uuid}\n")
        pci = folder / f"sys/bus/pci/devices/{address.lower()}"
        pci.mkdir(parents=True)
        (pci / "local_cpulist").write_text(f"{near}\n")


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host of two nodes with four cores each, two processors a core (n and n + 8); one GPU near the first, two near
    the second."""
    near = {"GPU-c": ("0000:1A:00.0", "0-3,8-11"), "GPU-a": ("0000:8A:00.0", "4-7,12-15")}
    near["GPU-b"] = ("0000:8B:00.0", "4-7,12-15")
    show(tmp_path, {n: f"{n % 8},{n % 8 + 8}" for n in range(16)}, near)
    monkeypatch.setattr(cores, "SYS", tmp_path / "sys")
    monkeypatch.setattr(gpus, "PROC", tmp_path / "proc")
    given = {"usable": set(range(16)), "kept": []}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: given["usable"])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _process, processors: given["kept"].append(processors))

    def kept(command, uuid, uuids=GPUS):
        given["kept"].clear()
        cores.keep_to(command, uuid, uuids)
        return list(given["kept"])

    given["of"] = kept
    return given


def test_each_gpu_has_cores_near_it_half_of_those_there(host):
    assert [host["of"](ALONE, uuid) for uuid in GPUS] == [[{7, 15}], [{6, 14}], [{3, 11, 2, 10}]]
    assert host["of"]([*ALONE, "--attention", "triton", "--compile", "none"], "GPU-a") == [{7, 15}]


def test_they_are_the_same_cores_whichever_gpus_a_run_may_use(host):
    assert host["of"](ALONE, "GPU-b", ["GPU-b", "GPU-c"]) == [{6, 14}]


@pytest.mark.parametrize(
    "command",
    [
        BUSY,
        [*ALONE, "--compile", "block"],
        [*ALONE, "--attention", "flex"],
        ["scripts/time_attention.py", "--threads", "1", "--implementation", "compiled"],
    ],
)
def test_programs_that_start_others_leave_the_cores_of_all_gpus(host, command):
    assert host["of"](command, "GPU-b") == [{0, 1, 4, 5, 8, 9, 12, 13}]


@pytest.mark.parametrize("command", [["scripts/time_step.py", "--threads", "2"], ["scripts/time_step.py"]])
def test_programs_of_more_threads_keep_all_cores(host, command):
    assert host["of"](command, "GPU-a") == []


def test_of_the_processors_that_a_process_may_use(host):
    host["usable"] = {2, 3, 4, 5, 6, 7, 15}  # as in a container
    assert [host["of"](ALONE, uuid) for uuid in GPUS] == [[{7, 15}], [{6}], [{3}]]
    assert host["of"](BUSY, "GPU-a") == [{2, 4, 5}]
    host["usable"] = {0, 1, 2, 8, 9, 10}  # none near two of them: three cores for three GPUs are too few
    assert [host["of"](ALONE, uuid) for uuid in GPUS] == [[], [], []]


def test_half_of_the_cores_are_left_for_everything_else(host):
    host["usable"] = {4, 12, 5, 13, 6, 14, 0}
    assert [host["of"](ALONE, uuid) for uuid in GPUS] == [[], [], []]
    assert host["of"](BUSY, "GPU-a") == []


def test_where_nothing_tells_where_the_gpus_are_they_stand_in_their_order(host, monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "PROC", tmp_path / "none")
    assert [host["of"](ALONE, uuid) for uuid in GPUS] == [[{7, 15}], [{6, 14}], [{5, 13}]]
    assert [host["of"](ALONE, uuid, GPUS[:2]) for uuid in GPUS[:2]] == [[{7, 15, 6, 14}], [{5, 13, 4, 12}]]


@pytest.mark.parametrize("number", [2, 4, 7, 8])
@pytest.mark.parametrize("each", [8, 15, 16])
def test_where_a_virtual_machine_hides_who_shares_a_core_no_two_do(host, monkeypatch, tmp_path, number, each):
    monkeypatch.setattr(cores, "SYS", tmp_path / "none")
    monkeypatch.setattr(gpus, "PROC", tmp_path / "none")
    count = number * each + number * each % 2
    host["usable"] = set(range(count))
    uuids = [f"GPU-{i}" for i in range(number)]
    kept = [found for uuid in uuids for found in host["of"](ALONE, uuid, uuids)]
    assert len(kept) == number
    for share in (lambda processor: processor % (count // 2), lambda processor: processor // 2):  # n + half, n + 1
        cores_of_each = [{share(processor) for processor in own} for own in kept]
        assert len(set().union(*cores_of_each)) == sum(map(len, cores_of_each))


def test_what_cannot_be_read_counts_as_hidden(host, tmp_path):
    for file in (tmp_path / "sys").rglob("thread_siblings_list"):
        file.write_text("garbage")
    for file in (tmp_path / "sys").rglob("local_cpulist"):
        file.write_text("0-")
    next((tmp_path / "proc").rglob("information")).write_bytes(b"\xff\xfe")
    host["usable"] = set(range(32))
    kept = [found for uuid in GPUS for found in host["of"](ALONE, uuid)]
    assert len(set().union(*kept)) == sum(map(len, kept)) == 3
    assert all(processor >= 16 and processor % 2 for processor in set().union(*kept))


def test_efficiency_cores_are_for_others(host, monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "PROC", tmp_path / "none")
    (tmp_path / "sys/devices/cpu_atom").mkdir()
    (tmp_path / "sys/devices/cpu_atom/cpus").write_text("4-7,12-15\n")
    assert [host["of"](ALONE, uuid, ["GPU-a", "GPU-b"]) for uuid in ("GPU-a", "GPU-b")] == [[{3, 11}], [{2, 10}]]


def test_where_a_process_may_not_choose_nothing_changes(host, monkeypatch):
    def denied(_process, _processors):
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(os, "sched_setaffinity", denied)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    cores.keep_to(ALONE, "GPU-a", GPUS)
    with cores.own_core():
        pass


def test_the_program_that_the_process_becomes_keeps_to_it_too(tmp_path):
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs two processors")
    show(tmp_path, {n: f"{n},{n + 1000}" for n in usable}, {})
    program = f"""
import os, pathlib, sys
from stepscope.machine import cores, gpus
cores.SYS, gpus.PROC = pathlib.Path({str(tmp_path)!r}) / "sys", pathlib.Path({str(tmp_path)!r}) / "proc"
cores.keep_to({ALONE!r}, "GPU-a", ["GPU-a"])
os.execv(sys.executable, [sys.executable, "-c", "import os; print(list(os.sched_getaffinity(0)))"])
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout) == [usable[-1]]


@pytest.fixture
def threads(monkeypatch, host):
    """Whose affinity was set: (thread or 0 for the caller, processors), in their order."""
    moved = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda task, processors: moved.append((task, set(processors))))
    return moved


def test_all_threads_keep_to_the_quickest_core_and_are_free_again_after_it(host, threads, monkeypatch):
    host["usable"] = {1, 2, 3, 9, 10, 11}
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(cores, "_loop", lambda: {11: 2.0, 10: 1.0, 9: 3.0}[next(iter(threads[-1][1]))])
    with cores.own_core():
        assert {processor for task, own in threads if task == 0 for processor in own} == {9, 10, 11}  # one a core
        assert (os.getpid(), {10}) in threads
        threads.clear()
    assert {frozenset(own) for _, own in threads} == {frozenset(host["usable"])}


@pytest.mark.parametrize("given", ["2", None])
def test_more_threads_than_one_stay_where_they_are(host, threads, monkeypatch, given):
    if given is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with cores.own_core():
        pass
    assert threads == []
