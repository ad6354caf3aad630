"""Fresh processes, one after another: a cell's numbers are of several, since one process does not
stand for the next.

They are forked from the program once it has imported torch and before it has touched the device:
each makes a CUDA context, loads kernels and allocates memory of its own, without the seconds that
the import takes. Whatever one has started ends with it: threads, and processes that its code has
left behind. On an H200 their medians spread as those of processes that import torch themselves
(docs/measuring.md).
"""

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

from stepscope import files
from stepscope.machine import process

Result = TypeVar("Result")


def each(count: int, measure: Callable[[int], Result]) -> Iterator[Result]:
    """What `measure`, called with the process's number from 1, returns in each of so many
    processes.

    The next one starts when the one before has ended. Ends the program where one fails, with its
    exit code; what it said stands on the terminal. What is returned has to be picklable.
    """
    for number in range(1, count + 1):
        yield _forked(partial(measure, number), f"process {number} of {count}")


def forked(
    run: Callable[..., None], *given: object, name: str | None = None
) -> tuple[BaseProcess, Connection]:
    """A child that runs `run(*given, pipe)`, and where to read what it sends by that pipe, which
    ends with the child."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=run, args=(*given, theirs), name=name)
    sys.stdout.flush()
    child.start()
    theirs.close()
    return child, ours


def _forked(measure: Callable[[], Result], name: str) -> Result:
    process.adopt_orphans()
    others = process.children()
    child, ours = forked(_run, measure)
    # Not by its sentinel, nor by the pipe's end: what it leaves behind may hold both open.
    ending = os.pidfd_open(child.pid or 0)
    wait([ours, ending])
    os.close(ending)
    found = []
    with contextlib.suppress(EOFError):
        if ours.poll():
            found.append(ours.recv())
    child.join()
    process.end_children(others)
    if not found:  # it ended without a word
        code = child.exitcode or 0
        if code < 0:
            sys.exit(f"error: {name} was killed by signal {-code}")
        sys.exit(code or f"error: {name} ended without a result")
    return found[0]


def _run(measure: Callable[[], Result], theirs: Connection) -> None:
    process.die_with_parent()  # the kernel forgets the wish at a fork
    error: BaseException | None = None
    try:
        theirs.send(measure())
    except OSError as raised:  # a full disk is no defect of the program
        error = SystemExit(f"error: {files.complaint(raised, None)}")
    except BaseException as raised:
        error = raised
    process.end_at_once(error)
