"""Results of made-up times with known spreads, as a run of the timing study leaves them. For compare_runs_power.py.

A process's time of a phase is the true one times what its run, its cell and itself add, each with a spread that is
known. What launches limit follows the host, whose loop of plain Python tells how fast it was. Nothing is read or
written.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from stepscope.report.runs.reading import Results, results_of
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import GPU, LAUNCHES

LABEL = "made-up"
# Phases: mode, kind and phase of a series, and its share of a step.
SERIES = {
    "inference": ("inference", "free", "inference", 0.30),
    "free_forward": ("forward", "free", "forward", 0.31),
    "forward": ("step", "phased", "forward", 0.31),
    "backward": ("step", "phased", "backward", 0.60),
    "optimizer": ("step", "phased", "optimizer", 0.09),
    "forward_backward": ("forward-backward", "free", "forward+backward", 0.91),
    "step": ("step", "free", "step", 1.0),
}
SIZES = {"small": 8.0, "medium": 30.0, "large": 70.0, "xl": 140.0, "2.7B": 260.0}  # ms of a step at context 128
CONTEXTS = (128, 256, 512)
PRECISIONS = {"fp32": 1.0, "bf16": 0.4}
# That of config.yaml, and one of three times as many points.
CONTROL = tuple((*where, precision) for where in (("small", 128), ("medium", 512)) for precision in PRECISIONS)
LARGER_CONTROL = tuple(
    (size, context, precision)
    for size, context, precision in [
        *(
            (size, context, precision)
            for size in ("small", "medium")
            for context in (128, 512)
            for precision in PRECISIONS
        ),
        *((size, 256, precision) for size in ("xl", "small") for precision in PRECISIONS),
    ]
)
PROCESSES = 3
HOST_MS = 2.0
CLOCK = 1980.0


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of logarithms: of a process, of a cell beyond it, and of a run beyond both."""

    process: float
    cell: float
    run: float


# About as on an H200; docs/measuring.md has its numbers.
KNOWN = {GPU: Spreads(0.004, 0.003, 0.002), LAUNCHES: Spreads(0.06, 0.03, 0.01)}
HOST = 0.02  # of the host's speed from cell to cell


@dataclass(frozen=True)
class Point:
    """A cell of the grid, and the true time of its step in ms."""

    size: str
    context: int
    precision: str
    repeat: int
    step_ms: float

    @property
    def name(self) -> str:
        """Its folder below results/."""
        again = f"/repeat={self.repeat}" if self.repeat > 1 else ""
        return f"{LABEL}/timing/{self.size}/ctx{self.context}/{self.precision}{again}"

    @property
    def limited_by(self) -> str:
        """What limits all of its series."""
        return LAUNCHES if self.size == "small" else GPU


# What a change does to a phase of a cell: the factor by which it takes longer.
Change = Callable[[Point, str], float]


def grid(
    sizes: Iterable[str] = SIZES, contexts: Iterable[int] = CONTEXTS, control: Iterable[tuple] = CONTROL
) -> Iterator[Point]:
    """The points, those of the control once more at the end."""
    every = [(size, context, precision) for size in sizes for context in contexts for precision in PRECISIONS]
    for repeat, points in ((1, every), (2, control)):
        for size, context, precision in points:
            factor = PRECISIONS[precision] * context / CONTEXTS[0]
            own = SIZES[size] * factor if size != "small" else 30.0
            yield Point(size, context, precision, repeat, own)


def results(
    seed: int,
    change: Change = lambda point, phase: 1.0,
    points: Iterable[Point] | None = None,
    clock: float = 1.0,
    **more,
) -> Results:
    """A run of some points, or of the grid. change: what was planted; clock: factor of the SM clock; more: of the
    machine, as in a record's provenance."""
    draw = random.Random(seed)
    runs = {limit: draw.gauss(0, spreads.run) for limit, spreads in KNOWN.items()}
    return results_of([_cell(point, draw, runs, change, clock, more) for point in points or grid()], f"run {seed}")


def _cell(point: Point, draw: random.Random, runs: dict, change: Change, clock: float, more: dict) -> CellResult:
    spreads = KNOWN[point.limited_by]
    host = math.exp(draw.gauss(0, HOST))
    of_cell = math.exp(runs[point.limited_by] + draw.gauss(0, spreads.cell))
    of_cell *= host if point.limited_by == LAUNCHES else 1 / clock
    phases = []
    for name, (mode, kind, phase, share) in SERIES.items():
        true = point.step_ms / 1000 * share * change(point, name) * of_cell
        medians = [true * math.exp(draw.gauss(0, spreads.process)) for _ in range(PROCESSES)]
        launched = 0.97 if point.limited_by == LAUNCHES else 0.4
        phases.append(
            {"mode": mode, "kind": kind, "phase": phase, "status": "ok",
             "processes": [{"count": 10, "outliers": 0, "mean": each, "std": 0.001 * each, "median": each,
                            "iqr": 0.001 * each, "launch": launched * each} for each in medians]}
        )  # fmt: skip
    spec = {"study": "timing", "d_model": 64, "d_ff": 256, "num_layers": 2, "num_heads": 2, "vocab_size": 100,
            "context": point.context, "batch": 4, "precision": point.precision, "warmup": 2, "steps": 3, "seed": 0,
            "threads": 1, "device": "cuda"}  # fmt: skip
    spec |= {"repeat": point.repeat} if point.repeat > 1 else {}
    hardware = {"device": "cuda", "gpu": "A made-up GPU", "cpu": "A processor", "host_memory_bytes": 2**37,
                "gpu_memory_bytes": 2**36, "driver": "1.0", "power_limit_w": 700.0}  # fmt: skip
    provenance = {"command": "python scripts/time_step.py", "git_commit": "0" * 40, "duration_s": 10.0,
                  "started": "2030-01-01T00:00:00+00:00", "hardware": hardware | more,
                  "versions": {"python": "3.12", "torch": "3.0", "cuda": "13.0", "triton": "4.0"},
                  "settings": {"threads": 1}}  # fmt: skip
    modes = {mode: {"status": "ok", "reason": ""} for mode, *_ in SERIES.values()}
    record = {"schema_version": 1, "study": "timing", "spec": spec, "code": "c0de" * 4, "samples_sha256": "",
              "machine": {"device": "cuda", "gpu": "A made-up GPU", "gpu_memory_mib": 65536, "driver": "1.0"},
              "summary": {"modes": modes, "phases": phases}, "provenance": provenance,
              "telemetry": {"sm_clock_median_mhz": CLOCK * clock, "throttle": [], "other_processes": 0},
              "host": {"python": [HOST_MS / 1000 * host] * PROCESSES, "launches": [0.004 * host] * PROCESSES}
              }  # fmt: skip
    entry = {"cell": point.name, "size": point.size, "spec": spec, "code": record["code"], "command": "python"}
    return CellResult(entry, "measured", record)
