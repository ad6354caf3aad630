"""The sentences of a comparison, for its pages and for the terminal."""

import math
from collections import Counter
from collections.abc import Sequence

from stepscope.recordings.text import plain
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, LEAST_MARGIN, NOT_COMPARABLE, SAME, SLOWER, UNCLEAR, ratio_text
from stepscope.report.runs.changes import Change
from stepscope.report.runs.control import judgeable
from stepscope.report.runs.judging import AFTER, BEFORE, Compared
from stepscope.report.runs.recorded import Filling, Kernel
from stepscope.report.runs.series import in_words, point_of
from stepscope.report.runs.shift import Shift, shifts

_SAID = {
    SLOWER: "slower",
    FASTER: "faster",
    SAME: "the same",
    UNCLEAR: "unclear",
    NOT_COMPARABLE: "not comparable",
}
MOST_NAMES = 6


def summary(found: Compared, changed: Sequence[Change]) -> list[str]:
    """What was found, the most important first; each sentence by itself."""
    told = [verdicts(found), *map(shift, shifts(found.pairs))]
    worse = [each.place for each in found.lost if each.is_worse]
    if worse:
        told.append(f"Out of memory now: {formatting.listing([_name(each) for each in worse], MOST_NAMES)}.")
    told += [alarm(found)] if any(found.alarms.values()) else [control(found)]
    told.append(_changed(changed))
    if same := _same_measurements(found):
        told.append(same)
    for name, other in ((BEFORE, AFTER), (AFTER, BEFORE)):
        if alone := found.only[name]:
            told.append(f"{formatting.cells(len(alone)).capitalize()} of the {name} not in the {other}.")
    damaged = len(found.before.left_out) + len(found.after.left_out)
    if damaged:
        told.append(f"{formatting.cells(damaged).capitalize()} left out, damaged or of another version.")
    return told


def verdicts(found: Compared) -> str:
    """How many series have which verdict."""
    counts = {word: len(found.of(word)) for word in _SAID}
    cells = len({pair.place.cell for pair in found.pairs})
    told = ", ".join(f"{counts[word]:,} {said}" for word, said in _SAID.items())
    reasons = Counter(pair.why.partition(":")[0] for pair in found.of(NOT_COMPARABLE) if pair.why)
    why = f" ({', '.join(f'{count:,} {word}' for word, count in reasons.most_common())})" if reasons else ""
    return f"Of {len(found.pairs):,} series in {formatting.cells(cells)}: {told}{why}."


def shift(found: Shift) -> str:
    """A shift in common, and what it points to."""
    limits = {"gpu": "that the GPU limits", "launches": "that launches limit", "processor": "that a processor limits"}
    which = f"the {found.every:,} series{f' {limits.get(found.what, found.what)}' if found.what else ''}"
    told = f"A common shift on {plain(found.machine.name)}: {found.shared:,} of {which} take about "
    told += f"{ratio_text(found.factor)} times as long"
    if found.clocks:
        before, after = map(formatting.count, found.clocks)
        return f"{told}; the SM clock explains it, {before} MHz before and {after} MHz now."
    return f"{told}, which points to one cause that acts on all of them (driver, libraries, clock, host)."


def alarm(found: Compared) -> str:
    """That unchanged cells were judged different, and what follows."""
    machines = [one for one, own in found.alarms.items() if own]
    cells = {alarm.pair.cells[1] for one in machines for alarm in found.alarms[one]}
    sides = list(dict.fromkeys(alarm.pair.run for one in machines for alarm in found.alarms[one]))
    verdict = "every verdict" if len(machines) == len(found.machines) else (
        f"every verdict on {formatting.listing([plain(one.name) for one in machines])}"
    )  # fmt: skip
    return (
        f"The control fired in the {' and the '.join(sides)}: {formatting.cells(len(cells))} that did not change "
        f"within a run are judged different, so that {verdict} is unclear."
    )


def control(found: Compared) -> str:
    """What the control says where it has not fired."""
    pairs = [pair for own in found.control.values() for pair in own]
    parts = []
    for name in (BEFORE, AFTER):
        own = [pair for pair in pairs if pair.run == name]
        most = max((pair.difference for pair in own), default=None)
        differ = "" if most is None else f" (by at most {formatting.percent(math.expm1(most))})"
        parts.append(f"{len(own):,} in the {name}{differ}")
    if not pairs:
        least = formatting.percent(math.expm1(LEAST_MARGIN))
        return f"No cell was measured twice within a run: what unchanged cells differ by is not known; {least} counts."
    judged = sum(len(own) for own, _ in judgeable(pairs))
    of = "" if judged == len(pairs) else f"of the {judged:,} that others can be held against "
    return f"Unchanged phases that were measured twice: {', '.join(parts)}; {of}none is judged different."


def _changed(changed: Sequence[Change]) -> str:
    facts = list(dict.fromkeys(each.fact for each in changed))
    if not facts:
        return "Machine, driver, software, code and settings are the same."
    return f"Changed: {formatting.listing([plain(each, 60) for each in facts], 2 * MOST_NAMES)}."


def _same_measurements(found: Compared) -> str:
    """How many cells of the results are no measurements of their own, by the time and the samples.

    Samples alone may be the same: what precision does is.
    """

    def measured(record: dict) -> tuple:
        return record["provenance"]["started"], record["samples_sha256"]

    before = {measured(record) for record in found.before.records.values()}
    count = sum(measured(record) in before for record in found.after.records.values())
    of = formatting.cells(len(found.after.records))
    return f"{count:,} of {of} of the results were not measured again: their samples are the baseline's." * bool(count)


def about_kernels(found: Sequence[Kernel] | None) -> str:
    """Kernels that came, went, grew and shrank, in one sentence."""
    if found is None:
        return "Not both have profiles of a common cell."
    if not found:
        return "No kernel came, went, grew or shrank by 1 % of a step's time in kernels."
    parts = [f"{sum(each.change == word for each in found):,} {word}" for word in ("came", "went", "grew", "shrank")]
    return f"Kernels: {', '.join(parts)}."


def about_memory(found: Sequence[Filling] | None) -> str:
    """What fills more, in one sentence."""
    if found is None:
        return "Not both have snapshots of a common cell."
    if not found:
        return "Nothing fills more or less of the memory at the peak."
    more = sum(each.after > each.before for each in found)
    return f"Of categories at the peaks {more:,} fill more, {len(found) - more:,} less."


def _name(place) -> str:
    return plain(f"{point_of(place.cell)} {in_words(place.what)}".strip())
