"""Ranks end together: whichever fails is named, and nobody waits for it."""

import multiprocessing
import os
import signal
import threading

import pytest
from common import one_line
from stepscope.measure.found import Outcome
from stepscope.parallel import ranks
from stepscope.parallel.ranks import VariantError


def wait_for_ever():
    threading.Event().wait()


def test_each_rank_returns_what_it_found_in_order():
    assert ranks.together(3, lambda rank: rank * 10) == [0, 10, 20]


@pytest.mark.parametrize(
    "fail, said",
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "rank 1 of 3 was killed by signal 9"),
        (lambda: 1 / 0, "rank 1 of 3 ended with exit code 1 and without a result"),
        (lambda: os._exit(3), "rank 1 of 3 ended with exit code 3 and without a result"),
    ],
)
def test_one_that_is_lost_ends_all_and_is_named(fail, said):
    pids = multiprocessing.Array("i", 3)

    def work(rank):
        pids[rank] = os.getpid()
        fail() if rank == 1 else wait_for_ever()

    with pytest.raises(SystemExit) as ended:
        ranks.together(3, work)
    assert str(ended.value) == f"error: {said}"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_fails_because_another_was_killed_is_not_named():
    def work(rank):
        if rank == 0:
            raise ConnectionError("connection closed by peer")
        os.kill(os.getpid(), signal.SIGKILL)

    assert "rank 1 of 2 was killed by signal 9" in one_line(SystemExit, ranks.together, 2, work)


def test_lacking_memory_is_a_variants_and_names_the_rank():
    def work(rank):
        if rank == 1:
            raise VariantError("fsdp", Outcome("oom", "out of memory: tried to allocate 2 GiB"))
        wait_for_ever()

    with pytest.raises(VariantError) as failed:
        ranks.together(2, work)
    found = failed.value
    reason = "rank 1: out of memory: tried to allocate 2 GiB"
    assert (found.variant, found.outcome) == ("fsdp", Outcome("oom", reason))


def test_ranks_that_take_too_long_are_ended():
    assert "the time that they were given" in one_line(
        SystemExit, ranks.together, 2, lambda rank: rank or wait_for_ever(), seconds=0.1
    )


def test_cores_are_shared_out_whole(monkeypatch):
    taken = {}
    monkeypatch.setattr(ranks.cores, "siblings", lambda core: {core % 4, core % 4 + 4})
    monkeypatch.setattr(ranks.os, "sched_getaffinity", lambda _: set(range(8)))
    for rank in range(2):
        set_to = lambda _, own, rank=rank: taken.update({rank: own})  # noqa: E731
        monkeypatch.setattr(ranks.os, "sched_setaffinity", set_to)
        ranks.keep_to_own_cores(rank, 2)
    assert taken == {0: {0, 4, 1, 5}, 1: {2, 6, 3, 7}}


def test_where_cores_are_fewer_than_ranks_nothing_changes(monkeypatch):
    monkeypatch.setattr(ranks.cores, "siblings", lambda core: {core})
    monkeypatch.setattr(ranks.os, "sched_getaffinity", lambda _: {5})
    monkeypatch.setattr(ranks.os, "sched_setaffinity", lambda _, own: pytest.fail(str(own)))
    ranks.keep_to_own_cores(0, 2)
