"""Which implementation of attention takes the least time at a length, and which others may take as little."""

from dataclasses import dataclass

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import Group, Shape, median
from stepscope.report.kit.compare import FASTER, judged, timed

TYPICAL_D = 64  # of a head in most models


@dataclass(frozen=True)
class Fastest:
    """The implementation with the shortest forward and backward pass at a length.

    total: ms of both. rivals: those that it is not sure to be faster than, in either direction. is_judged: whether
    several processes measured it and all others; else there is no verdict, and no rival is named.
    """

    length: float
    name: str
    total: float
    rivals: tuple[str, ...]
    is_judged: bool
    cells: tuple[str, ...]


def fastest(group: Group, precision: str, d_head: float) -> list[Fastest]:
    """Of each length at which more than one implementation finished both passes; all are judged together."""
    by_length = {
        shape.length: found
        for shape in group.shapes(precision)
        if shape.d_head == d_head and len(found := _finished(group, precision, shape)) > 1
    }
    best = {length: min(found, key=lambda name: _total(found[name])) for length, found in by_length.items()}
    keys, both = [], []
    for length, found in by_length.items():
        for name in found:
            if name != best[length]:
                keys += [(length, name)] * len(DIRECTIONS)
                pairs = zip(found[best[length]], found[name], strict=True)
                both += [(timed(own), timed(other)) for own, other in pairs]
    speeds: dict[tuple[float, str], list] = {}
    for key, speed in zip(keys, judged(both, group.floors), strict=True):
        speeds.setdefault(key, []).append(speed)
    return [_fastest(length, best[length], found, speeds) for length, found in by_length.items()]


def typical_d(group: Group, precision: str) -> float:
    """The d of the heads that sentences speak of: TYPICAL_D where it was measured, else the largest."""
    values = group.values("d_head", precision)
    return TYPICAL_D if TYPICAL_D in values else values[-1]


def _finished(group: Group, precision: str, shape: Shape) -> dict[str, list[dict]]:
    """Implementation → its results in both directions, where both have a time."""
    found = {name: group.passes(name, precision, shape) for name in group.values("implementation", precision)}
    return {name: rows for name, rows in found.items() if all(median(row) for row in rows)}


def _total(rows: list[dict]) -> float:
    return sum(median(row) for row in rows)


def _fastest(length: float, name: str, found: dict[str, list[dict]], speeds: dict) -> Fastest:
    others = {other: speeds[length, other] for other in found if other != name}
    is_judged = all(speed.has_interval for own in others.values() for speed in own)
    rivals = [other for other, own in others.items() if any(speed.verdict != FASTER for speed in own)]
    cells = dict.fromkeys(row["cell"] for rows in found.values() for row in rows)
    return Fastest(length, name, _total(found[name]), tuple(rivals) if is_judged else (), is_judged, tuple(cells))
