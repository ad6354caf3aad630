"""The ladder study's cells: a ladder for each hardware, size, context and batch; what may be said of a cell."""

from dataclasses import dataclass, field

import pandas as pd

from stepscope.report.data.ladder_again import apart, elsewhere
from stepscope.report.kit import formatting
from stepscope.report.kit.order import column, machine_labels
from stepscope.tables.ladder import TIMES

LOST = ("oom", "unsupported", "failed", "missing")


@dataclass
class Ladder:
    """The cells of one ladder: rungs in the chain's order, and those beside it."""

    hardware: str
    size: str
    context: float
    batch: float
    parameters: float
    rungs: list[dict]
    wholes: list[dict]
    checkpoints: list[dict]
    again: dict[str, tuple[str, float]] = field(default_factory=dict)  # cell → phase, the timing study's median (ms)

    @property
    def doubt(self) -> float:
        """The most by which a rung's time and the timing study's of the same cell differ, a ratio; 1 without any."""
        found = [(self.at(cell), phase, other) for cell, (phase, other) in self.again.items()]
        return max((apart(time(row, phase), other) for row, phase, other in found), default=1.0)

    @property
    def place(self) -> str:
        """`small, context 128`, for sentences."""
        return f"{self.size}, context {self.context:,.0f}"

    @property
    def rows(self) -> list[dict]:
        """All cells."""
        return [*self.rungs, *self.wholes, *self.checkpoints]

    def at(self, cell: object) -> dict | None:
        """The row of a cell; None if the ladder does not have it."""
        return next((row for row in self.rows if row["cell"] == cell), None)

    def neighbour(self, row: dict) -> dict | None:
        """The rung right before a rung, whether it has a result or not; None for the first and for what is no rung."""
        places = [each["cell"] for each in self.rungs]
        at = places.index(row["cell"]) if row["cell"] in places else 0
        return self.rungs[at - 1] if at else None

    def is_passed_over(self, row: dict) -> bool:
        """Whether a rung is compared with an earlier one than its neighbour: its gain is that of several changes."""
        neighbour = self.neighbour(row)
        return neighbour is not None and row.get("compared_with") != neighbour["cell"]

    @property
    def climbed(self) -> list[dict]:
        """The rungs with a time that compute what the first one does."""
        return [row for row in self.rungs if time(row) and agrees(row) is not False]

    @property
    def top(self) -> dict | None:
        """The fastest rung; one with the time of a step before those without."""
        steps = [row for row in self.climbed if time(row, "step")]
        return min(steps or self.climbed, key=lambda row: time(row), default=None)


def ladders(tables) -> list[Ladder]:
    """All ladders, by hardware, parameters, size, context and batch; cells stay in the plan's order."""
    table, timing = tables["ladder"], tables["timing"]
    if table.empty:
        return []
    frame = table.assign(**{name: column(table, name) for name in ("agrees", "rung", "name", "throttle")})
    found = []
    for (hardware, size, context, batch), own in frame.groupby(
        ["hardware", "size", "context", "batch"], sort=False, dropna=False
    ):
        rows = [_plain(row) for row in own.to_dict("records")]
        beside = [row for row in rows if not formatting.known(row["rung"])]
        recomputed = [row for row in beside if every(row)]
        again = {row["cell"]: run for row in rows if (run := elsewhere(row, timing))}
        found.append(
            Ladder(
                str(hardware), str(size), context, batch, rows[0]["parameters"],
                rungs=sorted((row for row in rows if formatting.known(row["rung"])), key=lambda row: row["rung"]),
                wholes=[row for row in beside if not every(row)],
                checkpoints=sorted(recomputed, key=every),
                again=again,
            )
        )  # fmt: skip
    order = machine_labels(one.hardware for one in found)
    return sorted(
        found,
        key=lambda one: (order.index(one.hardware), _or_most(one.parameters), one.size, one.context, one.batch),
    )


def _plain(row: dict) -> dict:
    """Missing values as None."""
    return {name: None if pd.api.types.is_scalar(value) and pd.isna(value) else value for name, value in row.items()}


def _or_most(value: object) -> float:
    return value if formatting.known(value) else float("inf")


def by_hardware(found: list[Ladder]) -> dict[str, list[Ladder]]:
    """The ladders of each machine."""
    machines: dict[str, list[Ladder]] = {}
    for one in found:
        machines.setdefault(one.hardware, []).append(one)
    return machines


def every(row: dict) -> int:
    """k of a cell that checkpoints every k blocks; 0 of any other."""
    try:
        return int(float(row.get("checkpoint") or 0))
    except ValueError:
        return 0


def kind(row: dict) -> str | None:
    """Prefix of the time that stands for a cell: `step`, else `forward_backward`; None without either."""
    return next((prefix for prefix in TIMES if time(row, prefix)), None)


def time(row: dict, prefix: str | None = None) -> float | None:
    """Median (ms) of a phase, or of what stands for the cell; None without one."""
    if prefix is None:
        return next(filter(None, (time(row, each) for each in TIMES)), None)
    value = row.get(f"{prefix}_median_ms")
    return value if formatting.known(value) and value > 0 else None


def rate(row: dict, quantity: str) -> float | None:
    """`tflops`, `mfu` or `tokens_per_s` of what stands for the cell."""
    value = row.get(f"{kind(row)}_{quantity}")
    return value if formatting.known(value) else None


def agrees(row: dict) -> bool | None:
    """Whether loss and gradients are those of the first rung; None where that was not checked."""
    return {"True": True, "False": False}.get(str(row.get("agrees")))


def peak(row: dict) -> float | None:
    """Peak memory (bytes): the allocator's, on a CPU that of the process."""
    values = (row.get(name) for name in ("peak_allocated_bytes", "peak_resident_bytes"))
    return next((value for value in values if formatting.known(value)), None)


def whole_peak(row: dict) -> float | None:
    """Peak memory of a step that ran to its end."""
    return peak(row) if row["status"] == "ok" else None


def lost(row: dict) -> tuple[str, ...]:
    """The badge of a cell whose step has no time."""
    return (row["status"],) if row.get("status") in LOST else ()


def disturbed(row: dict) -> tuple[str, ...]:
    """The badges of a whole cell: throttled, shared."""
    others = row.get("other_processes")
    found = ["throttled"] * bool(row.get("throttle")) + ["shared"] * (formatting.known(others) and others > 0)
    return tuple(found)


def verdict(row: dict, other: dict, doubt: float = 1.0) -> str:
    """`faster` or `slower` than the other where the 95 % intervals of the medians are disjoint, else `unclear`.

    Where one of both is noisy, the medians must differ by more than `doubt`, a ratio, besides.
    """
    prefix = next((each for each in TIMES if time(row, each) and time(other, each)), None)
    ends = [each.get(f"{prefix}_ci_{end}_ms") for each in (row, other) for end in ("low", "high")]
    if not all(map(formatting.known, ends)):
        return "unclear"
    is_noisy = any(each.get(f"{prefix}_noisy") for each in (row, other))
    if is_noisy and apart(time(row, prefix), time(other, prefix)) <= doubt:
        return "unclear"
    return "faster" if ends[1] < ends[2] else "slower" if ends[0] > ends[3] else "unclear"


def times(value: object) -> str:
    """A ratio of two times: `× 1.35`."""
    if not formatting.known(value):
        return ""
    return f"× {formatting.fixed(value, 2) if value < 10 else formatting.significant(value, 3)}"
