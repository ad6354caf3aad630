"""Which step, phase and part of the model each event belongs to: from known.json, annotations or
stacks."""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.recordings import names as people
from stepscope.snapshot import stacks
from stepscope.snapshot.events import ALLOC, FREE_COMPLETED, Annotation, Device
from stepscope.snapshot.known import Known

_STEP = re.compile(r"^(?:ProfilerStep#|step[ _#]?)(\d+)$", re.I)


@dataclass
class Parts:
    """Parts of a history: from event `first` on (ascending), step (None if unknown), phase and
    module are these.

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
    first = events_after(device, [mark[:2] for mark in known.marks])
    first = np.maximum.accumulate(first) if len(first) else first
    return Parts(
        first, *([mark[at] for mark in known.marks] for at in (2, 3, 4)), [True] * len(first)
    )


def lacks_events(device: Device, known: Known) -> bool:
    """Whether known.json counts more allocations or frees than the history has."""
    counted = [mark[:2] for mark in known.marks] + [each["at"] for each in known.tensors]
    most = np.array([(0, 0), *counted], dtype=np.int64).max(axis=0)
    return any(most > [(device.action == kind).sum() for kind in (ALLOC, FREE_COMPLETED)])


def events_after(device: Device, counts: list) -> np.ndarray:
    """The first event after each of these (allocations, frees), as known.json counts them."""
    wanted = np.array(counts, dtype=np.int64).reshape(-1, 2)
    found = np.zeros(len(wanted), dtype=np.int64)
    for column, kind in enumerate((ALLOC, FREE_COMPLETED)):
        after = np.append(0, np.flatnonzero(device.action == kind) + 1)
        found = np.maximum(found, after[wanted[:, column]])
    return found


def derived(device: Device, annotations: list[Annotation], kinds: np.ndarray) -> Parts:
    """The parts that annotations name, and where they name nothing, those from stacks of
    allocations (see stacks.py).

    An event that says nothing itself belongs to what was before it, up to the end of a range. Steps
    are counted: a forward pass after anything else begins one; or they have the numbers of
    torch.profiler's annotations.
    """
    events = len(device.action)
    ranges, names, steps = _annotated(device, annotations)
    by_kind = [stacks.PHASES.get(kind, "") for kind in range(6)]
    kind = np.where(device.action == ALLOC, kinds[device.stack], stacks.NOTHING)
    names = list(dict.fromkeys([*names, *by_kind]))
    code = np.array([names.index(name) for name in by_kind])
    tells = np.append(-1, np.flatnonzero(kind != stacks.NOTHING))
    latest = tells[np.searchsorted(tells, np.arange(events), side="right") - 1]
    began = np.maximum.accumulate(np.where(np.diff(ranges, prepend=-1), np.arange(events), 0))
    phase = (
        np.where(latest >= began, code[kind[latest]], names.index(""))
        if events
        else np.empty(0, dtype=np.int64)
    )
    phase = np.where(ranges >= 0, ranges, phase)
    changes = np.flatnonzero(
        np.diff(phase, prepend=-1) | np.diff(steps, prepend=-2) | np.diff(ranges, prepend=-2)
    )
    phases = [names[phase[at]] for at in changes]
    numbers = [int(steps[at]) for at in changes] if (steps >= 0).any() else _counted(phases)
    numbers = [None if number == -1 else number for number in numbers]
    return Parts(changes, numbers, phases, [""] * len(changes), (ranges[changes] >= 0).tolist())


def _counted(phases: list[str]) -> list[int | None]:
    """Steps of parts: a new one begins with each forward pass that follows a backward pass or an
    optimizer."""
    found, step, over = [], 0, False
    for phase in phases:
        if phase in ("forward", "inference") and over:
            step, over = step + 1, False
        over |= phase in ("backward", "optimizer")
        found.append(step if any(phases) else None)
    return found


def _annotated(
    device: Device, annotations: list[Annotation]
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """For each event the phase of the ranges around it, as a number in a list of names (-1: none),
    that list, and the step's number (-1: none).

    Ranges of other devices than this count only where it has none. If no range has a name of a
    phase, the outermost ones are taken for phases.
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
        numbers = [
            int(found[1])
            for name in open_ranges
            if (found := _STEP.match(name)) and len(found[1]) < 10
        ]
        if numbers:
            steps[inside] = numbers[-1]
    return phases, list(names), steps


def meaning(name: str) -> str | None:
    """The phase that a range with this name is, the loss a part of the forward pass; None if the
    name says nothing."""
    found = people.meaning(name)
    return {"step": None, "loss": "forward"}.get(found, found)


def began_before(device: Device, annotations: list[Annotation]) -> bool:
    """Whether annotations prove that events are missing: a range is over before the first event, in
    a history in which a range of the same name has events."""
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
