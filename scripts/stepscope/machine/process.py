"""The measuring process itself: it dies with its parent, keeps its time limit, and sets its own
thread count."""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import told
from .locks import HELD
from .memory import available_memory

STARTER = "STEPSCOPE_STARTER"  # environment variable: the process that started this one
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
MOST_SHOWN, LAST_SHOWN = 2**20, 2**14  # bytes of a program's output: its beginning, its end
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel to kill this process when its parent ends, so that a killed run leaves no
    orphan (prctl(2)).

    parent: the process that started this one, which may have ended before the call; without it
    today's parent.
    """
    parent = parent or os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if not _descends_from(parent):
        os.kill(os.getpid(), signal.SIGKILL)


def _descends_from(ancestor: int) -> bool:
    """Whether this process is below another one, be it with a wrapper between them; also where that
    cannot be told. Who is left behind is given another parent (proc(5))."""
    number: int | None = os.getppid()
    while number and number != ancestor:
        number = _parent_of(number)
    return number in (ancestor, None)


def _parent_of(number: int) -> int | None:
    """The process's parent (proc(5)); None if it has ended, or that cannot be told."""
    state = told(Path(f"/proc/{number}/stat"))
    return int(state.rpartition(")")[2].split()[1]) if state else None


def die_with_starter() -> None:
    """The same for a program whose starter has said which process it is; called before imports that
    take seconds. One that a person starts may outlive its terminal."""
    # not that of the programs which this one starts
    if starter := os.environ.pop(STARTER, None):
        die_with_parent(int(starter))


def adopt_orphans() -> None:
    """Become the parent of those that this process's children leave behind, so that they can be
    ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> set[int]:
    """The processes whose parent this one is."""
    own = os.getpid()
    numbers = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return {number for number in numbers if _parent_of(number) == own}


def end_children(kept: set[int]) -> None:
    """Kill the children of this process but these, then those that they leave behind, and so
    on."""
    while left := children() - kept:
        for number in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(number, signal.SIGKILL)
                os.waitpid(number, 0)


def has_other_threads() -> bool:
    """Whether there are threads that Python waits for at its end."""
    return sum(not one.daemon for one in threading.enumerate()) > 1


def end_at_once(error: BaseException | None) -> None:
    """End this process as Python does with an error, or without one, but wait for no thread."""
    code = 1
    if error is None:
        code = 0
    elif isinstance(error, KeyboardInterrupt):
        print("error: interrupted", file=sys.stderr)
    elif not isinstance(error, SystemExit):
        traceback.print_exception(error)
    elif error.code is None or isinstance(error.code, int):
        code = error.code or 0
    else:
        print(error.code, file=sys.stderr)
    flush()
    os._exit(code)


def flush() -> None:
    """Write out what was printed; without room for it, not."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()


def run_logged(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program that says what it says where this one does; its exit code. What it leaves
    behind, be it because it was killed, ends, and a log that got too long is shortened."""
    adopt_orphans()
    others = children()
    code = subprocess.run(words, env=environment).returncode
    end_children(others)
    _shorten(sys.stdout.fileno())
    return code


def _shorten(log: int) -> None:
    """Keep of an open file, if it is a large one, the beginning and the end."""
    size = os.fstat(log).st_size
    if size > MOST_SHOWN + LAST_SHOWN:
        with open(f"/proc/self/fd/{log}", "r+b") as file:
            file.seek(-LAST_SHOWN, os.SEEK_END)
            end = file.read()
            file.truncate(MOST_SHOWN)
            file.seek(MOST_SHOWN)
            file.write(b"\n[%d bytes are left out here]\n" % (size - MOST_SHOWN - len(end)) + end)
        os.lseek(log, 0, os.SEEK_END)


def set_environment(threads: int) -> None:
    """What torch reads when it is imported: threads for OpenMP and MKL, GPUs in NVML's order, and
    that its profiler need not say when it starts and stops."""
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def limit_time(minutes: float) -> None:
    """End this process with exit code 1 and one line after so many minutes.

    A thread does it, not a signal: Python runs signal handlers only between two bytecodes, and a
    call into CUDA that hangs never gets there.
    """

    def give_up() -> None:
        why = f"error: gave up after the time limit of {minutes:g} minutes (config key time_limit)"
        print(why, file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(minutes * 60, give_up)
    timer.daemon = True
    timer.start()


def leave() -> None:
    """End this process with exit code 0 at once, since its results are in place.

    To take torch down lasts long enough for a kill, and Snakemake would remove what a killed
    program has finished. A program that another one measures through ends as usual: profilers write
    their files then.
    """
    if HELD in os.environ:
        return
    flush()  # without room for the log's end the results are whole all the same
    os._exit(0)


def keep_memory() -> None:
    """Have the C library keep what is freed, as far as it can (mallopt(3)).

    Else what ran before decides whether a step finds its memory or gets it from the kernel, page by
    page: naive attention between two other implementations took 1.7 times as long in every second
    round. For the CPU only.
    """
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(_M_MMAP_THRESHOLD, 32 * 2**20)  # the most that it takes
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def limit_address_space(more: float | None = None) -> None:
    """Let an allocation fail that takes more than so many bytes beside what this process has, by
    default nine tenths of the available memory, so that the kernel need not kill the process.

    A lower limit that is already set stays. For the CPU only: CUDA maps far more addresses than it
    uses. Raises OSError without Linux.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = 0.9 * available_memory() if more is None else more
    lower(resource.RLIMIT_AS, pages * resource.getpagesize() + int(most))


def lower(which: int, value: int) -> None:
    """Set a soft limit of this process, not above what is set already."""
    soft, hard = resource.getrlimit(which)
    known = [each for each in (value, soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(which, (min(known), hard))
