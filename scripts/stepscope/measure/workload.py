"""A model with its batch and its optimizer, run as a spec says: plain, compiled, replayed from CUDA
graphs, or with activations recomputed.

Dynamo keeps a few compiled versions of one function and then gives up (recompile_limit); variants
that are measured in one process are versions of the same blocks, so that it may keep more here.
"""

import contextlib
import importlib
import itertools
import shutil
from collections.abc import Callable, Iterator
from typing import cast

import torch
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from stepscope.axes import MODES, option
from stepscope.model import attention
from stepscope.model.chosen import load
from stepscope.model.compilation import Compilation

from . import models, precision
from .clock import Around, Clock
from .found import Call

BEFORE_CAPTURE = 3  # passes on a stream of their own, as torch.cuda.graph's documentation asks
MOST_VERSIONS = 64
OF_STEP = "stepscope.measure.own_step"
Phases = dict[str, Callable[[], None]]  # of a mode, by name in their order


def unsupported(spec: dict) -> str | None:
    """Why this machine cannot run the spec's precision and options, in one line; None if it can."""
    if "step" in spec:
        return None  # it is tried
    device = spec["device"]
    if reason := precision.unsupported(spec["precision"], device):
        return reason
    if "attention" in spec:
        d_head = spec["d_model"] // spec["num_heads"] if "num_heads" in spec else None
        reason = attention.unsupported(spec["attention"], torch.device(device), d_head)
        if reason:
            return reason
    if device == "cuda":
        return None
    if _compilation(spec).replays:
        return "CUDA graphs need a GPU"
    return no_compiler() if is_compiled(spec) else None


def is_compiled(spec: dict) -> bool:
    """Whether torch.compile makes a part of the step: of the model, or of the loss."""
    return bool(_compilation(spec).parts or compiled_loss(spec))


def compiled_loss(spec: dict) -> str:
    """The loss, if torch.compile makes a part of it."""
    name = spec.get("loss", "")
    return name if name and getattr(load("loss", name), "IS_COMPILED", False) else ""


def no_compiler() -> str | None:
    """Why torch.compile cannot work on this machine's CPU; None if it can."""
    found = any(map(shutil.which, ("c++", "g++", "clang++")))
    return None if found else "torch.compile needs a C++ compiler on a CPU; install g++"


class Workload:
    """The phases of a training step of the spec's model.

    about, losses, failed: what a step of one's own is, what its first steps returned, and the error
    that it ended with.
    """

    about: dict = {}  # noqa: RUF012 - no step of ours has any
    losses: tuple[float, ...] | list[float] = ()
    failed: Exception | None = None

    def __init__(self, spec: dict):
        self.spec = spec
        self.use()
        self.model = models.load(spec)
        if is_compiled(spec):
            import torch._dynamo.config as dynamo

            dynamo.recompile_limit = max(dynamo.recompile_limit, MOST_VERSIONS)
        if "model" not in spec:  # one's own is made with its options
            _optimise(self.model.module, _compilation(spec).parts, option(spec, "checkpoint"))
        self.parameters = [
            tensor for _, tensor in self.model.named_parameters() if tensor.requires_grad
        ]
        self.renew_optimizer()
        self._loss: Tensor | None = None

    def use(self) -> None:
        """Set what torch has once for all: whether fp32 products may use TF32. Needed before each
        turn."""
        precision.configure(self.spec["precision"])

    def renew_optimizer(self) -> None:
        """An optimizer without state: that of the one before is let go of."""
        self.optimizer = self.optimizer_of(self.parameters)

    def optimizer_of(self, parameters: list[Tensor], **settings: float) -> torch.optim.Optimizer:
        """The spec's, of these parameters."""
        make = load("optimizer", option(self.spec, "optimizer")).make
        return make(parameters, **settings)

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """All that a step has."""
        return [self.optimizer]

    @property
    def loss(self) -> Tensor:
        """The latest loss, a scalar."""
        assert self._loss is not None, "a forward pass has been run, and its graph is there"
        return self._loss

    def phases(self, mode: str) -> Phases:
        """The phases of a mode, in their order, launched by the host one kernel after the other."""
        return {name: getattr(self, f"_{name}") for name in MODES[mode].phases}

    def timed(self, mode: str, clock: Clock, around: Around) -> Iterator[tuple[str, float]]:
        """A step: each phase's seconds as soon as it ends, with the device waited for around it.
        It is run within `around(its name)`."""
        for name, phase in self.phases(mode).items():
            with around(name):
                seconds = clock.time(phase)
            yield name, seconds

    def loss_value(self) -> float | None:
        """The latest loss as a number; None where a step does not say it."""
        return float(self.loss.detach())

    def captured(self) -> Call:
        """The whole step, to be recorded as a CUDA graph, whatever is replayed of it already.

        Torch's optimizers refuse that while their step counts are numbers of the host; here these
        are meant to be constants, so that the check is taken from the step's own.
        """
        checks = ("_cuda_graph_capture_health_check", "_accelerator_graph_capture_health_check")
        for optimizer, check in itertools.product(self.optimizers, checks):
            if hasattr(optimizer, check):
                setattr(optimizer, check, lambda: None)
        phases = Workload.phases(self, "step")

        def step() -> None:
            for phase in phases.values():
                phase()

        return step

    def count(self) -> None:
        """Add to `about` what a step computes."""

    def forget(self) -> None:
        """Let go of loss and gradients, even of those that replayed graphs write to."""
        Workload.drop_graph(self)
        for parameter in self.parameters:
            parameter.grad = None

    def clear_gradients(self) -> None:
        """What every training loop does first: drop the gradients of the step before."""
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def drop_graph(self) -> None:
        """Let go of the loss, and with it of all that a forward pass without backward has saved."""
        self._loss = None

    def capture(self) -> None:
        """Record what is replayed from now on, if anything is."""

    def _inference(self) -> None:
        with torch.no_grad(), self._autocast():
            self.model.outputs()

    def _forward(self) -> None:
        with self._autocast():
            self._loss = self.model.loss()

    def _backward(self) -> None:
        self.loss.backward()

    def _optimizer(self) -> None:
        self.optimizer.step()

    def _autocast(self) -> contextlib.AbstractContextManager:
        return precision.autocast(self.spec["precision"], self.spec["device"])


