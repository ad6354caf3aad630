"""Opens a memory snapshot: .pickle or .pickle.gz, of any size.

Python's unpickler builds plain data and may import nothing, so that nothing in a file is run. What a hostile file can
still ask of it (hashes without end, memory, depth) ends in the limits of recordings/limits.py, under which the programs
read a stranger's file.
"""

import gc
import gzip
import pickle
import zlib
from pathlib import Path

from stepscope.snapshot import SnapshotError, events

_GZIP = b"\x1f\x8b"


def read(path: Path) -> events.Snapshot:
    """The snapshot in a file that torch.cuda.memory._dump_snapshot wrote. Raises SnapshotError with one line."""
    if path.is_dir():
        raise SnapshotError(f"{path}: this is a folder; give the file of a snapshot")
    if path.exists() and not path.is_file():
        raise SnapshotError(f"{path}: this is a pipe or a device; give the file of a snapshot")
    collects = gc.isenabled()
    gc.disable()  # plain data has no cycles worth collecting, and looking for them takes longer than reading
    try:
        return _read(path)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise SnapshotError(f"{path}: there is no such file; give one of torch.cuda.memory._dump_snapshot") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise SnapshotError(f"{path}: the file is cut off or damaged; record or copy it again") from None
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read ({error.strerror}); give a file that you may read") from None
    except MemoryError:
        raise SnapshotError(f"{path}: there is not enough memory for it; record fewer steps") from None
    finally:
        if collects:
            gc.enable()


def _read(path: Path) -> events.Snapshot:
    with path.open("rb") as plain:
        packed = plain.peek(2)[:2] == _GZIP
        with gzip.open(plain) if packed else plain as file:
            if not file.peek(1):
                raise SnapshotError("the file is empty; record the snapshot again")
            try:
                root = _PlainData(file).load()
            except (SnapshotError, EOFError, OSError, MemoryError, zlib.error):
                raise
            except Exception as error:  # whatever a damaged pickle leads to
                told = " ".join(f"{type(error).__name__}: {error}".split())[:120]
                raise SnapshotError(f"the pickle is cut off or damaged ({told}); record the snapshot again") from None
    return events.snapshot(root)


class _PlainData(pickle.Unpickler):
    """Builds what needs no import: numbers, text, lists, tuples, dicts, sets."""

    def find_class(self, module: str, name: str) -> None:
        raise SnapshotError(
            f"the pickle wants to import {f'{module}.{name}'[:100]!r}; only plain data is read, and nothing in the "
            "file was run"
        )
