"""The kernels of profiled training steps: their time by category, how many are launched, and the tiles of products."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.report.data.bound import PRODUCTS, Occupation, occupation
from stepscope.report.data.profile import Profile
from stepscope.report.data.step_parts import work
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import precision_rank

_NAMED_UNIT = 0.95  # of the products' time, from which on one unit stands for all


def whole_steps(profile: Profile, hardware: str) -> list[dict]:
    """A machine's profiled cells of a whole step: first runs, at neutral options."""
    rows = [row for row in profile.profiled() if row["hardware"] == hardware and mode(row) == "step"]
    return [row for row in rows if row["repeat"] == 1 and not row["options"]]


def largest_step(rows: Iterable[dict]) -> dict | None:
    """The one with the most work, of several precisions the plainest; None without any."""
    ranked = sorted(rows, key=lambda row: precision_rank(row["precision"]))
    return max(ranked, key=lambda row: work(row.get("parameters"), row["context"]), default=None)


def at_place_of(rows: Iterable[dict], own: dict) -> dict[str, dict]:
    """Precision → the step at the same size, context and batch as another one, that one included."""
    names = ("size", "context", "batch")
    return {row["precision"]: row for row in rows if all(row[name] == own[name] for name in names)}


def by_category(profile: Profile, row: dict, phase: str = "step", name: str = "ms_per_step") -> dict[str, float]:
    """Category → ms a step of its kernels in a phase, or another column of this name; the largest first."""
    rows = profile.rows("categories", row["cell"])
    own = rows[rows["phase"] == phase] if len(rows) else rows
    found = dict(zip(own["category"], own[name], strict=True)) if len(own) else {}
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


@dataclass(frozen=True)
class Mix:
    """A step's time in kernels, ms: in matrix products, and in all else. kernels: how many are all else."""

    row: dict
    products: float
    rest: float
    kernels: float

    @property
    def share(self) -> float:
        """Of the products, from 0 to 1."""
        return self.products / (self.products + self.rest)


def mix(profile: Profile, row: dict) -> Mix | None:
    """The mix of a step; None where its kernels are not known."""
    times, counts = (by_category(profile, row, "step", name) for name in ("ms_per_step", "instances_per_step"))
    if not sum(times.values()):
        return None
    products, rest = (sum(time for name, time in times.items() if (name in PRODUCTS) is own) for own in (True, False))
    return Mix(row, products, rest, sum(number for name, number in counts.items() if name not in PRODUCTS))


@dataclass(frozen=True)
class Launches:
    """A step's kernels. kernels: a step; kernel_us: mean length of one, under the profiler."""

    row: dict
    kernels: float
    kernel_us: float
    occupation: Occupation

    @property
    def step_us(self) -> float:
        """Microseconds of the unprofiled step for each kernel."""
        return 1e3 * self.occupation.step / self.kernels

    @property
    def per_block(self) -> float:
        """Kernels a step for each block of the model, those outside the blocks counted in."""
        return self.kernels / self.row["num_layers"]


def launches(profile: Profile, row: dict) -> Launches | None:
    """The launches of a step; None on a CPU, or where trace or unprofiled step is missing."""
    found = occupation(profile, row)
    kernels = profile.row("phases", row["cell"], phase="step").get("kernels_per_step")
    length = profile.kernel_mean(row["cell"], "step")
    if found is None or not known(kernels) or not kernels or length is None:
        return None
    return Launches(row, kernels, length, found)


@dataclass(frozen=True)
class Call:
    """One call of a part of the model in the forward pass: kernels, and microseconds on the GPU and of the host."""

    kernels: float
    gpu_us: float
    host_us: float


def call(profile: Profile, row: dict, part: str) -> Call | None:
    """The mean call of a part by its range's name (`attention`); None where it was not recorded."""
    found = profile.row("ranges", row["cell"], range=part)
    names = ("kernels_per_step", "count_per_step", "gpu_mean_us", "host_mean_us")
    if not all(known(found.get(name)) for name in names) or not found["count_per_step"]:
        return None
    return Call(found["kernels_per_step"] / found["count_per_step"], found["gpu_mean_us"], found["host_mean_us"])


@dataclass(frozen=True)
class Tiles:
    """The kernels of a phase's matrix products, weighted by their time.

    unit: on which nearly all of them run (`tensor core`, `SIMT`); empty where several do, or none is known. outputs:
    how many numbers of the result a tile has, on average; None where no tile is known.
    """

    unit: str
    outputs: float | None


def tiles(profile: Profile, row: dict, phase: str) -> Tiles | None:
    """The tiles of a phase; None without matrix products in it."""
    rows = profile.rows("kernels", row["cell"])
    own = rows[(rows["phase"] == phase) & rows["category"].isin(PRODUCTS)] if len(rows) else rows
    whole = float(own["total_ms"].sum()) if len(own) else 0.0
    if not whole > 0:
        return None
    by_unit = own.groupby("unit")["total_ms"].sum()
    unit = str(by_unit.idxmax()) if len(by_unit) and by_unit.max() >= _NAMED_UNIT * whole else ""
    sized = [(outputs, line["total_ms"]) for line in own.to_dict("records") if (outputs := _outputs(line["tile"]))]
    time = sum(each for _, each in sized)
    return Tiles(unit, sum(outputs * each for outputs, each in sized) / time if time else None)


def _outputs(tile: object) -> int | None:
    """Rows × columns of a tile such as `128x64x8`, whose third number is the depth of a pass over the operands."""
    found = re.match(r"(\d+)x(\d+)", str(tile or ""))
    return int(found[1]) * int(found[2]) if found else None
