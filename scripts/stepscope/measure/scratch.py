"""Files that a measuring program needs while it runs, and traces that are there as a whole.

They lie beside the program's results: a disk that has no room for them has none for these either,
and nothing depends on another folder's room. C++ writes traces and says nothing of a full disk, so
that each is looked at before anything is recorded of it.
"""

import contextlib
import errno
import gzip
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what makes the folder has not imported it yet
    import torch

PLACE = "STEPSCOPE_SCRATCH"  # environment variable: where; without it the system's folder
MOST_AT_END = 2**13  # bytes of a trace behind its events: a path, and little else


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder for what is not kept."""
    with tempfile.TemporaryDirectory(dir=os.environ.get(PLACE)) as made:
        yield Path(made)


def profiler(device: str, with_host: bool = True, **more: Any) -> "torch.profiler.profile":
    """torch's profiler of a device, and of the host's operators, which slow down what launches
    limit; a CPU has these alone."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CUDA] if device == "cuda" else []
    if with_host or not kinds:
        kinds.append(ProfilerActivity.CPU)
    return profile(activities=kinds, **more)


def trace_of(profile: "torch.profiler.profile") -> dict:
    """A profile as a Chrome trace. Raises OSError where it cannot be written as a whole."""
    with folder() as place:
        path = place / "trace.json"
        _export(profile, path)
        return json.loads(path.read_text(encoding="utf-8", errors="replace"))


def write_trace(profile: "torch.profiler.profile", path: Path) -> None:
    """The same, to a .json.gz."""
    with folder() as place:
        plain = place / "trace.json"
        _export(profile, plain)
        with plain.open("rb") as source, gzip.open(path, "wb") as target:
            shutil.copyfileobj(source, target)


def _export(profile: "torch.profiler.profile", path: Path) -> None:
    profile.export_chrome_trace(str(path))
    path.touch()  # Kineto says nothing where it cannot even make the file
    end = path.read_bytes()[-MOST_AT_END:]
    # What Kineto writes after all events; an event, too, ends with a brace.
    if not re.search(rb'"traceName".*}\s*$', end, re.DOTALL):
        said = "the profiler's trace is cut off; is the disk full?"
        raise OSError(errno.ENOSPC, said, str(path))
