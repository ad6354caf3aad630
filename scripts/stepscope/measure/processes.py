"""Fresh processes, one after another: a cell's numbers are of several, since one process does not
stand for the next. Or several that work together.

They are forked from the program once it has imported torch and before it has touched the device:
each makes a CUDA context, loads kernels and allocates memory of its own, without the seconds that
the import takes. Whatever one has started ends with it: threads, and processes that its code has
left behind. On an H200 their medians spread as those of processes that import torch themselves
(docs/measuring.md).
"""

import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, BinaryIO, TypeVar

from stepscope import files
from stepscope.machine import process

Result = TypeVar("Result")
FORK = multiprocessing.get_context("fork")
GRACE = 1.0  # seconds in which others may fail of what ended the first; the cause is named


def each(count: int, measure: Callable[[int], Result]) -> Iterator[Result]:
    """What `measure`, called with the process's number from 1, returns in each of so many
    processes.

    The next one starts when the one before has ended. Ends the program where one fails, with its
    exit code; what it said stands on the terminal. What is returned has to be picklable.
    """
    for number in range(1, count + 1):
        (found,) = together({f"process {number} of {count}": partial(measure, number)})
        yield found


def together(
    runs: Mapping[str, Callable[[], Result]], seconds: float | None = None
) -> list[Result]:
    """What each run returns, by its name, in a process of its own; all run at once.

    Ends all of them where one fails, and then the program with one line, as where none ends within
    `seconds`; what a signal killed is named before those that missed it. An exception that one
    returns is raised.
    """
    process.adopt_orphans()
    others = process.children()
    # What they return comes by memory that both have: their own children may hold a pipe open.
    children: dict[BaseProcess, BinaryIO] = {}
    left: set[int] = set()
    for name, run in runs.items():
        returned = os.fdopen(os.memfd_create(name), "w+b")
        child = FORK.Process(target=_run, args=(run, returned), name=name)
        sys.stdout.flush()
        child.start()
        left.add(os.pidfd_open(child.pid or 0))  # at once: the next one's start reaps it
        children[child] = returned
    answer = partial(_answer, len(children) == 1)
    found: list = []
    try:
        while left:
            ended = wait(left, seconds)
            if not ended:
                raise SystemExit("the processes did not end in the time that they were given")
            left.difference_update(ended)
            found = [answer(*each) for each in children.items() if each[0].exitcode is not None]
            failed = [each for each in found if isinstance(each, BaseException)]
            if failed:
                time.sleep(GRACE if left else 0)
                killed = [each for each in children.items() if (each[0].exitcode or 0) < 0]
                raise answer(*killed[0]) if killed else failed[0]
    finally:
        process.end_children(others)
    return found


def _answer(is_alone: bool, child: BaseProcess, returned: BinaryIO) -> Any:
    """What a process returned that has ended; if it ended without a word, a SystemExit."""
    code = child.exitcode or 0
    returned.seek(0)
    if not code and (told := returned.read()):
        return pickle.loads(told)
    if code < 0:
        return SystemExit(f"error: {child.name} was killed by signal {-code}")
    if code and is_alone:  # it has said why
        return SystemExit(code)
    return SystemExit(f"error: {child.name} ended with exit code {code} and without a result")


def _run(run: Callable[[], object], returned: BinaryIO) -> None:
    process.die_with_parent()  # the kernel forgets the wish at a fork
    error: BaseException | None = None
    try:
        pickle.dump(run(), returned)
        returned.flush()
    except OSError as raised:  # a full disk is no defect of the program
        error = SystemExit(f"error: {files.complaint(raised, None)}")
    except BaseException as raised:
        error = raised
    process.end_at_once(error)
