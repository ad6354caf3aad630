"""The two sides: a commit, or the files as they are now, each as a folder of its own, and the Python that runs it."""

import io
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from stepscope.turns import TurnsError

WORKTREE = "worktree"  # stands for the files as they are, with what is not committed
PARTS = ("scripts", "config.yaml")  # of the project: what measuring programs read


@dataclass(frozen=True)
class Side:
    """One of the sides. name: `a`, `b`, or `c` for a once more. given: as the user wrote it. commit: the whole hash,
    None for the files as they are. python: the interpreter that measures. folder: its own copy of the project.
    """

    name: str
    given: str
    commit: str | None
    python: str
    folder: Path


def commit_of(project: Path, given: str) -> str | None:
    """The hash that a name of a commit stands for, None for WORKTREE. Raises TurnsError for a name of none."""
    if given == WORKTREE:
        return None
    if given.startswith("-") or not given.isprintable():
        raise TurnsError(f"{given!a} is no commit; give a hash, a branch, a tag, or {WORKTREE}")
    shown = _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
    if shown.returncode:
        said = shown.stderr.decode(errors="replace").strip().splitlines()
        reason = f" ({said[-1]})" if said else ""
        raise TurnsError(
            f"there is no commit {given!r} in {project}{reason}; give a hash, a branch, a tag, or {WORKTREE}"
        )
    return shown.stdout.decode().strip()


def checked_out(project: Path, commit: str | None, folder: Path) -> None:
    """Copy the measuring programs of a commit, or those that are there now, to a folder that is made.

    Raises TurnsError for a commit that has none.
    """
    folder.mkdir(parents=True)
    if commit is None:
        shutil.copytree(project / PARTS[0], folder / PARTS[0], ignore=shutil.ignore_patterns("__pycache__", ".*"))
        shutil.copy2(project / PARTS[1], folder)
        return
    packed = _git(project, "archive", "--format=tar", commit, "--", *PARTS)
    if packed.returncode:
        said = packed.stderr.decode(errors="replace").strip().splitlines() or ["git archive failed"]
        raise TurnsError(f"{commit[:12]} cannot be measured: {said[-1]}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")


def _git(project: Path, *words: str) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(["git", "-C", str(project), *words], capture_output=True, check=False)
    except OSError as error:
        raise TurnsError(f"cannot run git: {error.strerror}; install it, or measure {WORKTREE} on both sides") from None


def checked_python(path: str) -> str:
    """The interpreter's path. Raises TurnsError if it does not run, or is too old for the programs."""
    asked = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        done = subprocess.run([path, "-c", asked], capture_output=True, check=False)
    except OSError as error:
        raise TurnsError(f"{path} does not run: {error.strerror}; give the path of a Python") from None
    if done.returncode:
        raise TurnsError(f"{path} is no Python of version 3.11 or later")
    return path
