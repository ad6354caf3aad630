"""One measurement at a time on a device, and which of several GPUs a job gets."""

import fcntl
import os
import re
import stat

import pytest
from stepscope.machine.gpus import Gpu, alike
from stepscope.machine.locks import HELD, hold, lock_folder, take_free_gpu, unlockable

A, B, C = (Gpu("A100", f"GPU-{letter}", 80, "1") for letter in "abc")
SMALLER, OTHER = Gpu("A100", "GPU-d", 40, "1"), Gpu("T4", "GPU-e", 16, "1")
HOLD = """
from pathlib import Path
from stepscope.machine.locks import hold
done = Path(sys.argv[1])
with hold("GPU-1"):
    print("measuring", "after" if done.exists() else "first", flush=True)
    sys.stdin.read()
    done.touch()
"""


@pytest.fixture
def start(start_python, tmp_path):
    """Start a process that measures on GPU-1 until its stdin is closed."""
    return lambda **held: start_python(HOLD, str(tmp_path / "done"), env=os.environ | held)


@pytest.fixture
def first(start):
    """A process that measures on GPU-1."""
    process = start()
    assert process.stdout.readline() == "measuring first\n"
    return process


def holder(name):
    """Who holds a lock: a process's number."""
    return (lock_folder() / f"{name}.lock").read_text()


def test_the_second_waits_says_for_whom_and_goes_on_when_the_first_ends(start, first):
    second = start()
    assert second.stderr.readline() == f"waiting for GPU-1: process {first.pid} measures on it\n"
    first.stdin.close()
    assert second.stdout.readline() == "measuring after\n"
    assert second.stderr.readline() == "got GPU-1\n"
    assert holder("GPU-1") == str(second.pid)


def test_the_lock_of_a_killed_holder_is_free(start, first):
    second = start()
    assert "waiting" in second.stderr.readline()
    first.kill()
    assert second.stdout.readline() == "measuring first\n"


def test_another_device_is_another_lock(first, capsys):
    with hold("GPU-2"):
        assert holder("GPU-2") == str(os.getpid())
    assert capsys.readouterr().err == ""


def test_an_old_holders_longer_number_is_gone():
    lock_folder().joinpath("cpu.lock").write_text("9" * 50)
    with hold("cpu"):
        assert holder("cpu") == str(os.getpid())


def test_a_lock_is_free_after_its_block_and_its_file_is_for_all_users(capsys):
    for _ in range(2):
        with hold("cpu"):
            pass
    assert capsys.readouterr().err == ""
    assert stat.S_IMODE((lock_folder() / "cpu.lock").stat().st_mode) == 0o666
    assert stat.S_IMODE(lock_folder().stat().st_mode) == 0o1777


def test_a_lock_that_another_user_made_can_be_taken(monkeypatch):
    """The kernel forbids O_CREAT on another user's file in a sticky folder (sysctl
    fs.protected_regular)."""
    with hold("cpu"):
        pass
    system_open = os.open

    def protected(path, flags, *mode, **options):
        if flags & os.O_CREAT and str(path).endswith(".lock") and os.path.exists(path):
            raise PermissionError(13, "Permission denied", str(path))
        return system_open(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", protected)
    with hold("cpu"):
        assert holder("cpu") == str(os.getpid())


@pytest.mark.parametrize("take", [lambda: hold("cpu").__enter__(), lambda: take_free_gpu(["cpu"])])
def test_a_lock_that_another_user_shares_with_nobody_is_one_line(take, monkeypatch):
    def denied(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", denied)
    said = rf"error: cannot lock {lock_folder()}/cpu\.\w+: Permission denied; set STEPSCOPE_LOCKS "
    with pytest.raises(SystemExit, match=said):
        take()
    assert re.match(said, unlockable())


def test_the_place_for_locks_is_there_for_all_users_before_any_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path / "new/locks"))
    assert unlockable() is None
    assert stat.S_IMODE((tmp_path / "new/locks").stat().st_mode) == 0o1777


@pytest.mark.parametrize("given, expected", [("/x/y", "/x/y"), (None, "/tmp/stepscope-locks")])
def test_the_folder_of_the_locks(given, expected, monkeypatch):
    monkeypatch.delenv("STEPSCOPE_LOCKS")
    if given:
        monkeypatch.setenv("STEPSCOPE_LOCKS", given)
    assert str(lock_folder()) == expected


def test_a_program_that_the_holder_starts_measures_under_its_lock(start, first):
    other = start(**{HELD: "GPU-2"})
    assert other.stderr.readline().startswith("waiting for GPU-1")
    helper = start(**{HELD: "GPU-1"})
    assert helper.stdout.readline() == "measuring first\n"


def test_only_gpus_of_the_first_ones_type_are_taken():
    assert alike([A, SMALLER, B, OTHER, C]) == ["GPU-a", "GPU-b", "GPU-c"]
    assert alike([OTHER, A]) == ["GPU-e"]
    assert alike([]) == []


def test_each_taker_gets_another_one_and_none_that_is_measured_on_by_hand():
    with open(lock_folder() / "GPU-a.lock", "w") as by_hand:
        fcntl.flock(by_hand, fcntl.LOCK_EX)
        assert take_free_gpu(["GPU-a", "GPU-b", "GPU-c"]) == "GPU-b"
        assert take_free_gpu(["GPU-a", "GPU-b", "GPU-c"]) == "GPU-c"
    assert take_free_gpu(["GPU-a", "GPU-b", "GPU-c"]) == "GPU-a"


def test_a_place_lasts_as_long_as_its_taker(start_python):
    take = (
        "from stepscope.machine import locks\nprint(locks.take_free_gpu(['GPU-a']), flush=True)\n"
    )
    first = start_python(take + "input()")
    assert first.stdout.readline() == "GPU-a\n"
    second = start_python(take)
    assert "waiting for a free GPU: all 1 are measured on" in second.stderr.readline()
    first.communicate("\n", timeout=60)
    assert second.communicate(timeout=60) == ("GPU-a\n", "got GPU-a\n")
