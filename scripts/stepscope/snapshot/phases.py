"""Which step, phase and part of the model each event belongs to: from known.json, annotations or stacks."""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.snapshot import stacks
from stepscope.snapshot.events import ALLOC, FREE_COMPLETED, OOM, Annotation, Device
from stepscope.snapshot.known import Known
from stepscope.snapshot.replay import Replay

# What names of ranges mean; the first that is found decides.
_MEANINGS = (
    ("", re.compile(r"zero_grad", re.I)),
    ("optimizer", re.compile(r"optimi[sz]er|adamw?\b", re.I)),
    ("backward", re.compile(r"\bbackward\b", re.I)),
    ("inference", re.compile(r"\binference\b", re.I)),
    ("forward", re.compile(r"\bforward\b|\bloss\b", re.I)),
)
_STEP = re.compile(r"^(?:ProfilerStep#|step[ _#]?)(\d+)$", re.I)


_MOST_AFTER_LAST_MARK = 100  # allocations
_ENOUGH, _LONG, _MOST_KEPT = 100, 32, 0.2


@dataclass
class Parts:
    """Parts of a history: from event `first` on (ascending), step (None if unknown), phase and module are these.

    ranged: whether the phase comes from a range of the program (else from stacks).
    """

    first: np.ndarray
    step: list
    phase: list[str]
    module: list[str]
    ranged: list[bool]

    def of(self, events: np.ndarray) -> np.ndarray:
        """The number of the part in which each event lies; -1 before all of them."""
        return np.searchsorted(self.first, events, side="right") - 1


def from_marks(known: Known, device: Device) -> Parts:
    """The parts that known.json lists."""
    first = _events(device, known, [mark[:2] for mark in known.marks])
    first = np.maximum.accumulate(first) if len(first) else first
    return Parts(first, *([mark[at] for mark in known.marks] for at in (2, 3, 4)), [True] * len(first))


def missing(device: Device, known: Known) -> np.ndarray:
    """How many [allocations, frees] known.json counts more than there are: so many a cut history lacks, at least.

    It lacks them at its beginning.
    """
    counted = [mark[:2] for mark in known.marks] + [each["at"] for each in known.tensors]
    most = np.array([(0, 0), *counted], dtype=np.int64).max(axis=0)
    return np.maximum(most - [(device.action == kind).sum() for kind in (ALLOC, FREE_COMPLETED)], 0)


def event_after(device: Device, known: Known, count: tuple[int, int]) -> int:
    """The first event after so many allocations and frees of those that known.json counts."""
    return int(_events(device, known, [count])[0])


def _events(device: Device, known: Known, counts: list) -> np.ndarray:
    """The first event after each of these (allocations, frees)."""
    wanted = np.array(counts, dtype=np.int64).reshape(-1, 2) - _lacking(device, known)
    found = np.zeros(len(wanted), dtype=np.int64)
    for column, kind in enumerate((ALLOC, FREE_COMPLETED)):
        after = np.append(0, np.flatnonzero(device.action == kind) + 1)
        found = np.maximum(found, after[np.clip(wanted[:, column], 0, len(after) - 1)])
    return found


def _lacking(device: Device, known: Known) -> np.ndarray:
    """How many [allocations, frees] the beginning of the history lacks: the fewest with which all marks fit.

    `missing` is not enough of them where something was allocated or freed after the last mark. A mark fits if the
    frees that it counts lie between the allocation that it counts last and the next one.
    """
    least = missing(device, known)
    marks = np.array([mark[:2] for mark in known.marks], dtype=np.int64).reshape(-1, 2)
    if not least.any() or not len(marks):
        return least
    frees = np.append(0, (device.action == FREE_COMPLETED).cumsum())  # before each event, and at the end
    places = np.flatnonzero(device.action == ALLOC)
    for allocations in range(int(least[0]), int(least[0]) + _MOST_AFTER_LAST_MARK):
        own = marks[(marks[:, 0] > allocations) & (marks[:, 0] - allocations <= len(places))]
        at = own[:, 0] - allocations
        between = frees[places[at - 1]], frees[np.append(places, len(frees) - 1)[at]]
        fewest = max(int((own[:, 1] - between[1]).max(initial=0)), int(least[1]))
        if len(own) and fewest <= (own[:, 1] - between[0]).min():
            return np.array([allocations, fewest])
    return least


