"""Two runs of one grid side by side: do their intervals overlap, and do they say the same? For second_run.py.

All of it is pure: from tables in memory to rows of numbers. Nothing changed between the runs, so that whatever one of
them calls faster or slower than the other is wrong, and a verdict that the second run turns was none.
"""

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from stepscope.axes import MODES, PRECISIONS, WAYS
from stepscope.report.data.control import floors
from stepscope.report.kit.compare import (
    FASTER,
    SLOWER,
    Comparison,
    Floors,
    Timed,
    by_fields,
    judged,
    pairs,
    timed,
)
from stepscope.report.runs.judging import judged_runs
from stepscope.report.runs.series import Place, places, series_of
from stepscope.tables import timing
from stepscope.tables.columns import with_intervals

STUDIES = ("timing", "ladder", "attention", "ceilings")
ALL = "all"
CALLED = (FASTER, SLOWER)
MIXED = tuple(name for name, precision in PRECISIONS.items() if precision.is_autocast)
REFERENCE = "fp32"
_OF_MODEL = by_fields("hardware", "size", "context", "batch", "mode", *WAYS, "repeat")
POINTS: dict[str, Callable[[dict], tuple]] = {
    "timing": _OF_MODEL,
    "ladder": _OF_MODEL,
    "attention": by_fields(
        *("hardware", "implementation", "d_head", "heads", "causal", "tokens", "batch", "length", "direction")
    ),
    "ceilings": by_fields("hardware", "operation", "n", "bytes_moved"),
}
# What became of a verdict in the second run.
EQUAL, TURNED, LOST, GAINED, OTHER = "equal", "turned", "lost", "gained", "other"


@dataclass(frozen=True)
class Run:
    """What a run measured: its tables' rows, and the floors that its control gives."""

    rows: Mapping[str, list[dict]]
    floors: Floors

    @property
    def series(self) -> dict[Place, Timed]:
        """All series that have a time."""
        return series_of(self.rows)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A series in both runs, and what comparing the second run with the first one gives."""

    place: Place
    first: Timed
    second: Timed
    comparison: Comparison

    @property
    def limited_by(self) -> str:
        """The class of the series, that of the first run."""
        return self.first.limited_by or "unknown"

    @property
    def has_intervals(self) -> bool:
        """Whether it has an interval in both runs."""
        return self.first.has_interval and self.second.has_interval

    @property
    def overlaps(self) -> bool:
        """Whether the two intervals have a value in common; False where one of them is missing."""
        return self.has_intervals and self.first.low <= self.second.high and self.second.low <= self.first.high

    @property
    def is_judged(self) -> bool:
        """Whether enough is known of both to call one of them faster; not so of tables of an older version."""
        return self.comparison.low is not None

    @property
    def is_called(self) -> bool:
        """Whether the second run is called faster or slower, which is wrong."""
        return self.comparison.verdict in CALLED

    @property
    def difference(self) -> float:
        """|ln(second / first)|."""
        return abs(math.log(self.comparison.ratio))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What either run says of a series in 16 bits beside that in fp32 at the same point."""

    place: Place
    limited_by: str
    first: str
    second: str

    @property
    def change(self) -> str:
        """EQUAL, TURNED (faster to slower or back), LOST (faster or slower only in the first run), GAINED (only in
        the second), or OTHER: another word, and neither of them faster or slower."""
        if self.first == self.second:
            return EQUAL
        was, is_now = self.first in CALLED, self.second in CALLED
        return {(True, True): TURNED, (True, False): LOST, (False, True): GAINED}.get((was, is_now), OTHER)


def run_of(tables: Mapping[str, pd.DataFrame]) -> Run:
    """The run whose tables these are, by study; one without cells is an empty frame."""
    return Run({study: tables[study].to_dict("records") for study in STUDIES}, floors(tables["timing"]))


def repeated(first: Run, second: Run) -> list[Repeated]:
    """Every series that both runs have, compared as one family with the larger floors; in the first run's order."""
    before, after = first.series, second.series
    both = [place for place in before if place in after]
    found = judged_runs([(after[place], before[place]) for place in both], first.floors.larger(second.floors))
    return [Repeated(place, before[place], after[place], each) for place, each in zip(both, found, strict=True)]


def verdicts(run: Run) -> dict[Place, tuple[str, str]]:
    """Each series in 16 bits that one in fp32 stands beside → (what limits it, the verdict).

    Those of one table are a family, as in a chapter of the report, with the floors of the run itself.
    """
    found = {}
    for study, rows in run.rows.items():
        beside = {
            place: (own, reference)
            for row, other in pairs(rows, "precision", REFERENCE, POINTS[study])
            if row["precision"] in MIXED
            for place, prefix in places(study, row)
            if (own := timed(row, prefix)) and (reference := timed(other, prefix))
        }
        for (place, (own, _)), each in zip(beside.items(), judged(list(beside.values()), run.floors), strict=True):
            found[place] = own.limited_by or "unknown", each.verdict
    return found


def both_verdicts(first: Run, second: Run) -> list[Verdicts]:
    """The verdicts on precision that both runs give."""
    before, after = verdicts(first), verdicts(second)
    return [Verdicts(place, *before[place], after[place][1]) for place in before if place in after]


def summary(series: Sequence[Repeated], changes: Sequence[Verdicts]) -> list[dict]:
    """A row for each table and what limits its series, in their order, and one for all."""
    groups = list(dict.fromkeys((each.place.study, each.limited_by) for each in (*series, *changes)))
    groups.sort(key=lambda group: STUDIES.index(group[0]))
    rows = []
    for group in groups:
        own = [[each for each in of if (each.place.study, each.limited_by) == group] for of in (series, changes)]
        rows.append(_summary(*group, *own))
    return [*rows, _summary(ALL, ALL, series, changes)]


