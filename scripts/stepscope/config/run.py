"""What holds for one run of the workflow: it is alone in its folder, can write there, says how far
it is, and loses no cell that was measured, however it ends."""

import argparse
import contextlib
import errno
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TextIO

from stepscope.files import is_full
from stepscope.yaml_files import unreadable

# What was measured, until Snakemake has noted it as finished: it removes the outputs of a job that
# was running when a run was ended, whole as they may be.
KEPT = Path("results/.measured")
FULL = "the disk of {} is full; make room and run again, nothing is lost"
# What Snakemake itself, not a job of it, says of a path that it may not change.
DENIED = re.compile(
    r"(?:ProtectedOutputException|WorkflowError).*?(?:affected files:\s+|denied: ')([^'\n]+)",
    re.DOTALL,
)


def forget(records: Iterable[str]) -> None:
    """Remove from KEPT the cells of these records, `results/…/record.json`: Snakemake has noted
    them, or they are to be measured again."""
    for record in records:
        folder = KEPT / Path(record).parent.relative_to("results")
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # other cells are in it
            while folder != KEPT:
                folder = folder.parent
                folder.rmdir()


def measuring(words: list[str]) -> list[str]:
    """The words of a command line, where it is to measure nothing those of one that measures."""
    return ["measure=true" if word.lower() == "measure=false" else word for word in words]


class OneCause(logging.Filter):
    """For the terminal: one line that says that the disk is full, or what another user has to
    share, instead of all errors that come of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._is_said = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown as it is."""
        told = str(record.msg)
        said = full_disk(self._folder)
        if not said and os.strerror(errno.ENOSPC) in told:
            said = FULL.format(self._folder)
        if not said and (denied := DENIED.match(told)):
            said = closed(self._folder / denied[1])
        if record.levelno < logging.ERROR or not said:
            return True
        if not self._is_said:
            print(f"error: {said}", file=sys.stderr, flush=True)
        self._is_said = True
        return False


def speak_safely(is_main: bool) -> None:
    """From now on a run does not fail at what it cannot say. A full disk is one line. Without a
    reader the run ends as by SIGTERM: what runs is finished, and nothing new begins.

    Snakemake raises BrokenPipeError where it says that a job has failed, and so never notes that it
    has: it would wait for that job for ever, as where the program that reads the pipe was ended.

    is_main: whether this is not one of the processes that Snakemake starts for a job of its own.
    """
    from snakemake.logging import logger

    def unfailing(handle: Callable) -> Callable:
        def handled(record: logging.LogRecord) -> bool:
            try:
                return handle(record)
            except BrokenPipeError:
                if is_main:
                    os.kill(os.getpid(), signal.SIGTERM)
            except OSError:  # a full disk, a terminal that is gone: the log file tells it, too
                pass
            return False

        return handled

    logging.raiseExceptions = False  # else each line that the log file has no room for is pages
    for handler in logger.handlers:
        # The others write its log file, and what a plugin of the user's sends elsewhere.
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(OneCause(Path.cwd()))
            handler.handle = unfailing(handler.handle)  # type: ignore[method-assign]  # of this one


def end_from_a_thread() -> None:
    """Have SIGTERM handled as it is now, but in a thread of its own.

    Snakemake's handler waits for a lock. Python runs a handler in the main thread, between two of
    its steps: where these hold that lock, the run would wait for itself for ever.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if callable(handler):
        signal.signal(
            signal.SIGTERM,
            lambda *given: threading.Thread(target=handler, args=given, daemon=True).start(),
        )


def unusable(path: str) -> str | None:
    """None if Snakemake can hand a path of programs on to its jobs; else one line that says why
    not.

    It formats shell commands, which gives braces a meaning, and starts jobs of its own with the
    path as Python writes it: a backslash or a control character comes out as another one, and so
    does what a shell finds in double quotes, which Python puts around a single one.
    """
    harmful = [repr(sign) for sign in path if sign in "{}\\" or not sign.isprintable()]
    if "'" in path:
        harmful += [f"a single quote beside {sign}" for sign in path if sign in '"$`']
    if not harmful:
        return None
    return f"{path!r}: Snakemake cannot run programs by a path with {harmful[0]}; rename it"


def refused(words: list[str]) -> str | None:
    """One line that says why Snakemake could not even begin with a command line; None if it can.

    A profile asks this (profiles/default/config.yaml): Snakemake reads the files of --configfile
    before any code of the workflow, so that one could hang it, or run code of its own by way of
    YTE.
    """
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    flags.add_argument("-d", "--directory", type=Path, default=Path())
    flags.add_argument(
        "--configfile", "--configfiles", nargs="+", action="extend", type=Path, default=[]
    )
    given, _ = flags.parse_known_args(words)
    complaints = filter(None, map(unreadable, given.configfile))
    return next(complaints, None) or unready(given.directory.absolute())


def unready(folder: Path) -> str | None:
    """None if Snakemake, a dry run of it too, can keep its notes in a working folder; else one line
    that says why not, where it would answer with a traceback. Makes nothing."""
    notes = folder / ".snakemake"
    there = next(one for one in (notes, folder, *folder.parents) if os.access(one, os.F_OK))
    # Each only once the one before can be looked into.
    for each in chain([there], notes.glob("*"), notes.glob("metadata/*")):
        if each.exists() and not os.access(each, os.R_OK | os.W_OK):
            return closed(each)
    return full_disk(folder)


def closed(path: Path) -> str:
    """One line that says whose a path is, and how it comes to be shared."""
    try:
        owner = path.owner()
    except (OSError, KeyError):  # a container need not know the name
        owner = "another user"
    return (
        f"cannot change {path}, which belongs to {owner}: choose another --directory, or have it"
        " made writable; where a group shares a folder, all need `umask 002`, and for what is there"
        " once `chmod -R g+rwX`"
    )


def full_disk(folder: Path) -> str | None:
    """A line that says so; None if there is room in a working folder and for its results, which may
    be elsewhere."""
    full = next(filter(is_full, (folder, folder / "results")), None)
    return FULL.format(full) if full else None


def unwritable(folder: Path) -> str | None:
    """None if files can be made in a folder, which is made if it is not there; else one line that
    says why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return closed(folder.resolve())
    return None


_FILES: list[TextIO] = []  # in memory, which live as long as they are open


def in_memory(text: str) -> str:
    """The path of a file that holds a text for as long as this process runs."""
    file = open(os.memfd_create("text"), "w")  # noqa: SIM115 - it stays open
    file.write(text)
    file.flush()
    _FILES.append(file)
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"
