"""What a grid costs before it runs: cells, minutes, GPU memory. By formula, with rates that the example's H100 reached.

A cell is its processes, one after another; each starts (Python, torch, the model, a profiler), then runs its steps. A
step takes its floating-point operations at a rate, but no less than its launches. Another GPU takes longer or less in
proportion; the estimate is for planning a night, not for comparing anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.axes import modes_up_to, option
from stepscope.model import flops, footprint_peak
from stepscope.model.footprint import Setup
from stepscope.model.shape import ModelShape
from stepscope.plan.grid import Cell

# Seconds of a process besides its steps: medians of the committed example, of its shortest cells.
START = {
    "timing": 1.6,
    "ceilings": 1.0,
    "profile": 11.0,
    "memory": 7.0,
    "attention": 5.5,
    "precision": 3.7,
    "warmup": 2.0,
    "ladder": 4.5,
}
# Operations a second in a naive training step where the GPU limits it, as the example's 2.7B at context 512 reached.
RATE = {"fp32": 40e12, "tf32": 100e12, "bf16": 160e12, "fp16": 160e12}
LAUNCHES = 2.7e-3  # seconds of a step for each block where launches limit it


@dataclass(frozen=True)
class Cost:
    """seconds: of all cells, one after another. peak: bytes of the cell that needs most of a GPU, by the closed form;
    largest: that cell, None where no cell runs the model. unknown: cells of models of one's own, which have no closed
    form before they are built; their starts alone are in the seconds."""

    cells: int
    seconds: float
    peak: int
    largest: Cell | None
    unknown: int = 0


def cost(cells: Iterable[Cell]) -> Cost:
    """What these cells cost together."""
    cells = list(cells)
    largest = max(cells, key=peak_bytes, default=None)
    most = peak_bytes(largest) if largest else 0
    unknown = sum("model" in cell.spec for cell in cells)
    return Cost(len(cells), sum(map(seconds, cells)), most, largest if most else None, unknown)


def seconds(cell: Cell) -> float:
    """How long a cell takes on the example's GPU. The steps of lighter modes count as whole ones."""
    spec = cell.spec
    steps = _steps(spec) * step_seconds(spec) if _runs_model(spec) else 0.0
    return spec.get("processes", 1) * (START[cell.study] + steps)


def step_seconds(spec: dict) -> float:
    """One training step: its operations at RATE, at least LAUNCHES a block."""
    shape = ModelShape.of(spec)
    arithmetic = flops.step_flops(shape, spec["batch"], spec["context"]) / RATE[spec["precision"]]
    return max(arithmetic, LAUNCHES * shape.num_layers)


def peak_bytes(cell: Cell) -> int:
    """The closed form's peak of a cell that runs the model, compiled or not, nothing computed twice; else 0."""
    spec = cell.spec
    if not _runs_model(spec):
        return 0
    options = {name: option(spec, name) for name in ("attention", "optimizer")}
    setup = Setup(ModelShape.of(spec), spec["batch"], spec["context"], spec["precision"], **options)
    return footprint_peak.peak(setup, option(spec, "mode")).bytes


def _runs_model(spec: dict) -> bool:
    """Whether it runs the model whose operations and memory are known by formula."""
    return "d_model" in spec and "steps" in spec


def _steps(spec: dict) -> int:
    """Steps of a process. Timing runs those of each mode that its own includes."""
    each = spec["warmup"] + spec["steps"]
    return each * (len(modes_up_to(option(spec, "mode"))) if spec["study"] == "timing" else 1)
