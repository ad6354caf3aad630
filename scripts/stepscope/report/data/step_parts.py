"""Where the time of a whole training step goes, in five parts, and the profiled step that page one speaks of.

The parts are times of kernels in the profiled step; what is left of the unprofiled step is idle.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.report.data.bound import busy_time, occupation, products
from stepscope.report.data.own_models import is_own
from stepscope.report.data.profile import Profile
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.compare import Timed, timed
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import machine_labels, ordered, precision_rank

# Name of a part -> what it is called, in the order in which they are drawn.
PARTS = {
    "products": "matrix products",
    "attention": "attention's softmax, mask, casts (forward)",
    "other": "other memory-bound kernels",
    "optimizer": "optimizer",
    "idle": "GPU idle",
}
_LINEAR = ("QKV projection", "output projection")  # parts of attention that are layers of their own
_MIXED = "bf16"


def work(parameters: object, context: float) -> tuple[float, float]:
    """By which the largest is chosen: parameters × context, then parameters; 0 where they are not known."""
    known_parameters = parameters if known(parameters) else 0.0
    return known_parameters * context, known_parameters


@dataclass(frozen=True)
class StepParts:
    """A profiled cell of a whole step and its parts, ms a step.

    row: of the profile table. step: the same point in the timing study, unprofiled. attention: of the forward pass
    alone, since a trace does not tell attention's kernels in the backward pass; there they are `other`.
    """

    row: dict
    step: Timed
    products: float
    attention: float
    other: float
    optimizer: float
    idle: float

    @property
    def total(self) -> float:
        """The step; the GPU's busy time where that took longer under the profiler."""
        return sum(getattr(self, name) for name in PARTS)

    @property
    def busy(self) -> float:
        """Time in kernels."""
        return self.total - self.idle

    @property
    def place(self) -> tuple[str, float, float]:
        """Size, context and batch."""
        return self.row["size"], self.row["context"], self.row["batch"]

    @property
    def precision(self) -> str:
        return self.row["precision"]

    @property
    def name(self) -> str:
        """`xl at context 256`."""
        return f"{self.row['size']} at context {self.row['context']:,.0f}"

    @property
    def work(self) -> tuple[float, float]:
        """By which the largest cell is chosen."""
        return work(self.row.get("parameters"), self.row["context"])

    def share(self, part: str) -> float:
        """A part's share of the step, from 0 to 1."""
        return getattr(self, part) / self.total


def every_step(profile: Profile) -> list[StepParts]:
    """The cells of a GPU whose whole step was profiled and timed: first runs, at neutral options."""
    rows = [row for row in profile.profiled() if mode(row) == "step" and row["repeat"] == 1 and not row["options"]]
    return [parts for row in rows if (parts := step_parts(profile, row))]


def step_parts(profile: Profile, row: dict) -> StepParts | None:
    """The parts of a cell's step; None on a CPU, or where a trace or the timing study lacks it."""
    step, busy = timed(profile.unprofiled(row), "step_"), busy_time(profile, row["cell"])
    if step is None or occupation(profile, row) is None:
        return None
    of_products = products(profile, row, "step").get("ms", 0.0)
    optimizer = profile.row("phases", row["cell"], phase="optimizer").get("gpu_ms_per_step")
    optimizer = optimizer if known(optimizer) else 0.0
    attention = _attention_rest(profile, row)
    other = max(0.0, busy - of_products - optimizer - attention)
    return StepParts(row, step, of_products, attention, other, optimizer, max(0.0, step.median - busy))


def _attention_rest(profile: Profile, row: dict) -> float:
    """Attention's kernels in the forward pass without matrix products: rotation, mask, softmax, copies; ms a step.

    The parts are those of our model's ranges: of a model of one's own these kernels stay among the others.
    """
    if is_own(row):
        return 0.0
    lines = profile.rows("attention", row["cell"])
    if lines.empty:
        return 0.0
    own = lines[(lines["kind"] == "part") & ~lines["part"].isin(_LINEAR)]
    rest = float((own["gpu_ms_per_step"] - own["gpu_matmul_ms_per_step"].fillna(0.0)).sum())
    fused = profile.row("categories", row["cell"], phase="forward", category="fused attention").get("ms_per_step")
    return max(0.0, rest - (fused if known(fused) else 0.0))


def reference(steps: Iterable[StepParts]) -> StepParts | None:
    """The step that page one speaks of: the largest by parameters × context of the first machine.

    A place that was profiled in fp32 and in bf16 comes before one that was not; of its precisions bf16 is taken, else
    the plainest.
    """
    steps = list(steps)
    machines = machine_labels([each.row["hardware"] for each in steps])
    own = [each for each in steps if each.row["hardware"] == machines[0]]
    by_place: dict[tuple, dict[str, StepParts]] = {}
    for each in own:
        by_place.setdefault(each.place, {})[each.precision] = each
    both = [place for place in by_place.values() if {"fp32", _MIXED} <= set(place)]
    places = both or list(by_place.values())
    if not places:
        return None
    place = max(places, key=lambda place: next(iter(place.values())).work)
    return place.get(_MIXED) or place[min(place, key=precision_rank)]


def side_by_side(steps: Iterable[StepParts]) -> tuple[float | None, dict[str, list[StepParts]]]:
    """(the context at which most sizes were profiled, precision → its steps there, by parameters).

    Of contexts with as many sizes the longest; of the first machine, and of each size the most frequent batch.
    """
    steps = list(steps)
    machines = machine_labels([each.row["hardware"] for each in steps])
    own = [each for each in steps if each.row["hardware"] == machines[0]]
    if not own:
        return None, {}
    sizes = {each.row["context"]: set() for each in own}
    for each in own:
        sizes[each.row["context"]].add(each.row["size"])
    context = max(sizes, key=lambda value: (len(sizes[value]), value))
    there = [each for each in own if each.row["context"] == context]
    batches = [each.row["batch"] for each in there]
    batch = max(ordered(batches), key=batches.count)
    there = sorted((each for each in there if each.row["batch"] == batch), key=lambda each: each.work)
    precisions = ordered([each.precision for each in there], key=precision_rank)
    return context, {name: [each for each in there if each.precision == name] for name in precisions}
