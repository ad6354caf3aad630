"""Fresh processes one after another: what they return, and how their ends are told."""

import os
import signal
import sys

import pytest
from stepscope.measure import processes


def test_each_process_is_another_one_and_the_next_begins_when_it_has_ended():
    seen = []
    for number, pid, parent in processes.each(
        3, lambda number: (number, os.getpid(), os.getppid())
    ):
        assert parent == os.getpid()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        seen.append((number, pid))
    assert [number for number, _ in seen] == [1, 2, 3]
    assert len({pid for _, pid in seen}) == 3


def test_what_a_process_changes_is_its_own():
    changed = []
    assert list(processes.each(2, lambda number: changed.append(number) or len(changed))) == [1, 1]
    assert changed == []


def test_no_more_processes_run_than_are_asked_for():
    assert next(processes.each(3, lambda number: number)) == 1


def ended(measure):
    """What the program ends with."""
    with pytest.raises(SystemExit) as end:
        list(processes.each(2, measure))
    return end.value.code


def test_a_process_that_fails_ends_the_program_with_its_exit_code(capfd):
    def broken(_number):
        raise ValueError("broken on purpose")

    assert ended(broken) == 1
    assert "ValueError: broken on purpose" in capfd.readouterr().err


def test_a_line_with_which_a_process_ends_is_said_once(capfd):
    assert ended(lambda _number: sys.exit("error: no GPU")) == 1
    assert capfd.readouterr().err == "error: no GPU\n"


def test_a_process_that_is_killed_is_named():
    assert (
        ended(lambda number: os.kill(os.getpid(), signal.SIGKILL))
        == "error: process 1 of 2 was killed by signal 9"
    )


def test_a_process_that_ends_without_a_word_is_no_result():
    assert ended(lambda _number: os._exit(0)) == "error: process 1 of 2 ended without a result"


def test_processes_die_with_the_program(start_python):
    program = start_python(
        "import os, signal, sys\n"
        "from stepscope.measure import processes\n"
        "def measure(number):\n"
        "    print(os.getpid(), flush=True)\n"
        "    signal.pause()\n"
        "list(processes.each(1, measure))\n"
    )
    child = int(program.stdout.readline())
    handle = os.pidfd_open(child)
    program.kill()
    program.wait()
    assert signal_of_end(handle)


def signal_of_end(handle: int) -> bool:
    """Whether the process behind a file descriptor ends within a minute."""
    import select

    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(60_000))
