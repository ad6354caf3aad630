"""The committed example: the site of the default grid, and what its archive holds."""

import functools
import tempfile
import zipfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "report/example"
SITE = EXAMPLES / "h200"
MACHINE = "nvidia-h200"
_unpacked = tempfile.TemporaryDirectory(prefix="example.")  # gone when the process ends


@functools.cache
def results() -> Path:
    """A results folder of its records and tables; other files of cells are left out."""
    with zipfile.ZipFile(SITE / "cells.zip") as archive:
        wanted = [name for name in archive.namelist() if name.startswith("results/tables/") or "record.json" in name]
        archive.extractall(_unpacked.name, wanted)
    return Path(_unpacked.name) / "results"


def tables() -> Path:
    """The folder of its tables."""
    return results() / "tables"
