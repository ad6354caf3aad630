"""How long a call of attention keeps the host busy: what limits passes that a GPU finishes sooner."""

from dataclasses import dataclass

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import Group
from stepscope.report.kit.formatting import known


@dataclass(frozen=True)
class HostTime:
    """One implementation in a precision at one d: µs of a forward pass and of both; whether the host was slow then.

    forward_over_sdpa, both_over_sdpa: the same over PyTorch's own, called in turns; None where that was not measured.
    """

    implementation: str
    precision: str
    d_head: float
    forward: float
    both: float
    cell: str
    slow_host: bool
    forward_over_sdpa: float | None
    both_over_sdpa: float | None


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
                    ratios = [row.get("host_over_sdpa") for row in rows]
                    ratios = [ratio if known(ratio) else None for ratio in ratios]
                    found.append(HostTime(name, precision, d_head, *values, rows[0]["cell"], slow, *ratios))
                    break
    return found
