"""One of several GPUs for each job: which of them nobody uses. Standard library only.

A job holds a *place* on a GPU, a file lock beside the GPU's own lock, from the choice to its end: the measuring program
takes the GPU's lock only later, and by then another job must not have chosen the same GPU.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

from stepscope.measure.device_lock import lock_folder
from stepscope.plan.machine import Gpu

AGAIN = 0.2  # seconds between two looks for a free GPU


def alike(gpus: list[Gpu]) -> list[str]:
    """UUIDs of the GPUs of the first one's type (name and memory), in their order."""
    return [gpu.uuid for gpu in gpus if (gpu.name, gpu.memory_mib) == (gpus[0].name, gpus[0].memory_mib)]


def take(uuids: list[str]) -> str:
    """The UUID of a GPU that is free now; waits for one, and says so on stderr.

    This process keeps its place on the GPU, and passes it on to the program that it becomes (execve(2)). The folder of
    the locks has to be there: stepscope.plan.run.unlockable sees to it.
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
            print(f"waiting for a free GPU: all {len(uuids)} are measured on", file=sys.stderr, flush=True)
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
    """A descriptor that holds the lock of a file that all users of the machine share; None if another has it."""
    try:  # without O_CREAT, which Linux forbids on another user's file in a sticky folder (fs.protected_regular)
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        usual = os.umask(0)  # for all users from its first moment on
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.umask(usual)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