def _summary(study: str, limited_by: str, series: Sequence[Repeated], changes: Sequence[Verdicts]) -> dict:
    have = [each for each in series if each.has_intervals]
    overlapping = sum(each.overlaps for each in have)
    judged_ones = sum(each.is_judged for each in series)
    called = sum(each.is_called for each in series)
    differences = [each.difference for each in series]
    return {
        "table": study,
        "limited_by": limited_by,
        "series": len(series),
        "with_intervals": len(have),
        "overlapping": overlapping,
        "overlapping_share": share(overlapping, len(have)),
        "judged": judged_ones,
        "called": called,
        "called_share": share(called, judged_ones),
        "median_difference": statistics.median(differences) if differences else None,
        "largest_difference": max(differences, default=None),
        "verdicts": len(changes),
        **{change: sum(each.change == change for each in changes) for change in (EQUAL, TURNED, LOST, GAINED, OTHER)},
    }


def share(part: int, whole: int) -> float | None:
    """Of nothing there is none."""
    return part / whole if whole else None


def offenders(series: Sequence[Repeated], changes: Sequence[Verdicts]) -> dict[str, list[str]]:
    """What is not as it should be → the series, the worst first."""
    worst = sorted(series, key=lambda each: -each.difference)
    moved = "{0.place}: {0.first.median:.4g} ms, then {0.second.median:.4g} ms".format
    changed = "{0.place}: {0.first}, then {0.second}".format
    return {
        "intervals apart": [moved(each) for each in worst if each.has_intervals and not each.overlaps],
        "unchanged, but called faster or slower": [moved(each) for each in worst if each.is_called],
        "limited by something else in the second run": [
            f"{each.place}: {each.first.limited_by}, then {each.second.limited_by}"
            for each in series
            if each.first.limited_by != each.second.limited_by
        ],
        **{
            f"verdicts {change}": [changed(each) for each in changes if each.change == change]
            for change in (TURNED, LOST, GAINED)
        },
    }


@dataclass(frozen=True)
class Planted:
    """A cell that was measured once more with a slowdown of `seconds` in a phase; rows of the timing table."""

    phase: str
    seconds: float
    plain: dict
    slowed: dict


def fill_in(rows: list[dict], slowed: set[str]) -> None:
    """Give rows of the timing table their intervals; the slowed cells are no second measurement of the plain ones."""
    prefixes = [f"{name}_" for name in timing.PHASES]
    with_intervals(rows, prefixes, point=lambda row: (timing.but_for_the_time(row), row["cell"] in slowed))


def judged_planted(planted: Sequence[Planted], floors: Floors) -> list[dict]:
    """A row for each series of these cells, judged as one family: times of the planted over the plain ones, whether
    they are called slower, and whether they should be.

    expected: the ratio that the slowdown would give if all of it adds to the series' time. outcome: `found` or `not
    found` where that is more than the margin, `too small` where it is not; without a slowdown in the series `right`
    if it is called neither faster nor slower, else `wrong`.
    """
    series = [
        (each, name, own, reference)
        for each in planted
        for name in timing.PHASES
        if (own := timed(each.slowed, f"{name}_")) and (reference := timed(each.plain, f"{name}_"))
    ]
    found = judged([(own, reference) for _, _, own, reference in series], floors)
    return [
        _planted_row(each, name, reference, comparison)
        for (each, name, _, reference), comparison in zip(series, found, strict=True)
    ]


def _planted_row(planted: Planted, name: str, plain: Timed, found: Comparison) -> dict:
    is_longer = is_part(planted.phase, name)
    expected = 1 + is_longer * 1000 * planted.seconds / plain.median
    if not is_longer:
        outcome = "wrong" if found.verdict in CALLED else "right"
    elif found.verdict == SLOWER:
        outcome = "found"
    else:
        outcome = "not found" if expected > found.margin else "too small"
    return {
        "cell": planted.plain["cell"],
        "planted": planted.phase,
        "series": name,
        "limited_by": plain.limited_by or "unknown",
        "expected": expected,
        "ratio": 1 / found.ratio,
        "low": found.high and 1 / found.high,
        "high": found.low and 1 / found.low,
        "margin": found.margin,
        "verdict": found.verdict,
        "outcome": outcome,
    }


def outcomes(rows: Sequence[Mapping]) -> str:
    """How many of a planted slowdown's series were found, in words."""
    counts = Counter(row["outcome"] for row in rows)
    longer, others = counts["found"] + counts["not found"], counts["right"] + counts["wrong"]
    return (
        f"found in {counts['found']} of {longer} series that it makes longer by more than the margin, and too small in "
        f"{counts['too small']}; of {others} series without it {counts['wrong']} are called faster or slower"
    )


def is_part(phase: str, name: str) -> bool:
    """Whether the time of a phase is a part of a series of the timing table."""
    mode, kind, what = timing.PHASES[name][0]
    return phase in (MODES[mode].phases if kind == "free" else (what,))


def markdown(rows: Sequence[Mapping], columns: Mapping[str, str]) -> str:
    """A table of some keys of these rows, which have to have one; columns: key → head."""
    lines = [list(columns.values()), [":--" if isinstance(rows[0][key], str) else "--:" for key in columns]]
    lines += [[_cell(row[key]) for key in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
