"""Only one measurement at a time on a GPU, or on the CPU: a file lock per device, released however its holder ends."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

HELD = "STEPSCOPE_HELD"  # environment variable: the device that this program's parent holds for it


def lock_folder() -> Path:
    """Folder of the locks, the same for all users of the machine; STEPSCOPE_LOCKS names another."""
    return Path(os.environ.get("STEPSCOPE_LOCKS", "/tmp/stepscope-locks"))


@contextlib.contextmanager
def hold(device_name: str) -> Iterator[None]:
    """Hold the lock of a device (a GPU's UUID, or "cpu"); wait for it, and say so, while another process has it.

    A program that the holder starts with HELD=device_name in its environment measures under the holder's lock.
    """
    if os.environ.get(HELD) == device_name:
        yield
        return
    folder = lock_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it, with these rights
        folder.chmod(0o1777)
    path = folder / f"{device_name}.lock"
    try:  # without O_CREAT, which Linux forbids on another user's file in a sticky folder (fs.protected_regular)
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):  # made by another user just now
            os.fchmod(descriptor, 0o666)
    with os.fdopen(descriptor, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "unknown"
            print(f"waiting for {device_name}: process {holder} measures on it", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
            print(f"got {device_name}", file=sys.stderr, flush=True)
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
