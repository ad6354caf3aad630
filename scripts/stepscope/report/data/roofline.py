"""Roofs of a machine and the points below them: rates of phases and of attention over their arithmetic intensity."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from stepscope.axes import STEP_PHASES as PHASES
from stepscope.model import flops, traffic
from stepscope.model.footprint import Setup
from stepscope.report.data.attention import Attention, Group, median
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.profile_parts import shape_of
from stepscope.report.kit import formatting
from stepscope.report.kit.order import column, machine_labels, main_grid, ordered, precision_rank
from stepscope.tables import peaks
from stepscope.tables.reader import Tables

ROOFS = ("measured", "data sheet")
_SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
_LOST = ("failed", "missing")


@dataclass(frozen=True, slots=True)
class Roof:
    """The highest rate of arithmetic, in TFLOP/s, and the memory's bandwidth, in GB/s."""

    rate: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The intensity (FLOP/byte) from which on arithmetic is the limit, and below which memory is."""
        return 1000 * self.rate / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """TFLOP/s at an intensity (Williams, Waterman and Patterson, Roofline, 2009)."""
        return min(self.rate, intensity * self.bandwidth / 1000)

    def limit(self, intensity: float) -> str:
        """Which of the two limits at an intensity."""
        return "memory" if intensity < self.ridge else "arithmetic"


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """One phase of a cell, or one direction of attention at one length.

    series: the model size, or the implementation. tokens: context or length. bytes: at the least. tflops: reached.
    cell: the name of the cell that it is of.
    """

    hardware: str
    precision: str
    series: str
    tokens: int
    phase: str
    flop: float
    bytes: float
    tflops: float | None
    status: str
    noisy: bool
    throttled: bool
    d_head: int = 0
    cell: str = ""

    @property
    def doubtful(self) -> bool:
        """Is its time one to be careful with?"""
        return self.noisy or self.throttled

    @property
    def intensity(self) -> float:
        """FLOP/byte, at the most."""
        return self.flop / self.bytes

    def share(self, roof: Roof | None) -> float | None:
        """Reached over attainable; None without one of them."""
        return self.tflops / roof.attainable(self.intensity) if roof and self.tflops else None


def measured_roof(ceilings: pd.DataFrame, hardware: str, precision: str) -> Roof | None:
    """The large matrix product in this precision and the large copy; None unless both were measured."""
    rate = matmul_ceiling(ceilings, hardware, precision)
    own = column(ceilings, "gb_per_s")[column(ceilings, "hardware") == hardware].astype(float).dropna()
    return Roof(rate, float(own.max())) if rate and len(own) else None


def data_sheet_roof(gpu: str | None, precision: str) -> Roof | None:
    """The roof by the data sheet; None for a GPU or a format that it does not list."""
    rate, bandwidth = peaks.tflops(gpu, precision), peaks.bandwidth(gpu)
    return Roof(rate, bandwidth) if rate and bandwidth else None


def device_name(tables: Tables, hardware: str) -> str | None:
    """The name of the device behind a hardware label, as its driver gives it."""
    for study in ("timing", "ceilings", "attention"):
        names = column(tables[study], "device_name")[column(tables[study], "hardware") == hardware].dropna()
        if len(names):
            return str(names.iloc[0])
    return None


def roofs(tables: Tables, hardware: str, precision: str) -> dict[str, Roof | None]:
    """Both roofs of a machine in a precision, by their names in ROOFS."""
    known = measured_roof(tables["ceilings"], hardware, precision)
    return dict(zip(ROOFS, (known, data_sheet_roof(device_name(tables, hardware), precision)), strict=True))


def groups(points: Iterable[RoofPoint]) -> list[tuple[str, str, list[RoofPoint]]]:
    """(hardware, precision, points) in their order."""
    found: dict[tuple[str, str], list[RoofPoint]] = {}
    for point in points:
        found.setdefault((point.hardware, point.precision), []).append(point)
    places = machine_labels(hardware for hardware, _ in found)
    ranked = sorted(found, key=lambda key: (places.index(key[0]), precision_rank(key[1])))
    return [(*key, found[key]) for key in ranked]


def model_points(timing: pd.DataFrame) -> list[RoofPoint]:
    """Forward, backward and optimizer of the cells of the main grid, by size and context.

    Phases that a cell's mode does not have are left out, and so are compiled and checkpointed models, whose activations
    have no closed form.
    """
    grid = main_grid(timing)
    if grid.empty:
        return []
    plain = (column(grid, "compile").fillna("none") == "none") & (
        column(grid, "checkpoint").fillna("0").astype(str).str.removesuffix(".0") == "0"
    )
    rows = grid[plain].dropna(subset=[*_SHAPE, "context", "batch"]).to_dict("records")
    return [point for row in rows for phase in PHASES for point in _model_point(row, phase)]


def _model_point(row: dict, phase: str) -> list[RoofPoint]:
    status = row["status"] if row["status"] in _LOST else row.get(f"{phase}_status")
    if status is None:
        return []
    shape = shape_of(row)
    batch, context = int(row["batch"]), int(row["context"])
    setup = Setup(shape, batch, context, str(row["precision"]), str(row.get("attention") or "naive"))
    if phase == "optimizer":
        flop, moved = traffic.optimizer_flops(setup), traffic.optimizer_bytes(setup)
    elif phase == "forward":
        flop, moved = flops.forward_flops(shape, batch, context), traffic.forward_bytes(setup)
    else:
        flop, moved = flops.backward_flops(shape, batch, context), traffic.backward_bytes(setup)
    time = row.get(f"{phase}_median_ms")
    reached = flop / time / 1e9 if formatting.known(time) and time > 0 else None
    marks = bool(row.get(f"{phase}_noisy")), bool(row.get("throttle"))
    place = str(row["hardware"]), str(row["precision"]), str(row["size"])
    return [RoofPoint(*place, context, phase, flop, moved, reached, str(status), *marks, cell=str(row["cell"]))]


def attention_groups(tables: Tables) -> list[Group]:
    """A machine's results of attention in one setting: that with the most times, of those with a fixed batch if any."""
    attention = Attention(tables)
    return [max(attention.of(hardware), key=_how_full) for hardware in attention.hardware]


