"""The ladder study's cells: a ladder for each hardware, size, context and batch; what may be said of a cell."""

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass, field

import pandas as pd

from stepscope.report.kit import compare, formatting
from stepscope.report.kit.order import NEUTRAL, column, machine_labels
from stepscope.tables.ladder import TIMES
from stepscope.tables.ladder_checkpoint import ALIKE

CLOSE = 0.05  # times that differ by no more than this share are called the same
_PLACE = ("hardware", "size", "context", "batch", "precision")
_ALIKE_BUT_FOR_K = ("precision", "attention", "compile", "optimizer", "compared_with")


@dataclass(frozen=True)
class Elsewhere:
    """What the timing study measured for a cell of the ladder: a phase, its median over all runs (ms), their cells."""

    phase: str
    median: float
    cells: tuple[str, ...]


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
    again: dict[str, Elsewhere] = field(default_factory=dict)  # by cell

    @property
    def doubt(self) -> float:
        """The most by which a rung's time and the timing study's of the same cell differ, a ratio; 1 without any."""
        return max((apart(time(self.at(cell), run.phase), run.median) for cell, run in self.again.items()), default=1.0)

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
    table = tables["ladder"]
    if table.empty:
        return []
    frame = table.assign(**{name: column(table, name) for name in ("agrees", "rung", "name", "throttle")})
    timing = _timing_runs(tables["timing"])
    found = []
    for (hardware, size, context, batch), own in frame.groupby(
        ["hardware", "size", "context", "batch"], sort=False, dropna=False
    ):
        rows = [_plain(row) for row in own.to_dict("records")]
        beside = [row for row in rows if not formatting.known(row["rung"])]
        again = {row["cell"]: run for row in rows if (run := _elsewhere(row, timing.get(_setup(row), [])))}
        found.append(
            Ladder(
                str(hardware), str(size), context, batch, rows[0]["parameters"],
                rungs=sorted((row for row in rows if formatting.known(row["rung"])), key=lambda row: row["rung"]),
                wholes=[row for row in beside if not every(row)],
                checkpoints=sorted((row for row in beside if every(row)), key=every),
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


# A cell beside another one. ------------------------------------------------------------------------------------------


def shared_phase(row: dict, other: dict | None) -> str | None:
    """The phase that both have a time of: `step`, else `forward_backward`; None without one."""
    return next((prefix for prefix in TIMES if other and time(row, prefix) and time(other, prefix)), None)


def verdict(row: dict, other: dict, doubt: float = 1.0) -> str:
    """Whether a cell is faster or slower than the other, by disjoint 95 % intervals.

    Where one of both is noisy, the medians must differ by more than `doubt`, a ratio, besides.
    """
    own, reference = (compare.timed(each, f"{shared_phase(row, other)}_") for each in (row, other))
    is_noisy = any(series and series.noisy for series in (own, reference))
    return compare.verdict(own, reference, math.log(doubt) if is_noisy else 0.0)


def apart(one: float, other: float) -> float:
    """The longer of two times over the shorter."""
    return max(one, other) / min(one, other)


# The same cells in the timing study: what runs of one cell differ by, at another time. --------------------------------


def _timing_runs(timing: pd.DataFrame) -> dict[tuple, list[dict]]:
    """The timing study's runs that train, by what they ran."""
    runs = defaultdict(list)
    names = ["cell", "mode", *_PLACE, *NEUTRAL, *(f"{phase}_median_ms" for phase in TIMES)]
    for row in timing.reindex(columns=names).to_dict("records"):
        if row["mode"] == "step":
            runs[_setup(row)].append(row)
    return runs


def _setup(row: dict) -> tuple:
    """Where a cell ran and with which options, an option that is not given at its neutral value."""
    options = [neutral if pd.isna(row.get(name)) else row[name] for name, neutral in NEUTRAL.items()]
    return (*(row[name] for name in _PLACE), *(str(value).removesuffix(".0") for value in options))


def _elsewhere(row: dict, runs: list[dict]) -> Elsewhere | None:
    """The first phase that the ladder's cell and these runs of it have a time of; None where they have none."""
    for phase in TIMES:
        own = [run for run in runs if formatting.known(run[f"{phase}_median_ms"])]
        if own and formatting.known(row.get(f"{phase}_median_ms")):
            median = statistics.median(run[f"{phase}_median_ms"] for run in own)
            return Elsewhere(phase, median, tuple(run["cell"] for run in own))
    return None


# Checkpointing. -------------------------------------------------------------------------------------------------------


@dataclass
class Recomputed:
    """Cells of one ladder that differ in k alone, by k, and the rung without checkpointing that they vary."""

    ladder: Ladder
    base: dict | None
    rows: list[dict]

    @property
    def place(self) -> str:
        """`small, context 128, bf16, attention=sdpa`: the ladder and what the cells have in common."""
        return f"{self.ladder.place}, {self.options}"

    @property
    def options(self) -> str:
        """`bf16, attention=sdpa`."""
        row = self.rows[0]
        names = [name for name in NEUTRAL if name != "checkpoint" and row.get(name) not in (None, NEUTRAL[name])]
        return ", ".join([str(row["precision"]), *(f"{name}={row[name]}" for name in names)])

    @property
    def is_compiled(self) -> bool:
        """Whether a compiler chooses what is kept."""
        return self.rows[0].get("compile") not in (None, "none")

    @property
    def is_of_tensors(self) -> bool:
        """Whether peaks are the allocator's, as the closed form's; else they are those of the whole process."""
        return any(formatting.known(row.get("peak_allocated_bytes")) for row in self.rows)

    @property
    def lowest(self) -> list[dict]:
        """The cells whose peak is within ALIKE of the lowest."""
        whole = [row for row in self.rows if whole_peak(row) and agrees(row) is not False]
        least = min((whole_peak(row) for row in whole), default=0)
        return [row for row in whole if whole_peak(row) <= (1 + ALIKE) * least]

    @property
    def best(self) -> dict | None:
        """The fastest of the cells with the lowest peak."""
        return min(self.lowest, key=lambda row: time(row) or float("inf"), default=None)

    @property
    def is_confirmed(self) -> bool | None:
        """Whether the closed form's k has the lowest peak; None where it was not tried, or peaks are of processes."""
        told = self.rows[0].get("predicted_best_checkpoint")
        if not self.is_of_tensors or told not in [every(row) for row in self.rows if whole_peak(row)]:
            return None
        return told in [every(row) for row in self.lowest]

    def saved_share(self, row: dict) -> float | None:
        """Change of the peak by checkpointing, a share of the peak without."""
        own, other = whole_peak(row), whole_peak(self.base) if self.base else None
        return own / other - 1 if own and other else None

    def longer(self, row: dict) -> float | None:
        """Time of a step over that without checkpointing, else that of forward and backward."""
        prefix = shared_phase(row, self.base)
        return time(row, prefix) / time(self.base, prefix) if prefix else None

    def in_forwards(self, row: dict) -> float | None:
        """The time that checkpointing adds, in forward passes: those without it, else its own, which do the same."""
        prefix = shared_phase(row, self.base)
        forward = (time(self.base, "forward") or time(row, "forward")) if prefix else None
        return (time(row, prefix) - time(self.base, prefix)) / forward if forward else None


def recomputed(found: list[Ladder]) -> list[Recomputed]:
    """The cells with checkpointing of all ladders."""
    result = []
    for ladder in found:
        groups: dict[tuple, list[dict]] = {}
        for row in ladder.checkpoints:
            groups.setdefault(tuple(str(row.get(name)) for name in _ALIKE_BUT_FOR_K), []).append(row)
        result += [Recomputed(ladder, ladder.at(rows[0].get("compared_with")), rows) for rows in groups.values()]
    return result
