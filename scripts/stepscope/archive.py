"""Reading an archive of results, which may be anybody's: checked before it is used, and nothing of it is run.

An archive is a ZIP file that archive_making.py makes: `manifest.json` with size and SHA-256 of every other file,
`configuration.json`, and the files of a folder `results/`. ZIP because its directory tells all names and sizes before
anything is unpacked, and knows no way to write outside a folder but names, which are checked letter by letter.
Standard library only.
"""

import contextlib
import hashlib
import json
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepscope.files import complaint, write_whole

FORMAT, VERSION = "stepscope archive", 1
MANIFEST, CONFIGURATION, RESULTS = "manifest.json", "configuration.json", "results"
# Folders of results/ that hold no cells of the plan, so that none of them is a machine's label.
OTHER_FOLDERS = ("tables", "figures", "report", "plan", "partial", "slurm", "archive", "site", "ab", "compare")
OF_CELLS = ("_samples", "_timeline")  # ends of the names of tables whose rows the cells' own files hold
UNPACKED_FROM = "archive.json"  # in results/LABEL: which archive it was unpacked from
_LONGEST_NAME, _LONGEST_PART, _DEEPEST = 400, 200, 20
_LARGEST_JSON = 32 << 20  # bytes: of the manifest, and of a record
_LEAST_UNPACKED = 64 << 20  # bytes that any archive may have, however small it is
_CHUNK = 1 << 20
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+,@-]*")
_ENDS_BADLY = re.compile(r"[. ]\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_FILES = 2_000_000  # more are refused whatever the limits are: their names alone take a gigabyte of memory
# Bytes of a ZIP file's structures (APPNOTE 6.3.10, sections 4.3.12, 4.3.16, 4.3.14 and 4.3.15).
_DIRECTORY_ENTRY, _END, _END_64, _LOCATOR_64 = 46, 22, 56, 20
_DAMAGED = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, struct.error, NotImplementedError),
    *(RuntimeError, ValueError, OverflowError, KeyError, IndexError),
)


def is_of_cells(table: str) -> bool:
    """Whether a table's rows stand in the cells' own files too: samples, and events of a trace or a snapshot."""
    return table.endswith(OF_CELLS)


class ArchiveError(Exception):
    """An archive cannot be made, or is refused; the message is one line that names it."""


@dataclass(frozen=True)
class Limits:
    """What an archive may hold. ratio: bytes unpacked over bytes packed, above 64 MiB of them."""

    files: int = 100_000
    gigabytes: float = 8.0
    ratio: float = 200.0


DEFAULT = Limits()


@contextlib.contextmanager
def opened(path: Path, limits: Limits = DEFAULT) -> Iterator[Path]:
    """A folder that looks like results/: that of an archive, unpacked for as long as the block lasts.

    A folder is given as it is, or the `results` that it holds. The archive's configuration stands beside the folder, as
    `configuration.json`. Raises ArchiveError for a file that is no archive, damaged, too large, or made to do harm.
    """
    path = Path(path)
    if path.is_dir():
        yield path / RESULTS if (path / RESULTS).is_dir() else path
        return
    if not path.exists():
        raise ArchiveError(f"{path}: there is no such folder of results, nor such an archive; give the path of one")
    with tempfile.TemporaryDirectory(prefix="stepscope-archive-", ignore_cleanup_errors=True) as folder:
        _unpack(path, Path(folder), limits)
        yield Path(folder) / RESULTS


def manifest_of(path: Path, limits: Limits = DEFAULT) -> dict:
    """What an archive says that it holds; its files are not looked at. Raises ArchiveError."""
    with _reading(path) as archive:
        return _manifest(path, archive, _members(path, archive, limits))


def unpack_label(
    path: Path,
    results: Path,
    label: str,
    wanted: str | None = None,
    limits: Limits = DEFAULT,
    into: Path | None = None,
) -> bool:
    """The cells of one machine of an archive as `results/LABEL`; returns whether they were not there before.

    wanted: the machine's label in the archive; None is `label`, or the only one. What was unpacked from another file
    before is replaced. into: a folder to which they are unpacked instead, if they are not in `results`, which stays as
    it is. Raises ArchiveError, also if results/LABEL is there and of no archive.
    """
    path, target = Path(path), results / label
    if not _PART.fullmatch(label) or label in OTHER_FOLDERS:
        raise ArchiveError(f"{path}: {label!a} is no label of a machine; use letters, digits, '.', '_' and '-'")
    origin = {"archive": path.name, "sha256": _file_digest(path), "label": wanted}
    note = target / UNPACKED_FROM
    if target.exists() and not note.is_file():
        raise ArchiveError(f"{target} is there and was not unpacked from an archive; choose another label for {path}")
    with contextlib.suppress(OSError, ValueError):
        if json.loads(note.read_text()) == origin:
            return False
    to = into or results
    target, beside = to / label, to / f".{label}.part"
    with opened(path, limits) as folder:
        own = folder / _chosen(path, labels_of(folder), wanted, label)
        try:
            shutil.rmtree(beside, ignore_errors=True)
            to.mkdir(parents=True, exist_ok=True)
            shutil.copytree(own, beside)
            write_whole({beside / UNPACKED_FROM: [json.dumps(origin) + "\n"]})
            if target.exists():
                shutil.rmtree(target)
            beside.rename(target)
        except OSError as error:
            raise ArchiveError(complaint(error, target)) from None
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return True


