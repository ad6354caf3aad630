"""Which step, phase and part of the model each event belongs to: from known.json, annotations or
stacks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from stepscope.recordings import names as people

from . import stacks
from .events import ALLOC, FREE_COMPLETED, Device
from .known import Foreign, Known

_STEP = re.compile(r"^(?:ProfilerStep#|step[ _#]?)(\d{1,9})$", re.I)
# Phase → whether a step may end with it.
_ENDS = {
    "forward": False,
    "inference": False,
    "backward": True,
    "optimizer": True,
}


@dataclass
class Parts:
    """Parts of a history: from event `first` on (ascending), `told` holds: a row for each with
    step (None if unknown), phase and module, and one more for what is before all parts.

    ranged: whether the phase comes from a range of the program (else from stacks).
    """

    first: np.ndarray
    told: pd.DataFrame

    def of(self, events: np.ndarray) -> np.ndarray:
        """The number of the part in which each event lies; -1, the last row, before all of them."""
        return np.searchsorted(self.first, events, side="right") - 1

    def at(self, event: int) -> pd.Series:
        """What is told of one event."""
        return self.told.iloc[self.of(np.array([event]))[0]]


def _parts(first: np.ndarray, told: pd.DataFrame) -> Parts:
    """Parts with the row for what is before all of them. told: its columns."""
    before = {"step": None, "phase": "", "module": "", "ranged": False}
    columns = {name: [*told[name], last] for name, last in before.items()}
    return Parts(first, pd.DataFrame(columns, dtype=object))


def from_marks(known: Known, device: Device) -> Parts:
    """The parts that known.json lists."""
    counted = known.marks[["allocations", "frees"]].to_numpy(dtype=np.int64)
    first = events_after(device, counted)
    return _parts(np.maximum.accumulate(first), known.marks.assign(ranged=True))


def events_after(device: Device, counts: ArrayLike) -> np.ndarray:
    """The first event after each of these (allocations, frees), as known.json counts them. Raises
    Foreign where it counts more than there are."""
    wanted = np.array(counts, dtype=np.int64).reshape(-1, 2)
    found = np.zeros(len(wanted), dtype=np.int64)
    for column, kind in enumerate((ALLOC, FREE_COMPLETED)):
        after = np.append(0, np.flatnonzero(device.action == kind) + 1)
        if wanted[:, column].max(initial=0) >= len(after):
            raise Foreign
        found = np.maximum(found, after[wanted[:, column]])
    return found


def derived(device: Device, annotations: pd.DataFrame, kinds: np.ndarray) -> Parts:
    """The parts that annotations name, and where they name nothing, those from stacks of
    allocations (see stacks.py).

    An event that says nothing itself belongs to what was before it, up to the end of a range. Steps
    are counted: a forward pass after anything else begins one; or they have the numbers of
    torch.profiler's annotations.
    """
    ranges, of_ranges, steps = _annotated(device, annotations)
    of_stacks = [stacks.PHASE_OF_KIND.get(kind, "") for kind in stacks.KINDS]
    names = list(dict.fromkeys([*of_ranges, *of_stacks]))
    said = _said_by_stacks(device, kinds, ranges)
    by_stack = np.array([names.index(name) for name in of_stacks])[said]
    phase = np.where(ranges >= 0, ranges, by_stack)
    first = np.flatnonzero(changes(phase) | changes(steps) | changes(ranges))
    phases = [names[code] for code in phase[first]]
    numbered = [int(number) if number >= 0 else None for number in steps[first]]
    told = {
        "step": numbered if (steps >= 0).any() else _counted(phases),
        "phase": phases,
        "module": "",
        "ranged": ranges[first] >= 0,
    }
    return _parts(first, pd.DataFrame(told, dtype=object))


def _said_by_stacks(device: Device, kinds: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """For each event the kind of the latest allocation up to it whose stack says something, unless
    that was before the range around the event began (or ended)."""
    allocates = device.action == ALLOC
    kind = np.where(allocates, kinds[device.stack], stacks.NOTHING)
    at = np.arange(len(kind))
    latest = np.maximum.accumulate(np.where(kind != stacks.NOTHING, at, -1))
    began = np.maximum.accumulate(np.where(changes(ranges), at, 0))
    return np.where(latest >= began, kind[latest], stacks.NOTHING)


def changes(values: np.ndarray) -> np.ndarray:
    """For each value whether it differs from the one before; the first always does."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _counted(phases: list[str]) -> Sequence[int | None]:
    """Steps of parts: a new one begins with each forward pass that follows a backward pass or an
    optimizer."""
    if not any(phases):
        return [None] * len(phases)
    passes = pd.Series(phases).map(_ENDS)
    begins = passes.eq(False) & passes.ffill().shift().eq(True)
    return begins.cumsum().tolist()


def _annotated(
    device: Device, annotations: pd.DataFrame
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """For each event the phase of the ranges around it, as a number in a list of names (-1: none),
    that list, and the step's number (-1: none).

    Ranges of other devices than this count only where it has none. If no range has a name of a
    phase, the outermost ones are taken for phases.
    """
    events = len(device.action)
    phases = np.full(events, -1)
    steps = np.full(events, -1)
    own = annotations[annotations["device"] == device.number]
    own = annotations if own.empty else own
    if own.empty or device.seconds is None:
        return phases, [], steps
    names: dict[str, int] = {}
    is_named = any(meaning(name) is not None for name in own["name"])
    at = np.append(np.searchsorted(device.time, own["time"]), events)
    open_ranges: list[str] = []
    for number, (name, starts) in enumerate(zip(own["name"], own["starts"], strict=True)):
        if starts:
            open_ranges.append(name)
        elif name in open_ranges:  # the innermost of that name
            del open_ranges[len(open_ranges) - 1 - open_ranges[::-1].index(name)]
        inside = slice(at[number], at[number + 1])
        around = _phase_of(open_ranges, is_named)
        if around is not None:
            phases[inside] = names.setdefault(around, len(names))
        counted = [_STEP.match(name) for name in open_ranges]
        numbers = [int(found[1]) for found in counted if found]
        if numbers:
            steps[inside] = numbers[-1]
    return phases, list(names), steps


def _phase_of(open_ranges: list[str], is_named: bool) -> str | None:
    """The phase inside these ranges, the outermost first: of the innermost one whose name means a
    phase if there are such names in the recording (is_named), else the outermost one itself."""
    around = [name for name in open_ranges if not _STEP.match(name)]
    if not is_named:
        return around[0] if around else None
    meant = [meaning(name) for name in around]
    return next((phase for phase in reversed(meant) if phase is not None), None)


def meaning(name: str) -> str | None:
    """The phase that a range with this name is, the loss a part of the forward pass; None if the
    name says nothing."""
    found = people.meaning(name)
    if found == "loss":
        return "forward"
    return None if found == "step" else found


def began_before(device: Device, annotations: pd.DataFrame) -> bool:
    """Whether annotations prove that events are missing: a range is over before the first event, in
    a history in which a range of the same name has events."""
    if device.seconds is None:
        return False
    own = annotations[annotations["device"] == device.number]
    own = own.assign(at=np.searchsorted(device.time, own["time"].astype(np.int64)))
    ended = own.assign(events=own.groupby("name")["at"].diff())[~own["starts"].astype(bool)]
    before = set(ended["name"][ended["at"] == 0])
    return bool(before & set(ended["name"][ended["events"] > 0]))
