"""A large matrix product and a large copy: the rates that a machine reaches at best."""

from collections.abc import Callable
from types import SimpleNamespace

import torch

from stepscope.measure import memory, precision
from stepscope.measure.clock import Clock
from stepscope.measure.series import PhaseTimes, Series, StoppingRule
from stepscope.measure.summary import summarise
from stepscope.measure.telemetry import Telemetry


def measure(spec: dict, telemetry: Telemetry) -> tuple[dict, list[dict]]:
    """Summary in seconds with its status, and a row a sample; `oom` where the operands do not fit."""
    rows: list[dict] = []
    outcome = SimpleNamespace(status="ok", reason="")
    with memory.caught(outcome):
        operation, clock = _operation(spec), Clock(spec["device"])

        def step() -> PhaseTimes:
            return [(spec["operation"], clock.time(operation))]

        series = Series(telemetry, rows)
        series.warm_up(step, spec["warmup"])
        series.measure(step, StoppingRule.of(spec))
        telemetry.read()
    if outcome.status != "ok":
        return vars(outcome), rows
    return vars(outcome) | {"first_step": rows[0]["seconds"], **summarise(series.measured[spec["operation"]])}, rows


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
