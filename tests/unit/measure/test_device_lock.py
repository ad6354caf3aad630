"""One measurement at a time on a device."""

import os
import stat

import pytest
from stepscope.measure.device_lock import HELD, hold, lock_folder

HOLD = """
from pathlib import Path
from stepscope.measure.device_lock import hold
done = Path(sys.argv[1])
with hold("GPU-1"):
    print("measuring", "after" if done.exists() else "first", flush=True)
    sys.stdin.read()
    done.touch()
"""


@pytest.fixture
def start(start_python, tmp_path):
    """Start a process that measures on GPU-1 until its stdin is closed."""
    return lambda: start_python(HOLD, str(tmp_path / "done"))


def test_the_second_waits_says_for_whom_and_goes_on_when_the_first_ends(start):
    first = start()
    assert first.stdout.readline() == "measuring first\n"
    second = start()
    assert second.stderr.readline() == f"waiting for GPU-1: process {first.pid} measures on it\n"
    first.stdin.close()
    assert second.stdout.readline() == "measuring after\n"
    assert second.stderr.readline() == "got GPU-1\n"
    assert (lock_folder() / "GPU-1.lock").read_text() == str(second.pid)


def test_the_lock_of_a_killed_holder_is_free(start):
    first = start()
    assert first.stdout.readline() == "measuring first\n"
    second = start()
    assert "waiting" in second.stderr.readline()
    first.kill()
    assert second.stdout.readline() == "measuring first\n"


def test_another_device_is_another_lock(start, capsys):
    first = start()
    assert first.stdout.readline() == "measuring first\n"
    with hold("GPU-2"):
        assert (lock_folder() / "GPU-2.lock").read_text() == str(os.getpid())
    assert capsys.readouterr().err == ""


def test_an_old_holders_longer_number_is_gone():
    lock_folder().joinpath("cpu.lock").write_text("9" * 50)
    with hold("cpu"):
        assert (lock_folder() / "cpu.lock").read_text() == str(os.getpid())


def test_a_lock_is_free_after_its_block_and_its_file_is_for_all_users(capsys):
    for _ in range(2):
        with hold("cpu"):
            pass
    assert capsys.readouterr().err == ""
    assert stat.S_IMODE((lock_folder() / "cpu.lock").stat().st_mode) == 0o666
    assert stat.S_IMODE(lock_folder().stat().st_mode) == 0o1777


def test_a_lock_that_another_user_made_can_be_taken(monkeypatch):
    """The kernel forbids O_CREAT on another user's file in a sticky folder (sysctl fs.protected_regular)."""
    with hold("cpu"):
        pass
    system_open = os.open

    def protected(path, flags, *mode, **options):
        if flags & os.O_CREAT and str(path).endswith(".lock") and os.path.exists(path):
            raise PermissionError(13, "Permission denied", str(path))
        return system_open(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", protected)
    with hold("cpu"):
        assert (lock_folder() / "cpu.lock").read_text() == str(os.getpid())


@pytest.mark.parametrize("given, expected", [("/x/y", "/x/y"), (None, "/tmp/stepscope-locks")])
def test_the_folder_of_the_locks(given, expected, monkeypatch):
    monkeypatch.delenv("STEPSCOPE_LOCKS")
    if given:
        monkeypatch.setenv("STEPSCOPE_LOCKS", given)
    assert str(lock_folder()) == expected


def test_a_program_that_the_holder_starts_measures_under_its_lock(start, start_python):
    first = start()
    assert first.stdout.readline() == "measuring first\n"
    other = start_python(HOLD, "-", env=os.environ | {HELD: "GPU-2"})
    assert other.stderr.readline().startswith("waiting for GPU-1")
    helper = start_python(HOLD, "-", env=os.environ | {HELD: "GPU-1"})
    assert helper.stdout.readline() == "measuring first\n"
