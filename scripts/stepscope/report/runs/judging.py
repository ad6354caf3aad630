"""Every series of two results folders beside each other: which belong together, and what may be said of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stepscope.recordings.text import plain
from stepscope.report.kit.compare import (
    NOT_COMPARABLE,
    SLOWER,
    UNCLEAR,
    Comparison,
    Floors,
    Timed,
    clock_ratio,
    downgraded,
    judged,
)
from stepscope.report.runs.control import Alarm, Unchanged, alarms, unchanged
from stepscope.report.runs.reading import Results, ResultsError
from stepscope.report.runs.series import Place, label_of, point_of, series_of, statuses_of

# Parts of a spec that say how often something is measured, not what; any other that differs makes another cell.
HOW_OFTEN = frozenset({"processes", "warmup", "steps", "max_steps", "max_seconds", "seconds"})
OTHER_SPEC = "other spec"
BEFORE, AFTER = "baseline", "results"


@dataclass(frozen=True)
class Machine:
    """A machine's label in the baseline and in the results. same_type: whether both name the same GPU, or processor."""

    before: str
    after: str
    same_type: bool

    @property
    def name(self) -> str:
        """Both labels, or the one."""
        return self.after if self.before == self.after else f"{self.before} → {self.after}"

    @property
    def types(self) -> tuple[str, str]:
        """What tells its two types from each other; the same word where they are one."""
        return (BEFORE, AFTER) if not self.same_type else (AFTER, AFTER)


@dataclass(frozen=True)
class Pair:
    """A series in both folders. comparison: the results' beside the baseline's; None where the specs differ.

    why: what keeps a verdict back; empty where there is one, or the difference is too small to be told.
    """

    machine: Machine
    place: Place
    before: Timed
    after: Timed
    comparison: Comparison | None
    why: str = ""

    @property
    def verdict(self) -> str:
        """FASTER, SLOWER, SAME, UNCLEAR or NOT_COMPARABLE."""
        return self.comparison.verdict if self.comparison else NOT_COMPARABLE

    @property
    def times_as_long(self) -> float:
        """The results' time over the baseline's."""
        return self.after.median / self.before.median

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of its 95 % interval; None without one."""
        found = self.comparison
        return (1 / found.high, 1 / found.low) if found and found.has_interval else None

    @property
    def cycles(self) -> float | None:
        """The same ratio in cycles of the SM clock, where a GPU limits both and both clocks are known."""
        clocks = clock_ratio(self.after, self.before)
        return clocks and self.times_as_long * clocks

    @property
    def limited_by(self) -> str:
        """What limits it now."""
        return self.after.limited_by or "unknown"


@dataclass(frozen=True)
class Lost:
    """A series that has a time in one of the folders only, though its cell is in both: the status in each."""

    place: Place
    before: str
    after: str

    @property
    def is_worse(self) -> bool:
        """Whether what ran does not fit any more."""
        return (self.before, self.after) == ("ok", "oom")


@dataclass(frozen=True)
class Compared:
    """All that the comparison of two folders found."""

    before: Results
    after: Results
    machines: Sequence[Machine]
    pairs: Sequence[Pair]
    lost: Sequence[Lost]
    control: Mapping[Machine, Sequence[Unchanged]]
    alarms: Mapping[Machine, Sequence[Alarm]]
    only: Mapping[str, Sequence[str]]  # BEFORE and AFTER → the cells that only they have

    def of(self, *verdicts: str) -> list[Pair]:
        """The pairs with one of these verdicts."""
        return [pair for pair in self.pairs if pair.verdict in verdicts]

    def exit_code(self, strict: bool = False) -> int:
        """0: nothing has become slower; 1: something has, or ran out of memory; 3, if strict: something is unclear."""
        if self.of(SLOWER) or any(each.is_worse for each in self.lost):
            return 1
        clear = all(pair.verdict not in (UNCLEAR, NOT_COMPARABLE) for pair in self.pairs)
        return 3 if strict and not (clear and not self.lost and not self.after.left_out) else 0


def compared(before: Results, after: Results, paired: Mapping[str, str] | None = None) -> Compared:
    """The results beside the baseline. paired: its labels → those of the results, where these have other names.

    Raises ResultsError where the machines cannot be told, or no cell is in both.
    """
    found = machines(before, after, paired or {})
    common = common_cells(before, after, found)
    if not common:
        raise ResultsError(
            f"{before.name} and {after.name} have no cell in common, such as {_first(before)} and {_first(after)}; "
            "compare results of the same grid"
        )
    if not any(series_of(results.rows) for results in (before, after)):
        raise ResultsError(f"{before.name} and {after.name} hold no times; compare results of a study that times")
    control = {one: _control(one, before, after) for one in found}
    fired = {one: alarms(pairs) for one, pairs in control.items()}
    pairs = [pair for one in found for pair in _judged(one, before, after, bool(fired[one]))]
    lost = _lost(found, before, after)
    if not pairs and not lost:
        raise ResultsError(
            f"{before.name} and {after.name} have no timed cell in common; compare results of the same grid of a study "
            "that times"
        )
    own = [{cell for both in common for cell in both[at : at + 1]} for at in (0, 1)]
    only = {
        name: [cell for cell in results.records if cell not in there]
        for name, results, there in zip((BEFORE, AFTER), (before, after), own, strict=True)
    }
    return Compared(before, after, found, pairs, lost, control, fired, only)


def machines(before: Results, after: Results, paired: Mapping[str, str]) -> list[Machine]:
    """Which machines belong together: as they are paired, by equal labels, else the only one of each."""
    for old, new in paired.items():
        for label, results in ((old, before), (new, after)):
            if label not in results.labels:
                there = ", ".join(map(plain, results.labels))
                raise ResultsError(f"{plain(label)} is no machine of {results.name}; choose from {there}")
    labels = dict(paired) or {label: label for label in before.labels if label in after.labels}
    if not labels and len(before.labels) == len(after.labels) == 1:
        labels = {before.labels[0]: after.labels[0]}
    if not labels:
        there = [f"{results.name} has {', '.join(map(plain, results.labels))}" for results in (before, after)]
        raise ResultsError(
            f"no machine has one label in both: {'; '.join(there)}; say which belong together, by --paired OLD=NEW, "
            "or by paired: {OLD: NEW} in the configuration"
        )
    return [Machine(old, new, _device(before, old) == _device(after, new)) for old, new in labels.items()]


def _device(results: Results, label: str) -> tuple:
    """The name of a machine's GPU, or processor, and its memory; of the first record of the label."""
    seen = next(record["machine"] for cell, record in results.records.items() if label_of(cell) == label)
    return tuple(str(seen.get(key)) for key in ("device", "gpu", "gpu_memory_mib", "cpu"))


