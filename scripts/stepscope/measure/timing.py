"""One process of a timing cell: the training step from the very first one on, then the lighter
modes, then what the host cannot change.

Phased steps are of the heaviest mode that does not run out of memory, and come first: no step of
the process is lost. Free steps follow, from the heaviest mode to the lightest; below the whole step
the optimizer's state is let go of, so that each mode's peak is its own.
"""

import functools
import math
from functools import partial

from stepscope.axes import modes_up_to, option

from . import gpu_alone, memory, steps
from .found import Found, Outcome, chosen
from .samples import series
from .steps import caught
from .telemetry import Telemetry
from .workload import Workload

NAME = "step"  # of the only variant


def measure(spec: dict, telemetry: Telemetry, process: int) -> Found:
    """All modes up to the spec's in one process. Running out of memory is a mode's status; other
    errors pass."""
    return _Process(spec, telemetry, process).run()


class _Process(steps.Process):
    def __init__(self, spec: dict, telemetry: Telemetry, process: int):
        super().__init__(spec, telemetry, process)
        modes = ["step"] if "step" in spec else modes_up_to(option(spec, "mode"))
        self._modes = modes[::-1]  # the heaviest first

    @functools.cached_property
    def _work(self) -> Workload:
        """Built by the first mode that fits the memory."""
        return steps.made(self._spec, NAME, self.found)

    def run(self) -> Found:
        self._before = memory.held(self._device)
        failed = self._phased()
        for mode in self._modes:
            outcome = failed.get(mode) or self._free(mode)
            self.found.status(NAME, outcome, mode=mode)
        if self._modes[0] == "step" and "step" not in failed:
            self._alone()
        return self.found

    def _phased(self) -> dict[str, Outcome]:
        """Phased steps of the heaviest mode that can be had; what became of the heavier ones."""
        failed: dict[str, Outcome] = {}
        for mode in self._modes:
            with caught() as outcome:
                self._from_the_first_step(mode)
            if outcome.is_ok:
                break
            failed[mode] = outcome
            built: Workload | None = vars(self).get("_work")
            if built:
                built.renew_optimizer()
            steps.tidy(built, self._device)
        return failed

    def _from_the_first_step(self, mode: str) -> None:
        """Phased steps, from the building of the model on."""
        run = partial(self.sample, self._work, NAME, mode, "phased")
        for _ in range(self._spec["warmup"]):
            run(warmup=True)
        series(run, self._budget.scaled(2))
        first = [row["seconds"] for row in chosen(self._samples.rows, step=0, mode=mode)]
        self.found.value(NAME, "first_step_time", "s", math.fsum(first), mode=mode)

    def _free(self, mode: str) -> Outcome:
        """Free steps of a mode, with its peak."""
        if mode != "step":
            self._work.renew_optimizer()
        steps.tidy(self._work, self._device)
        memory.reset_peaks(self._device)
        run = partial(self.sample, self._work, NAME, mode)
        with caught() as outcome:
            run(warmup=True)
            series(run, self._budget.scaled(1 if mode == self._modes[0] else 0.5))
            self.found.sizes(NAME, memory.peaks(self._device, self._before), mode=mode)
        steps.tidy(self._work, self._device)
        return outcome

    def _alone(self) -> None:
        """What the host cannot change of the whole step; what a profiler slows down comes last."""
        if self._device == "cuda":
            step = steps.free(self._work)
            with caught():
                step()  # the optimizer's state is gone
                if self._is_last:
                    gpu_alone.energy(step, NAME, self.found, self._telemetry)
            steps.tidy(self._work, self._device)
            gpu_alone.host_free(self._work, NAME, self._samples, self._budget.seconds)
        if self._is_last:
            gpu_alone.counted(self._work, NAME, self._samples, self._device)
