"""All tables of one memory snapshot."""

from pathlib import Path

import pandas as pd

from . import (
    SnapshotError,
    categories,
    known,
    loader,
    phases,
    replay,
    stacks,
    tables,
)
from .events import ALLOC, Snapshot

_OF_DEVICES = ("summary", "timeline", "peak", "largest", "lines")


def analyse_file(path: Path, known_path: Path | None = None) -> dict[str, pd.DataFrame]:
    """Table name → table of a snapshot's file. known_path: its side file (default: the known.json
    beside it).

    Raises SnapshotError, whose text is one line for the user.
    """
    known_path = known_path or known.beside(path)
    side = known.read(known_path) if known_path else None
    try:
        return analyse(loader.read(path), side)
    except known.Foreign:
        raise SnapshotError(
            f"{known_path}: it belongs to another snapshot; {known.ADVICE}"
        ) from None
    except MemoryError:
        raise SnapshotError(
            f"{path}: there is not enough memory for it; record fewer steps"
        ) from None


def analyse(snapshot: Snapshot, side: known.Known | None = None) -> dict[str, pd.DataFrame]:
    """Table name → table, one device after the other. known.json describes the device that
    allocates most.

    Raises known.Foreign if known.json belongs to another snapshot.
    """
    lines = [*stacks.user_lines(snapshot), ""]
    python = stacks.has_python(snapshot)
    kinds, casts = stacks.kinds(snapshot), stacks.casts(snapshot)
    busiest = max(snapshot.devices, key=lambda each: (each.action == ALLOC).sum(), default=None)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in _OF_DEVICES}
    for device in snapshot.devices:
        replayed = replay.replay(device)
        cut = replayed.contradicted
        if side is not None and device is busiest:
            if not categories.belongs(replayed, side):
                raise known.Foreign
            blocks = categories.from_known(
                replayed, phases.from_marks(side, device), side, kinds, casts
            )
        else:
            cut |= replayed.forgotten or phases.began_before(device, snapshot.annotations)
            derived = phases.derived(device, snapshot.annotations, kinds)
            blocks = categories.from_stacks(replayed, derived, kinds, casts)
        table = tables.of_blocks(blocks, lines)
        made = {
            "summary": tables.summary(blocks, cut, lines, python),
            "timeline": tables.timeline(blocks),
            "peak": tables.peak(table),
            "largest": tables.largest(table, blocks),
            "lines": tables.lines(table, snapshot),
        }
        for name, own in made.items():
            texts = own.select_dtypes("category").columns
            plain = own.astype(dict.fromkeys(texts, object))
            plain.insert(0, "device", device.number)
            parts[name].append(plain)
    found = {
        f"memory_{name}": pd.concat(own) if own else pd.DataFrame() for name, own in parts.items()
    }
    if side is not None:
        found["memory_saved"] = tables.saved(side)
    return found
