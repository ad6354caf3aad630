"""A machine's results as one zip file: what to read and to check its numbers, without traces and
snapshots."""

import errno
import zipfile
from collections.abc import Iterator
from pathlib import Path

from stepscope.files import replacing

# Folders of results/ that hold no cells, so that none of them is a machine's label.
OTHER_FOLDERS = ("tables", "figures", "report", "slurm", "archive", "site", "ab", "compare")
OTHER_FILES = (".json", ".log")  # what the names of files there end with
_MEASURED = ("record.json", "samples.csv")


def pack(results: Path, path: Path, label: str | None = None) -> int:
    """Write a machine's cells and the pages as a zip file; its content unzips as results/NAME.
    Returns how many files.

    Without a label those of all machines, which unzip as results. Raises FileNotFoundError where
    there is no cell.
    """
    labels = [label] if label else _labels(results)
    root = results / label if label else results
    names: dict[Path, Path] = {}
    for each in labels:
        names |= {file: file.relative_to(root) for file in _of_cells(results / each)}
    if not names:
        raise FileNotFoundError(errno.ENOENT, "no cell with a record", str(root))
    for folder in ("report", "tables"):
        names |= {file: file.relative_to(results) for file in _below(results / folder)}
    with replacing([path]) as [part], zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(names, key=lambda each: names[each]):
            archive.write(file, names[file])
    return len(names)


def _labels(results: Path) -> list[str]:
    """The machines that have results."""
    return [each.name for each in results.iterdir() if each.name not in OTHER_FOLDERS]


def _of_cells(folder: Path) -> Iterator[Path]:
    """Records, samples and analyses of all cells below a folder."""
    for record in folder.rglob("record.json"):
        for name in _MEASURED:
            if record.with_name(name).is_file():
                yield record.with_name(name)
        yield from _below(record.with_name("analysis"))


def _below(folder: Path) -> list[Path]:
    """The files in a folder at any depth; none that is hidden, as Snakemake's time stamps are."""
    return [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
