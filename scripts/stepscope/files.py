"""How files are written: beside their place first, then renamed, so that no path ever shows a part
of its content."""

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

LEAST_BYTES = 2**20  # free on a disk that is not full


@contextlib.contextmanager
def replacing(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Places beside the paths, to write to; when the block ends they are renamed, in the order of
    the paths.

    Folders are made. If the block fails nothing is renamed, and what it has written is removed.
    """
    parts = [path.with_name(f".{path.name}.part") for path in paths]
    try:
        for folder in {path.parent for path in paths}:
            folder.mkdir(parents=True, exist_ok=True)
        yield parts
        for part, path in zip(parts, paths, strict=True):
            part.rename(path)
    except BaseException:
        for part in parts:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        raise


def write_whole(contents: Mapping[Path, bytes | Iterable[str]], to_disk: bool = False) -> None:
    """Write bytes, or lines of text, to each path; all of them or none. An OSError names the path
    that it was about.

    to_disk: force them to the disk before they are renamed, so that what is there is whole after a
    power cut, too.
    """
    with replacing(list(contents)) as parts:
        for (path, content), part in zip(contents.items(), parts, strict=True):
            lines = [content] if isinstance(content, bytes) else (line.encode() for line in content)
            try:
                with open(part, "wb") as file:
                    file.writelines(lines)
                    if to_disk:
                        file.flush()
                        os.fsync(file.fileno())
            except OSError as error:
                error.filename = str(path)
                raise


@contextlib.contextmanager
def or_one_line(place: Path | None) -> Iterator[None]:
    """Within it a file that cannot be written, or read, ends the program with one line and exit
    code 1.

    place: the folder that is written to, for errors that name no file.
    """
    try:
        yield
    except OSError as error:
        sys.exit(f"error: {complaint(error, place)}")


def is_full(folder: Path) -> bool:
    """Whether next to nothing can be written to a folder any more."""
    try:
        return shutil.disk_usage(folder).free < LEAST_BYTES
    except OSError:
        return False


def complaint(error: OSError, place: Path | None) -> str:
    """One line that says which file, why, and what to do."""
    verb = "read" if error.errno == errno.ENOENT else "write"
    told = f"cannot {verb} {error.filename or place}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{told}; make room and run again, nothing that was finished is lost"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{told}; make the folder writable, or choose another with --directory"
    return told
