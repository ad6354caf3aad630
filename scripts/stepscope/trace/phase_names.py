"""Which ranges of a trace are phases, whatever its author called them."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from stepscope.recordings import names as people

from .events import Names, Trace
from .nesting import climb, inside_itself

_ENGINE = re.compile(r"autograd::engine|CheckpointFunctionBackward")
MOST_GUESSED = 12  # phases taken from a trace in which no range has a phase's name


def named(
    trace: Trace, parent: np.ndarray, operator: np.ndarray, wanted: list[str] | None
) -> tuple[Trace, list[str]]:
    """(the trace, in which ranges of one phase have one name, and so have those that differ in a
    number alone; the names of the phases in the order in which they first start, the longer one
    first).

    Phases are the names `wanted` (as in the file, or as they are here; those that are not there are
    left out), else every range whose name means a phase, else the outermost ranges of each process.

    parent: for each range the one around it; operator: for each name whether it is autograd's.
    """
    if not len(trace.ranges):
        return trace, []
    own = trace.ranges["name"].to_numpy()
    there = np.unique(own)
    kept = operator | trace.names_that(set(wanted or ()).__contains__)
    label = _families(trace.names, there[~kept[there]])
    means = {code: people.meaning(label[code]) for code in there[~operator[there]].tolist()}
    absent = None if wanted is None else set(wanted) - {label[code] for code in there}
    for code, phase in means.items():
        if phase and (absent is None or phase in absent):
            label[code] = phase
    names = Names(zip(trace.names, range(len(trace.names)), strict=True))
    renamed = np.array([names[text] for text in label])[own]
    if wanted is not None:
        chosen = {label[code] for code in there} & set(wanted)
    elif any(means.values()):
        chosen = {phase for phase in means.values() if phase}
    else:
        outer = _outermost(trace.ranges, renamed, parent, operator[own])
        chosen = {list(names)[code] for code in outer}
    # A range within one of its own phase, whatever both are called in the file, is a part of it,
    # and would count it twice: FSDP's forward passes in each other, "step" in "iteration 3".
    # So is what autograd's engine runs again, a checkpointed module's forward pass.
    again = climb(parent, parent, ~trace.names_that(_ENGINE.match)[own]) >= 0
    is_phase = np.isin(renamed, [names[name] for name in chosen])
    inner = is_phase & (inside_itself(parent, renamed) | again)
    of_part = {code: names[_of_a_part(trace.names[code], chosen)] for code in np.unique(own[inner])}
    renamed[inner] = [of_part[code] for code in own[inner]]
    result = trace.ranges.assign(name=renamed)
    by_start = result.assign(length=result["start"] - result["end"])  # the longer one first
    first = by_start.groupby("name")[["start", "length"]].min()
    ordered = first.sort_values(["start", "length"], kind="stable").index
    known = list(names)
    phases = [known[code] for code in ordered if known[code] in chosen]
    return replace(trace, names=known, ranges=result), phases


def _of_a_part(name: str, phases: set[str]) -> str:
    """What a range inside its own phase is called: as in the file, unless the phase is."""
    return f"{name} (inner)" if name in phases else name


def available(trace: Trace) -> list[str]:
    """The names that may be wanted as phases, as they are in the file and as they are put
    together."""
    found = [trace.names[code] for code in trace.ranges["name"].unique()]
    together = [*map(people.family, found), *(people.meaning(name) or "" for name in found)]
    return [name for name in dict.fromkeys([*found, *together]) if name]


def _families(names: list[str], codes: np.ndarray) -> list[str]:
    """The names, of which those with these codes have one name if they differ in a number alone."""
    family = pd.Series({code: people.family(names[code]) for code in codes.tolist()}, dtype=object)
    shared = family[family.duplicated(keep=False)]
    return [shared.get(code, name) for code, name in enumerate(names)]


def _outermost(
    ranges: pd.DataFrame, codes: np.ndarray, parent: np.ndarray, operator: np.ndarray
) -> list[int]:
    """Codes of the ranges that lie in no other one of their process, by any thread; those of the
    longest time."""
    outer = ranges.assign(code=codes)[(parent == -1) & ~operator]
    outer = outer.sort_values(["start", "end"], ascending=[True, False], kind="stable")
    reach = outer.groupby("process")["end"].cummax().groupby(outer["process"]).shift()
    outer = outer[~(outer["end"] <= reach)]
    time = (outer["end"] - outer["start"]).groupby(outer["code"]).sum()
    return time.nlargest(MOST_GUESSED).index.tolist()
