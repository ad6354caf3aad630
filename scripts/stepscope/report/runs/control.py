"""Whether the control of two runs fires: an unchanged cell that was measured twice, and is judged different.

A run's floor and its spread between cells are made of the control itself, by which none of its pairs could ever be
different. So each pair is judged by what all other points of the control say, in either run, of what the same thing
limits.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepscope import confidence
from stepscope.confidence import Spread
from stepscope.report.data.control import POINT, covering, repeated
from stepscope.report.kit.compare import Comparison, Floors, Timed, judged, timed
from stepscope.report.runs.series import PREFIXES


@dataclass(frozen=True)
class Unchanged:
    """A series of a cell that was measured once more in the same run. machine: its type. point: the run, and what both
    cells have in common. medians: of the processes, ms."""

    run: str
    machine: str
    point: tuple
    cells: tuple[str, str]
    phase: str
    series: tuple[Timed, Timed]
    medians: tuple[list[float], list[float]]

    @property
    def limited_by(self) -> str | None:
        """What limits it."""
        return self.series[0].limited_by

    @property
    def difference(self) -> float:
        """Of the logarithms, 0 or more."""
        return abs(math.log(self.series[0].median / self.series[1].median))


@dataclass(frozen=True)
class Alarm:
    """A pair that is judged different."""

    pair: Unchanged
    comparison: Comparison


def unchanged(run: str, machine: str, rows: Sequence[Mapping]) -> list[Unchanged]:
    """The control's pairs of a run, by the rows of the timing study of one machine."""
    found = []
    for again, first in repeated(rows):
        for prefix in PREFIXES["timing"]:
            series = [timed(each, prefix) for each in (first, again)]
            if None not in series:
                medians = [list(map(float, each[f"{prefix}process_medians_ms"].split())) for each in (first, again)]
                names, phase = (first["cell"], again["cell"]), prefix.rstrip("_")
                point = run, POINT(first)
                found.append(Unchanged(run, machine, point, names, phase, tuple(series), tuple(medians)))
    return found


def alarms(pairs: Sequence[Unchanged]) -> list[Alarm]:
    """Those of the pairs of both runs that are judged different, as one family.

    A pair is judged only where another point of its class and type of machine tells what unchanged cells differ by.
    """
    able, both, floors = [], [], {}
    for number, (own, others) in enumerate(judgeable(pairs)):
        # A floor is one of a machine and a class. Each point has its own, and so stands for a machine.
        floors[str(number), own[0].limited_by] = covering(other.difference for other in others)
        spreads = {each.spread for pair in own for each in pair.series}
        wider = {spread: _by_the_others(spread, others) for spread in spreads}
        able += own
        both += [
            tuple(replace(each, hardware=str(number), spread=wider[each.spread]) for each in reversed(pair.series))
            for pair in own
        ]
    found = judged(both, Floors(floors))
    return [Alarm(pair, each) for pair, each in zip(able, found, strict=True) if each.is_different]


def judgeable(pairs: Sequence[Unchanged]) -> list[tuple[list[Unchanged], list[Unchanged]]]:
    """Of each point and class the pairs of several processes, and the pairs that they can be judged by."""
    classes: dict[tuple, dict[tuple, list[Unchanged]]] = {}
    for pair in pairs:
        if all(each.spread for each in pair.series):
            own = classes.setdefault((pair.machine, pair.limited_by), {})
            own.setdefault(pair.point, []).append(pair)
    return [
        (own, [pair for other, there in points.items() if other != point for pair in there])
        for points in classes.values()
        if len(points) > 1
        for point, own in points.items()
    ]


def _by_the_others(spread: Spread, others: Sequence[Unchanged]) -> Spread:
    """A spread between processes with that between cells that other points show."""
    degrees = len({other.point for other in others})
    cells = confidence.between_cells([other.medians for other in others], spread)
    return replace(spread, cells=cells, cells_degrees=degrees)
