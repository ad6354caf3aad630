"""Which ranges of a trace are phases, whatever its author called them."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from stepscope.recordings import names as people
from stepscope.trace.events import Names, Trace
from stepscope.trace.nesting import climb, inside_itself

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
    label = _families(trace.names, np.unique(own), operator, set(wanted or ()))
    means = {code: people.meaning(text) for code, text in label.items() if not operator[code]}
    absent = None if wanted is None else set(wanted) - set(label.values())
    for code, phase in means.items():
        if phase and (absent is None or phase in absent):
            label[code] = phase
    names, new = _codes(trace.names, label)
    renamed = new[own]
    if wanted is not None:
        chosen = set(label.values()) & set(wanted)
    elif any(means.values()):
        chosen = {phase for phase in means.values() if phase}
    else:
        chosen = {names[each] for each in _outermost(trace.ranges, renamed, parent, operator[own])}
    # A range within one of its own phase, whatever both are called in the file, is a part of it,
    # and would count it twice: FSDP's forward passes in each other, "step" in "iteration 3".
    # So is what autograd's engine runs again, a checkpointed module's forward pass.
    again = climb(parent, parent, ~trace.names_that(_ENGINE.match)[own]) >= 0
    is_phase = np.isin(renamed, [names.index(name) for name in chosen])
    inner = is_phase & (inside_itself(parent, renamed) | again)
    parts = {int(each): _of_a_part(trace.names[each], chosen) for each in np.unique(own[inner])}
    names, of_parts = _codes(names, parts)
    result = trace.ranges.assign(name=np.where(inner, of_parts[own], renamed))
    result["length"] = result["start"] - result["end"]  # negative: the longer one first
    first = result.groupby("name").agg({"start": "min", "length": "min"})
    ordered = first.sort_values(["start", "length"], kind="stable").index
    there = [names[code] for code in ordered if names[code] in chosen]
    return replace(trace, names=names, ranges=result.drop(columns="length")), there


def _of_a_part(name: str, phases: set[str]) -> str:
    """What a range inside its own phase is called: as in the file, unless the phase is."""
    return f"{name} (inner)" if name in phases else name


def available(trace: Trace) -> list[str]:
    """The names that may be wanted as phases, as they are in the file and as they are put
    together."""
    found = [trace.names[code] for code in trace.ranges["name"].unique()]
    together = [*map(people.family, found), *(people.meaning(name) or "" for name in found)]
    return [name for name in dict.fromkeys([*found, *together]) if name]


def _families(
    names: list[str], codes: np.ndarray, operator: np.ndarray, kept: set[str]
) -> dict[int, str]:
    """Code → name, with one name for those that differ in a number alone, operators and the names
    `kept` aside."""
    label = {int(code): names[code] for code in codes}
    free = {code: name for code, name in label.items() if not operator[code] and name not in kept}
    family = pd.Series({code: people.family(name) for code, name in free.items()}, dtype=object)
    shared = family[family.duplicated(keep=False)]
    return label | dict(zip(shared.index.tolist(), shared.tolist(), strict=True))


def _codes(names: list[str], label: dict[int, str]) -> tuple[list[str], np.ndarray]:
    """(names with the labels added, for each old code the new one)."""
    known = Names(zip(names, range(len(names)), strict=True))
    code = np.arange(len(names))
    code[list(label)] = [known[text] for text in label.values()]
    return list(known), code


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
