"""A training step of one's own as a workload: nothing of ours is in it, neither casts nor an
optimizer, and torch's global settings are as its file left them."""

import contextlib
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from stepscope.axes import MODES
from stepscope.config.own_models import keys_of
from stepscope.model.own import stepping
from stepscope.model.own.counting import Counter
from stepscope.model.own.loading import named_errors
from stepscope.model.own.reference import parse
from stepscope.step import phases_seen_by

from . import models, steps
from .clock import Around, Clock
from .found import Call
from .workload import Phases, Workload

REST = "rest"  # the phase of what lies outside all others
WHOLE = MODES["step"].whole
KEPT_LOSSES = 3  # of the first steps
LEAST = 1e-7  # s: what samples.csv takes for a time


# What torch has once for all and a step's file may set (see _settings), as torch itself has it.
PLAIN = ("highest", True, False, torch.float32)


def _settings() -> tuple[str, bool, bool, torch.dtype]:
    """As they are now: how fp32 products round, whether cuDNN may use TF32, whether it tries its
    algorithms, and the type of new tensors."""
    return (
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.benchmark,
        torch.get_default_dtype(),
    )


def _set(matmul: str, may_use_tf32: bool, is_trying: bool, dtype: torch.dtype) -> None:
    torch.set_float32_matmul_precision(matmul)
    torch.backends.cudnn.allow_tf32 = may_use_tf32
    torch.backends.cudnn.benchmark = is_trying
    torch.set_default_dtype(dtype)


class Laps:
    """Seconds by phase, in the order in which they first come; the device is waited for at each
    boundary, where what comes before it is the outer phase's."""

    def __init__(self, clock: Clock, around: Around):
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._around = around
        self._phase = REST

    def time(self, run: Call) -> None:
        """Run it, phase by phase."""
        self._clock.synchronize()
        self._start = time.perf_counter()
        with phases_seen_by(self._phased):
            run()
        self._switch(REST)
        rest = self.seconds.pop(REST)
        self.seconds[REST] = rest  # the last, wherever it began

    @contextlib.contextmanager
    def _phased(self, name: str) -> Iterator[None]:
        outer = self._phase
        with self._around(name):
            self._switch(name)
            yield
            self._switch(outer)

    def _switch(self, name: str) -> None:
        """What ran up to now is the running phase's."""
        self._clock.synchronize()
        now = time.perf_counter()
        self.seconds[self._phase] = self.seconds.get(self._phase, LEAST) + now - self._start
        self._start = now
        self._phase = name


class Built:
    """The step's model as a snapshot asks for it: its repeated modules, and its parameters."""

    def __init__(self, module: nn.Module, path: str | None):
        self.module = module
        self._path = path
        self.blocks = list(module.get_submodule(path).children()) if path else []

    def named_parameters(self) -> models.NamedTensors:
        """(name, parameter)."""
        return models.named_parameters(self.module, self._path)


class StepWorkload(Workload):
    """What the function of a spec's `step` builds. Its phases are those that it marks; gradients
    and optimizer are its own business.

    losses: of the first steps, as far as run() returns them. about: what was built.
    """

    def __init__(self, spec: dict):
        self.spec = spec
        self._reference = parse(spec["step"], "step")
        _set(*PLAIN)
        given = {name: spec[name] for name in ("context", "batch", "device", "seed")}
        self.step = stepping.build(spec["step"], keys_of(spec), given)
        self._settings = _settings()
        with named_errors(self._reference, "the module of its step cannot be looked at"):
            self.about = stepping.described(self._reference, self.step) | {"marked": []}
            blocks = self.about["blocks"]
            self.model = Built(stepping.parameters(self.step), blocks and blocks["path"])
            named = self.model.named_parameters()
        self.parameters = [each for _, each in named if each.requires_grad]
        self.losses: list[float] = []
        self._result: object = None

    def use(self) -> None:
        """Set torch's global settings as they were when the step was built."""
        _set(*self._settings)

    @property
    def optimizers(self) -> list:
        return self.step.optimizers

    def renew_optimizer(self) -> None:
        """Nothing: it is the step's own."""

    def phases(self, mode: str) -> Phases:
        """The whole step."""
        return {WHOLE: self._run}

    def timed(self, mode: str, clock: Clock, around: Around) -> Iterator[tuple[str, float]]:
        """A step: the seconds of each phase, and of the rest."""
        laps = Laps(clock, around)
        laps.time(self._run)
        self.about["marked"] = [name for name in laps.seconds if name != REST]
        yield from laps.seconds.items()

    def loss_value(self) -> float | None:
        """What the latest step returned, as a number. Raises ModelError for what is none."""
        if self._result is None:
            return None
        with named_errors(self._reference, "run() returns no loss, which is a number"):
            given = self._result
            number = given.detach() if isinstance(given, Tensor) else given
            loss = float(number)  # type: ignore[arg-type]  # any that its file returns
        if len(self.losses) < KEPT_LOSSES:
            self.losses.append(loss)
        return loss

    def clear_gradients(self) -> None:
        """Nothing: the step does."""

    def drop_graph(self) -> None:
        """Let go of what the step returned."""
        self._result = None

    def captured(self) -> Call:
        """The step that its file gives for that, else the usual one."""
        super().captured()
        return self._called(self.step.graph or self.step.run)

    forget = drop_graph

    def count(self) -> None:
        """Count what one more step multiplies, if that was not given; once what a checkpoint
        computes again."""
        if self.about["flops"]:
            return
        counter = Counter()
        told = self.about["unknown"]

        # A CPU's fused attention has no formula; the same as products has.
        is_cpu = self.spec["device"] == "cpu"
        plain = sdpa_kernel(SDPBackend.MATH) if is_cpu else contextlib.nullcontext()
        try:
            with plain, counter:
                self._run()
        except Exception as error:  # compiled code may not be counted
            told.append(f"operations: {steps.why(error).reason}")
        else:
            self.about["flops"] = {"counter": counter.get_total_flops()}
            if counter.uncounted:
                self.about["flops"]["uncounted"] = sorted(counter.uncounted)
                told.append(f"operations of {', '.join(sorted(counter.uncounted))}: no formula")
        self.drop_graph()

    def _run(self) -> None:
        self._result = None
        self._result = self._called(self.step.run)()

    def _called(self, run: Call) -> Call:
        """`run`, whose errors name the step's file and line."""

        def called() -> object:
            try:
                with named_errors(self._reference, "run() fails"):
                    return run()
            except Exception as error:
                self.failed = error
                raise

        return called
