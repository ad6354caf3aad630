"""One training step, timed phase by phase or as a whole; what is left when memory runs out; what a
step computes.

*Phased* steps wait for the GPU around each phase, *free* ones only at their ends, as a training
loop runs. Gradients are cleared outside the phases and inside the free step.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from stepscope.axes import MODES
from stepscope.measure import memory, models
from stepscope.measure.clock import Clock
from stepscope.measure.samples import NotFiniteError, PhaseTimes, Step
from stepscope.measure.workload import Workload

SAMPLED = 2048  # gradient entries that are kept, at even distances over all parameters


@dataclass
class Outcome:
    """What became of something, one of found.STATUSES, and why."""

    status: str = "ok"
    reason: str = ""


@contextlib.contextmanager
def caught(outcome: Outcome) -> Iterator[None]:
    """Within it running out of memory makes the outcome `oom`, a model that refuses its options
    `unsupported`, and a loss that is no finite number `failed`; each ends the block. Other errors
    pass through."""
    try:
        yield
    except Exception as error:
        is_known = isinstance(error, (models.Unsupported, NotFiniteError))
        if not is_known and not memory.is_out_of_memory(error):
            raise
        outcome.status, outcome.reason = why(error)


def why(error: Exception) -> tuple[str, str]:
    """(status, reason) of what could not be had. A file that cannot be read or written says nothing
    of that: an OSError is raised again."""
    if isinstance(error, OSError):
        raise error
    if memory.is_out_of_memory(error):
        return "oom", memory.reason(error)
    status = "failed" if isinstance(error, NotFiniteError) else "unsupported"
    return status, memory.reason(error)


def check_finite(**numbers: float) -> None:
    """Raise NotFiniteError for the first of these that is no finite number."""
    for name, number in numbers.items():
        if not math.isfinite(number):
            said = "NaN" if math.isnan(number) else "infinite"
            raise NotFiniteError(f"{name.replace('_', ' ')} is {said}")


def timed(work: Workload, mode: str, kind: str, clock: Clock) -> Step:
    """A step of a kind: `phased`, timed phase by phase, or `free`, as a training loop runs it."""

    def step() -> PhaseTimes:
        if kind == "phased":
            work.clear_gradients()
            times = [(name, clock.time(phase)) for name, phase in work.phases(mode).items()]
        else:
            times = [(MODES[mode].whole, clock.time(partial(whole, work, work.phases(mode))))]
        if mode != "inference":
            check_finite(loss=float(work.loss.detach()))
        work.drop_graph()
        return times

    return step


def whole(work: Workload, phases: dict[str, Callable[[], None]]) -> None:
    """One step, not timed."""
    work.clear_gradients()
    for phase in phases.values():
        phase()


def tidy(work: Workload | None, device: str) -> None:
    """Leave no gradients or graph to the next one's peak."""
    with contextlib.suppress(torch.OutOfMemoryError):
        if work is not None:
            work.drop_graph()
            work.clear_gradients()
    memory.release(device)


def computed(work: Workload) -> dict:
    """Loss and gradients of one more forward and backward pass: the loss, the gradients' 2-norm,
    some of their entries, the same ones whatever the options. Empty for a model that draws random
    numbers, as for dropout: each pass gives others. Raises NotFiniteError."""
    before = _random_state()
    whole(work, work.phases("forward-backward"))
    if _random_state() != before:
        work.drop_graph()
        return {}
    gradients = [parameter.grad for parameter in work.parameters if parameter.grad is not None]
    squares = math.fsum(float(gradient.norm(dtype=torch.float32)) ** 2 for gradient in gradients)
    found: dict = {
        "loss": float(work.loss.detach()),
        "gradient_norm": math.sqrt(squares),
        "gradient_sample": sample(gradients, SAMPLED),
    }
    work.drop_graph()
    check_finite(loss=found["loss"], gradient_norm=found["gradient_norm"])
    return found


def _random_state() -> list[bytes]:
    """Of torch's generators, of the processor and, where it is in use, of the GPU."""
    states = [torch.get_rng_state()] + (
        [torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else []
    )
    return [state.numpy().tobytes() for state in states]


def sample(tensors: list[torch.Tensor], count: int) -> list[float]:
    """Entries at even distances over all tensors laid end to end: at most `count`."""
    every = max(1, math.ceil(sum(tensor.numel() for tensor in tensors) / count))
    found, passed = [], 0
    for tensor in tensors:
        found += tensor.flatten()[-passed % every :: every].float().tolist()
        passed += tensor.numel()
    return found
