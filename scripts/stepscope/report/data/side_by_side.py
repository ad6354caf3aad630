"""The other studies on several machines, and machines in 16 bits that are slower than others in full precision."""

import functools
import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace

from stepscope.report.data.attention import Attention, implementation_rank, setting_of
from stepscope.report.data.control import floors
from stepscope.report.data.ladder import ladders
from stepscope.report.data.machines import rate
from stepscope.report.data.memory import Memory
from stepscope.report.data.mixed import MIXED, REFERENCE
from stepscope.report.data.points import Grid, Point
from stepscope.report.data.roofline import ROOFS
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.compare import FASTER, SLOWER, Comparison, Floors, by_axis, by_fields, judged
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import precision_rank
from stepscope.tables.ladder import TIMES
from stepscope.tables.reader import Tables

_PASS = by_fields("implementation", "precision", "d_head", "direction")
_LADDER = by_fields("size", "context", "batch")
_MEMORY = by_fields("size", "mode", "precision", "context", "batch", "options")


@dataclass(frozen=True)
class Shared:
    """The points of a study that all its machines have: those of the report that have any cell in it.

    labels: of all machines of the report; machines: of the study's, the baseline of the comparison first. phase: the
    phase of a point that is compared. floors: the run's control.
    """

    study: str
    labels: list[str]
    machines: list[str]
    points: list[Point]
    phase: Callable[[Point], str] = lambda point: ""
    floors: Floors = field(default_factory=Floors)

    @property
    def baseline(self) -> str:
        """The machine that the others are compared with."""
        return self.machines[0]

    @property
    def others(self) -> list[str]:
        """The study's machines but the baseline."""
        return self.machines[1:]

    @property
    def lacking(self) -> list[str]:
        """The machines of the report that the study has no cells of."""
        return [label for label in self.labels if label not in self.machines]

    def speed(self, point: Point, other: str) -> Comparison | None:
        """A machine's speed-up over the baseline; None unless both have a time."""
        return self._speeds[id(point), other]

    @functools.cached_property
    def _speeds(self) -> dict[tuple[int, str], Comparison | None]:
        """All points of a machine are judged together."""
        found = {}
        for other in self.others:
            series = [tuple(point.timed(each, self.phase(point)) for each in (other, self.baseline))
                      for point in self.points]  # fmt: skip
            keys = [(id(point), other) for point in self.points]
            found |= dict(zip(keys, judged(series, self.floors), strict=True))
        return found


def _shared(study: str, labels: list[str], rows: Iterable[dict], point: Callable[[dict], Hashable]) -> Shared:
    found = by_axis(rows, "hardware", point)
    machines = [label for label in labels if any(label in each for each in found)]
    points = [Point({label: each[label] for label in machines}) for each in found if {*machines} <= {*each}]
    return Shared(study, labels, machines, points if len(machines) > 1 else [])


def attention(tables: Tables, labels: list[str]) -> Shared:
    """Attention by itself: a point an implementation, precision, d and direction in each setting.

    Each is at the longest length that all machines finished, or, where there is none, that all machines have.
    """
    rows = Attention(tables).rows
    found = _shared("attention", labels, rows, lambda row: (setting_of(row), _PASS(row), row["length"]))

    def preference(point: Point) -> tuple[bool, float]:
        return all(point.time(label) for label in found.machines), point.value("length")

    best = {(setting_of(point.row), _PASS(point.row)): point for point in sorted(found.points, key=preference)}
    return replace(found, points=sorted(best.values(), key=_attention_rank), floors=floors(tables["timing"]))


def _attention_rank(point: Point) -> tuple:
    row = point.row
    rank = implementation_rank(row["implementation"]), precision_rank(row["precision"])
    return (setting_of(row), *rank, row["d_head"], row["direction"])


