"""One limit of time and memory for reading a file that may be anybody's.

The work is done by a child process whose processor time and address space are limited, so that a
file that was made to hang or to fill the memory ends with one line, whichever library it hangs in.
Both limits grow with the file: an honest one needs less (seen: 30 s for a trace of 400 MB;
benchmarks/snapshot_scale.py: 90 s for 1 GB).
"""

import contextlib
import gzip
import multiprocessing
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from stepscope.machine import process

from .text import reason

LEAST_SECONDS = 10.0
SECONDS_A_MB = 0.3
LEAST_GB = 2.0
GB_A_MB = 0.016
_PACKED = 20  # a packed file is counted as so many times its size
# times the packed size: recordings pack to about a tenth, files that were made to harm to 0.1 %
_MOST_UNPACKED = 100
_LEAST_UNPACKED = 64 << 20  # bytes
# times the processor's seconds may pass by the clock, on a machine that is busy with other things
_WAITS = 20
_MB = 1e6
_GZIP = b"\x1f\x8b"
_GB = 1e9

Result = TypeVar("Result")


class LimitError(Exception):
    """A limit was reached, or the work failed; the message is one line for the user."""


@dataclass(frozen=True)
class Limits:
    """Seconds of processor time, and gigabytes of memory beside what the program itself takes."""

    seconds: float
    gigabytes: float


def limits_for(
    paths: list[Path], seconds: float | None = None, gigabytes: float | None = None
) -> Limits:
    """The limits for reading these files together, unless they are given."""
    size = (
        sum(path.stat().st_size * (_PACKED if path.suffix == ".gz" else 1) for path in paths) / _MB
    )
    return Limits(
        LEAST_SECONDS + SECONDS_A_MB * size if seconds is None else seconds,
        LEAST_GB + GB_A_MB * size if gigabytes is None else gigabytes,
    )


def complaint(path: Path, what: str) -> str:
    """What is wrong with a path where the file of `what` should be; empty of a file."""
    if path.is_file():
        return ""
    if not path.exists():
        return f"{path}: there is no such file; give {what}"
    kind = "a folder" if path.is_dir() else "a pipe or a device"
    return f"{path}: this is {kind}; give {what}"


def unpacked(path: Path) -> bytes:
    """What is in a file, unpacked if it is packed. Raises ValueError where that is more than
    recordings have."""
    raw = path.read_bytes()
    if raw[:2] != _GZIP:
        return raw
    limit = max(_LEAST_UNPACKED, _MOST_UNPACKED * len(raw))
    with gzip.open(path) as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ValueError(
            f"unpacked it is larger than {limit >> 20} MB; if you trust it, gunzip it first"
        )
    return raw


@contextlib.contextmanager
def reading(path: Path, what: str, failure: type[Exception], advice: str) -> Iterator[None]:
    """Within it a file that is missing, or not what it should be, raises `failure` with one line.

    what: the kind of file. advice: how to get one.
    """
    if wrong := complaint(path, what):
        raise failure(wrong)
    try:
        yield
    except (failure, MemoryError):
        raise
    except OSError as error:
        why = error.strerror or "damaged"
        raise failure(f"{path}: cannot be read ({why}); {advice}") from None
    except Exception as error:  # whatever a damaged file leads to
        why = f"this is not {what}, or it is cut off or damaged ({reason(error)})"
        raise failure(f"{path}: {why}; {advice}") from None


def within(
    limits: Limits, named: str, work: Callable[[], Result], passed_on: tuple[type[Exception], ...]
) -> Result:
    """What `work` returns, from a child process; exceptions of the types `passed_on` are raised
    here again.

    Raises LimitError, whose one line begins with `named`, for a limit that was reached and for
    every other exception.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=_work,
        args=(limits, named, work, sender, passed_on),
        daemon=True,
    )
    child.start()
    sender.close()
    try:
        if not receiver.poll(_WAITS * limits.seconds):
            raise LimitError(_too_long(named, limits))
        made = receiver.recv()
    except EOFError:
        child.join()
        over = child.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        why = f"{named}: reading it ended with code {child.exitcode}"
        raise LimitError(_too_long(named, limits) if over else why) from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if isinstance(made, Exception):
        raise made
    return made


def _too_long(named: str, limits: Limits) -> str:
    return (
        f"{named}: reading it takes more than {limits.seconds:.3g} s; "
        "record less, or give a larger --most-seconds if you trust the file"
    )


def _work(
    limits: Limits,
    named: str,
    work: Callable,
    sender,
    passed_on: tuple[type[Exception], ...],
) -> None:
    """In the child: limit this process, work, and send what came of it."""
    process.lower(resource.RLIMIT_CPU, max(int(limits.seconds), 1))
    with contextlib.suppress(OSError):  # no Linux: it cannot be limited in a way that holds
        process.limit_address_space(limits.gigabytes * _GB)
    try:
        made = work()
    except passed_on as error:
        made = error
    except MemoryError:
        made = LimitError(
            f"{named}: reading it takes more than {limits.gigabytes:.3g} GB of memory; "
            "record less, or give a larger --most-gigabytes if you trust the file"
        )
    except Exception as error:  # whatever a damaged file leads to is one line
        why = f"it cannot be analysed ({reason(error)})"
        made = LimitError(f"{named}: {why}; record or export it again")
    sender.send(made)
    sender.close()
