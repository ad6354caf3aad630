"""The cells of the memory study and the tables of their snapshots, and what follows from them: what one block saves
for backward, what another precision changes at the peak, which contexts fit, how far the closed form is off."""

from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.unprofiled import mode, same_point
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import by_fields, pairs
from stepscope.report.kit.order import MODES, label, machine_places, precision_rank, with_order
from stepscope.snapshot.table_names import CATEGORIES
from stepscope.tables.reader import Tables

# A group of cells that differ in nothing but the context, or nothing but the precision, agrees in these and one more.
POINT = ("hardware", "size", "mode", "batch", "options")
REFERENCE = "fp32"
NAMED_FROM = 0.005  # share of the reference's peak from which on a category's change is named
_CAUSE = 0.01  # share of the measured peak from which on a category is a cause of a wrong prediction


class Memory:
    """The memory study's tables, a cell's rows at a time, and the timing table beside them."""

    def __init__(self, tables: Tables):
        self.cells = _in_order(with_order(tables["memory"]))
        self.timing = with_order(tables["timing"])
        self._tables = tables
        self._parts: dict[str, dict[str, pd.DataFrame]] = {}
        self._timed: dict[str, dict] = {}
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

    def unused(self, row: dict) -> tuple[float, float] | None:
        """(bytes that were reserved but not active at the peak, bytes reserved then); None where none are reserved."""
        summary = self.summary(row) if self.reserved(row) else {}
        unused, reserved = summary.get("unused_at_peak_bytes"), summary.get("reserved_at_peak_bytes")
        return (unused, reserved) if formatting.known(unused) and formatting.known(reserved) and reserved else None

    def at_peak(self, row: dict) -> dict[str, float]:
        """Category -> bytes at the snapshot's peak, in the categories' order."""
        found = {str(each["category"]): each["bytes"] for each in self.rows("peak", row)}
        return {name: found[name] for name in (*CATEGORIES, *sorted(set(found) - set(CATEGORIES))) if name in found}

    def account(self, row: dict, item: str) -> dict:
        """A row of the accounting; empty without one."""
        return next((each for each in self.rows("accounting", row) if each["item"] == item), {})

    def timed(self, row: dict) -> dict:
        """The timing study's row of the same point; empty where it was not timed."""
        if row["cell"] not in self._timed:
            self._timed[row["cell"]] = same_point(self.timing, row)
        return self._timed[row["cell"]]

    def first_runs(self, rows: list[dict]) -> list[dict]:
        """Those of the first run of each point, after its warm-up: a cold start is the same point again."""
        return [row for row in rows if row["repeat"] == 1 and not is_cold(row)]

    def varies(self, name: str) -> bool:
        """Whether the cells differ in a column."""
        return name in self.cells and self.cells[name].nunique() > 1


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


def is_cold(row: dict) -> bool:
    """Were the cell's first steps recorded, without a warm-up before them?"""
    return row.get("start") == "cold"


def is_inference(row: dict) -> bool:
    """Does the cell run without gradients?"""
    return mode(row) == "inference"


def title(row: dict, memory: Memory, but: tuple[str, ...] = ()) -> str:
    """`2.7B, context 512, fp32, step`: a cell's point, with what varies among all cells; without the parts in `but`."""
    several_batches = memory.varies("batch") and formatting.known(row["batch"])
    parts = {
        "size": str(row["size"] or "?"),
        "context": f"context {row['context']:,.0f}" if formatting.known(row["context"]) else "",
        "precision": str(row["precision"] or "?"),
        "mode": label(mode(row)),
        "batch": f"batch {row['batch']:,.0f}" if several_batches else "",
        "options": row["options"],
        "repeat": f"run {row['repeat']}" if row["repeat"] > 1 else "",
        "hardware": f"on {row['hardware']}" if memory.varies("hardware") else "",
    }
    return ", ".join(part for name, part in parts.items() if part and name not in but)


def part(module: object) -> str:
    """`blocks.0: attention, softmax` for a part's path, with the block's number as the model counts it."""
    first, *rest = str(module or "").split("/")
    return f"{first}: {', '.join(rest)}" if rest else first


