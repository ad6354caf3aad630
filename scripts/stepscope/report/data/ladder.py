"""The ladder study's cells: a ladder for each hardware, size, context and batch; what may be said of a cell."""

from collections import defaultdict
from dataclasses import dataclass, field

import pandas as pd

from stepscope.report.data.control import floors
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import SLOWER, Comparison, Floors, judged, timed
from stepscope.report.kit.order import NEUTRAL, column, machine_labels
from stepscope.tables.ladder import TIMES
from stepscope.tables.ladder_checkpoint import ALIKE

_PLACE = ("hardware", "size", "context", "batch", "precision")
_ALIKE_BUT_FOR_K = ("precision", "attention", "compile", "optimizer", "compared_with")


@dataclass(frozen=True)
class Elsewhere:
    """What the timing study measured for a cell of the ladder, by its first run, which is the reference of `speed`."""

    phase: str
    speed: Comparison
    cell: str

    @property
    def median(self) -> float:
        """Of the timing study's cell, ms."""
        return self.speed.times[0]


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
    # The speed of a cell, by its name, over that which it is compared with, and over the ladder's first rung.
    over_before: dict[str, Comparison] = field(default_factory=dict)
    over_start: dict[str, Comparison] = field(default_factory=dict)

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
    def first_compiled(self) -> dict | None:
        """The cell that compiled first: what those after it find in the compiler's cache may cost them less. None where
        no cell compiled or it is not known when they did."""
        compiled = [
            row for row in self.rows if formatting.known(row.get("compile_seconds")) and row["compile_seconds"] > 0
        ]
        if not compiled or not all(isinstance(row.get("started"), str) for row in compiled):
            return None
        return min(compiled, key=lambda row: row["started"])

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
    timing, control = _timing_runs(tables["timing"]), floors(tables["timing"])
    found = []
    for (hardware, size, context, batch), own in frame.groupby(
        ["hardware", "size", "context", "batch"], sort=False, dropna=False
    ):
        rows = [_plain(row) for row in own.to_dict("records")]
        beside = [row for row in rows if not formatting.known(row["rung"])]
        found.append(
            Ladder(
                str(hardware), str(size), context, batch, rows[0]["parameters"],
                rungs=sorted((row for row in rows if formatting.known(row["rung"])), key=lambda row: row["rung"]),
                wholes=[row for row in beside if not every(row)],
                checkpoints=sorted((row for row in beside if every(row)), key=every),
            )
        )  # fmt: skip
    for own in by_hardware(found).values():
        _judge(own, timing, control)
    order = machine_labels(one.hardware for one in found)
    return sorted(
        found,
        key=lambda one: (order.index(one.hardware), _or_most(one.parameters), one.size, one.context, one.batch),
    )


def _judge(found: list[Ladder], timing: dict[tuple, list[dict]], control: Floors) -> None:
    """Fill in the comparisons of one machine's ladders; those that answer one question are judged together."""
    gains = [(one, row) for one in found for row in one.rows if formatting.known(row.get("gain_before"))]
    changes = [pair for pair in gains if not every(pair[1])]
    for own in (changes, [pair for pair in gains if every(pair[1])]):
        for (one, row), speed in _speeds(own, "compared_with", control):
            one.over_before[row["cell"]] = speed
    risen = [(one, row) for one in found for row in one.rungs if formatting.known(row.get("gain_start"))]
    for (one, row), speed in _speeds(risen, "started_from", control):
        one.over_start[row["cell"]] = speed
    both = [(one, row, run) for one in found for row in one.rows if (run := timing.get(_setup(row), [None])[0])]
    both = [(one, row, run, shared_phase(row, run)) for one, row, run in both]
    series = [tuple(timed(each, f"{phase}_") for each in (row, run)) for _, row, run, phase in both]
    for (one, row, run, phase), speed in zip(both, judged(series, control), strict=True):
        if speed:
            one.again[row["cell"]] = Elsewhere(phase, speed, run["cell"])


def _speeds(own: list[tuple[Ladder, dict]], name: str, control: Floors) -> list[tuple[tuple[Ladder, dict], Comparison]]:
    """Each cell beside the one that its column `name` gives, in the phase that both have a time of."""
    others = [one.at(row.get(name)) for one, row in own]
    series = []
    for (_, row), other in zip(own, others, strict=True):
        phase = shared_phase(row, other) if other is not row else None
        series.append(tuple(timed(each, f"{phase}_") for each in (row, other)) if phase else (None, None))
    return [(pair, speed) for pair, speed in zip(own, judged(series, control), strict=True) if speed]


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


def reached(row: dict) -> float | None:
    """Peak memory of a step; of one that ran out of memory what it had reached, not what ran to its end before."""
    own = row.get("reached_bytes")
    return own if row["status"] == "oom" and formatting.known(own) else peak(row)


def whole_peak(row: dict) -> float | None:
    """Peak memory of a step that ran to its end."""
    return peak(row) if row["status"] == "ok" else None


# A cell beside another one. ------------------------------------------------------------------------------------------


def shared_phase(row: dict, other: dict | None) -> str | None:
    """The phase that both have a time of: `step`, else `forward_backward`; None without one."""
    return next((prefix for prefix in TIMES if other and time(row, prefix) and time(other, prefix)), None)


# The same cells in the timing study. ----------------------------------------------------------------------------------


def _timing_runs(timing: pd.DataFrame) -> dict[tuple, list[dict]]:
    """The timing study's runs that train, by what they ran, the first run first."""
    runs = defaultdict(list)
    needed = ["cell", "mode", "repeat", *_PLACE, *NEUTRAL]
    for row in timing.reindex(columns=list(dict.fromkeys([*needed, *timing.columns]))).to_dict("records"):
        if row["mode"] == "step":
            runs[_setup(row)].append(_plain(row))
    return {setup: sorted(own, key=lambda row: row["repeat"] or 1) for setup, own in runs.items()}


def _setup(row: dict) -> tuple:
    """Where a cell ran and with which options, an option that is not given at its neutral value."""
    options = [neutral if pd.isna(row.get(name)) else row[name] for name, neutral in NEUTRAL.items()]
    return (*(row[name] for name in _PLACE), *(str(value).removesuffix(".0") for value in options))


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

    def speed(self, row: dict) -> Comparison | None:
        """The speed over that without checkpointing."""
        return self.ladder.over_before.get(row["cell"])

    def added_over_forward(self, row: dict) -> float | None:
        """The time that checkpointing adds over that of a forward pass: without it, else its own, which does the same.

        None unless checkpointing is sure to take longer: what is left of two times that may be the same is no time.
        """
        found = self.speed(row)
        if not found or found.verdict != SLOWER:
            return None
        forward = time(self.base, "forward") or time(row, "forward")
        before, own = found.times
        return (own - before) / forward if forward else None


def recomputed(found: list[Ladder]) -> list[Recomputed]:
    """The cells with checkpointing of all ladders."""
    result = []
    for ladder in found:
        groups: dict[tuple, list[dict]] = {}
        for row in ladder.checkpoints:
            groups.setdefault(tuple(str(row.get(name)) for name in _ALIKE_BUT_FOR_K), []).append(row)
        result += [Recomputed(ladder, ladder.at(rows[0].get("compared_with")), rows) for rows in groups.values()]
    return result
