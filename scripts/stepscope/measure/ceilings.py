"""A large matrix product and a large copy: the rates that a machine reaches at best."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from stepscope.measure import memory, precision
from stepscope.measure.clock import Clock
from stepscope.measure.series import PhaseTimes, Series, StoppingRule
from stepscope.measure.summary import STATUSES, of_processes
from stepscope.measure.telemetry import Telemetry


@dataclass
class Outcome:
    """What a process gave: `ok`, `oom` or `unsupported`, why, and a row for each sample."""

    status: str = "ok"
    reason: str = ""
    rows: list[dict] = field(default_factory=list)


def measure(spec: dict, telemetry: Telemetry) -> Outcome:
    """Time the operation until it is steady; `oom` where the operands do not fit."""
    outcome = Outcome()
    with memory.caught(outcome):
        operation, clock = _operation(spec), Clock(spec["device"])

        def step() -> PhaseTimes:
            return [(spec["operation"], clock.time(operation))]

        series = Series(telemetry, outcome.rows)
        series.warm_up(step, spec["warmup"])
        series.measure(step, StoppingRule.of(spec))
        telemetry.read()
    return outcome


def merged(found: list[Outcome]) -> Outcome:
    """What several processes found, as one: the worst status, and all rows."""
    worst = max(found, key=lambda outcome: STATUSES.index(outcome.status))
    return Outcome(worst.status, worst.reason, [row for outcome in found for row in outcome.rows])


def summary(outcome: Outcome) -> dict:
    """The record's summary: status, the very first operation and the statistics of each process, in seconds."""
    found = {"status": outcome.status, "reason": outcome.reason}
    if outcome.status != "ok":
        return found
    return found | {"first_step": outcome.rows[0]["seconds"], "processes": of_processes(outcome.rows)}


def _operation(spec: dict) -> Callable[[], object]:
    """The product of two random matrices (order, order), or the copy of one random tensor into another.

    Random, because some GPUs run faster on zeros; the right one transposed, as a linear layer's weight is.
    """
    device = spec["device"]
    torch.manual_seed(spec["seed"])
    if spec["operation"] == "copy":
        source = torch.randn(spec["mebibytes"] * 2**20 // 4, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)
    shape, dtype = (spec["order"], spec["order"]), precision.dtype(spec["precision"])
    left, right = (torch.randn(shape, device=device).to(dtype) for _ in range(2))
    product = torch.empty(shape, device=device, dtype=dtype)
    return lambda: torch.mm(left, right.t(), out=product)


def rate_in_words(spec: dict, seconds: float) -> str:
    """The rate that a time means."""
    if spec["operation"] == "matmul":
        return f"{2 * spec['order'] ** 3 / seconds / 1e12:.3f} TFLOP/s"
    return f"{2 * spec['mebibytes'] * 2**20 / seconds / 1e9:.1f} GB/s read and written"
