"""Training steps of one's own: what was built, where each step goes, and which of two is faster."""

from functools import cached_property

from stepscope.report.kit.data import Data, Row, grouped, number, of_ratio, of_series, shown
from stepscope.report.kit.named import Name, first_of, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    gap,
    most,
    over,
    plus,
    share,
)
from stepscope.results.cells import MISSING, NOT_MEASURED

from .machine import Chapter, limited, machine

WHOLE = "step"
KERNELS = 8  # of a step that are listed
CRUMB = 0.001  # of the peak: less is not listed
PLACE = ("size", "context", "batch")
LABELS = {"buffers": "inputs and what else was there before"}  # of a kind of allocation


def _series(*quantities: str) -> cached_property[Maybe]:
    """The fact that is the first of these series that there is, of the whole step."""

    def measured(step: "OwnStep") -> Maybe:
        same = {"study": "timing", "phase": [WHOLE, ""]} | step.where
        found = (step.data.measured(quantity, **same) for quantity in quantities)
        return first_of(filter(None, found))

    return cached_property(measured)


@frozen
class OwnStep:
    """A step: what it is (a row of the table `models`), and where it was measured."""

    data: Data
    name: Name
    where: dict[str, str | int]

    @cached_property
    def built(self) -> Row:
        """Class, parameters, dtype and optimizer, as its file built them."""
        return shown(self._built, parameters="parameters", trained="parameters")

    step = _series("time")  # as a loop runs it, by the clock
    first = _series("first_step_time")  # the very first one of a process
    replayed = _series("host_free_time")  # from a CUDA graph
    gpu = _series("alone_time")  # without the host: host-free, else busy
    energy = _series("energy")
    rate = _series("flops")  # what it multiplies a second
    tokens = _series("tokens_per_second")
    launches = _series("launches", "operators")  # the second one on a CPU
    peak = _series("peak_reserved", "peak_resident")  # likewise

    @cached_property
    def each(self) -> Maybe:
        """Of one of its items the time, whatever they are."""
        return over(self.step, number(self._built, "items", "count"), "s")

    @property
    def _built(self) -> Row:
        return self.data.row("models", **self.where) | {"table": "models"}

    @cached_property
    def parts(self) -> list[Row]:
        """Its phases, waiting for the device around each, and the share of all phases' time that
        each takes; what lies outside all is `rest`."""
        rows = self.data.series(study="timing", quantity="time", **self.where)
        phased = {row["phase"]: of_series(row) for row in rows if row["phase"] != WHOLE}
        whole = plus(*phased.values())
        return [
            {"name": Name(name), "time": time, "share": share(time, whole)}
            for name, time in phased.items()
        ]

    @property
    def longest(self) -> Row | None:
        """Its longest phase, if any is marked."""
        return most(self.parts, "time") if self.parts[1:] else None

    @cached_property
    def why_not(self) -> Name | None:
        """Why its step has no times; None where it has."""
        row = self.data.row("cells", study="timing", **self.where)
        if row["status"] == "ok":
            return None
        return Name(row["reason"].removeprefix(f"{NOT_MEASURED}: ") or row["status"])

    @property
    def limited(self) -> str:
        """What limits it."""
        rows = self.data.series(study="timing", quantity="time", phase=WHOLE, **self.where)
        return limited(rows[0]["limits"], self.step, self.gpu) if rows else ""

    @cached_property
    def memory(self) -> list[Row]:
        """What fills the memory at the recorded peak, the most first, but for crumbs."""
        rows = self.data.dicts("memory_peak", **self.where)
        least = CRUMB * sum(row["bytes"] for row in rows)
        held = [
            row | {"category": LABELS.get(row["category"], row["category"])}
            for row in rows
            if row["bytes"] > least
        ]
        return [shown(row) for row in sorted(held, key=lambda row: -row["bytes"])]

    @cached_property
    def kernels(self) -> list[Row]:
        """Kinds of kernels, on a CPU of operators, of a profiled step, the most time first."""
        rows = self.data.dicts("categories", phase=WHOLE, **self.where)
        longest = sorted(rows, key=lambda row: -row["time"])[:KERNELS]
        return [shown(row, calls="count") for row in longest]


def _versus(data: Data, row: Row) -> Row:
    """A step, b, beside the first one of its comparison, a, measured in turns.

    before, after: the step of a, and of b; phases: of both, likewise. gain, verdict: of b;
    gpu_gain, gpu_verdict: without the host, both replayed from CUDA graphs. uneven: how many items
    a step of b takes, and of a, where they say so and it is not the same; other_model: how many
    parameters they train, likewise. peak_change: how much more the tensors of b need at their peak.
    losses: how far the losses of the first steps are off those of a, where they were said.
    """
    cell, a, b = row["cell"], row["a"], row["b"]

    def of(variant: str, quantity: str, phase: str = WHOLE) -> Maybe:
        return data.measured(quantity, cell=cell, variant=variant, phase=[phase, ""])

    replayed = data.dicts("comparisons", quantity="host_free_time", cell=cell, a=a, b=b)
    without_host = first_of(replayed) or {}
    times = data.series(cell=cell, quantity="time", variant=[b, a])
    names = dict.fromkeys(time["phase"] for time in times if time["phase"] != WHOLE)
    losses = data.series(cell=cell, variant=b, quantity="loss_difference")
    return {
        "a": Name(a),
        "b": Name(b),
        "before": of(a, "time"),
        "after": of(b, "time"),
        "phases": [
            {"name": Name(name), "after": of(b, "time", name), "before": of(a, "time", name)}
            for name in names
        ],
        "gain": of_ratio(row),
        "verdict": row["verdict"],
        "gpu_gain": of_ratio(without_host),
        "gpu_verdict": without_host.get("verdict"),
        "uneven": _unlike(data, "items", b, a),
        "other_model": _unlike(data, "trained", b, a),
        "peak_change": gap(of(b, "peak_allocated"), of(a, "peak_allocated")),
        "losses": Quantity(losses[0]["median"], "error", cells=(cell,)) if losses else None,
    }


def _unlike(data: Data, column: str, *steps: str) -> list[Quantity] | None:
    """A number of several steps' models, where it is known of all and not the same."""
    rows = (data.row("models", size=name) for name in steps)
    known = list(filter(None, (number(row, column, "count") for row in rows)))
    differ = len({each.value for each in known}) > 1
    return known if len(known) == len(steps) and differ else None


@frozen
class Steps(Chapter):
    """Of all steps of one's own that were measured."""

    @property
    def rates(self) -> dict[str, Quantity]:
        """The machine's ceilings of large products, which no own step measures."""
        return machine(self.data.seen(own_steps=False)).rates

    @cached_property
    def steps(self) -> list[OwnStep]:
        """In the order of the configuration."""
        places = grouped(self.data.dicts("cells", study="timing"), *PLACE)
        return [
            OwnStep(
                data=self.data,
                name=Name(size),
                where={"size": size, "context": context, "batch": batch},
            )
            for size, context, batch in places
        ]

    @cached_property
    def compared(self) -> list[Row]:
        """Pairs that took turns, by the clock."""
        rows = self.data.dicts("comparisons", study="ladder", quantity="time", phase=WHOLE)
        return [_versus(self.data, row) for row in rows]

    @cached_property
    def failed(self) -> list[Row]:
        """Cells of which something did not run."""
        rows = self.data.dicts("cells")
        return [shown(row) for row in rows if row["reason"] and row["status"] != MISSING]


def facts(data: Data) -> Steps | None:
    """Of the same tables, without all others' cells."""
    found = Steps(data=data.seen(own_steps=True))
    return found if found.steps else None
