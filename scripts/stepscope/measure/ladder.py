"""One process of a ladder's cell: its rungs, which take turns where all fit the memory together.

Each rung is built, warmed up, captured if it is replayed from CUDA graphs, its peak taken and its
loss and gradients, before the first optimizer step, so that they are those of the same weights in
every rung. Then come the turns of whole free steps, and a short series of each rung of phased
steps. Where not all fit, each rung goes through all of that alone, and the
next process takes them in another order.
"""

import contextlib
import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch

from stepscope.axes import option
from stepscope.formulas import footprint, footprint_peak
from stepscope.machine.process import available_memory
from stepscope.model.about import Optimizer
from stepscope.model.chosen import load, said
from stepscope.model.shape import ModelShape

from . import gpu_alone, memory, models, steps
from .found import Found, Outcome, chosen
from .samples import Budget, series, take_turns
from .steps import caught
from .telemetry import Telemetry
from .workload import Workload, compiled_loss, is_compiled

# Least steps, and most seconds beyond them, of the series beside the turns.
SHORT = 2
SHORT_SECONDS = 0.25
KEPT = 3 * 4  # bytes a parameter between two steps: itself and the optimizer's two moments in fp32
HEADROOM = 0.9  # of the memory that is free

Variant = TypeVar("Variant")


def spec_of(spec: dict, variant: dict) -> dict:
    """What a variant's model and steps are made from: the cell's spec with the variant's own
    options."""
    return {"precision": "fp32"} | spec | variant


def fit_together(spec: dict, free: int) -> bool:
    """Whether all variants fit `free` bytes at once, by the closed form: weights and optimizer
    state of all, pools of CUDA graphs, and the largest step's gradients and activations. What is
    one's own is tried."""
    if "num_layers" not in spec:
        return True
    of_weights = KEPT * ModelShape.of(spec).parameters
    kept = 0
    transient = []
    for variant in spec["variants"]:
        options = spec_of(spec, variant)
        setup = footprint.Setup.of(options)
        if said("optimizer", setup.optimizer, Optimizer).workspace is None:
            # the one that needs most of those that are known
            setup = replace(setup, optimizer="torch")
        of_step = footprint_peak.peak(setup, "step").bytes - of_weights
        transient.append(of_step)
        kept += of_weights
        if load("compile", option(options, "compile")).COMPILATION.replays:
            kept += of_step  # the graphs' pools stay
    return kept + max(transient) <= HEADROOM * free


def measure(spec: dict, telemetry: Telemetry, process: int) -> Found:
    """All variants in one process. Running out of memory is a variant's status; other errors
    pass."""
    free = torch.cuda.mem_get_info()[0] if spec["device"] == "cuda" else available_memory()
    if fit_together(spec, free):
        with contextlib.suppress(_NoRoomError):
            return _Process(spec, telemetry, process, together=True).measure()
    gc.collect()
    return _Process(spec, telemetry, process, together=False).measure()


class _NoRoomError(Exception):
    """Memory ran out while several rungs shared it: they have to be measured one after another."""


