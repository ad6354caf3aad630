"""The cells of the memory study, the tables of their snapshots, and what to call them."""

import pandas as pd

from stepscope.report.data.profile import count
from stepscope.report.data.unprofiled import mode, same_point
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column
from stepscope.report.kit.order import MODES, label, machine_places, precision_rank, with_order
from stepscope.report.kit.table import marks
from stepscope.snapshot.table_names import CATEGORIES
from stepscope.tables.reader import Tables

EXTRA = ("batch", "options", "repeat", "hardware")
# A group of cells that differ in nothing but the context, or nothing but the precision, agrees in these and one more.
POINT = ("hardware", "size", "mode", "batch", "options")
_PASSES = {
    "inference": "inference",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the optimizer's update",
}


class Memory:
    """The memory study's tables, a cell's rows at a time, and the timing table beside them."""

    def __init__(self, tables: Tables):
        self.cells = _in_order(with_order(tables["memory"]))
        self.timing = with_order(tables["timing"])
        self._tables = tables
        self._parts: dict[str, dict[str, pd.DataFrame]] = {}
        self.all = self.cells.to_dict("records")
        self.recorded = [row for row in self.all if self.summary(row)]
        self.measured = [row for row in self.recorded if row["status"] == "ok"]

    def rows(self, name: str, row: dict) -> list[dict]:
        """A cell's rows of memory_<name>.csv, of the device with the largest peak; none where there are none."""
        found = self._part(name).get(row["cell"], pd.DataFrame())
        if "device" in found and name != "summary":
            found = found[found["device"] == self.summary(row).get("device")]
        return found.to_dict("records")

    def _part(self, name: str) -> dict[str, pd.DataFrame]:
        if name not in self._parts:
            frame = self._tables[f"memory_{name}"]
            self._parts[name] = dict(list(frame.groupby("cell", sort=False))) if len(frame) else {}
        return self._parts[name]

    def summary(self, row: dict) -> dict:
        """What the snapshot says of the cell as a whole; empty where there is no snapshot."""
        found = self.rows("summary", row)
        known = [each for each in found if formatting.known(each.get("peak_bytes"))]
        return max(known, key=lambda each: each["peak_bytes"], default={})

    def requested(self, row: dict) -> float | None:
        """Bytes that tensors asked for at the peak of the recorded steps, from the snapshot."""
        return self.summary(row).get("peak_bytes")

    def peak(self, row: dict) -> float | None:
        """Peak bytes: of the allocator's counter, or of the snapshot where there is no such counter (CPU)."""
        counted = row.get("peak_allocated_bytes")
        return counted if formatting.known(counted) else self.requested(row)

    def reserved(self, row: dict) -> float | None:
        """The most that the allocator held of the device; None where nothing is reserved, as on a CPU."""
        counted = row.get("peak_reserved_bytes")
        return counted if formatting.known(counted) and counted else None

    def at_peak(self, row: dict) -> dict[str, float]:
        """Category -> bytes at the snapshot's peak, in the categories' order."""
        found = {str(each["category"]): each["bytes"] for each in self.rows("peak", row)}
        return {name: found[name] for name in (*CATEGORIES, *sorted(set(found) - set(CATEGORIES))) if name in found}

    def account(self, row: dict, item: str) -> dict:
        """A row of the accounting; empty without one."""
        return next((each for each in self.rows("accounting", row) if each["item"] == item), {})

    def timed(self, row: dict) -> dict:
        """The timing study's row of the same point; empty where it was not timed."""
        return same_point(self.timing, row)

    def first_runs(self, rows: list[dict]) -> list[dict]:
        """Those of the first run of each point."""
        return [row for row in rows if row["repeat"] == 1]


def _in_order(cells: pd.DataFrame) -> pd.DataFrame:
    """Rows by hardware, size, mode, precision and context, so that neighbours differ in the context."""
    if cells.empty:
        return cells
    order = {name: place for place, name in enumerate(dict.fromkeys(cells["size"]))}
    ranks = pd.DataFrame(
        {
            "hardware": machine_places(cells["hardware"]),
            "parameters": cells.groupby("size")["parameters"].transform("max").fillna(float("inf")),
            "size": cells["size"].map(order),
            "mode": [MODES.index(name) if (name := mode(row)) in MODES else 9 for row in cells.to_dict("records")],
            "precision": cells["precision"].map(precision_rank),
        }
    )
    keys = ["context", "batch", "options", "repeat"]
    ranks[keys] = cells[keys]
    return cells.loc[ranks.sort_values(list(ranks), kind="stable").index].reset_index(drop=True)


def is_inference(row: dict) -> bool:
    """Does the cell run without gradients?"""
    return mode(row) == "inference"


def title(row: dict, memory: Memory, but: tuple[str, ...] = ()) -> str:
    """`2.7B, context 512, fp32, step`: a cell's point, with what varies among all cells; without the parts in `but`."""
    parts = {
        "size": str(row["size"] or "?"),
        "context": f"context {row['context']:,.0f}" if formatting.known(row["context"]) else "",
        "precision": str(row["precision"] or "?"),
        "mode": label(mode(row)),
        "batch": f"batch {row['batch']:,.0f}" if _varies(memory, "batch") and formatting.known(row["batch"]) else "",
        "options": row["options"],
        "repeat": f"run {row['repeat']}" if row["repeat"] > 1 else "",
        "hardware": f"on {row['hardware']}" if _varies(memory, "hardware") else "",
    }
    return ", ".join(part for name, part in parts.items() if part and name not in but)


def _varies(memory: Memory, name: str) -> bool:
    return name in memory.cells and memory.cells[name].nunique() > 1


def leading(memory: Memory, but: tuple[str, ...] = ()) -> list[Column]:
    """The columns that name a cell; without those in `but`."""
    return [
        Column(name, "tokens" if name == "context" else "", number=name in ("context", "batch", "repeat"))
        for name in _names(memory, but)
    ]


def _names(memory: Memory, but: tuple[str, ...]) -> list[str]:
    names = ["size", "mode", "precision", "context", *(name for name in EXTRA if _varies(memory, name))]
    return [name for name in names if name not in but]


def lead(row: dict, memory: Memory, but: tuple[str, ...] = ()) -> list[Cell]:
    """A cell's values in the leading columns, its marks in the first; OOM stands at the number that was reached."""
    cells = []
    for name in _names(memory, but):
        if name in ("context", "batch", "repeat"):
            cells.append(count(row[name]))
        else:
            cells.append(Cell(label(mode(row)) if name == "mode" else str(row[name] or "–")))
    lost = ("unsupported",) if row["status"] == "unsupported" else ()
    first = Cell(cells[0].text, cells[0].below, cells[0].sort, lost + marks(row))
    return [first, *cells[1:]]


def out_of_memory(row: dict) -> tuple[str, ...]:
    """The mark of what was reached until memory ran out."""
    return ("oom",) if row["status"] == "oom" else ()


def where(phase: object, module: object) -> str:
    """`the backward pass (loss)`: a phase, and the part of the model if one is known."""
    known = _PASSES.get(str(phase or ""), str(phase or "") or "no phase, between two steps")
    return f"{known} ({part(module)})" if module else known


def part(module: object) -> str:
    """`blocks.0: attention, softmax` for a part's path, with the block's number as the model counts it."""
    first, *rest = str(module or "").split("/")
    return f"{first}: {', '.join(rest)}" if rest else first
