"""A folder of files that a measuring program makes besides its record: it appears whole or not at all."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def growing(out: Path | None) -> Iterator[Path]:
    """Where the files grow: beside their place, so that they can be renamed; a temporary folder without `out`.

    Ends the program with one line if nothing can be written there.
    """
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".growing.") as folder:
            yield Path(folder)
    except OSError as error:
        sys.exit(f"error: cannot write {error.filename or out}: {error.strerror}")


def keep(folder: Path, out: Path | None, name: str) -> None:
    """Rename the files to their place `out/name`; what was there before is replaced. Nothing is kept without `out`."""
    if out is None:
        return
    shutil.rmtree(out / name, ignore_errors=True)
    shutil.copytree(folder, out / name, copy_function=os.rename)