def _how_full(group: Group) -> tuple[bool, int]:
    count = sum(1 for row in group.rows if median(row))
    return (bool(count) and not group.setting.tokens and not group.setting.is_special, count)


def attention_points(group: Group) -> list[RoofPoint]:
    """Every implementation, d_head, length and direction of a group."""
    points = []
    for row in group.rows:
        if not all(formatting.known(row.get(name)) for name in ("length", "d_head", "batch")):
            continue
        heads = int(row["heads"]) if formatting.known(row.get("heads")) else 0
        sizes = int(row["batch"]), heads or 1, int(row["length"]), int(row["d_head"])
        precision, way, time = str(row["precision"]), str(row["direction"]), median(row)
        own = group.setting
        flop = flops.attention_flops(*sizes, own.mask, way, own.keys or None, own.window or None)
        place = str(row["hardware"]), precision, str(row["implementation"])
        moved = traffic.attention_bytes(*sizes, precision, way, own.kv_heads or None, own.keys or None)
        reached = flop / time / 1e9 if time else None
        marks = bool(row.get("noisy")), bool(row.get("throttle"))
        about = *marks, sizes[3], str(row["cell"])
        points.append(RoofPoint(*place, sizes[2], way, flop, moved, reached, str(row["status"]), *about))
    return points


def fullest_d_head(points: list[RoofPoint]) -> int:
    """The d_head with the most rates, the largest of them; 0 without one."""
    counts = {each: sum(1 for point in points if point.d_head == each and point.tflops) for each in _d_heads(points)}
    return max(counts, key=lambda each: (counts[each], each), default=0)


def _d_heads(points: list[RoofPoint]) -> list[int]:
    return ordered([point.d_head for point in points])
