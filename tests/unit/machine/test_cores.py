"""Which core a thread keeps to while it is measured."""

import errno
import os

import pytest
from stepscope.machine import cores


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host of eight cores, two processors each (n and n + 8); which of them a process may use is
    `usable`."""
    for processor in range(16):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{processor}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{processor % 8},{processor % 8 + 8}\n")
    monkeypatch.setattr(cores, "SYS", tmp_path / "sys")
    given = {"usable": set(range(16))}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: given["usable"])
    return given


@pytest.fixture
def threads(monkeypatch, host):
    """Whose affinity was set: (thread or 0 for the caller, processors), in their order."""
    moved = []
    monkeypatch.setattr(
        os, "sched_setaffinity", lambda task, processors: moved.append((task, set(processors)))
    )
    return moved


@pytest.fixture
def tried(host, threads, monkeypatch):
    """The processors that were compared, of which 10 is the quickest."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(cores, "_loop", lambda: {10: 1.0}.get(next(iter(threads[-1][1])), 2.0))
    return lambda: {processor for task, own in threads if task == 0 for processor in own}


def test_all_threads_keep_to_the_quickest_core_and_are_free_again_after_it(host, threads, tried):
    host["usable"] = {1, 2, 3, 9, 10, 11}
    with cores.own_core():
        assert tried() == {9, 10, 11}  # one a core
        assert (os.getpid(), {10}) in threads
        threads.clear()
    assert {frozenset(own) for _, own in threads} == {frozenset(host["usable"])}


def test_efficiency_cores_are_for_others(host, tried, tmp_path):
    (tmp_path / "sys/devices/cpu_atom").mkdir()
    (tmp_path / "sys/devices/cpu_atom/cpus").write_text("4-7,12-15\n")
    with cores.own_core():
        assert tried() == {8, 9, 10, 11}


def test_what_cannot_be_read_counts_as_a_core_of_its_own(host, tried, tmp_path):
    for file in (tmp_path / "sys").rglob("thread_siblings_list"):
        file.write_text("garbage")
    with cores.own_core():
        assert tried() == set(range(16))


@pytest.mark.parametrize("given", ["2", None])
def test_more_threads_than_one_stay_where_they_are(host, threads, monkeypatch, given):
    if given is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with cores.own_core():
        pass
    assert threads == []


def test_where_a_process_may_not_choose_nothing_changes(host, monkeypatch):
    def denied(_process, _processors):
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(os, "sched_setaffinity", denied)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with cores.own_core():
        pass