def common_cells(before: Results, after: Results, found: Iterable[Machine]) -> list[tuple[str, str]]:
    """The cells that are in both, by their names in each."""
    both = []
    for one in found:
        for cell in before.records:
            other = f"{one.after}/{point_of(cell)}"
            if label_of(cell) == one.before and other in after.records:
                both.append((cell, other))
    return both


def other_spec(before: Mapping, after: Mapping) -> str:
    """In what two specs differ that are not of one cell: `context 128 → 256`; empty in nothing."""
    keys = sorted({*before, *after} - HOW_OFTEN)
    differ = [key for key in keys if before.get(key) != after.get(key)]
    return ", ".join(plain(f"{key} {before.get(key)} → {after.get(key)}", 80) for key in differ)


def _first(results: Results) -> str:
    return plain(next(iter(results.records)))


def _of_machine(results: Results, label: str) -> dict[str, list[dict]]:
    """The rows of a machine."""
    return {study: [row for row in rows if row["hardware"] == label] for study, rows in results.rows.items()}


def _control(one: Machine, before: Results, after: Results) -> list[Unchanged]:
    """The control of both runs."""
    sides = (BEFORE, one.types[0], before, one.before), (AFTER, one.types[1], after, one.after)
    return [
        pair
        for run, kind, results, label in sides
        for pair in unchanged(run, kind, _of_machine(results, label)["timing"])
    ]


def _judged(one: Machine, before: Results, after: Results, has_fired: bool) -> list[Pair]:
    """The series of a machine; each study is a family, without what has another spec."""
    old_type, new_type = one.types
    old, new = _series(before, one.before, old_type), _series(after, one.after, new_type)
    floors = _of_type(before.floors, one.before, old_type).larger(_of_type(after.floors, one.after, new_type))
    pairs = []
    for study in after.rows:
        places = {point: place for point, (place, _) in new.items() if point in old and place.study == study}
        specs = {point: _spec_changed(one, place, before, after) for point, place in places.items()}
        family = [point for point, spec in specs.items() if not spec]
        found = judged_runs([(new[point][1], old[point][1]) for point in family], floors, has_fired)
        comparisons = dict(zip(family, found, strict=True))
        for point, place in places.items():
            comparison = comparisons.get(point)
            why = comparison.why if comparison else f"{OTHER_SPEC}: {specs[point]}"
            pairs.append(Pair(one, place, old[point][1], new[point][1], comparison, why))
    return pairs


def _series(results: Results, label: str, hardware: str) -> dict[tuple, tuple[Place, Timed]]:
    found = series_of(_of_machine(results, label))
    return {place.point: (place, replace(each, hardware=hardware)) for place, each in found.items()}


def _of_type(floors: Floors, label: str, kind: str) -> Floors:
    """The floors of one machine, as those of its type."""
    return Floors({(kind, which): floor for (own, which), floor in floors.by_class.items() if own == label})


def judged_runs(both: Sequence[tuple[Timed, Timed]], floors: Floors, has_fired: bool = False) -> list[Comparison]:
    """(a series, the same of the baseline) as one family; unclear where the control of one run has fired."""
    found = judged([(replace(after, run=AFTER), replace(before, run=BEFORE)) for after, before in both], floors)
    return [downgraded(each) for each in found] if has_fired else found


def _spec_changed(one: Machine, place: Place, before: Results, after: Results) -> str:
    """In what the spec of a series of the results differs from the baseline's."""
    old = before.records[f"{one.before}/{point_of(place.cell)}"]
    return other_spec(old["spec"], after.records[place.cell]["spec"])


def _lost(found: Iterable[Machine], before: Results, after: Results) -> list[Lost]:
    lost = []
    for one in found:
        old = {place.point: status for place, status in statuses_of(_of_machine(before, one.before)).items()}
        for place, status in statuses_of(_of_machine(after, one.after)).items():
            was = old.get(place.point, status)
            if was != status and "ok" in (was, status) and not _spec_changed(one, place, before, after):
                lost.append(Lost(place, was, status))
    return lost