class GraphedWorkload(Workload):
    """The same, with forward and backward each replayed from a CUDA graph; the optimizer runs as it
    is.

    Gradients keep their place in memory: each replayed backward pass writes over those of the one
    before.
    """

    def __init__(self, spec: dict):
        super().__init__(spec)
        self._graphs: dict[str, torch.cuda.CUDAGraph] = {}

    def capture(self) -> None:
        """Record forward and backward. The work before must have compiled all kernels."""
        with aside():
            for _ in range(BEFORE_CAPTURE):
                self.clear_gradients()
                self._forward()
                self._backward()
        self.clear_gradients()
        self.drop_graph()
        torch.cuda.empty_cache()
        forward = torch.cuda.CUDAGraph()
        backward = torch.cuda.CUDAGraph()
        with torch.cuda.graph(forward):
            self._forward()
        with torch.cuda.graph(backward, pool=forward.pool()):
            self._backward()
        self._graphs = {"forward": forward, "backward": backward}

    def phases(self, mode: str) -> Phases:
        """The phases of a mode, in their order; replayed once they are captured."""
        plain = super().phases(mode)
        return {
            name: self._graphs[name].replay if name in self._graphs else phase
            for name, phase in plain.items()
        }

    def clear_gradients(self) -> None:
        """Drop the gradients; replayed passes overwrite them instead."""
        if not self._graphs:
            super().clear_gradients()

    def drop_graph(self) -> None:
        """Let go of the loss; a replayed forward pass writes to the same one again."""
        if not self._graphs:
            super().drop_graph()


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Within it work goes to a stream of its own, as it has to once before it is captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def workload(spec: dict) -> Workload:
    """The workload of a spec. Raises models.Unsupported where this machine, or a model of one's
    own, refuses its options, ModelError for a step of one's own that cannot be."""
    if reason := unsupported(spec):
        raise models.Unsupported(reason)
    if "step" in spec:  # by name, so that no other cell depends on it
        return importlib.import_module(OF_STEP).StepWorkload(spec)
    return GraphedWorkload(spec) if _compilation(spec).replays else Workload(spec)


def _compilation(spec: dict) -> Compilation:
    return load("compile", option(spec, "compile")).COMPILATION


def _optimise(model: nn.Module, parts: str, every: int) -> None:
    """Compile parts of our Transformer. Group its blocks by `every`; of each group only the input
    is kept for the backward pass, which runs the group's forward pass again (Chen et al. 2016)."""
    blocks = list(cast(nn.ModuleList, model.blocks))  # to torch any attribute may be a tensor
    if parts == "blocks":
        for block in blocks:
            block.compile()
    if every:
        starts = range(0, len(blocks), every)
        groups = [nn.Sequential(*blocks[start : start + every]) for start in starts]
        # Nothing in the model draws random numbers: their state need not be kept.
        recomputed = [checkpoint_wrapper(group, preserve_rng_state=False) for group in groups]
        model.blocks = nn.ModuleList(recomputed)
    if parts == "model":
        model.compile()