def derived(
    device: Device, annotations: list[Annotation], kinds: np.ndarray, replay: Replay, without_gradients: np.ndarray
) -> Parts:
    """The parts that annotations name, and where they name nothing, those from stacks of allocations (see stacks.py).

    An event that says nothing itself belongs to what was before it, up to the end of a range. A forward pass is
    inference if the history has no backward pass, no optimizer, did not run out of memory before them, and keeps
    nothing for a backward pass (see _keeps_nothing). Steps are
    counted: a forward pass after anything else begins one; or they have the numbers of torch.profiler's annotations.
    """
    events = len(device.action)
    ranges, names, steps = _annotated(device, annotations)
    by_kind = [stacks.PHASES.get(kind, "") for kind in range(6)]
    kind = np.where(device.action == ALLOC, kinds[device.stack], stacks.NOTHING)
    trains = np.isin(kind, (stacks.BACKWARD, stacks.OPTIMIZER)).any() or "backward" in names
    if not trains and not (device.action == OOM).any() and _keeps_nothing(replay, kinds, without_gradients):
        by_kind[stacks.FORWARD] = "inference"
    names = list(dict.fromkeys([*names, *by_kind]))
    code = np.array([names.index(name) for name in by_kind])
    tells = np.append(-1, np.flatnonzero(kind != stacks.NOTHING))
    latest = tells[np.searchsorted(tells, np.arange(events), side="right") - 1]
    began = np.maximum.accumulate(np.where(np.diff(ranges, prepend=-1), np.arange(events), 0))
    phase = np.where(latest >= began, code[kind[latest]], names.index("")) if events else np.empty(0, dtype=np.int64)
    phase = np.where(ranges >= 0, ranges, phase)
    changes = np.flatnonzero(np.diff(phase, prepend=-1) | np.diff(steps, prepend=-2) | np.diff(ranges, prepend=-2))
    phases = [names[phase[at]] for at in changes]
    numbers = [int(steps[at]) for at in changes] if (steps >= 0).any() else _counted(phases)
    numbers = [None if number == -1 else number for number in numbers]
    return Parts(changes, numbers, phases, [""] * len(changes), (ranges[changes] >= 0).tolist())


def _keeps_nothing(replay: Replay, kinds: np.ndarray, without_gradients: np.ndarray) -> bool:
    """Whether the forward pass keeps nothing for a backward pass.

    Most of it is inside torch.no_grad's decorator, or few of its blocks live on while _LONG others are made.

    Of a model of three blocks such are 2 to 10 % without gradients, and 35 to 38 % with them (tests/unit/snapshot/
    recordings). Of less than _ENOUGH blocks that cannot be told.
    """
    own = replay.recorded & (kinds[replay.stack] == stacks.FORWARD)
    if own.any() and without_gradients[replay.stack[own]].mean() > 0.5:
        return True
    if own.sum() < _ENOUGH:
        return False
    made = np.zeros(replay.events + 1, dtype=np.int64)
    made[replay.start[own] + 1] = 1
    made = made.cumsum()  # before each event
    life = made[np.minimum(replay.end[own], replay.events)] - made[replay.start[own] + 1]
    return bool((life >= _LONG).mean() < _MOST_KEPT)


def _counted(phases: list[str]) -> list[int | None]:
    """Steps of parts: a new one begins with each forward pass that follows a backward pass or an optimizer."""
    found, step, over = [], 0, False
    for phase in phases:
        if phase in ("forward", "inference") and over:
            step, over = step + 1, False
        over |= phase in ("backward", "optimizer")
        found.append(step if any(phases) else None)
    return found


def _annotated(device: Device, annotations: list[Annotation]) -> tuple[np.ndarray, list[str], np.ndarray]:
    """For each event the phase of the ranges around it, as a number in a list of names (-1: none), that list,
    and the step's number (-1: none).

    Ranges of other devices than this count only where it has none. If no range has a name of a phase, the outermost
    ones are taken for phases.
    """
    events = len(device.action)
    phases, steps, names = np.full(events, -1), np.full(events, -1), {}
    own = [each for each in annotations if each.device == device.number] or annotations
    if not own or device.seconds is None:
        return phases, [], steps
    known = any(meaning(each.name) is not None for each in own)
    at = np.append(np.searchsorted(device.time, [each.time for each in own], side="left"), events)
    open_ranges: list[str] = []
    for number, each in enumerate(own):
        if each.starts:
            open_ranges.append(each.name)
        elif each.name in open_ranges:  # the innermost of that name
            del open_ranges[len(open_ranges) - 1 - open_ranges[::-1].index(each.name)]
        inside = slice(at[number], at[number + 1])
        around = [meaning(name) if known else name for name in open_ranges if not _STEP.match(name)]
        around = [name for name in around if name is not None]
        if around:
            phases[inside] = names.setdefault(around[-1 if known else 0], len(names))
        numbers = [int(found[1]) for name in open_ranges if (found := _STEP.match(name)) and len(found[1]) < 10]
        if numbers:
            steps[inside] = numbers[-1]
    return phases, list(names), steps


def meaning(name: str) -> str | None:
    """The phase that a range with this name is; None if the name says nothing."""
    return next((phase for phase, pattern in _MEANINGS if pattern.search(name)), None)


def began_before(device: Device, annotations: list[Annotation]) -> bool:
    """Whether annotations prove that events are missing: a range is over before the first event, in a history in which
    a range of the same name has events."""
    if device.seconds is None:
        return False
    before, with_events, started = set(), set(), {}
    for each in annotations:
        if each.device != device.number:
            continue
        if each.starts:
            started[each.name] = each.time
        elif each.name in started:
            since = started.pop(each.name)
            if each.time < device.time[0]:
                before.add(each.name)
            elif np.searchsorted(device.time, since) < np.searchsorted(device.time, each.time):
                with_events.add(each.name)
    return bool(before & with_events)