def memory(tables: Tables, labels: list[str]) -> Shared:
    """The memory study's cells by parameters, size, mode, precision and context.

    Each row has `peak_bytes` besides: its peak, which is None if the cell did not finish.
    """
    study = Memory(tables)
    rows = [row | {"peak_bytes": study.peak(row) if row["status"] == "ok" else None}
            for row in study.first_runs(study.all)]  # fmt: skip
    found = _shared("memory", labels, rows, _MEMORY)
    return replace(found, points=sorted(found.points, key=_memory_rank))


def _memory_rank(point: Point) -> tuple:
    row, parameters = point.row, point.parameters
    known_last = parameters if known(parameters) else float("inf")
    return (known_last, row["size"], mode(row), precision_rank(row["precision"]), row["context"], str(row["batch"]))


def peaks(point: Point) -> dict[str, float | None]:
    """Hardware label -> peak in bytes, of a point of memory()."""
    return {label: row["peak_bytes"] for label, row in point.rows.items()}


def predicted_peaks(point: Point) -> list[float]:
    """What the closed form says on the machines, each distinct number once."""
    values = (row.get("predicted_peak_bytes") for row in point.rows.values())
    return list(dict.fromkeys(value for value in values if known(value)))


def ladder(tables: Tables, labels: list[str]) -> Shared:
    """Of every ladder the first rung that all machines have, and the last that all finished, else the last."""
    rows = [row for one in ladders(tables) for row in one.rungs]
    found = _shared("ladder", labels, rows, lambda row: (_LADDER(row), str(row["name"])))
    ends = []
    for _, group in itertools.groupby(found.points, key=lambda point: _LADDER(point.row)):
        first, *more = group
        last = next((point for point in reversed([first, *more]) if shared_phase(point)), (more or [first])[-1])
        ends += [first, *([last] if last is not first else [])]
    return replace(found, points=ends, phase=_rung_phase, floors=floors(tables["timing"]))


def shared_phase(point: Point) -> str | None:
    """The phase of a rung that all machines have a time of, a whole step if possible; None without one."""
    return next((phase for phase in TIMES if all(point.time(label, phase) for label in point.rows)), None)


def _rung_phase(point: Point) -> str:
    return shared_phase(point) or next(iter(TIMES))


def whole_ladders(found: Shared) -> list[tuple[Point, dict[str, float]]]:
    """(last rung, hardware label -> its speed over the first one's), where both ends have the same phase."""
    gains = []
    for first, last in itertools.pairwise(found.points):
        phase = shared_phase(first)
        if _LADDER(first.row) == _LADDER(last.row) and phase and phase == shared_phase(last):
            gains.append(
                (last, {label: first.time(label, phase) / last.time(label, phase) for label in found.machines})
            )
    return gains


@dataclass(frozen=True)
class Inversion:
    """A point at which a machine in 16 bits is slower than another in fp32; `speed` over that one is less than 1."""

    machine: str
    precision: str
    other: str
    point: Point
    speed: Comparison


def inversions(grid: Grid) -> list[Inversion]:
    """All of them, slowest first in each pair of machines.

    Only machines count that should be the faster ones: by their rates in these precisions, or, where those are not
    known, by their times in fp32 at the same point.
    """
    found = []
    for machine, precision, other in itertools.product(grid.labels, MIXED, grid.labels):
        if machine == other:
            continue
        ratio = rate_ratio(grid, machine, precision, other)
        own = []
        for point in (each for each in grid.every if each.precision == precision):
            speed = grid.over_reference(point, machine, other)
            if not speed or speed.verdict != SLOWER:
                continue
            faster = grid.speed(grid.plain[point.place], machine, grid.main, over=other)
            if ratio > 1 if ratio else faster is not None and faster.verdict == FASTER:
                own.append(Inversion(machine, precision, other, point, speed))
        found += sorted(own, key=lambda each: each.speed.ratio)
    return found


def rate_ratio(grid: Grid, machine: str, precision: str, other: str) -> float | None:
    """A machine's arithmetic rate in a precision over another's in fp32, by the data sheets or else as measured."""
    for source in reversed(ROOFS):
        own, slow = rate(grid.tables, machine, precision, source), rate(grid.tables, other, REFERENCE, source)
        if own and slow:
            return own / slow
    return None
