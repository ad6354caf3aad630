"""A machine's results as one zip file: what to read and to check its numbers, without traces and
snapshots."""

import errno
import zipfile
from pathlib import Path

from stepscope.files import replacing


def pack(results: Path, path: Path, label: str) -> int:
    """Write a machine's cells and the pages as a zip file; its content unzips as results/NAME.
    Returns how many files. Raises FileNotFoundError where there is no cell."""
    root = results / label
    found: dict[Path, Path] = {}  # file → the folder that its name begins in
    for record in root.rglob("record.json"):
        for part in ("record.json", "samples.csv", "analysis/**/*"):
            found |= dict.fromkeys(record.parent.glob(part), root)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no cell with a record", str(root))
    for part in ("report/**/*", "tables/**/*"):
        found |= dict.fromkeys(results.glob(part), results)
    # none that is hidden, as Snakemake's time stamps are
    files = [file for file in sorted(found) if file.is_file() and file.name[0] != "."]
    with (
        replacing([path]) as [growing],
        zipfile.ZipFile(growing, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for file in files:
            archive.write(file, file.relative_to(found[file]))
    return len(files)
