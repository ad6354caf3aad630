"""Only one measurement at a time on a GPU, or on the CPU, and one run at a time in a folder: file
locks, released however their holder ends.

A job on one of several GPUs also holds a *place* on its GPU, a second lock, from the choice to its
end: the measuring program takes the GPU's lock only later, and by then another job must not have
chosen the same GPU.
"""

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

HELD = "STEPSCOPE_HELD"  # environment variable: the device that this program's parent holds for it
_KEPT: list[TextIO] = []  # of this process until its end: held while they are open


def lock_folder() -> Path:
    """Folder of the locks, the same for all users of the machine; STEPSCOPE_LOCKS names another."""
    return Path(os.environ.get("STEPSCOPE_LOCKS", "/tmp/stepscope-locks"))


def unlockable() -> str | None:
    """None if programs can lock their GPU or CPU on this machine; else one line that says why
    not."""
    try:
        _open("cpu.lock").close()
    except SystemExit as error:
        return str(error)
    return None


@contextlib.contextmanager
def hold(device_name: str) -> Iterator[None]:
    """Hold the lock of a device (a GPU's UUID, or "cpu"); wait for it, and say so, while another
    process has it.

    A program that the holder starts with HELD=device_name in its environment measures under the
    holder's lock.
    """
    if os.environ.get(HELD) == device_name:
        yield
        return
    with _open(f"{device_name}.lock") as file:
        if not _takes(file):
            _say(f"waiting for {device_name}: process {_holder(file)} measures on it")
            fcntl.flock(file, fcntl.LOCK_EX)
            _say(f"got {device_name}")
        _sign(file)
        yield


def take_free_gpu(uuids: list[str]) -> str:
    """The UUID of a GPU that is free now; waits for one, and says so on stderr.

    This process keeps its place on the GPU until its end.
    """
    waits = False
    while True:
        for uuid in uuids:
            place = _open(f"{uuid}.place")
            if _takes(place) and _is_free(f"{uuid}.lock"):
                _KEPT.append(place)
                if waits:
                    _say(f"got {uuid}")
                return uuid
            place.close()  # another job has it, or a program that was started by hand the GPU
        if not waits:
            _say(f"waiting for a free GPU: all {len(uuids)} are measured on")
            waits = True
        time.sleep(0.2)


def _is_free(name: str) -> bool:
    """Whether nobody holds the lock now."""
    with _open(name) as file:
        return _takes(file)


def _takes(file: TextIO) -> bool:
    """Whether this process could take the lock of a file; it has it until that is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(name: str) -> TextIO:
    """A lock's file, of its name. Ends the program with one line where it cannot be had."""
    folder = lock_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # another user made it, with these rights
            folder.chmod(0o1777)
        return _of_all(folder / name)
    except OSError as error:
        sys.exit(
            f"error: cannot lock {folder / name}: {error.strerror}; set STEPSCOPE_LOCKS to a folder"
            " that all who measure here may write to"
        )


def _of_all(path: Path) -> TextIO:
    """A file that may be anybody's, for all users of the machine to write to."""
    # without O_CREAT, which Linux forbids on another user's file in a sticky folder
    # (fs.protected_regular)
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.fchmod(descriptor, 0o666)  # whatever the umask
    return os.fdopen(descriptor, "r+")


def lock_run(path: Path = Path(".snakemake/stepscope.lock")) -> str | None:
    """Keep other runs out of this folder until this process ends, however it does, SIGKILL
    included; returns None, or one line that says who is at work in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _of_all(path)
    try:
        if not _takes(file):
            return (
                f"another run (process {_holder(file)}) is at work in {Path.cwd()}; wait until it"
                " ends, or end it"
            )
    except OSError as error:
        _say(
            f"note: {Path.cwd()} cannot be locked ({error.strerror}); start one run at a time in it"
        )
    _sign(file)
    _KEPT.append(file)
    return None


def _sign(file: TextIO) -> None:
    """Write into a lock's file who has it."""
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()


def _holder(file: TextIO) -> str:
    """Who has a lock, by its file."""
    file.seek(0)
    return file.read().strip() or "unknown"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
