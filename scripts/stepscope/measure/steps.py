"""Training steps of one model, measured from the lightest mode to the heaviest.

Two kinds of measured steps: *phased* ones wait for the GPU around each phase, *free* ones only at their ends, as a
training loop runs. Gradients are cleared outside the phases and inside the free step.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from stepscope.axes import MODES, modes_up_to, option
from stepscope.measure import memory, models, precision
from stepscope.measure.clock import Clock
from stepscope.measure.series import PhaseTimes, Series, StoppingRule
from stepscope.measure.summary import STATUSES, of_processes
from stepscope.measure.telemetry import Telemetry
from stepscope.model.chosen import load


class Workload:
    """A model with its batch and optimizer, and the phases of its training step."""

    def __init__(self, spec: dict):
        self._autocast = lambda: precision.autocast(spec["precision"], spec["device"])
        self._fed = models.load(spec)
        self._model = self._fed.module
        self._optimizer = load("optimizer", option(spec, "optimizer")).make(self._trained())
        self._loss: torch.Tensor | None = None

    def _trained(self) -> list[torch.Tensor]:
        """The parameters that the optimizer updates."""
        return [parameter for _, parameter in self._fed.named_parameters() if parameter.requires_grad]

    def phases(self, mode: str) -> dict[str, Callable[[], None]]:
        """The phases of a mode, in their order."""
        every = {
            "inference": self._inference,
            "forward": self._forward,
            "backward": self._backward,
            "optimizer": self._optimize,
        }
        return {name: every[name] for name in MODES[mode].phases}

    def clear_gradients(self) -> None:
        """What every training loop does first: drop the gradients of the step before."""
        self._optimizer.zero_grad(set_to_none=True)

    def drop_graph(self) -> None:
        """Let go of the loss, and with it of all that a forward pass without backward has saved."""
        self._loss = None

    def _inference(self) -> None:
        with torch.no_grad(), self._autocast():
            self._fed.outputs()

    def _forward(self) -> None:
        with self._autocast():
            self._loss = self._fed.loss()

    def _backward(self) -> None:
        self._loss.backward()

    def _optimize(self) -> None:
        self._optimizer.step()


@dataclass
class Outcome:
    """What one mode gave: `ok`, `oom` or `unsupported`, the peak memory, and a row for each sample."""

    mode: str
    status: str = "ok"
    reason: str = ""
    peaks: dict = field(default_factory=dict)
    rows: list[dict] = field(default_factory=list)

    def after(self, failed: "Outcome") -> None:
        """Take over the status of a lighter mode, after which this one was not tried."""
        self.status, self.reason = failed.status, failed.reason
        if failed.status == "oom":
            self.reason = f"{failed.mode} ran out of memory before it"


@contextlib.contextmanager
def caught(outcome: Outcome) -> Iterator[None]:
    """Within it running out of memory makes the outcome `oom`, and a model that refuses its options `unsupported`; each
    ends the block. Other errors pass through."""
    try:
        with memory.caught(outcome):
            yield
    except models.Unsupported as error:
        outcome.status, outcome.reason = "unsupported", str(error)


def measure(spec: dict, telemetry: Telemetry) -> list[Outcome]:
    """Measure every mode up to the spec's, one after the other.

    Phased steps are of the heaviest mode alone. Where one runs out of memory, it and the heavier ones are `oom`, and
    the phased steps are of the heaviest that did not. Where the model refuses the options, all are `unsupported`. Other
    errors pass through.
    """
    device, modes = spec["device"], modes_up_to(option(spec, "mode"))
    workload, outcomes, failed = None, [], None
    for mode in modes:
        outcome = Outcome(mode)
        outcomes.append(outcome)
        if failed:
            outcome.after(failed)
            continue
        memory.reset_peaks(device)
        with caught(outcome):
            workload = workload or Workload(spec)
            _mode(workload, outcome, spec, telemetry, is_phased=mode == modes[-1])
        failed = None if outcome.status == "ok" else outcome
        outcome.peaks = memory.peaks(device)
        if workload is not None:
            tidy(workload, device)
    finished = [outcome for outcome in outcomes if outcome.status == "ok"]
    if failed and finished and len(workload.phases(finished[-1].mode)) > 1:
        _series(workload, finished[-1].mode, "phased", 1, spec, telemetry, finished[-1].rows)
    return outcomes


def _mode(workload: Workload, outcome: Outcome, spec: dict, telemetry: Telemetry, is_phased: bool) -> None:
    """The free steps of a mode, and before them its phased ones."""
    warmup, mode = spec["warmup"], outcome.mode
    if is_phased and len(workload.phases(mode)) > 1:
        _series(workload, mode, "phased", warmup, spec, telemetry, outcome.rows)
        warmup = 0  # the free steps do the same work: they are warm
    _series(workload, mode, "free", warmup, spec, telemetry, outcome.rows)


def unsupported(modes: Iterable[str], reason: str) -> list[Outcome]:
    """Modes that this machine cannot run."""
    return [Outcome(mode, "unsupported", reason) for mode in modes]


def _series(
    workload: Workload, mode: str, kind: str, warmup: int, spec: dict, telemetry: Telemetry, rows: list[dict]
) -> None:
    """Warm up, then measure until the stopping rule is content."""
    clock = Clock(spec["device"])
    step = partial(phased_step if kind == "phased" else free_step, workload, mode, clock)
    series = Series(telemetry, rows, {"mode": mode, "kind": kind})
    series.warm_up(step, warmup)
    if warmup:  # what only the first steps need is not the steady state's peak
        memory.reset_peaks(spec["device"])
    series.measure(step, StoppingRule.of(spec))
    telemetry.read()


def phased_step(workload: Workload, mode: str, clock: Clock) -> PhaseTimes:
    """One step, timed phase by phase."""
    workload.clear_gradients()
    times = [(name, clock.time(phase)) for name, phase in workload.phases(mode).items()]
    workload.drop_graph()
    return times


def free_step(workload: Workload, mode: str, clock: Clock) -> PhaseTimes:
    """One step as a training loop runs it, timed as a whole."""
    phases = workload.phases(mode).values()

    def whole() -> None:
        workload.clear_gradients()
        for phase in phases:
            phase()

    time = clock.time(whole)
    workload.drop_graph()
    return [(MODES[mode].whole, time)]


def tidy(workload: Workload, device: str) -> None:
    """Leave no gradients or graph of this mode to the next one's peak."""
    with contextlib.suppress(torch.OutOfMemoryError):
        workload.drop_graph()
        workload.clear_gradients()
    memory.release(device)


