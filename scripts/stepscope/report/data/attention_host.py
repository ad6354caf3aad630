"""How long a call of attention keeps the host busy: what limits passes that a GPU finishes sooner."""

from dataclasses import dataclass

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import Group
from stepscope.report.kit.formatting import known


@dataclass(frozen=True)
class HostTime:
    """One implementation in a precision at one d: µs of a forward pass and of both; whether the host was slow then."""

    implementation: str
    precision: str
    d_head: float
    forward: float
    both: float
    cell: str
    slow_host: bool


def host_times(group: Group) -> list[HostTime]:
    """Of each precision, implementation and d the shortest length at which both were measured."""
    found = []
    for precision, name in group.series():
        for d_head in group.values("d_head", precision):
            for length in group.values("length", precision):
                rows = [group.at(name, precision, d_head, length, way) for way in DIRECTIONS]
                values = [row.get("host_us") for row in rows]
                if all(map(known, values)):
                    slow = rows[0].get("slow_host") is True
                    found.append(HostTime(name, precision, d_head, *values, rows[0]["cell"], slow))
                    break
    return found