@dataclass(frozen=True)
class Saved:
    """What one block of a cell keeps for backward: equal tensors together, the largest first.

    Parameters and autocast's copies of weights do not count.
    """

    row: dict
    tensors: list[dict]

    @property
    def bytes(self) -> float:
        """Of all tensors; 0 where they are not known."""
        return sum(each["bytes"] for each in self.tensors)

    @property
    def squared_share(self) -> float | None:
        """The share of the bytes that grows with the context squared; None where it is not known."""
        least = 0.01 * self.bytes
        if not self.tensors or any(not each["formula"] for each in self.tensors if each["bytes"] >= least):
            return None
        squared = [each for each in self.tensors if str(each["formula"]).split(" × ").count("context") > 1]
        return sum(each["bytes"] for each in squared) / self.bytes


def tensor_key(each: dict) -> tuple:
    """What equal tensors of a block have in common; at another context too, if their formula is known."""
    return (each["module"], each["op"], each["formula"] or each["shape"])


def saved_by_block(memory: Memory, row: dict) -> Saved:
    """What one block of this cell saves."""
    found: dict[tuple, dict] = {}
    for each in memory.rows("saved", row):
        if each["part"] == "block" and each["category"] == "activations":
            key = tensor_key(each)
            if key in found:
                found[key] = found[key] | {name: found[key][name] + each[name] for name in ("tensors", "bytes")}
            else:
                found[key] = each
    return Saved(row, sorted(found.values(), key=lambda each: -each["bytes"]))


def saved_by_blocks(memory: Memory) -> list[Saved]:
    """Of each first run whose saved tensors are known from a whole step."""
    known = [row for row in memory.recorded if row["status"] == "ok" or row["recorded"] == "measured steps"]
    return [found for row in memory.first_runs(known) if (found := saved_by_block(memory, row)).tensors]


