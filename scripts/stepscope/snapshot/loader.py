"""Opens a memory snapshot: .pickle or .pickle.gz, of any size, from anybody."""

import gzip
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepscope.recordings.limits import most_unpacked
from stepscope.snapshot import SnapshotError, events
from stepscope.snapshot.plain_pickle import Reader

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


def read(path: Path) -> events.Snapshot:
    """The snapshot in a file that torch.cuda.memory._dump_snapshot wrote. Raises SnapshotError with one line."""
    if path.is_dir():
        raise SnapshotError(f"{path}: this is a folder; give the file of a snapshot")
    if path.exists() and not path.is_file():
        raise SnapshotError(f"{path}: this is a pipe or a device; give the file of a snapshot")
    try:
        with _bytes(path) as data:
            reader = Reader(data)
            return events.snapshot(reader.load(), reader.columns)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise SnapshotError(f"{path}: there is no such file; give one of torch.cuda.memory._dump_snapshot") from None
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read ({error.strerror}); give a file that you may read") from None
    except MemoryError:
        raise SnapshotError(f"{path}: there is not enough memory for it; record fewer steps") from None


@contextmanager
def _bytes(path: Path) -> Iterator[mmap.mmap]:
    """The file's pickle as a map of the file, so that what is read once need not stay in memory."""
    with path.open("rb") as file, tempfile.TemporaryFile() as unpacked:
        packed = file.read(2) == _GZIP
        if packed:
            _unpack(path, unpacked)
        source = unpacked if packed else file
        if source.seek(0, 2) == 0:
            raise SnapshotError("the file is empty; record the snapshot again")
        with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _unpack(path: Path, target) -> None:
    limit = most_unpacked(path)
    try:
        with gzip.open(path) as source:
            while chunk := source.read(_CHUNK):
                target.write(chunk)
                if target.tell() > limit:
                    raise SnapshotError(
                        f"unpacked it is larger than {limit >> 20} MB; if you trust it, gunzip it first"
                    )
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise SnapshotError("the file is cut off or damaged (gzip); record or copy it again") from None
    target.flush()
