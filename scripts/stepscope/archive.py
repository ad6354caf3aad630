"""A machine's results as one zip file: what to read and to check its numbers, without traces and
snapshots."""

import errno
import zipfile
from operator import itemgetter
from pathlib import Path

from stepscope.files import replacing


def pack(results: Path, path: Path, label: str) -> int:
    """Write a machine's cells and the pages as a zip file; its content unzips as results/NAME.
    Returns how many files. Raises FileNotFoundError where there is no cell."""
    root = results / label
    names: dict[Path, Path] = {}
    for record in root.rglob("record.json"):
        cell = record.parent
        files = [record, *cell.glob("samples.csv"), *_below(cell / "analysis")]
        names |= {file: file.relative_to(root) for file in files}
    if not names:
        raise FileNotFoundError(errno.ENOENT, "no cell with a record", str(root))
    for folder in ("report", "tables"):
        names |= {file: file.relative_to(results) for file in _below(results / folder)}
    with replacing([path]) as [part], zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, name in sorted(names.items(), key=itemgetter(1)):
            archive.write(file, name)
    return len(names)


def _below(folder: Path) -> list[Path]:
    """The files in a folder at any depth; none that is hidden, as Snakemake's time stamps are."""
    return [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
