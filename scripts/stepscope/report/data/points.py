"""The same cell of several machines beside each other: what a point is, and the timing grid made of points."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.report.data.machines import Limits, labels, limits
from stepscope.report.data.mixed import MIXED, PHASES, REFERENCE, Mixed
from stepscope.report.kit.compare import Comparison, Timed, by_axis, by_fields, judged, timed
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import precision_rank
from stepscope.tables.reader import Tables

EXTRA = ("batch", "mode", "options")
_place = by_fields("size", "context", *EXTRA)
_cell = by_fields("hardware", "precision", "size", "context", *EXTRA)
# What stands for a cell, the fullest first.
_MAIN = ("step", "backward", "forward", "inference")


@dataclass(frozen=True)
class Point:
    """Cells that differ in nothing but the machine: hardware label -> its first run there, a row of a study's table."""

    rows: dict[str, dict]

    @property
    def row(self) -> dict:
        """The first machine's row, for the columns that all machines share."""
        return next(iter(self.rows.values()))

    def value(self, name: str) -> object:
        """A column that all machines share."""
        return self.row.get(name)

    @property
    def size(self) -> str:
        """The model's name."""
        return str(self.value("size"))

    @property
    def context(self) -> float:
        """Tokens of a sequence."""
        return self.value("context")

    @property
    def precision(self) -> str:
        """As in the configuration."""
        return str(self.value("precision"))

    @property
    def parameters(self) -> float | None:
        """Of the model; a cell without a result may not know."""
        return next((row["parameters"] for row in self.rows.values() if known(row.get("parameters"))), None)

    @property
    def name(self) -> str:
        """`medium at 512`."""
        return f"{self.size} at {self.context:,.0f}"

    @property
    def place(self) -> tuple:
        """Size, context and what else may vary but the precision."""
        return _place(self.row)

    @property
    def place_rank(self) -> tuple:
        """Sort key of the place: parameters, size, context, batch, other options."""
        parameters, batch = self.parameters, self.value("batch")
        known_last = [(not known(number), number if known(number) else 0) for number in (parameters, batch)]
        return (known_last[0], self.size, self.context, known_last[1], *(str(self.value(name)) for name in EXTRA[1:]))

    def timed(self, label: str, phase: str = "") -> Timed | None:
        """A machine's times of a phase (ms), or of the whole cell; None without any."""
        return timed(self.rows.get(label, {}), f"{phase}_" if phase else "")

    def time(self, label: str, phase: str = "") -> float | None:
        """Their median."""
        series = self.timed(label, phase)
        return series.median if series else None

    def status(self, label: str, phase: str) -> str | None:
        """What became of a phase; None where the machine's grid does not have the point."""
        row = self.rows.get(label)
        if row is None:
            return None
        return row["status"] if row["status"] in ("failed", "missing") else row.get(f"{phase}_status")

    def cells(self, machines: Iterable[str]) -> tuple[str, ...]:
        """The names of these machines' cells."""
        return tuple(self.rows[label]["cell"] for label in machines if label in self.rows)


class Grid:
    """The points that two machines or more have, by precision, parameters, size and context; `every`: also of one."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.labels = labels(tables)
        self.mixed = Mixed(tables)
        self.every = _points(self.mixed)
        self.points = [point for point in self.every if len(point.rows) > 1]
        self.plain = {point.place: point for point in self.every if point.precision == REFERENCE}
        self._limits: dict[tuple[str, str], Limits] = {}
        self._speeds: dict[tuple[str, str], dict[tuple[int, str], Comparison | None]] = {}
        self._own = {_cell(pair.row): pair.speeds for pair in self.mixed.pairs}
        self._over_plain: dict[tuple[str, str], dict[int, Comparison | None]] = {}

    @property
    def baseline(self) -> str:
        """The machine that the others are compared with."""
        return self.labels[0]

    @property
    def others(self) -> list[str]:
        """The machines but the baseline."""
        return self.labels[1:]

    @functools.cached_property
    def precisions(self) -> list[str]:
        """Those of the points, in their order."""
        return list(dict.fromkeys(point.precision for point in self.points))

    @functools.cached_property
    def phases(self) -> list[str]:
        """The phases that any cell of a point has a time of."""
        return [name for name in PHASES if any(point.time(each, name) for point in self.points for each in point.rows)]

    @functools.cached_property
    def main(self) -> str:
        """The phase that stands for a cell: a whole step, or the fullest that two machines have a time of."""
        compared = [each for each in _MAIN if any(self.speed(point, label, each) for point, label in self.pairs)]
        return next(iter([*compared, *(each for each in _MAIN if each in self.phases)]), "step")

    @functools.cached_property
    def pairs(self) -> list[tuple[Point, str]]:
        """(point, label) of every machine but the baseline."""
        return [(point, label) for label in self.others for point in self.points]

    def speed(self, point: Point, label: str, phase: str, over: str | None = None) -> Comparison | None:
        """A machine's speed-up over the baseline, or over another machine; None unless both have a time.

        All points and phases of two machines are judged together.
        """
        both = label, over or self.baseline
        if both not in self._speeds:
            places = [(point, phase) for point in self.every for phase in PHASES if {*both} <= {*point.rows}]
            found = self._judged([tuple(point.timed(each, phase) for each in both) for point, phase in places])
            keys = [(id(point), phase) for point, phase in places]
            self._speeds[both] = dict(zip(keys, found, strict=True))
        return self._speeds[both].get((id(point), phase))

    def over_reference(self, point: Point, label: str, over: str) -> Comparison | None:
        """A machine's speed-up, in the main phase, over the same or another machine in the reference's precision.

        All points of two machines are judged together; those of one machine are the precision study's pairs.
        """
        if label == over:
            return self._own.get(_cell(point.rows[label]), {}).get(self.main) if label in point.rows else None
        if (label, over) not in self._over_plain:
            mixed = [each for each in self.every if each.precision in MIXED and each.place in self.plain]
            series = [(each.timed(label, self.main), self.plain[each.place].timed(over, self.main)) for each in mixed]
            self._over_plain[label, over] = dict(zip(map(id, mixed), self._judged(series), strict=True))
        return self._over_plain[label, over].get(id(point))

    def _judged(self, series: list[tuple[Timed | None, Timed | None]]) -> list[Comparison | None]:
        return judged(series, self.mixed.floors)

    def limits(self, label: str, precision: str) -> Limits:
        """Ratios of a machine's rates to the baseline's."""
        key = (label, precision)
        if key not in self._limits:
            self._limits[key] = limits(self.tables, label, self.baseline, precision)
        return self._limits[key]


def _points(mixed: Mixed) -> list[Point]:
    if mixed.timing.empty or not {"size", "context", "precision"} <= set(mixed.timing):
        return []
    first = mixed.timing[mixed.timing["repeat"] == 1].to_dict("records")
    found = by_axis(first, "hardware", by_fields("size", "context", "precision", *EXTRA))
    return sorted(map(Point, found), key=lambda point: (precision_rank(point.precision), point.place_rank))
