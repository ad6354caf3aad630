"""What a cell costs before it runs, by formula: seconds, GPU memory, and bytes of what it records.

A cell is its processes, one after another; each starts (Python, torch, the model, a profiler), then runs its steps. A
step takes its floating-point operations at a rate, but no less than its launches. The rates are those that the
example's H100 reached, or a processor, unless the ceilings of the machine at hand are known. estimate.py sets what
was measured before in place of the formula; both are for planning a night, not for comparing anything.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepscope.axes import modes_up_to, option
from stepscope.config.grid import Cell
from stepscope.model import flops, footprint_peak
from stepscope.model.footprint import Setup
from stepscope.model.shape import ModelShape

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
CEILING = {"fp32": 51e12, "tf32": 361e12, "bf16": 773e12, "fp16": 739e12}  # of a large matrix product on that GPU
LAUNCHES = 2.7e-3  # seconds of a step for each block where launches limit it

# The same of one thread of a server's processor (AMD EPYC), as size nano reached at context 64 in fp32; 16 bits are
# half as fast.
CPU_RATE = {"fp32": 30e9, "tf32": 30e9, "bf16": 15e9, "fp16": 15e9}
CPU_CEILING = {"fp32": 68e9, "tf32": 68e9, "bf16": 34e9, "fp16": 34e9}
CPU_LAUNCHES = 1e-3

# Bytes of a cell's trace or snapshot, by a rule of thumb: those of the committed example, with its largest tables of
# samples, took 94 MB in 49 cells.
RECORDED = {"profile": 2 * 2**20, "memory": 2 * 2**20}


@dataclass(frozen=True)
class Rates:
    """How fast a machine is: operations a second by precision (of a thread, where the spec's device is a CPU), seconds
    of a step for each block at least, and seconds in which a process starts, by study."""

    operations: Mapping[str, float]
    launches: float
    start: Mapping[str, float]


H100 = Rates(RATE, LAUNCHES, START)
PROCESSOR = Rates(CPU_RATE, CPU_LAUNCHES, START)


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
    """What these cells cost together on the example's GPU."""
    cells = list(cells)
    largest = max(cells, key=peak_bytes, default=None)
    most = peak_bytes(largest) if largest else 0
    unknown = sum("model" in cell.spec for cell in cells)
    return Cost(len(cells), sum(map(seconds, cells)), most, largest if most else None, unknown)


def rates(device: str, ceilings: Mapping[str, float]) -> Rates:
    """Those of a machine whose matrix products reach `ceilings` (operations a second by precision, of a thread on a
    CPU): a step reaches the same share of its ceiling as there where the share is known.

    A precision without a ceiling is as much faster or slower as the others are on average; without any ceiling all
    are as known.
    """
    usual, best = (RATE, CEILING) if device == "cuda" else (CPU_RATE, CPU_CEILING)
    ratios = {name: found / best[name] for name, found in ceilings.items() if name in best}
    common = sum(ratios.values()) / len(ratios) if ratios else 1.0
    operations = {name: rate * ratios.get(name, common) for name, rate in usual.items()}
    return Rates(operations, (H100 if device == "cuda" else PROCESSOR).launches, START)


def seconds(cell: Cell, at: Rates = H100) -> float:
    """How long a cell takes. The steps of lighter modes count as whole ones."""
    return spec_seconds(cell.spec, at)


def spec_seconds(spec: dict, at: Rates = H100) -> float:
    """The same of a cell's spec."""
    steps = _steps(spec) * step_seconds(spec, at) if _runs_model(spec) else 0.0
    return spec.get("processes", 1) * (at.start[spec["study"]] + steps)


def step_seconds(spec: dict, at: Rates = H100) -> float:
    """One training step: its operations at the rate, at least the launches of each block."""
    shape = ModelShape.of(spec)
    rate = at.operations[spec["precision"]] * (spec["threads"] if spec["device"] == "cpu" else 1)
    return max(flops.step_flops(shape, spec["batch"], spec["context"]) / rate, at.launches * shape.num_layers)


def peak_bytes(cell: Cell) -> int:
    """The closed form's peak of a cell that runs the model, compiled or not, nothing computed twice; else 0."""
    spec = cell.spec
    if not _runs_model(spec):
        return 0
    options = {name: option(spec, name) for name in ("attention", "optimizer")}
    setup = Setup(ModelShape.of(spec), spec["batch"], spec["context"], spec["precision"], **options)
    return _peak(setup, option(spec, "mode"))


@functools.cache
def _peak(setup: Setup, mode: str) -> int:
    """Bytes; kept, since many cells of a plan are of one setup."""
    return footprint_peak.peak(setup, mode).bytes


def recorded_bytes(spec: dict) -> int:
    """Bytes of a cell's trace or snapshot by a rule of thumb; 0 of a study that records none."""
    return RECORDED.get(spec["study"], 0)


def _runs_model(spec: dict) -> bool:
    """Whether it runs the model whose operations and memory are known by formula."""
    return "d_model" in spec and "steps" in spec


def _steps(spec: dict) -> int:
    """Steps of a process. Timing runs those of each mode that its own includes."""
    each = spec["warmup"] + spec["steps"]
    return each * (len(modes_up_to(option(spec, "mode"))) if spec["study"] == "timing" else 1)