def merged(found: list[list[Outcome]]) -> list[Outcome]:
    """What several processes found, as one: of each mode the worst status, the largest peaks and all rows."""
    return [_merged(modes) for modes in zip(*found, strict=True)]


def _merged(found: tuple[Outcome, ...]) -> Outcome:
    worst = max(found, key=lambda outcome: STATUSES.index(outcome.status))
    names = dict.fromkeys(name for outcome in found for name in outcome.peaks)
    peaks = {name: max(outcome.peaks.get(name, 0) for outcome in found) for name in names}
    rows = [row for outcome in found for row in outcome.rows]
    return Outcome(worst.mode, worst.status, worst.reason, peaks, rows)


def rows_of(outcomes: list[Outcome]) -> list[dict]:
    """The samples of all modes."""
    return [row for outcome in outcomes for row in outcome.rows]


def _first_step(rows: list[dict]) -> float | None:
    """Seconds of a mode's first step, all its phases together, in the first process."""
    first = [
        row["seconds"]
        for row in rows
        if row["step"] == 0 and all(row[key] == rows[0][key] for key in ("kind", "process"))
    ]
    return math.fsum(first) if first else None


def summary(outcomes: list[Outcome]) -> dict:
    """The record's summary: each mode's status, peaks and first step, and each series' statistics a process (s)."""
    modes = {
        outcome.mode: {
            "status": outcome.status,
            "reason": outcome.reason,
            "first_step": _first_step(outcome.rows),
            **outcome.peaks,
        }
        for outcome in outcomes
    }
    series: dict[tuple[str, str, str], list[dict]] = {}
    for outcome in outcomes:
        for row in outcome.rows:
            series.setdefault((row["mode"], row["kind"], row["phase"]), []).append(row)
    phases = []
    for (mode, kind, phase), rows in series.items():
        status = modes[mode]["status"]
        entry = {"mode": mode, "kind": kind, "phase": phase, "status": status}
        phases.append(entry | {"processes": of_processes(rows) if status == "ok" else []})
    return {"modes": modes, "phases": phases}
