"""One training step, timed phase by phase or as a whole; what is left when memory runs out; what a
step computes.

*Phased* steps wait for the GPU around each phase, *free* ones only at their ends, as a training
loop runs. Gradients are cleared outside the phases and inside the free step.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator

import torch

from stepscope.axes import MODES

from . import memory, models
from .clock import Clock
from .found import Found, Outcome
from .samples import Budget, NotFiniteError, PhaseTimes, Samples, Step
from .telemetry import Telemetry
from .workload import Workload, workload

SAMPLED = 2048  # gradient entries that are kept, at even distances over all parameters


class Process:
    """One of a cell's processes: what it measures with, and what it has found."""

    def __init__(self, spec: dict, telemetry: Telemetry, number: int = 1):
        self._spec = spec
        self._device = spec["device"]
        self._telemetry = telemetry
        self._is_last = number == spec.get("processes", 1)
        self._samples = Samples(telemetry, number)
        self._clock = Clock(self._device)
        self.found = self._samples.found

    @functools.cached_property
    def _budget(self) -> Budget:
        """Of each series."""
        return Budget.of(self._spec)

    def sample(
        self,
        work: Workload,
        name: str,
        mode: str = "step",
        kind: str = "free",
        warmup: bool = False,
        number: int | None = None,
    ) -> None:
        """Take a sample of a variant's step, in a round of this number if there are any."""
        step = timed(work, mode, kind, self._clock)
        self._samples.run(name, step, warmup, mode=mode, kind=kind, round=number)


@contextlib.contextmanager
def caught(known: Outcome | None = None) -> Iterator[Outcome]:
    """Within it running out of memory makes the outcome, one that is known or a new one, `oom`, a
    model that refuses its options `unsupported`, and a loss that is no finite number `failed`; each
    ends the block. Other errors pass through."""
    outcome = known or Outcome()
    try:
        yield outcome
    except Exception as error:
        status = _known(error)
        if status is None:
            raise
        outcome.status = status
        outcome.reason = memory.reason(error)


def _known(error: Exception) -> str | None:
    """The status of what ends with an error that is a result; None of any other."""
    if memory.is_out_of_memory(error):
        return "oom"
    if isinstance(error, NotFiniteError):
        return "failed"
    return "unsupported" if isinstance(error, models.Unsupported) else None


def why(error: Exception) -> Outcome:
    """What became of what could not be had. A file that cannot be read or written says nothing
    of that: an OSError is raised again."""
    if isinstance(error, OSError):
        raise error
    return Outcome(_known(error) or "unsupported", memory.reason(error))


def made(spec: dict, name: str, found: Found) -> Workload:
    """A spec's workload; of a step of one's own what it is stands in `found`, by the variant's
    name."""
    work = workload(spec)
    if work.about:
        found.built[name] = work.about
    return work


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
            times = list(work.timed(mode, clock, contextlib.nullcontext))
        else:
            times = [(MODES[mode].whole, clock.time(free(work, mode)))]
        if mode != "inference" and (loss := work.loss_value()) is not None:
            check_finite(loss=loss)
        work.drop_graph()
        return times

    return step


def free(work: Workload, mode: str = "step") -> Callable[[], None]:
    """What runs a step as a training loop does, not timed."""
    phases = work.phases(mode).values()

    def step() -> None:
        work.clear_gradients()
        for phase in phases:
            phase()

    return step


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
    free(work, "forward-backward")()
    if _random_state() != before:
        work.drop_graph()
        return {}
    gradients = [parameter.grad for parameter in work.parameters if parameter.grad is not None]
    found = check_of(float(work.loss.detach()), gradients)
    work.drop_graph()
    check_finite(loss=found["loss"], gradient_norm=found["gradient_norm"])
    return found


def check_of(loss: float, gradients: list[torch.Tensor]) -> dict:
    """By what is told whether two steps compute the same."""
    # In fp32 a processor's sum over hundreds of millions of entries is off by percents.
    squares = math.fsum(float(each.norm(dtype=torch.float64)) ** 2 for each in gradients)
    return {
        "loss": loss,
        "gradient_norm": math.sqrt(squares),
        "gradient_sample": sample(gradients, SAMPLED),
    }


def _random_state() -> list[bytes]:
    """Of torch's generators, of the processor and, where it is in use, of the GPU."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state())
    return [state.numpy().tobytes() for state in states]


def sample(tensors: list[torch.Tensor], count: int) -> list[float]:
    """Entries at even distances over all tensors laid end to end: at most `count`."""
    every = max(1, math.ceil(sum(tensor.numel() for tensor in tensors) / count))
    found = []
    passed = 0
    for tensor in tensors:
        found += tensor.flatten()[-passed % every :: every].float().tolist()
        passed += tensor.numel()
    return found
