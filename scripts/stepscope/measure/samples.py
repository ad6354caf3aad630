"""The samples of a process: warm-up, series within a budget, and variants that take turns. Standard
library only.

Every sample becomes a row of samples.csv as soon as it is taken, so that what was measured before
memory ran out is kept. Nothing here runs in a timed region.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

from stepscope.machine import cores

from .found import Call, Found, Place
from .telemetry import READINGS, Telemetry

COLUMNS = [  # of samples.csv
    "variant",
    "process",
    "round",
    "mode",
    "kind",
    "length",
    "direction",
    "step",
    "phase",
    "warmup",
    "seconds",
    *READINGS,
]
TURN = 3  # steps of a turn: their median bears that the first one finds the caches cold
# s after which a turn on a CPU ends: beside busy neighbours many rounds tell more than long turns
SHORT_TURN = 0.005

PhaseTimes = Iterable[tuple[str, float]]
Step = Callable[[], PhaseTimes]  # runs a step; may give each phase's seconds as soon as it ends


class NotFiniteError(Exception):
    """A step came to nothing: what it computes is no finite number; says what, in one line."""


@dataclass(frozen=True)
class Budget:
    """At least so many steps; then an end after `seconds`, or after `most` steps. A turn lasts
    `turn` seconds."""

    least: int
    most: int
    seconds: float
    turn: float = float("inf")

    @classmethod
    def of(cls, spec: dict) -> "Budget":
        """The budget that a spec gives each series."""
        turn = SHORT_TURN if spec.get("device") == "cpu" else float("inf")
        return cls(spec["steps"], max(spec["steps"], spec["max_steps"]), spec["max_seconds"], turn)

    def scaled(self, factor: float) -> "Budget":
        """The same with so many times the seconds."""
        return replace(self, seconds=factor * self.seconds)

    def ended(self, count: int, seconds: float) -> bool:
        """Whether a series of so many steps, which took so long, may end."""
        return count >= self.least and (count >= self.most or seconds >= self.seconds)


class Samples:
    """The rows of one process, a part of what it has `found`; numbers the steps of each variant
    from 0, the very first one of the process."""

    def __init__(self, telemetry: Telemetry, process: int = 1):
        self._telemetry = telemetry
        self._steps: Counter[str] = Counter()
        self.found = Found(process)
        self.rows = self.found.rows

    def run(self, variant: str, step: Step, warmup: bool = False, **place: Unpack[Place]) -> None:
        """Run one step; a row a phase, with what the GPU read before it. A NotFiniteError that it
        raises is told its number."""
        before = self._telemetry.read()
        number = self._steps[variant]
        try:
            for phase, seconds in step():
                where = {"variant": variant, "process": self.found.process, "step": number, **place}
                took = {"phase": phase, "warmup": warmup, "seconds": seconds}
                self.rows.append(where | took | before)
        except NotFiniteError as error:
            raise NotFiniteError(f"{error} at step {number}") from None
        self._steps[variant] += 1

    def add(
        self,
        variant: str,
        phase: str,
        seconds: float,
        warmup: bool = False,
        **place: Unpack[Place],
    ) -> None:
        """A row of a step that was timed elsewhere."""
        self.run(variant, lambda: [(phase, seconds)], warmup, **place)


def series(run: Call, budget: Budget, clock: Callable[[], float] = time.perf_counter) -> int:
    """Run until the budget is used up, on a core of its own where one thread is all; how often that
    was."""
    with cores.own_core():
        return _until(budget, run, clock)


def take_turns(
    runs: Mapping[str, Callable[[int], object]],
    budget: Budget,
    clock: Callable[[], float] = time.perf_counter,
) -> int:
    """Rounds A B … B A, each a turn a variant, until the budget of each is used up; the number of
    rounds. A turn has a few steps, fewer where its time is over.

    runs: by variant, what runs one step of it in the round of that number, counted from 1.
    """
    if not runs:
        return 0
    forwards = list(runs)
    backwards = forwards[::-1]
    turn = Budget(1, max(1, min(TURN, budget.least // 2)), budget.turn)
    steps = dict.fromkeys(runs, 0)
    number = 0
    start = clock()
    with cores.own_core():
        while not budget.ended(min(steps.values()), (clock() - start) / len(runs)):
            number += 1
            for name in forwards if number % 2 else backwards:
                steps[name] += _until(turn, partial(runs[name], number), clock)
    return number


def _until(budget: Budget, run: Call, clock: Callable[[], float]) -> int:
    """Run until the budget is used up; how often that was."""
    count = 0
    start = clock()
    while not budget.ended(count, clock() - start):
        run()
        count += 1
    return count
