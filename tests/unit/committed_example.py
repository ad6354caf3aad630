"""The committed example: the site of the default grid, and what its archive holds."""

import functools
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

from stepscope.tables import warmup
from stepscope.tables.cells import CellResult

EXAMPLES = Path(__file__).resolve().parents[2] / "report/example"
SITE = EXAMPLES / "h200"
MACHINE = "nvidia-h200"
_unpacked = tempfile.TemporaryDirectory(prefix="example.")  # gone when the process ends


@functools.cache
def results() -> Path:
    """A results folder of its records and tables, and of the samples of warm-up, which its chapter reads."""
    with zipfile.ZipFile(SITE / "cells.zip") as archive:
        wanted = [name for name in archive.namelist() if name.startswith("results/tables/") or "record.json" in name]
        archive.extractall(_unpacked.name, wanted)
        made = Path(_unpacked.name) / "results"
        with tempfile.TemporaryDirectory() as folder:
            warmup.write([_cell(archive, name) for name in wanted if "/warmup/" in name], Path(folder))
            shutil.move(Path(folder) / "warmup_samples.csv", made / "tables")
    return made


def _cell(archive: zipfile.ZipFile, name: str) -> CellResult:
    record, folder = json.loads(archive.read(name)), Path(name).parent
    samples = archive.read(f"{folder}/samples.csv").decode().splitlines(keepends=True)
    entry = {"cell": f"{folder.relative_to('results')}", "size": folder.parts[3], "spec": record["spec"], "command": ""}
    return CellResult(entry, "measured", record, tuple(samples))


def tables() -> Path:
    """The folder of its tables."""
    return results() / "tables"