def category_changes(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Category -> bytes of `after` less those of `before`, the largest change first; none unless both are known."""
    if not (before and after):
        return {}
    found = {name: after.get(name, 0) - before.get(name, 0) for name in {**before, **after}}
    return dict(sorted(found.items(), key=lambda entry: -abs(entry[1])))


@dataclass(frozen=True)
class PeakChange:
    """A cell's peak beside that of the fp32 cell at the same point."""

    row: dict
    reference: dict
    peaks: tuple[float | None, float | None]  # bytes, of the reference and of the cell
    changes: dict[str, float]  # category -> bytes, largest change first; only where both peaks lie in the same place
    places: tuple[tuple[str, str], tuple[str, str]]  # (phase, part of the model) of the reference's peak and the cell's

    @property
    def share(self) -> float | None:
        """The peak's difference over the reference's peak; None unless both finished."""
        finished = self.row["status"] == self.reference["status"] == "ok" and all(map(formatting.known, self.peaks))
        return (self.peaks[1] - self.peaks[0]) / self.peaks[0] if finished and self.peaks[0] else None

    @property
    def difference(self) -> float | None:
        """Of the peaks, in bytes; None unless both finished."""
        return None if self.share is None else self.peaks[1] - self.peaks[0]

    @property
    def is_moved(self) -> bool:
        """Whether the two peaks are of different moments of a step, so that their categories are not comparable."""
        return is_moved(*self.places)

    @property
    def fitting(self) -> list[str]:
        """The precisions that did not run out of memory."""
        return [row["precision"] for row in (self.reference, self.row) if row["status"] == "ok"]

    def named(self, sign: int) -> dict[str, float]:
        """The categories that grew (sign 1) or shrank (−1) by what is worth naming."""
        least = NAMED_FROM * self.peaks[0]
        return {name: value for name, value in self.changes.items() if sign * value >= least}


def peak_changes(memory: Memory) -> list[PeakChange]:
    """Each first run in another precision beside fp32 at the same point, where both were tried."""
    tried = [row for row in memory.first_runs(memory.all) if row["status"] in ("ok", "oom")]
    both = pairs(tried, "precision", REFERENCE, by_fields(*POINT, "context"))
    return [_peak_change(memory, row, reference) for row, reference in both]


def _peak_change(memory: Memory, row: dict, reference: dict) -> PeakChange:
    finished = row["status"] == reference["status"] == "ok"
    places = tuple(peak_place(memory, each) for each in (reference, row))
    is_comparable = finished and not is_moved(*places)
    changes = category_changes(memory.at_peak(reference), memory.at_peak(row)) if is_comparable else {}
    return PeakChange(row, reference, (memory.peak(reference), memory.peak(row)), changes, places)


def is_moved(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two places are of different moments: other phases, or other parts of a phase in which gradients come or
    activations pile up from part to part. Inference keeps nothing of a part but what autocast casts."""
    return one != other and (one[0] != other[0] or one[0] != "inference")


def peak_place(memory: Memory, row: dict) -> tuple[str, str]:
    """(phase, part of the model) in which a cell's recorded peak lies; empty words where it is in none."""
    summary = memory.summary(row)
    return str(summary.get("peak_phase") or ""), str(summary.get("peak_module") or "")


def apart(predicted: object, measured: object) -> float | None:
    """(predicted − measured) / measured; None where that is not known."""
    if not (formatting.known(predicted) and formatting.known(measured)) or (predicted and not measured):
        return None
    return (predicted - measured) / measured if measured else 0.0


def peak_apart(row: dict, measured: object) -> float | None:
    """apart() of a cell's peak; None unless the cell is ok."""
    return apart(row.get("predicted_peak_bytes"), measured) if row["status"] == "ok" else None


def prediction_error(memory: Memory, row: dict) -> float | None:
    """peak_apart() of the bytes that tensors ask for at the peak."""
    return peak_apart(row, memory.requested(row))


def prediction_causes(memory: Memory, row: dict) -> dict[str, float]:
    """Category -> predicted less measured bytes at the peak, of those that differ by more than a little.

    None where the predicted peak lies in another phase than the measured one: other things are alive there.
    """
    if str(row.get("predicted_phase") or "") != peak_place(memory, row)[0]:
        return {}
    predicted: dict[str, float] = {}
    for each in memory.rows("predicted", row):
        predicted[str(each["category"])] = predicted.get(str(each["category"]), 0.0) + each["bytes"]
    least = _CAUSE * memory.requested(row)
    changes = category_changes(memory.at_peak(row), predicted)
    return {name: value for name, value in changes.items() if abs(value) >= least}


def by_context(rows: list[dict]) -> list[list[dict]]:
    """Groups of cells that differ in nothing but the context."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((*(row[name] for name in POINT), row["precision"]), []).append(row)
    return list(groups.values())


@dataclass(frozen=True)
class Limit:
    """Cells that differ only in the context, and which contexts (tokens) fit."""

    rows: list[dict]
    predicted: tuple[float, float] | None  # the first context too long, as the cells' smallest and largest prediction
    fitted: float | None  # the longest that was measured
    failed: float | None  # the shortest that ran out of memory

    @property
    def verdict(self) -> str:
        """`as predicted`, `not reached`, or what contradicts; empty without a prediction or a measurement."""
        if self.predicted is None or (self.fitted is None and self.failed is None):
            return ""
        low, high = self.predicted
        if self.fitted is not None and self.fitted >= high:
            return "more fits than predicted"
        if self.failed is not None and self.failed < low:
            return "less fits than predicted"
        return "not reached" if self.failed is None else "as predicted"


def limits(memory: Memory) -> list[Limit]:
    """One for each size, mode, precision and options."""
    return [_limit(rows) for rows in by_context(memory.first_runs(memory.all))]


def _limit(rows: list[dict]) -> Limit:
    told = [row["predicted_first_context_too_long"] for row in rows]
    told = [value for value in told if formatting.known(value)]
    fitted = [row["context"] for row in rows if row["status"] == "ok"]
    failed = [row["context"] for row in rows if row["status"] == "oom"]
    predicted = (min(told), max(told)) if told else None
    return Limit(rows, predicted, max(fitted, default=None), min(failed, default=None))