def labels_of(results: Path) -> list[str]:
    """The machines whose cells a folder like results/ holds, in the order of their names."""
    labels = {record.relative_to(results).parts[0] for record in results.glob("*/**/record.json")}
    return sorted(labels.difference(OTHER_FOLDERS))


def _chosen(path: Path, there: Sequence[str], wanted: str | None, label: str) -> str:
    if wanted is None and len(there) == 1:
        return there[0]
    if (wanted or label) in there:
        return wanted or label
    held = ", ".join(there) or "no machine at all"
    raise ArchiveError(f"{path}: it holds no machine {wanted or label!r}, but {held}; name one of them as its machine")


def _unpack(path: Path, folder: Path, limits: Limits) -> None:
    """Write an archive's files into an empty folder, each checked against the manifest, each record for its form."""
    with _reading(path) as archive:
        members = _members(path, archive, limits)
        listed = {each["path"]: each for each in _manifest(path, archive, members)["files"]}
        for name, info in members.items():
            if name == MANIFEST:
                continue
            _write(path, archive, info, folder / name, listed[name])
        (folder / RESULTS).mkdir(exist_ok=True)
        if CONFIGURATION in members:
            _check_configuration(path, folder / CONFIGURATION)
        for record in sorted((folder / RESULTS).glob("**/record.json")):
            _check_record(path, record, record.relative_to(folder))


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive for reading; whatever is wrong with it is an ArchiveError."""
    try:
        if not Path(path).is_file():
            raise ArchiveError(f"{path}: there is no such file; give the path of an archive")
        _check_directory(Path(path))
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _DAMAGED as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ArchiveError(f"{path}: it is damaged ({reason!a}); copy it again") from None
    except OSError as error:
        raise ArchiveError(complaint(error, path)) from None


def _check_directory(path: Path) -> None:
    """Raise ArchiveError unless the file ends as ZIP files do, with a directory that is not too large to be read.

    Python's zipfile takes the whole directory into memory, however large the file says that it is.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _END - _LOCATOR_64 - _END_64))
        tail = file.read()
    end = tail[-_END:]
    if len(end) < _END or end[:4] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise ArchiveError(f"{path}: it is no archive of results, or its end is missing; `snakemake archive` makes one")
    count, directory = struct.unpack("<HL", end[10:16])
    if tail[-_END - _LOCATOR_64 :][:4] == b"PK\6\7":
        if tail[:4] != b"PK\6\6":
            raise ArchiveError(f"{path}: it is damaged (its directory is not where it says); copy it again")
        count, directory = struct.unpack("<QQ", tail[32:48])
    if directory > min(size, (count + 1) * (_DIRECTORY_ENTRY + _LONGEST_NAME + 64)):
        raise ArchiveError(f"{path}: its directory is larger than that of {count} files; it is damaged")
    if count > _MOST_FILES:
        raise ArchiveError(f"{path}: it holds {count} files, more than can be read ({_MOST_FILES})")


