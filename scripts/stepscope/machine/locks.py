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
_OF_RUN: list[TextIO] = []  # held while they are open
AGAIN = 0.2  # seconds between two looks for a free GPU


def lock_folder() -> Path:
    """Folder of the locks, the same for all users of the machine; STEPSCOPE_LOCKS names another."""
    return Path(os.environ.get("STEPSCOPE_LOCKS", "/tmp/stepscope-locks"))


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
    folder = lock_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it, with these rights
        folder.chmod(0o1777)
    with os.fdopen(_open(folder / f"{device_name}.lock"), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "unknown"
            print(
                f"waiting for {device_name}: process {holder} measures on it",
                file=sys.stderr,
                flush=True,
            )
            fcntl.flock(file, fcntl.LOCK_EX)
            print(f"got {device_name}", file=sys.stderr, flush=True)
        _sign(file)
        yield


def take_free_gpu(uuids: list[str]) -> str:
    """The UUID of a GPU that is free now; waits for one, and says so on stderr.

    This process keeps its place on the GPU, and passes it on to the program that it becomes
    (execve(2)). The folder of the locks has to be there: stepscope.config.run.unlockable sees to
    it.
    """
    folder = lock_folder()
    said = False
    while True:
        for uuid in uuids:
            place = _lock(folder / f"{uuid}.place")
            if place is None:
                continue
            if _is_free(folder / f"{uuid}.lock"):
                os.set_inheritable(place, True)
                if said:
                    print(f"got {uuid}", file=sys.stderr, flush=True)
                return uuid
            os.close(place)  # a program that was started by hand measures on it
        if not said:
            print(
                f"waiting for a free GPU: all {len(uuids)} are measured on",
                file=sys.stderr,
                flush=True,
            )
            said = True
        time.sleep(AGAIN)


def _is_free(path: Path) -> bool:
    """Whether nobody holds the lock now."""
    descriptor = _lock(path)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock of a file; None if another process has it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _open(path: Path) -> int:
    """A descriptor of a lock's file, which all users of the machine share."""
    # without O_CREAT, which Linux forbids on another user's file in a sticky folder
    # (fs.protected_regular)
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        usual = os.umask(0)  # for all users from its first moment on
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        finally:
            os.umask(usual)


def lock_run(path: Path = Path(".snakemake/stepscope.lock")) -> str | None:
    """Keep other runs out of this folder until this process ends, however it does, SIGKILL
    included; returns None, or one line that says who is at work in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "a+")  # noqa: SIM115 - held until the process ends
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        return (
            f"another run (process {file.read() or 'unknown'}) is at work in {Path.cwd()}; wait"
            " until it ends, or end it"
        )
    except OSError as error:
        why = f"note: {Path.cwd()} cannot be locked ({error.strerror})"
        print(f"{why}; start one run at a time in it", file=sys.stderr)
    _sign(file)
    _OF_RUN.append(file)
    return None


def _sign(file: TextIO) -> None:
    """Write into a lock's file who has it."""
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
