"""Making an archive of results: which files go into it, and a file whose bytes depend on their content alone."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stepscope.archive import (
    CONFIGURATION,
    FORMAT,
    MANIFEST,
    OTHER_FOLDERS,
    RESULTS,
    VERSION,
    ArchiveError,
    is_of_cells,
    opened,
)
from stepscope.files import complaint, replacing

WHOLE_FOLDERS = ("plan", "tables", "figures", "report")  # of results/, beside the cells
RAW = ("trace", "snapshot")  # of a cell: large, and taken apart in its analysis
_BEFORE_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a ZIP file knows


def files_of(results: Path, traces: bool = False, is_small: bool = False) -> list[Path]:
    """The files of a results folder that go into an archive, sorted: cells, tables, figures, report and plan, or, if it
    shall be small, the cells and the tables but those of samples and events, which the cells' own files hold.

    Of a cell its record, samples and analysis, and with `traces` its trace or snapshot; no logs and no hidden files. If
    there is a plan only its cells count, else all that have a record. Raises ArchiveError where there is none.
    """
    cells = _cells(results)
    if not cells:
        raise ArchiveError(f"{results} holds no cell with a record; measure first, or name another folder")
    found = [results / cell / name for cell in cells for name in ("record.json", "samples.csv")]
    for name in ("analysis", *(RAW if traces else ())):
        found += [file for cell in cells for file in _below(results / cell / name)]
    if is_small:
        tables = _below(results / "tables")
        return sorted(found + [file for file in tables if not is_of_cells(file.stem)])
    for name in WHOLE_FOLDERS:
        found += _below(results / name)
    return sorted(found)


def make(
    path: Path, results: Path, configuration: dict | None = None, traces: bool = False, is_small: bool = False
) -> dict:
    """Write an archive of a results folder and read it back; returns its manifest.

    The same content gives the same bytes, with the same version of zlib. Raises ArchiveError, in one line.
    """
    contents = {
        f"{RESULTS}/{file.relative_to(results).as_posix()}": file for file in files_of(results, traces, is_small)
    }
    own = {} if configuration is None else {CONFIGURATION: _as_json(configuration)}
    try:
        listed = [_entry(name, content) for name, content in own.items()]
        listed += [_entry_of_file(name, file) for name, file in contents.items()]
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "traces": traces,
            "machines": _machines(results, contents.values()),
            "files": sorted(listed, key=lambda each: each["path"]),
        }
        with replacing([path]) as [part]:
            _pack(part, {MANIFEST: _as_json(manifest), **own}, contents)
            try:
                with opened(part):
                    pass
            except ArchiveError as error:
                raise ArchiveError(str(error).replace(f"{part}:", f"{path} is not written:")) from None
    except OSError as error:
        raise ArchiveError(complaint(error, path)) from None
    return manifest


def _pack(path: Path, own: Mapping[str, bytes], files: Mapping[str, Path]) -> None:
    """Write the ZIP file: first what is made here, then the files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in own.items():
            archive.writestr(_member(name), content)
        for name, file in files.items():
            with file.open("rb") as source, archive.open(_member(name, file.stat().st_size), "w") as out:
                shutil.copyfileobj(source, out, 1 << 20)


def _cells(results: Path) -> list[Path]:
    """Folders of the cells, relative: those of the plan that have a record, or without a plan all that have one."""
    for plan in sorted(results.glob("plan/*.json")):
        try:
            studies = json.loads(plan.read_bytes())["studies"].values()
            names = [entry["cell"] for study in studies for entry in study["cells"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ArchiveError(f"{plan} is no plan of this workflow; delete it and run again") from None
        return [Path(name) for name in names if (results / name / "record.json").is_file()]
    top = [folder for folder in _folders(results) if folder.name not in OTHER_FOLDERS]
    return sorted(record.parent.relative_to(results) for folder in top for record in folder.rglob("record.json"))


def _folders(results: Path) -> list[Path]:
    return [each for each in results.iterdir() if each.is_dir()] if results.is_dir() else []


def _below(folder: Path) -> list[Path]:
    """The files in a folder at any depth; no hidden ones, as Snakemake's time stamps are, and no logs."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".log"]
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def _machines(results: Path, files: Iterable[Path]) -> dict[str, dict]:
    """Label → how many cells it has, and the machine and software that the first of them was measured on."""
    found: dict[str, dict] = {}
    for file in files:
        if file.name == "record.json":
            label = file.relative_to(results).parts[0]
            try:
                seen = json.loads(file.read_bytes())["machine"]
            except (ValueError, KeyError, TypeError):
                raise ArchiveError(f"{file} is damaged (truncated or edited by hand); measure the cell again") from None
            entry = found.setdefault(label, {"cells": 0, "machine": seen})
            entry["cells"] += 1
    return found


def _as_json(content: dict) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _entry(name: str, content: bytes) -> dict:
    return {"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _entry_of_file(name: str, file: Path) -> dict:
    with file.open("rb") as content:
        return {
            "path": name,
            "bytes": file.stat().st_size,
            "sha256": hashlib.file_digest(content, "sha256").hexdigest(),
        }


def _member(name: str, size: int = 0) -> zipfile.ZipInfo:
    """A plain file that anybody may read, without the time at which it was written."""
    info = zipfile.ZipInfo(name, _BEFORE_TIME)
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
    info.file_size = size  # whether it needs the large form of its header
    return info


def total_bytes(files: Sequence[dict]) -> int:
    """Bytes of files as a manifest lists them, unpacked."""
    return sum(each["bytes"] for each in files)
