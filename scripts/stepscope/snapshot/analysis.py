"""All tables of one memory snapshot, and writing them."""

from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.files import replacing
from stepscope.snapshot import SnapshotError, categories, known, loader, phases, replay, stacks, tables
from stepscope.snapshot.events import ALLOC, Snapshot
from stepscope.snapshot.table_names import COLUMNS, TABLES

_OF_DEVICES = ("summary", "timeline", "phases", "peak", "peak_lines", "largest", "churn")


def analyse_file(path: Path, known_path: Path | None = None) -> dict[str, pd.DataFrame]:
    """Table name → table of a snapshot's file. known_path: its side file (default: the known.json beside it).

    Raises SnapshotError, whose text is one line for the user.
    """
    known_path = known_path or known.beside(path)
    side = known.read(known_path) if known_path else None
    snapshot = loader.read(path)
    try:
        return analyse(snapshot, side)
    except SnapshotError as error:  # the snapshot itself has been read
        raise SnapshotError(f"{known_path}: {error}") from None
    except MemoryError:
        raise SnapshotError(f"{path}: there is not enough memory for it; record fewer steps") from None


def analyse(snapshot: Snapshot, side: known.Known | None = None) -> dict[str, pd.DataFrame]:
    """Table name → table, one device after the other. known.json describes the device that allocates most.

    Raises SnapshotError, without a file's name, if known.json belongs to another snapshot.
    """
    lines = [*stacks.user_lines(snapshot), ""]
    python = np.array([*stacks.has_python(snapshot), False])
    kinds, casts = stacks.kinds(snapshot), stacks.casts(snapshot)
    busiest = max(snapshot.devices, key=lambda each: (each.action == ALLOC).sum(), default=None)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in _OF_DEVICES}
    for device in snapshot.devices:
        replayed = replay.replay(device)
        cut = replayed.contradicted
        if side is not None and device is busiest:
            cut |= bool(phases.missing(device, side).any())
            if not categories.belongs(replayed, side, cut):
                raise SnapshotError(f"it belongs to another snapshot; {known.ADVICE}")
            blocks = categories.from_known(replayed, phases.from_marks(side, device), side, kinds, casts)
        else:
            cut |= replayed.forgotten or phases.began_before(device, snapshot.annotations)
            derived = phases.derived(device, snapshot.annotations, kinds)
            blocks = categories.from_stacks(replayed, derived, kinds, casts)
        own = tables.Device(blocks, lines, python)
        annotations = sum(each.starts for each in snapshot.annotations if each.device == device.number)
        parts["summary"].append(tables.summary(own, annotations, cut))
        for name in _OF_DEVICES[1:]:
            parts[name].append(getattr(tables, name)(own))
    found = {name: pd.concat(own, ignore_index=True) if own else pd.DataFrame() for name, own in parts.items()}
    found["saved"] = tables.saved(side) if side else pd.DataFrame()
    found["tensors"] = tables.tensors(side) if side else pd.DataFrame()
    for name, table in found.items():
        assert set(table.columns) <= set(COLUMNS[name]), f"{name} has columns that are not declared"
    return {name: found[name].reindex(columns=COLUMNS[name]) for name in TABLES}


def empty() -> dict[str, pd.DataFrame]:
    """The tables of a cell without a snapshot: columns and no rows."""
    return {name: pd.DataFrame(columns=COLUMNS[name]) for name in TABLES}


def write(found: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write NAME.csv for each table, all of them or none; a table without rows is its header."""
    with replacing([folder / f"{name}.csv" for name in found]) as parts:
        for table, part in zip(found.values(), parts, strict=True):
            table.to_csv(part, index=False, float_format="%.9g", lineterminator="\n")
