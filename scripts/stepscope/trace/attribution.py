"""Which call launched an operation, and in which range and phase that was.

A kernel belongs to the phase in which it was *launched*, by whatever thread of the process: PyTorch
launches backward kernels from a thread of its own, so that the rule "launched by the thread that
opened the range" finds next to none of them. Ranges inside a phase (modules) are one thread's, and
get what that thread launched while they were open. A range holds what is launched from its start on
and before its end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from stepscope.recordings import names as people

from .events import KERNEL, MEMORY, SECOND, Trace
from .kernel_categories import CATEGORIES, category_of
from .nesting import arrays, latest_before, locate, nest
from .phase_names import named


@dataclass(frozen=True, eq=False)
class Attribution:
    """A trace with its joins. Positions are those of rows in the trace's tables; -1 is none.

    For each operation: launch, the position of its call (-1 if it is not linked), with the call's
    time, process and thread; innermost, the innermost nested range of the launching thread.
    parent: for each range
    the range around it on its thread. operator: for each name whether it is autograd's rather than
    a module's. phases: names in the order of their first start. occurrence: for each phase, which
    of its ranges each operation was launched in. given_steps: how many steps a process takes, if
    the user says so.
    """

    trace: Trace
    launch: np.ndarray
    launch_time: np.ndarray
    launch_process: np.ndarray
    launch_thread: np.ndarray
    parent: np.ndarray
    innermost: np.ndarray
    operator: np.ndarray
    phases: list[str]
    occurrence: dict[str, np.ndarray]
    given_steps: int | None = None

    @cached_property
    def codes(self) -> np.ndarray:
        """For each range the code of its name."""
        return self.trace.ranges["name"].to_numpy()

    @cached_property
    def in_time(self) -> np.ndarray:
        """The operations whose call is known, in the order of their launch."""
        linked = np.flatnonzero(self.launch >= 0)
        return linked[np.argsort(self.launch_time[linked], kind="stable")]

    def a_step(self, nanoseconds):
        """Seconds of a step, of numbers or columns of the whole trace."""
        return nanoseconds / SECOND / self.steps

    def named(self, codes: Iterable[int]) -> list[str]:
        """Names by their codes; none for -1."""
        return [self.trace.names[code] if code >= 0 else "" for code in codes]

    @cached_property
    def durations(self) -> np.ndarray:
        """Nanoseconds of each operation."""
        return (self.trace.operations["end"] - self.trace.operations["start"]).to_numpy()

    @cached_property
    def lengths(self) -> np.ndarray:
        """Nanoseconds of each range."""
        return (self.trace.ranges["end"] - self.trace.ranges["start"]).to_numpy()

    @cached_property
    def is_kernel(self) -> np.ndarray:
        """For each operation, whether it is a kernel."""
        return (self.trace.operations["kind"] == KERNEL).to_numpy()

    @cached_property
    def category(self) -> np.ndarray:
        """For each operation its place in CATEGORIES."""
        codes, inverse = np.unique(self.trace.operations["name"].to_numpy(), return_inverse=True)
        places = [CATEGORIES.index(category_of(self.trace.names[code])) for code in codes]
        return np.array(places, dtype=np.int64)[inverse]

    @cached_property
    def moves_memory(self) -> np.ndarray:
        """For each operation, whether it is a copy or a set of memory, and no kernel."""
        return (self.trace.operations["kind"] == MEMORY).to_numpy()

    @cached_property
    def is_phase(self) -> np.ndarray:
        """For each name, whether it is a phase's."""
        return self.trace.names_that(self.phases.__contains__)

    def occurrences(self, phase: str) -> pd.DataFrame:
        """The ranges that are this phase."""
        return self.trace.ranges[self.codes == self.trace.names.index(phase)]

    def occurrence_in(self, phase: str | None) -> np.ndarray:
        """For each operation which of this phase's ranges it was launched in, -1 outside all; of no
        phase always 0."""
        if phase not in self.occurrence:
            return np.zeros(len(self.launch), dtype=np.int64)
        return self.occurrence[phase]

    @cached_property
    def step_phase(self) -> str | None:
        """The phase whose occurrences are shown as steps: the one called step, else the most
        frequent."""
        whole = [phase for phase in self.phases if phase.lower() == "step"]
        return max(whole or self.phases, key=self.counts.__getitem__, default=None)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Phase → how often it occurs in all processes."""
        return {phase: len(self.occurrences(phase)) for phase in self.phases}

    @cached_property
    def steps_of_process(self) -> dict[int, int]:
        """Process → number of its steps, for those that have any."""
        phase = counting_phase(self.counts)
        if phase is None:
            return {}
        own = self.occurrences(phase)["process"].value_counts()
        return {int(key): self.given_steps or int(own[key]) for key in own.index.tolist()}

    @cached_property
    def steps(self) -> int:
        """Number of steps in the trace, at least 1; those of several processes are added up."""
        return sum(self.steps_of_process.values()) or self.given_steps or 1


def counting_phase(counts: dict[str, int]) -> str | None:
    """The phase that occurs as often as there are steps, of those that occur so often.

    An optimizer's turn ends a step: where forward and backward passes are more (gradients are
    accumulated), or "step" is opened for each of those, the optimizer counts. Where it occurs more
    often than the step, or the forward pass (an optimizer for each part of a model), they do.
    Without an optimizer it is the step, else the most frequent phase.
    """
    of = {phase.lower(): phase for phase in counts}
    known = [of[name] for name in ("step", "optimizer", "forward") if name in of]
    if "optimizer" in of:
        return min(known[:2], key=counts.__getitem__)
    if "step" in of:
        return of["step"]
    return max(counts, key=counts.__getitem__, default=None)


def attribute(
    trace: Trace, phases: list[str] | None = None, steps: int | None = None
) -> Attribution:
    """Join launches to operations and find each one's ranges and phases.

    phases: names of the ranges that are phases; by default those whose names mean one, else the
    outermost ranges (see phase_names.py). A named phase that the trace does not have is omitted.
    steps: how many there are in each process, by default as often as phases say.
    """
    launch = join_launches(trace)
    linked = launch >= 0
    made = trace.calls.reindex(launch, fill_value=-1)
    time, thread, process = arrays(made, "start", "thread", "process")
    process = np.where(linked, process, trace.operations["process"])
    parent, innermost = nest(trace.ranges, thread, time, linked)
    trace, chosen = named(trace, parent, operator_names(trace), phases)

    def within(phase: str) -> np.ndarray:
        own = trace.ranges[trace.ranges["name"] == trace.names.index(phase)]
        return locate(own, process, thread, time, linked)

    return Attribution(
        trace=trace,
        launch=launch,
        launch_time=time,
        launch_process=process,
        launch_thread=thread,
        parent=parent,
        innermost=innermost,
        operator=operator_names(trace),
        phases=chosen,
        occurrence={name: within(name) for name in chosen},
        given_steps=steps,
    )


def join_launches(trace: Trace) -> np.ndarray:
    """For each operation the position of the call with its correlation id in its process, -1 if
    there is none.

    Ids repeat across processes. Several operations may share one call (a CUDA graph). Where an id
    was used again, the latest call that starts before the operation ends counts, or else the first.
    """
    key = ["process", "correlation"]
    found = latest_before(
        trace.calls[[*key, "start"]],
        trace.operations[[*key, "end"]].rename(columns={"end": "start"}),
    )
    return np.where(trace.operations["correlation"] >= 0, found, -1)


def operator_names(trace: Trace) -> np.ndarray:
    """For each name whether its ranges are autograd's: it looks so, they are numbered, or the trace
    says so."""
    operator = trace.names_that(people.is_operator)
    codes, sequence = arrays(trace.ranges, "name", "sequence")
    operator[codes[sequence >= 0]] = True
    operator[list(trace.operators)] = True
    return operator
