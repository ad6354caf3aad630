"""What holds for one run of the workflow: it is alone in its folder, can write there, and says how
far it is."""

import contextlib
import fcntl
import logging
import os
import sys
import tempfile
from pathlib import Path

from stepscope.machine.locks import lock_folder

# What was measured, until the run has ended: Snakemake removes what it has not noted as finished
# when a run was killed.
KEPT = Path("results/.measured")


def unlockable() -> str | None:
    """None if programs can lock their GPU or CPU on this machine, for which there is then a folder
    for all its users; else one line that says why not."""
    folder = lock_folder()
    refused = unwritable(
        folder, "set STEPSCOPE_LOCKS to a folder that all who measure here may write to"
    )
    if not refused:
        with contextlib.suppress(PermissionError):  # another user made it, with these rights
            folder.chmod(0o1777)
    return refused


def measuring(words: list[str]) -> list[str]:
    """The words of a command line without the wish to measure nothing: what measures all that is
    missing."""
    kept = [word for word in words if word.lower() != "measure=false"]
    of_nothing = {
        at
        for at, word in enumerate(kept)
        if word in ("--config", "-C") and [*kept, "-"][at + 1][:1] == "-"
    }
    return [word for at, word in enumerate(kept) if at not in of_nothing]


class RunLock:
    """Keeps two runs out of one folder, and is released by the kernel however the run ends, SIGKILL
    included."""

    def __init__(self, path: Path = Path(".snakemake/stepscope.lock")):
        self._path = path
        self._file = None

    def take(self) -> str | None:
        """Take the lock until the process ends; returns None, or one line that says who has it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self._path, "a+")  # noqa: SIM115 - held until the process ends
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            return (
                f"another run (process {holder}) is at work in {Path.cwd()}; wait until it ends, or"
                " end it"
            )
        except OSError as error:
            print(
                f"note: {Path.cwd()} cannot be locked ({error.strerror}); start one run at a time"
                " in it",
                file=sys.stderr,
            )
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        return None


class OneLineAJob(logging.Filter):
    """For the terminal: a line for each finished job, with the share done, instead of Snakemake's
    paragraphs.

    The log file in .snakemake/log keeps these. Errors pass.
    """

    def __init__(self):
        super().__init__()
        self._said: dict[int, str] = {}
        self._finished = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown as it is."""
        event = getattr(getattr(record, "event", None), "value", "")
        if event == "job_info":
            self._said[record.jobid] = record.rule_msg or record.rule_name
        elif event == "job_finished":
            self._finished = self._said.pop(record.job_id, "")
        elif event == "progress":
            print(
                f"{record.done / record.total:4.0%}  {self._finished}", file=sys.stderr, flush=True
            )
        return record.levelno > logging.INFO or event.endswith("error")


def speak_briefly() -> None:
    """From now on, Snakemake says less on the terminal."""
    from snakemake.logging import logger

    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(OneLineAJob())


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
    return (
        f"{path!r}: Snakemake cannot run programs by a path with {harmful[0]}; rename it"
        if harmful
        else None
    )


def unwritable(
    folder: Path, remedy: str = "make it writable, or choose another --directory"
) -> str | None:
    """None if files can be made in a folder, which is made if it is not there; else one line that
    says why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"cannot write in {folder.resolve()}: {error.strerror}; {remedy}"
    return None