def _members(path: Path, archive: zipfile.ZipFile, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """Name → member, all of them plain files with plain names that together are not too large."""
    found = archive.infolist()
    if len(found) > limits.files:
        raise ArchiveError(
            f"{path}: it holds {len(found)} files, more than {limits.files}; "
            "if you trust it, give a larger --most-files"
        )
    total = sum(info.file_size for info in found)
    packed = path.stat().st_size
    if total > limits.gigabytes * 1e9:
        raise ArchiveError(
            f"{path}: unpacked it has {total / 1e9:.3g} GB, more than {limits.gigabytes:g}; "
            "if you trust it, give a larger --most-gigabytes"
        )
    if total > max(_LEAST_UNPACKED, limits.ratio * packed):
        raise ArchiveError(
            f"{path}: unpacked it has {total / packed:.0f} times its size, more than {limits.ratio:g}; "
            "if you trust it, give a larger --most-ratio"
        )
    members: dict[str, zipfile.ZipInfo] = {}
    taken: dict[str, str] = {}
    for info in found:
        _check_member(path, info)
        name = info.filename
        if other := taken.get(name.lower()):
            raise ArchiveError(f"{path}: {name} is there twice{'' if other == name else f', once as {other}'}")
        members[name] = info
        taken[name.lower()] = name
    folders = {parent.as_posix().lower(): name for name in members for parent in Path(name).parents}
    for name in members:
        if name.lower() in folders:
            raise ArchiveError(f"{path}: {name} is a file and also the folder of {folders[name.lower()]}")
    return members


def _check_member(path: Path, info: zipfile.ZipInfo) -> None:
    """Raise ArchiveError for a name that could stand for a place outside the folder, and for all but plain files."""
    name = info.orig_filename
    parts = name.split("/")
    if len(name) > _LONGEST_NAME or any(len(part) > _LONGEST_PART for part in parts) or len(parts) > _DEEPEST:
        raise ArchiveError(f"{path}: a file's name is too long or too deep ({name[:60]!a} …)")
    if not all(_PART.fullmatch(part) and not _ENDS_BADLY.search(part) for part in parts):
        raise ArchiveError(f"{path}: {name[:100]!a} is no name that a file of results has")
    if name not in (MANIFEST, CONFIGURATION) and (parts[0] != RESULTS or len(parts) < 2):
        raise ArchiveError(f"{path}: {name} is neither in {RESULTS}/ nor {MANIFEST} nor {CONFIGURATION}")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise ArchiveError(f"{path}: {name} is a link, a device or another thing than a file")
    if info.flag_bits & 0x1:
        raise ArchiveError(f"{path}: {name} is encrypted; pack it without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(f"{path}: {name} is packed by another method than deflate; pack it by `snakemake archive`")


def _manifest(path: Path, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict:
    """The manifest, which lists all members but itself and no other."""
    if MANIFEST not in members:
        raise ArchiveError(f"{path}: it holds no {MANIFEST}, so it is no archive of results")
    if members[MANIFEST].file_size > _LARGEST_JSON:
        raise ArchiveError(f"{path}: {MANIFEST} is larger than {_LARGEST_JSON >> 20} MiB")
    with archive.open(members[MANIFEST]) as file:
        manifest = _json(path, MANIFEST, file.read(_LARGEST_JSON))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ArchiveError(f"{path}: {MANIFEST} is not that of an archive of results")
    if manifest.get("version") != VERSION:
        raise ArchiveError(f"{path}: its format is of version {manifest.get('version')!a:.20}, this reads {VERSION}")
    files = manifest.get("files")
    if not isinstance(files, list) or not all(map(_is_entry, files)):
        raise ArchiveError(f"{path}: {MANIFEST} has no list of files with path, bytes and sha256")
    listed = [each["path"] for each in files]
    if odd := sorted({*listed} ^ (members.keys() - {MANIFEST})):
        missing = "is not there, but listed" if odd[0] in listed else "is not listed"
        raise ArchiveError(f"{path}: {odd[0][:200]!a} {missing} in {MANIFEST}; copy the archive again")
    if len(listed) != len({*listed}):
        raise ArchiveError(f"{path}: {MANIFEST} lists a file twice")
    return manifest


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("path"), str)
        and isinstance(entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
        and _DIGEST.fullmatch(entry["sha256"]) is not None
    )


def _write(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, listed: dict) -> None:
    """Unpack one member, and check that it is what the manifest says."""
    if info.file_size != listed["bytes"]:
        raise ArchiveError(f"{path}: {info.filename} has not the size that {MANIFEST} says; it was changed")
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), info.file_size
    with archive.open(info) as file, target.open("xb") as out:
        while chunk := file.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                break
            digest.update(chunk)
            out.write(chunk)
    if left or digest.hexdigest() != listed["sha256"]:
        raise ArchiveError(f"{path}: {info.filename} is not the file that {MANIFEST} lists; it was changed or damaged")


def _check_configuration(path: Path, file: Path) -> None:
    if file.stat().st_size > _LARGEST_JSON or not isinstance(_json(path, CONFIGURATION, file.read_bytes()), dict):
        raise ArchiveError(f"{path}: {CONFIGURATION} is no configuration")


def _check_record(path: Path, record: Path, name: Path) -> None:
    """Raise ArchiveError unless a record has the form of one, and is that of the samples beside it."""
    if record.stat().st_size > _LARGEST_JSON:
        raise ArchiveError(f"{path}: {name} is larger than {_LARGEST_JSON >> 20} MiB")
    content = _json(path, str(name), record.read_bytes())
    parts = ("spec", "machine", "summary", "provenance", "telemetry")
    if not isinstance(content, dict) or not all(isinstance(content.get(part), dict) for part in parts):
        raise ArchiveError(f"{path}: {name} is no record of a cell")
    samples = record.with_name("samples.csv")
    if not samples.is_file() or _file_digest(samples) != content.get("samples_sha256"):
        raise ArchiveError(f"{path}: {name} is not of the samples.csv beside it; it was changed or damaged")


def _json(path: Path, name: str, content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())[:100]
        raise ArchiveError(f"{path}: {name} is no JSON ({reason!a})") from None


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ArchiveError(f"{path}: it cannot be read: {error.strerror}; give the path of an archive") from None
