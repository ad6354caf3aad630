"""The timing grid with the same cell of every machine beside each other."""

import functools
from dataclasses import dataclass

from stepscope.report.data.machines import Limits, labels, limits
from stepscope.report.data.mixed import PHASES, Mixed
from stepscope.report.kit.compare import Comparison
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import precision_rank
from stepscope.tables.reader import Tables

POINT = ("size", "context", "batch", "precision", "mode", "options")
EXTRA = ("batch", "mode", "options")
# What stands for a cell, the fullest first.
_MAIN = ("step", "backward", "forward", "inference")


@dataclass(frozen=True)
class Point:
    """A point of the grid: hardware label -> its first run there, a row of the timing table."""

    rows: dict[str, dict]

    def value(self, name: str) -> object:
        """A column that all machines share: one of POINT."""
        return next(iter(self.rows.values())).get(name)

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
        return place_of(next(iter(self.rows.values())))

    def time(self, label: str, phase: str) -> float | None:
        """Median of a phase in ms."""
        found = self.rows.get(label, {}).get(f"{phase}_median_ms")
        return found if known(found) and found > 0 else None

    def status(self, label: str, phase: str) -> str | None:
        """What became of a phase; None where the machine's grid does not have the point."""
        row = self.rows.get(label)
        if row is None:
            return None
        return row["status"] if row["status"] in ("failed", "missing") else row.get(f"{phase}_status")


class Grid:
    """The points that two machines or more have, by precision, parameters, size and context; `every`: also of one."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.labels = labels(tables)
        self.mixed = Mixed(tables)
        self.every = _points(self.mixed)
        self.points = [point for point in self.every if len(point.rows) > 1]
        self._limits: dict[tuple[str, str], Limits] = {}
        self._speeds: dict[tuple, Comparison | None] = {}

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
        timed = [each for each in _MAIN if any(self.speed(point, label, each) for point, label in self.pairs)]
        return next(iter([*timed, *(each for each in _MAIN if each in self.phases)]), "step")

    @functools.cached_property
    def pairs(self) -> list[tuple[Point, str]]:
        """(point, label) of every machine but the baseline."""
        return [(point, label) for label in self.others for point in self.points]

    def speed(self, point: Point, label: str, phase: str, over: str | None = None) -> Comparison | None:
        """A machine's speed-up over the baseline, or over another machine; None unless both have a time."""
        key = (id(point), label, phase, over or self.baseline)
        if key not in self._speeds:
            row, reference = point.rows.get(label), point.rows.get(key[-1])
            self._speeds[key] = self.mixed.speed(row, reference, phase) if row and reference else None
        return self._speeds[key]

    def limits(self, label: str, precision: str) -> Limits:
        """Ratios of a machine's rates to the baseline's."""
        key = (label, precision)
        if key not in self._limits:
            self._limits[key] = limits(self.tables, label, self.baseline, precision)
        return self._limits[key]

    @functools.cached_property
    def extra(self) -> list[str]:
        """The columns besides size, context and precision in which points differ."""
        return varying([next(iter(point.rows.values())) for point in self.points])


def _points(mixed: Mixed) -> list[Point]:
    found: dict[tuple, dict[str, dict]] = {}
    if len(mixed.timing) and {"size", "context", "precision"} <= set(mixed.timing):
        for row in mixed.timing[mixed.timing["repeat"] == 1].to_dict("records"):
            found.setdefault(tuple(_plain(row.get(name)) for name in POINT), {})[str(row["hardware"])] = row
    return sorted(map(Point, found.values()), key=_rank)


def varying(rows: list[dict]) -> list[str]:
    """The columns of EXTRA in which rows differ."""
    return [name for name in EXTRA if len({str(row.get(name)) for row in rows}) > 1]


def place_of(row: dict) -> tuple:
    """Size, context and what else may vary but the precision."""
    return tuple(_plain(row.get(name)) for name in ("size", "context", *EXTRA))


def _plain(value: object) -> object:
    """A value that is equal to itself: what is missing differs from nothing."""
    return None if value != value else value


def _rank(point: Point) -> tuple:
    extra = tuple(str(point.value(name)) for name in EXTRA)
    parameters = point.parameters
    known_last = (parameters is None, parameters or 0.0)
    return (precision_rank(point.precision), known_last, str(point.size), point.context, extra)
