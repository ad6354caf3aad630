"""One process of a ceiling: a large matrix product or copy, in short bursts after idle and
sustained.

A ceiling is the least of its times. A burst is what the clock reaches before the card heats up or
meets its power limit; of the sustained series, which lasts the spec's `max_seconds`, the second
half counts.
"""

import itertools
import statistics
import time
from functools import partial

import torch

from stepscope.model.chosen import load
from stepscope.model.formats import FORMATS

from . import precision
from .clock import time_in_a_row
from .found import Call, Found
from .samples import Samples
from .steps import Outcome, caught
from .telemetry import Telemetry

KINDS = ("burst", "sustained")
BURSTS, IDLE = 5, 0.1  # before each burst so many seconds of rest
ELEMENT = 4  # bytes of fp32, which is copied


def measure(spec: dict, telemetry: Telemetry, process: int) -> Found:
    """Bursts, then the sustained series; `oom` where the operands do not fit."""
    samples = Samples(telemetry, process)
    reason = precision.unsupported(spec["precision"], spec["device"]) or _wrong_order(spec)
    if reason:
        outcome = Outcome("unsupported", reason)
    else:
        with caught() as outcome:
            precision.configure(spec["precision"])
            _both(operation(spec), spec, samples)
    for kind in KINDS:
        samples.found.status(kind, outcome)
    return samples.found


def _wrong_order(spec: dict) -> str | None:
    """Why a product of this order cannot be in the precision, in one line; None if it can."""
    name = spec["precision"]
    multiple = load("precision", name).MULTIPLE if FORMATS[name].outside else 1
    is_wrong = spec["operation"] == "matmul" and spec["order"] % multiple
    return f"{name} needs an order that is a multiple of {multiple}" if is_wrong else None


def _both(run: Call, spec: dict, samples: Samples) -> None:
    def note(times: list[float], kind: str, warmup: bool = False) -> None:
        for seconds in times:
            samples.add(kind, spec["operation"], seconds, kind=kind, warmup=warmup)

    timed = partial(_times, run, spec["steps"], spec["device"])
    note(_times(run, max(1, spec["warmup"]), spec["device"]), "burst", warmup=True)
    for _ in range(BURSTS):
        time.sleep(IDLE)
        note(timed(), "burst")
    start = time.perf_counter()
    passed = 0.0
    while passed < spec["max_seconds"] or not passed:
        passed = time.perf_counter() - start
        note([statistics.fmean(timed())], "sustained", warmup=passed < spec["max_seconds"] / 2)


def _times(run: Call, count: int, device: str) -> list[float]:
    """Seconds of each of so many operations in a row: on a GPU between events, since all are in its
    queue at once."""
    if device == "cpu":
        marks = [time.perf_counter()]
        for _ in range(count):
            run()
            marks.append(time.perf_counter())
        return [after - before for before, after in itertools.pairwise(marks)]
    return time_in_a_row(run, count)


def operation(spec: dict) -> Call:
    """The product of two random matrices (order, order), or the copy of one random tensor into
    another.

    Random, because some GPUs run faster on zeros; the right one transposed, as a linear layer's
    weight is.
    """
    device = spec["device"]
    torch.manual_seed(spec["seed"])
    if spec["operation"] == "copy":
        source = torch.randn(spec["mebibytes"] * 2**20 // ELEMENT, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)
    dtype = precision.dtype(spec["precision"])
    left, right = (
        torch.randn(spec["order"], spec["order"], device=device).to(dtype) for _ in range(2)
    )
    if FORMATS[spec["precision"]].outside:
        own = load("precision", spec["precision"])
        (left, scale), (right, other) = map(own.quantized, (left, right))
        return lambda: own.product(left, right.t(), scale, other, dtype, True)
    return partial(torch.mm, left, right.t(), out=torch.empty_like(left))


def said(spec: dict, seconds: float) -> str:
    """The rate that a time means: of a product its 2 n³ operations, of a copy its bytes read plus
    written."""
    if spec["operation"] == "matmul":
        return f"{2e-12 * spec['order'] ** 3 / seconds:.4g} TFLOP/s"
    return f"{2e-9 * spec['mebibytes'] * 2**20 / seconds:.4g} GB/s read and written"
