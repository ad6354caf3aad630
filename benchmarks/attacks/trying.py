"""A hostile input is tried by a process of its own, which must not hang, crash, write elsewhere or
leave processes behind."""

import contextlib
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stepscope.machine import process

BYTES = 4 * 2**30  # of addresses
GRACE = 5  # seconds after which a process that is left is an orphan
LONGEST_LINE = 1000  # characters
MOST_SHOWN = 400
# What is no complaint of ours: what Snakemake says of its profile, how to measure again.
BANNERS = ("Using workflow specific profile", "Config file ", "To measure exactly these again")


@dataclass(kw_only=True)
class Attempt:
    """An input, and what is done with it.

    how: what is spoilt. run: the program, called in the folder of the input. wrong: names a number
    of what it made that nothing can have, empty where there is none. most_lines: of a refusal.
    codes: with which it ends that has done what it is for. stops: whether a refusal may end it.
    speaks: how its own lines begin, where a model of one's own speaks, too.
    """

    how: str
    run: Callable[[], object]
    wrong: Callable[[], str] = str
    most_lines: int = 1
    seconds: float = 30
    codes: tuple[int, ...] = (0,)
    stops: bool = True
    speaks: str = ""


def tried(attempt: Attempt, work: Path) -> tuple[str, str]:
    """(verdict, what was said)."""
    elsewhere = _files(work.parent, work)
    others = process.children()
    log = work.parent / "log"
    log.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _run(attempt, work, log)
    ended = _has_ended(child, attempt.seconds)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    left = _left(others)
    said = log.read_text(errors="replace")
    last = (said.strip().splitlines() or [""])[-1][:200]
    log.unlink()
    if not ended:
        return "hang", last
    if left:
        return "orphan", f"{left} processes"
    if os.WIFSIGNALED(status):
        return "memory", f"ended by signal {os.WTERMSIG(status)}; {last}"
    if "Traceback" in said:
        return "traceback", last
    if changed := _files(work.parent, work) ^ elsewhere:
        return "outside", str(min(changed)[0])
    return _verdict(attempt, said, os.waitstatus_to_exitcode(status))


def _verdict(attempt: Attempt, said: str, code: int) -> tuple[str, str]:
    """The same of a program that has come to its end."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(BANNERS)]
    lines = [line for line in lines if line.startswith(attempt.speaks)]
    last = lines[-1][:200] if lines else ""
    is_done = code in attempt.codes
    if is_done:
        lines = [line for line in lines if line.startswith(("error: ", "WARNING: "))]
    if not is_done or any("not used: " in line for line in lines):
        unclear = [line for line in lines if len(line) > LONGEST_LINE or not line.isprintable()]
        if unclear or not 1 <= len(lines) <= attempt.most_lines:
            return "traceback", f"{len(lines)} lines, the last: {last}"
        if not (is_done or attempt.stops):
            return "wrong", f"nothing is made: {lines[0][:MOST_SHOWN]}"
        return "refused", lines[0][:MOST_SHOWN]
    if lines:
        return "warned", lines[0][:200]
    impossible = attempt.wrong()
    return ("wrong", impossible) if impossible else ("harmless", "")


def _run(attempt: Attempt, work: Path, log: Path) -> None:
    """Do what is to be done in this process, which ends with that."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    output = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stderr = output
    # Beyond what whoever tries it has mapped: else the stack cannot grow.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    code = 0
    try:
        os.chdir(work)
        attempt.run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code)
    except BaseException:
        code = 1
        print(traceback.format_exc())
    sys.stdout.flush()
    os._exit(code)


def _has_ended(child: int, seconds: float) -> bool:
    """Whether a process ends within a time, less what it waits for a processor that others have."""
    handle, began = os.pidfd_open(child), time.monotonic()
    ended, left = False, seconds
    while not ended and left > 0:
        ended = bool(select.select([handle], [], [], left)[0])
        waited = 0.0
        with contextlib.suppress(OSError, IndexError):  # not every kernel tells
            waited = int(Path(f"/proc/{child}/schedstat").read_text().split()[1]) / 1e9
        left = began + seconds + waited - time.monotonic()
    os.close(handle)
    return ended


def _left(others: set[int]) -> int:
    """How many processes a program has left behind, which are ended."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        _reap(process.children() - others)
        if not process.children() - others:
            return 0
        time.sleep(0.05)
    left = process.children() - others
    process.end_children(others)
    return len(left)


def _reap(numbers: set[int]) -> None:
    for number in numbers:
        try:
            os.waitpid(number, os.WNOHANG)
        except ChildProcessError:
            continue


def _files(folder: Path, without: Path) -> set[tuple[str, int, int]]:
    """(path, time, bytes) of the files of a folder, but those of one in it."""
    found = set()
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if Path(place, name) != without]
        for name in names:
            state = os.lstat(Path(place, name))
            if name != "log":
                found.add((os.path.join(place, name), state.st_mtime_ns, state.st_size))
    return found
