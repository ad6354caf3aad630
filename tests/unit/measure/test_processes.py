"""Fresh processes one after another: what they return, and how their ends are told."""

import errno
import os
import signal
import sys
import threading

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


def test_a_full_disk_is_one_line(capfd):
    def write(number):
        raise OSError(errno.ENOSPC, "No space left on device", "scratch/trace.json")

    assert ended(write) == 1
    line = capfd.readouterr().err
    assert line.startswith("error: cannot write scratch/trace.json: No space left on device; make")
    assert line.count("\n") == 1


def test_a_process_that_is_killed_is_named():
    assert (
        ended(lambda number: os.kill(os.getpid(), signal.SIGKILL))
        == "error: process 1 of 2 was killed by signal 9"
    )


def sleeper(number, *, apart):
    """A process that is left behind, in a session of its own where it is `apart`."""
    child = os.fork()
    if child == 0:
        if apart:
            os.setsid()
        signal.pause()
    return child


@pytest.mark.parametrize("apart", [False, True])
def test_what_a_process_leaves_behind_ends_with_it(apart):
    (left,) = processes.each(1, lambda number: sleeper(number, apart=apart))
    with pytest.raises(ProcessLookupError):
        os.kill(left, 0)


def test_a_process_that_ends_without_a_word_is_told_although_its_child_lives_on():
    def left_alone(number):
        sleeper(number, apart=True)
        os._exit(0)

    said = "error: process 1 of 2 ended with exit code 0 and without a result"
    assert ended(left_alone) == said


def test_a_process_does_not_wait_for_its_threads():
    def with_a_thread(number):
        threading.Thread(target=threading.Event().wait).start()
        return number

    assert list(processes.each(2, with_a_thread)) == [1, 2]

    def refused(number):
        with_a_thread(number)
        sys.exit("error: no")

    assert ended(refused) == 1


def test_an_interrupted_process_says_one_line(capfd):
    def interrupted(_number):
        raise KeyboardInterrupt

    assert ended(interrupted) == 1
    assert capfd.readouterr().err == "error: interrupted\n"


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


def signal_of_end(handle):
    """Whether the process behind a file descriptor ends within a minute."""
    import select

    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(60_000))
