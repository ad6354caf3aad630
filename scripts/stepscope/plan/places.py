"""File locks that a job holds on what no other job of the machine may have: a GPU, a core. Standard library only."""

import contextlib
import fcntl
import os
from pathlib import Path

from stepscope.measure.device_lock import lock_folder


def folder() -> Path:
    """The folder of the locks; made if it is not there yet, for all users of the machine."""
    path = lock_folder()
    path.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it, with these rights
        path.chmod(0o1777)
    return path


def take(path: Path) -> int | None:
    """A descriptor that holds the lock of a file that all users of the machine share; None if another has it."""
    try:  # without O_CREAT, which Linux forbids on another user's file in a sticky folder (fs.protected_regular)
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):  # made by another user just now
            os.fchmod(descriptor, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def keep(descriptor: int) -> None:
    """Pass a lock on to the program that this process becomes (execve(2))."""
    os.set_inheritable(descriptor, True)
