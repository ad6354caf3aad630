"""Opens a memory snapshot: .pickle or .pickle.gz, of any size.

Python's unpickler builds plain data and may import nothing, so that nothing in a file is run. What
a hostile file can still ask of it (hashes without end, memory, depth) ends in the limits of
recordings/limits.py, under which the programs read a stranger's file.

A snapshot is millions of events, each a dict, which together with the file take four to six times
its size until they are columns of numbers.
"""

import gc
import io
import pickle
from pathlib import Path

from stepscope.recordings.limits import reading, unpacked

from . import SnapshotError, events


def read(path: Path) -> events.Snapshot:
    """The snapshot in a file that torch.cuda.memory._dump_snapshot wrote. Raises SnapshotError with
    one line."""
    # plain data has no cycles worth collecting, and looking for them takes longer than reading
    gc.disable()
    advice = "give a file of torch.cuda.memory._dump_snapshot, recorded or copied again"
    try:
        with reading(path, "a memory snapshot of PyTorch", SnapshotError, advice):
            return events.snapshot(_PlainData(io.BytesIO(unpacked(path))).load())
    finally:
        gc.enable()


class _PlainData(pickle.Unpickler):
    """Builds what needs no import: numbers, text, lists, tuples, dicts, sets."""

    def find_class(self, module: str, name: str) -> None:
        wanted = f"{module}.{name}"[:60]
        raise ValueError(f"it wants to import {wanted!r}; nothing in the file was run")