class _Process(steps.Process):
    def __init__(self, spec: dict, telemetry: Telemetry, process: int, together: bool):
        super().__init__(spec, telemetry, process)
        self._together = together
        variants = ordered(spec["variants"], process)
        self._variants = {variant["name"]: variant for variant in variants}
        self._outcomes = {name: Outcome() for name in self._variants}
        self._works: dict[str, Workload] = {}  # that are in memory now
        self._at_turn = ""
        self._compiled: set[tuple] = set()

    def measure(self) -> Found:
        """Raises _NoRoomError where memory ran out while variants shared it."""
        for names in groups(list(self._variants), self._together):
            self._group(names)
        if self._is_last and not self._together:
            # What a profiler slows down comes after all that is timed.
            for name in self._variants:
                self._try(name, self._built_again)
                self._forget()
        for name, outcome in self._outcomes.items():
            self.found.status(name, outcome, mode="step")
        return self.found

    def _group(self, names: list[str]) -> None:
        """Measure variants that are in memory at once."""
        for name in names:
            self._try(name, self._prepare)
        for name in list(self._works):  # memory given back is asked for again
            self._try(name, self._turn, 0, True)
        take_turns(
            {name: partial(self._try, name, self._turn) for name in self._works}, self._budget
        )
        for name in self._works:  # no variable may hold the last one beyond _forget()
            steps.tidy(self._works[name], self._device)
        for part in self._beside_the_turns():
            for name in list(self._works):
                self._try(name, part)
                steps.tidy(self._works.get(name), self._device)
        self._forget()

    def _beside_the_turns(self) -> list[Callable[[str], None]]:
        """What is measured of each variant after the turns."""
        is_gpu = self._device == "cuda"
        parts: list[Callable[[str], None]] = [self._phased]
        if is_gpu and self._is_last:
            parts.append(self._energy)
        if is_gpu and (self._is_last or self._together):  # else it takes too long
            parts.append(self._host_free)
        if self._together and self._is_last:
            parts.append(self._counted)
        return parts

    def _try(self, name: str, part: Callable[..., None], *arguments: object) -> None:
        """Run a part of a variant's measurement, unless the variant has failed; let go of one that
        fails."""
        outcome = self._outcomes[name]
        if not outcome.is_ok:
            return
        try:
            with caught(outcome):
                if name in self._works:
                    self._works[name].use()
                part(name, *arguments)
        except Exception as error:
            # What is one's own fails as a whole where its first variant does.
            is_first = name == self._spec["variants"][0]["name"]
            if "num_layers" in self._spec or is_first or isinstance(error, OSError):
                raise
            outcome.status = "failed"
            outcome.reason = memory.reason(error)
        if not outcome.is_ok:
            work = self._works.pop(name, None)
            if outcome.status == "oom" and self._works:
                raise _NoRoomError
            steps.tidy(work, self._device)

    def _forget(self) -> None:
        self._works.clear()
        gc.collect()
        memory.release(self._device)

    def _prepare(self, name: str) -> None:
        """Build a variant and run its first steps; its peak is that of one step after them."""
        memory.release(self._device)
        before = memory.held(self._device)
        work = self._made(name)
        warm_up = partial(self.sample, work, name, warmup=True)
        if work.about:  # a step of one's own is whole
            for _ in range(max(1, self._spec["warmup"])):
                warm_up()
        else:
            for _ in range(max(2, self._spec["warmup"])):
                warm_up("forward-backward")
            self._note_compiling(name, work.spec)
            if checked := steps.computed(work):
                self.found.checks[name] = checked
        warm_up()
        work.capture()
        steps.tidy(work, self._device)
        memory.reset_peaks(self._device)
        warm_up()
        if work.losses:
            self.found.checks[name] = {"losses": work.losses}
        # A CPU's process does not give back what another variant has freed.
        if self._device == "cuda":
            self.found.sizes(name, memory.peaks(self._device, before), mode="step")
        steps.tidy(work, self._device)

    def _made(self, name: str) -> Workload:
        """A variant's workload. Where a model of one's own cannot have the attention of a rung,
        that rung alone is unsupported: those above it go without, as its reason says."""
        spec = spec_of(self._spec, self._variants[name])
        try:
            work = steps.made(spec, name, self.found)
        except models.Unsupported:
            # It may be a model of one's own that has it from the variant that it changes.
            own = self._variants[name]
            before = self._variants.get(own.get("after"), {})
            is_inherited = own.get("attention") == before.get("attention", "")
            if "model" not in spec or not is_inherited:
                raise
            lacking = spec.pop("attention")
            work = steps.made(spec, name, self.found)
            self._outcomes[name].reason = f"without the attention {lacking}, which it cannot have"
        self._works[name] = work
        return work

    def _turn(self, name: str, number: int, warmup: bool = False) -> None:
        if name != self._at_turn:  # the gradients of all variants need not be there at once
            for work in self._works.values():
                work.clear_gradients()
            self._at_turn = name
        in_round = number if self._together else None
        self.sample(self._works[name], name, warmup=warmup, number=in_round)

    def _phased(self, name: str) -> None:
        run = partial(self.sample, self._works[name], name, kind="phased")
        run(warmup=True)
        short = Budget(SHORT, self._budget.most, min(SHORT_SECONDS, self._budget.seconds / 2))
        series(run, short)

    def _note_compiling(self, name: str, spec: dict) -> None:
        """By how much a variant's first step of forward and backward took longer than the last one
        so far, compiling is known: of code that compilers' caches do not hold from an earlier
        process or variant."""
        # What tells the code of two variants apart.
        how = load("compile", option(spec, "compile")).COMPILATION
        rest = (spec.get(key) for key in ("precision", "attention", "checkpoint"))
        code = (how.parts, compiled_loss(spec), *rest)
        if not is_compiled(spec) or self.found.process > 1 or code in self._compiled:
            return
        self._compiled.add(code)
        took = [row["seconds"] for row in chosen(self._samples.rows, variant=name)]
        longer = max(0.0, took[0] - took[-1])
        self.found.value(name, "compile_time", "s", longer, mode="forward-backward")

    def _energy(self, name: str) -> None:
        gpu_alone.energy(steps.free(self._works[name]), name, self.found, self._telemetry)

    def _host_free(self, name: str) -> None:
        gpu_alone.host_free(self._works[name], name, self._samples, self._budget.seconds)

    def _counted(self, name: str) -> None:
        gpu_alone.counted(self._works[name], name, self._samples, self._device)

    def _built_again(self, name: str) -> None:
        """Count what a variant launches, after it was let go of."""
        work = self._made(name)
        steps.free(work)()
        work.drop_graph()
        work.capture()
        self._counted(name)


def groups(variants: list[Variant], together: bool) -> list[list[Variant]]:
    """What is in memory at once: all of the variants, or each by itself."""
    return [variants] if together else [[variant] for variant in variants]


def ordered(variants: list[dict], process: int) -> list[dict]:
    """The order in which a process takes variants: forwards, backwards, from the middle on, and so
    on."""
    start = (process // 2) * len(variants) // 2 % len(variants)
    order = variants[start:] + variants[:start]
    return order if process % 2 else order[::-1]
