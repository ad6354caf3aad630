"""Launch-bound or GPU-bound, memory-bound or compute-bound: the rules, and the numbers that they judge."""

from dataclasses import dataclass

import pandas as pd

from stepscope.axes import PRECISIONS
from stepscope.report.data.profile import GPU, Profile
from stepscope.report.data.profile_parts import product_flops, shape_of
from stepscope.report.data.roofline import Roof
from stepscope.report.data.unprofiled import free_step
from stepscope.report.kit import formatting

GPU_BOUND, LAUNCH_BOUND = 0.9, 0.7
LATENCY_US = 5.0
# Categories whose kernels multiply matrices; every other does a few operations for a byte.
PRODUCTS = ("matmul", "fused attention")


@dataclass(frozen=True)
class Occupation:
    """How busy the GPU is in an unprofiled step. Times in ms a step; `share` = busy / step."""

    step: float
    busy: float
    noisy: bool = False

    @property
    def idle(self) -> float:
        """Time of the unprofiled step in which no kernel runs; negative if the kernels took longer when profiled."""
        return self.step - self.busy

    @property
    def share(self) -> float:
        """Busy time over the unprofiled step."""
        return self.busy / self.step

    @property
    def verdict(self) -> str:
        """In a word: what sets the step's time."""
        if self.share >= GPU_BOUND:
            return "GPU-bound"
        return "launch-bound" if self.share < LAUNCH_BOUND else "mixed"


def occupation(profile: Profile, row: dict) -> Occupation | None:
    """The GPU's busy time against the unprofiled step; None on a CPU, or where either was not measured."""
    busy = busy_time(profile, row["cell"])
    step, noisy = unprofiled_step(profile, row)
    if profile.words(row) is not GPU or not formatting.known(busy) or not formatting.known(step) or step <= 0:
        return None
    return Occupation(step, busy, noisy)


def busy_time(profile: Profile, cell: str, phase: str = "step") -> float | None:
    """Busy time of the busiest device in a phase, ms a step."""
    rows = profile.rows("busy", cell)
    own = rows.loc[rows["phase"] == phase, "busy_ms_per_step"].dropna() if len(rows) else pd.Series(dtype=float)
    return float(own.max()) if len(own) else None


def unprofiled_step(profile: Profile, row: dict) -> tuple[float | None, bool]:
    """(median of what the cell profiles, in the timing study's free steps, in ms; whether that is noisy)."""
    return free_step(profile.unprofiled(row), row)


def intensity(row: dict) -> float | None:
    """Operations for each byte of the matrix products, each operand read once and each result written once: at most.

    The two products of a backward pass move the same three matrices as the one of the forward pass, so that the whole
    step has the intensity of the forward pass. A fused attention does not write its scores.
    """
    shape, precision = shape_of(row), PRECISIONS.get(row["precision"])
    flops = product_flops(row, "forward")
    if shape is None or precision is None or not flops:
        return None
    batch, tokens, wide = int(row["batch"]), int(row["batch"] * row["context"]), shape.d_model
    context = int(row["context"])

    def linear(inputs: int, outputs: int) -> int:
        return tokens * inputs + inputs * outputs + tokens * outputs

    # Q and K make the scores, the scores and V the output: six matrices, of which a fused kernel moves four.
    fused = row.get("attention") not in (None, "naive")
    attention = 2 * tokens * (wide + shape.kv_width) + (0 if fused else 2 * batch * shape.num_heads * context * context)
    layer = linear(wide, shape.qkv_width) + linear(wide, wide) + 3 * linear(wide, shape.d_ff) + attention
    moved = shape.num_layers * layer + linear(wide, shape.vocab_size)
    return flops / (precision.bytes * moved)


def products(profile: Profile, row: dict, phase: str) -> dict:
    """GPU time (ms a step), kernels a step and rate (TFLOP/s) of the matrix products of a phase; empty without any."""
    rows = profile.rows("categories", row["cell"])
    own = rows[(rows["phase"] == phase) & rows["category"].isin(PRODUCTS)] if len(rows) else rows
    time = float(own["ms_per_step"].sum()) if len(own) else 0.0
    if not time > 0:
        return {}
    flops = product_flops(row, phase)
    rate = flops / time / 1e9 if flops else None
    return {"ms": time, "kernels": float(own["instances_per_step"].sum()), "tflops": rate}


def bound_of_products(roof: Roof | None, operations_a_byte: float | None, mean_us: float) -> str:
    """What limits the matrix products: the ridge of the measured roof decides; empty without one."""
    if mean_us < LATENCY_US:
        return "latency-bound"
    if roof is None or not operations_a_byte:
        return ""
    return "compute-bound" if operations_a_byte >= roof.ridge else "memory-bound"


def bound_of_others(mean_us: float) -> str:
    """What limits kernels with a few operations a byte: the memory, or the time that any kernel takes."""
    return "latency-bound" if mean_us < LATENCY_US else "memory-bound"
