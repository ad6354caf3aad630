"""Opens a memory snapshot: .pickle or .pickle.gz, of any size.

Python's unpickler builds plain data and may import nothing, so that nothing in a file is run. What
a hostile file can still ask of it (hashes without end, memory, depth) ends in the limits of
recordings/limits.py, under which the programs read a stranger's file.

A snapshot is millions of events, each a dict, which together take three to five times the file's
size until they are columns of numbers.
"""

import gc
import gzip
import io
import pickle
from pathlib import Path
from typing import cast

from stepscope.recordings.limits import most_unpacked, reading
from stepscope.snapshot import SnapshotError, events

_GZIP = b"\x1f\x8b"
_BUFFER = 1 << 20  # bytes


def read(path: Path) -> events.Snapshot:
    """The snapshot in a file that torch.cuda.memory._dump_snapshot wrote. Raises SnapshotError with
    one line."""
    collects = gc.isenabled()
    # plain data has no cycles worth collecting, and looking for them takes longer than reading
    gc.disable()
    advice = "give a file of torch.cuda.memory._dump_snapshot, recorded or copied again"
    try:
        with reading(path, "a memory snapshot of PyTorch", SnapshotError, advice):
            return _read(path)
    finally:
        if collects:
            gc.enable()


def _read(path: Path) -> events.Snapshot:
    with path.open("rb", buffering=0) as file:
        packed = file.read(2) == _GZIP
        most = most_unpacked(path) if packed else file.seek(0, io.SEEK_END)
        if not most:
            raise ValueError("the file is empty")
        file.seek(0)
        # GzipFile has all that a buffered reader asks of a raw file, but is none by its type
        raw = cast(io.RawIOBase, gzip.GzipFile(fileobj=file) if packed else file)
        return events.snapshot(_PlainData(_Source(raw, most)).load())


class _PlainData(pickle.Unpickler):
    """Builds what needs no import: numbers, text, lists, tuples, dicts, sets."""

    def find_class(self, module: str, name: str) -> None:
        wanted = f"{module}.{name}"[:60]
        raise ValueError(f"it wants to import {wanted!r}; nothing in the file was run")


class _Source(io.BufferedReader):
    """A snapshot's bytes."""

    def __init__(self, raw: io.RawIOBase, most: int):
        """most: bytes that there may be."""
        super().__init__(raw, _BUFFER)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        self._granted(size or 0)
        return super().read(size)

    def readinto(self, buffer) -> int:
        self._granted(len(buffer))
        return super().readinto(buffer)

    def _granted(self, size: int) -> None:
        """Refuse a length that the file does not have, before there is memory for it."""
        if size > self._most - self.tell():
            left = self._most - self.tell()
            told = f"{size} bytes are wanted where {left} are left"
            raise ValueError(f"{told}; if it unpacks to too much for you, gunzip it first")
