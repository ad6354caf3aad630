"""Training steps of one's own: what was built, where each step goes, and which of two is faster."""

from functools import cached_property

from stepscope.report.facts.machine import Chapter
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
from stepscope.results.cells import MISSING

WHOLE = "step"
KERNELS = 8  # of a step that are listed
CRUMB = 0.001  # of the peak: less is not listed
PLACE = ("size", "context", "batch")


def _series(*quantities: str) -> cached_property[Maybe]:
    """The fact that is the first of these series that there is, of the whole step."""

    def measured(step: "OwnStep") -> Maybe:
        same = {"study": "timing", "phase": [WHOLE, ""]} | step.where
        found = (step.data.measured(quantity, **same) for quantity in quantities)
        return first_of(filter(None, found))

    return cached_property(measured)


@frozen
class Part:
    """A phase of a step: its time by the clock, as a share of all phases' together."""

    name: Name
    time: Maybe
    share: Maybe


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
    def parts(self) -> list[Part]:
        """Its phases, waiting for the device around each; what lies outside all is `rest`."""
        rows = self.data.series(study="timing", quantity="time", **self.where)
        phased = {row["phase"]: of_series(row) for row in rows if row["phase"] != WHOLE}
        whole = plus(*phased.values())
        return [
            Part(name=Name(name), time=time, share=share(time, whole))
            for name, time in phased.items()
        ]

    @property
    def longest(self) -> Part | None:
        """Its longest phase, if any is marked."""
        return most(self.parts, "time") if self.parts[1:] else None

    @property
    def is_starved(self) -> bool:
        """Whether launches limit it."""
        rows = self.data.series(study="timing", quantity="time", phase=WHOLE, **self.where)
        return bool(rows) and rows[0]["limits"] == "launches"

    @cached_property
    def memory(self) -> list[Row]:
        """What fills the memory at the recorded peak, the most first, but for crumbs."""
        rows = self.data.dicts("memory_peak", **self.where)
        least = CRUMB * sum(row["bytes"] for row in rows)
        held = [row for row in rows if row["bytes"] > least]
        return [shown(row) for row in sorted(held, key=lambda row: -row["bytes"])]

    @cached_property
    def kernels(self) -> list[Row]:
        """Kinds of kernels, on a CPU of operators, of a profiled step, the most time first."""
        rows = self.data.dicts("categories", phase=WHOLE, **self.where)
        longest = sorted(rows, key=lambda row: -row["time"])[:KERNELS]
        return [shown(row, calls="count") for row in longest]


@frozen
class Versus:
    """A step beside the first one of its comparison, measured in turns."""

    data: Data
    row: Row

    @cached_property
    def a(self) -> Name:
        """The first one."""
        return Name(self.row["a"])

    @cached_property
    def b(self) -> Name:
        """The one that is judged."""
        return Name(self.row["b"])

    def _of(self, variant: str, quantity: str, phase: str = WHOLE) -> Maybe:
        own = {"cell": self.row["cell"], "variant": variant, "phase": [phase, ""]}
        return self.data.measured(quantity, **own)

    @cached_property
    def phases(self) -> list[Row]:
        """The phases of both, in turns: those of b first."""
        rows = self.data.series(cell=self.row["cell"], quantity="time", variant=[self.b, self.a])
        names = dict.fromkeys(row["phase"] for row in rows if row["phase"] != WHOLE)
        return [
            {
                "name": Name(name),
                "after": self._of(self.b, "time", name),
                "before": self._of(self.a, "time", name),
            }
            for name in names
        ]

    @cached_property
    def before(self) -> Maybe:
        """The step of a."""
        return self._of(self.a, "time")

    @cached_property
    def after(self) -> Maybe:
        """The step of b."""
        return self._of(self.b, "time")

    @cached_property
    def gain(self) -> Quantity:
        """Times as fast."""
        return of_ratio(self.row)

    @cached_property
    def verdict(self) -> str:
        """Of b."""
        return self.row["verdict"]

    @property
    def _replayed(self) -> Row:
        """The same pair without the host: both replayed from CUDA graphs."""
        same = {name: self.row[name] for name in ("cell", "a", "b")}
        return self.data.row("comparisons", quantity="host_free_time", **same)

    @cached_property
    def gpu_gain(self) -> Maybe:
        """Times as fast without the host."""
        row = self._replayed
        return of_ratio(row | {"table": "comparisons"}) if row else None

    @cached_property
    def gpu_verdict(self) -> str | None:
        """Of b without it."""
        return self._replayed.get("verdict")

    @property
    def uneven(self) -> tuple[Quantity, Quantity] | None:
        """How many items a step of b takes, and of a, where they say so and it is not the same."""
        return self._unlike("items")

    @property
    def other_model(self) -> tuple[Quantity, Quantity] | None:
        """How many parameters b trains, and a, where it is not the same."""
        return self._unlike("trained")

    def _unlike(self, column: str) -> tuple[Quantity, Quantity] | None:
        rows = (self.data.row("models", size=name) for name in (self.b, self.a))
        b, a = (number(row, column, "count") for row in rows)
        return (b, a) if a and b and a.value != b.value else None

    @cached_property
    def peak_change(self) -> Maybe:
        """How much more the tensors of b need at their peak."""
        peaks = [self._of(name, "peak_allocated") for name in (self.b, self.a)]
        return gap(*peaks)

    @cached_property
    def losses(self) -> Maybe:
        """How far the losses of the first steps are off those of a; None where they were not
        said."""
        rows = self.data.series(
            cell=self.row["cell"], variant=self.row["b"], quantity="loss_difference"
        )
        return Quantity(rows[0]["median"], "error", cells=(self.row["cell"],)) if rows else None


@frozen
class Steps(Chapter):
    """Of all steps of one's own that were measured."""

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
    def compared(self) -> list[Versus]:
        """Pairs that took turns, by the clock."""
        rows = self.data.dicts("comparisons", study="ladder", quantity="time", phase=WHOLE)
        return [Versus(data=self.data, row=row) for row in rows]

    @cached_property
    def failed(self) -> list[Row]:
        """Cells of which something did not run."""
        rows = self.data.dicts("cells")
        return [shown(row) for row in rows if row["reason"] and row["status"] != MISSING]


def facts(data: Data) -> Steps | None:
    """Of the same tables, without all others' cells."""
    found = Steps(data=data.seen(own_steps=True))
    return found if found.steps else None
