"""Precision: what a faster format brings by place, and what it does to sums, normalisations and
softmax."""

from functools import cached_property

from stepscope.report.facts.formats import (
    Forced,
    Product,
    Sum,
    Type,
    forced,
    products,
    sums,
    types,
)
from stepscope.report.facts.ladders import SIXTEEN, Ladder, ladders
from stepscope.report.facts.machine import Machine, machine, place
from stepscope.report.facts.rungs import Rung
from stepscope.report.kit.data import Data, Row, grouped, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, over, value_of

WHOLE, AUTOCAST = "all in the format", "under autocast"
RIGHT = 0.001  # a sum that is off by less counts as right
WIDE = ("fp32 += bf16", "fp32 += fp16")  # sums in fp32 of addends in 16 bits


@frozen
class Speed:
    """fp32 over another precision, of the same place: ratios of two cells, without verdict. alone:
    without the host."""

    place: Name
    parameters: float
    context: int
    forward: Maybe
    backward: Maybe
    step: Maybe
    alone: Maybe
    limits: str


@frozen
class Precision:
    """faster: the 16-bit format whose speeds are shown."""

    data: Data
    machine: Machine
    faster: str

    # What it brings.

    @cached_property
    def ceiling_gain(self) -> Maybe:
        """The rate of a large product, over that in fp32."""
        return over(self.machine.rate(self.faster), self.machine.rate("fp32"))

    @cached_property
    def speeds(self) -> tuple[Speed, ...]:
        """The sizes at the longest context, and the contexts of the largest size."""
        longest = max((each.context for each in self._speeds), default=0)
        most = max((each.parameters for each in self._speeds), default=0)
        return tuple(
            each for each in self._speeds if each.context == longest or each.parameters == most
        )

    @cached_property
    def least(self) -> Speed | None:
        """The place that gains least of those that launches do not limit; None of a single one."""
        return self._by_gain[0] if len(self._by_gain) > 1 else None

    @cached_property
    def most(self) -> Speed | None:
        """The one that gains most."""
        return self._by_gain[-1] if self._by_gain else None

    @cached_property
    def starved(self) -> Speed | None:
        """One that launches limit."""
        limited = (each for each in self._speeds if each.limits == "launches" and each.alone)
        return next(limited, None)

    @cached_property
    def unsupported(self) -> tuple[Name, ...]:
        """Cells in 16 bits that the machine cannot run."""
        rows = self.data.dicts("cells", status="unsupported", precision=SIXTEEN)
        return tuple(Name(row["cell"]) for row in rows)

    @cached_property
    def eight(self) -> Rung | None:
        """The largest ladder's rung in 8 bits."""
        return self._ladder.coarse if self._ladder else None

    @cached_property
    def sixteen(self) -> Rung | None:
        """Its first in 16."""
        return self._ladder.plain if self._ladder and self.eight else None

    @cached_property
    def eight_gain(self) -> Maybe:
        """The rate of a large product in 8 bits, over that in 16."""
        return over(self.machine.rate("fp8"), self.machine.rate(self.faster))

    # What it does to numbers.

    @cached_property
    def sums(self) -> tuple[Sum, ...]:
        """Of equal addends."""
        return sums(self.data)

    @cached_property
    def stuck(self) -> Sum | None:
        """The one that is furthest off."""
        known = [each for each in self.sums if each.error]
        worst = max(known, key=lambda each: abs(value_of(each.error)), default=None)
        is_off = worst is not None and abs(value_of(worst.error)) > RIGHT
        return worst if is_off else None

    @cached_property
    def wide(self) -> Sum | None:
        """A sum in fp32 of addends in 16 bits."""
        return next((each for each in self.sums if each.name in WIDE), None)

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """Of linear layers."""
        return products(self.data)

    @cached_property
    def forced(self) -> tuple[Forced, ...]:
        """Operations in 16 bits."""
        shown = [each for each in self._forced if each.way in (WHOLE, AUTOCAST)]
        return tuple(each for each in shown if each.format in SIXTEEN)

    @cached_property
    def norm(self) -> Forced | None:
        """LayerNorm all in bf16."""
        return self._find("LayerNorm", WHOLE, "bf16")

    @cached_property
    def norm_half(self) -> Forced | None:
        """LayerNorm all in fp16."""
        return self._find("LayerNorm", WHOLE, "fp16")

    @cached_property
    def norm_autocast(self) -> Forced | None:
        """LayerNorm under autocast."""
        return self._find("LayerNorm", AUTOCAST, "bf16")

    @cached_property
    def softmax(self) -> Forced | None:
        """A softmax all in fp16."""
        return self._find("softmax", WHOLE, "fp16")

    @cached_property
    def softmax_autocast(self) -> Forced | None:
        """A softmax under autocast."""
        return self._find("softmax", AUTOCAST, "fp16")

    @cached_property
    def types(self) -> tuple[Type, ...]:
        """Of the modules of a toy model under autocast."""
        return types(self.data)

    @cached_property
    def layer_norm(self) -> Type | None:
        """LayerNorm's."""
        return next((each for each in self.types if each.operator == "LayerNorm"), None)

    @cached_property
    def _speeds(self) -> list[Speed]:
        """Each plain timed place that has both precisions, the smallest first."""
        same = {"study": "timing", "mode": "step", "options": ""}
        times = self.data.series(quantity="time", **same)
        places = grouped(times, "size", "context", "batch").values()
        found = filter(None, map(self._speed, places))
        return sorted(found, key=lambda each: (each.parameters, each.context))

    def _speed(self, rows: list[Row]) -> Speed | None:
        """Of a place's times."""
        by = {(row["precision"], row["phase"]): row for row in rows}

        def gain(phase: str) -> Maybe:
            slow, fast = (by.get((name, phase)) for name in ("fp32", self.faster))
            return over(of_series(slow), of_series(fast)) if slow and fast else None

        step = gain("step")
        if step is None:
            return None
        slow, fast = (by[name, "step"] for name in ("fp32", self.faster))
        where = place(self.data, self.machine, fast, self.faster)
        assert where, "a timed step has a context"
        return Speed(
            place=where.name,
            parameters=value_of(where.parameters),
            context=where.context,
            forward=gain("forward"),
            backward=gain("backward"),
            step=step,
            alone=over(self._alone(slow), self._alone(fast)),
            limits=fast["limits"].replace("gpu", "GPU"),
        )

    def _alone(self, row: Row) -> Maybe:
        same = {"cell": row["cell"], "mode": "step", "phase": "step"}
        return self.data.measured("alone_time", **same)

    @cached_property
    def _by_gain(self) -> list[Speed]:
        fed = [each for each in self._speeds if each.limits != "launches"]
        return sorted(fed, key=lambda each: value_of(each.step))

    @cached_property
    def _ladder(self) -> Ladder | None:
        return next(iter(ladders(self.data, self.machine)), None)

    @cached_property
    def _forced(self) -> tuple[Forced, ...]:
        return forced(self.data)

    def _find(self, operation: str, way: str, precision: str) -> Forced | None:
        wanted = (operation, way, precision)
        found = (each for each in self._forced if (each.operation, each.way, each.format) == wanted)
        return next(found, None)

    @property
    def has_any(self) -> bool:
        """Whether anything was measured."""
        return any((self._speeds, self.sums, self._forced, self.types))


def facts(data: Data) -> Precision | None:
    """Of the timing and the precision study."""
    own = machine(data)
    faster = next((name for name in SIXTEEN if name in own.rates), SIXTEEN[0])
    found = Precision(data=data, machine=own, faster=faster)
    return found if found.has_any else None
