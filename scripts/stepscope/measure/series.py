"""One series of steps: warm-up steps, then measured ones until there are enough. Standard library only.

Every sample becomes a row of samples.csv as soon as it is taken, so that what was measured before memory ran out is
kept. Nothing here runs in a timed region.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence

from stepscope.machine import cores
from stepscope.measure.summary import is_narrow
from stepscope.measure.telemetry import READINGS, Telemetry

# Columns of samples.csv, in their order: of the studies that run training steps, and of those that do not.
TIMES = ("seconds", "event_seconds", "launch_seconds")
TRAINING_COLUMNS = ["process", "mode", "kind", "step", "phase", "warmup", *TIMES, *READINGS]
CEILINGS_COLUMNS = ["process", "step", "phase", "warmup", *TIMES, *READINGS]
ATTENTION_TIMES = ("seconds", "launch_seconds")
ATTENTION_COLUMNS = ["process", "length", "phase", "step", "warmup", *ATTENTION_TIMES, *READINGS]

CHECK_EVERY = 5  # samples between two looks at the interval

PhaseTimes = Iterable[tuple[str, tuple[float | None, ...]]]  # each phase of a step with its times in seconds
Step = Callable[[], PhaseTimes]  # runs a step; may give each phase's times as soon as it ends


class StoppingRule:
    """A series goes on until each phase's interval is narrow, within a least and a most number and a time."""

    def __init__(self, least: int, most: int, seconds: float, clock=time.perf_counter):
        self._least, self._most, self._seconds, self._clock = least, max(least, most), seconds, clock
        self._start = clock()

    @classmethod
    def of(cls, spec: dict) -> "StoppingRule":
        """The rule of a spec; its time begins now."""
        return cls(spec["steps"], spec["max_steps"], spec["max_seconds"])

    def enough(self, series: Sequence[Sequence[float]]) -> bool:
        """Whether these series, one a phase and all of one length, may end."""
        count = len(series[0])
        if count < self._least:
            return False
        if count >= self._most or self._clock() - self._start >= self._seconds:
            return True
        return (count - self._least) % CHECK_EVERY == 0 and all(is_narrow(samples) for samples in series)


class FixedNumber:
    """A series has so many steps, however they spread; fewer, but at least `least`, where `seconds` are over before."""

    def __init__(self, count: int, least: int = 0, seconds: float = math.inf):
        self._count, self._least, self._seconds = count, least, seconds
        self._start = time.perf_counter()

    def enough(self, series: Sequence[Sequence[float]]) -> bool:
        """Whether these series may end."""
        count = len(series[0])
        return count >= self._count or (count >= self._least and time.perf_counter() - self._start >= self._seconds)


class Series:
    """Runs steps and appends a row a phase to `rows`; each says its `place`, and what the GPU read before the step.

    `first` is the number of the first step, `times` the columns of a phase's times; the first of them counts.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        rows: list[dict],
        place: dict | None = None,
        first: int = 0,
        times: tuple[str, ...] = TIMES,
    ):
        self._telemetry, self._rows, self._place, self._times = telemetry, rows, place or {}, times
        self.step = first  # number of the step that runs, or of the next one
        self.measured: dict[str, list[float]] = {}  # phase -> seconds, without the warm-up

    def warm_up(self, step: Step, count: int) -> None:
        """Run the step so many times, as warm-up."""
        for _ in range(count):
            self._run(step, is_warmup=True)

    def measure(self, step: Step, rule: StoppingRule | FixedNumber) -> None:
        """Run the step at least once, until the rule has enough; on a core of its own where one thread is all."""
        with cores.own_core():
            while not (self.measured and rule.enough(list(self.measured.values()))):
                self._run(step, is_warmup=False)

    def _run(self, step: Step, is_warmup: bool) -> None:
        before = self._telemetry.read()
        for phase, times in step():
            place = {"process": 1} | self._place | {"step": self.step, "phase": phase, "warmup": is_warmup}
            self._rows.append(place | dict(zip(self._times, times, strict=True)) | before)
            if not is_warmup:
                self.measured.setdefault(phase, []).append(times[0])
        self.step += 1
