"""Precision: what a faster format brings by place, and what it does to sums, normalisations and
softmax."""

from functools import cached_property

from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, first_of, frozen
from stepscope.report.kit.quantity import Maybe, gap, ordered, over, scaled

from .ladders import SIXTEEN, Ladder, ladders
from .machine import Chapter, Place, machine
from .timed import Timed, timed, timed_at

WHOLE, AUTOCAST = "all in the format", "under autocast"
RIGHT = 0.001  # a sum that is off by less counts as right
OF_FORCED = ("operation", "way", "format")
WIDE = ("fp32 += bf16", "fp32 += fp16")  # sums in fp32 of addends in 16 bits


def _gain(name: str) -> cached_property[Maybe]:
    """The fact that is the slower time over the faster one."""

    return cached_property(lambda speed: over(getattr(speed.slow, name), getattr(speed.fast, name)))


@frozen
class Speed:
    """fp32 over another precision, of the same place: ratios of two cells, without verdict."""

    slow: Timed
    fast: Timed

    forward = _gain("forward")
    backward = _gain("backward")
    both = _gain("both")
    step = _gain("step")
    alone = _gain("gpu")  # without the host

    @property
    def place(self) -> Place:
        """Where that is."""
        return self.fast.place


@frozen
class Precision(Chapter):
    """faster: the 16-bit format whose speeds are shown."""

    faster: str

    # What it brings.

    @cached_property
    def ceiling_gain(self) -> Maybe:
        """The rate of a large product, over that in fp32."""
        return over(self.machine.rate(self.faster), self.machine.rate("fp32"))

    @cached_property
    def speeds(self) -> list[Speed]:
        """Each plain timed place in each precision but fp32, where it has that too; the smallest
        first."""
        found = []
        for fast in timed(self.data):
            slow = None if fast.place.dtype else timed_at(fast.place, "fp32")
            if slow and fast.place.precision != "fp32":
                found.append(Speed(slow=slow, fast=fast))
        return sorted(found, key=lambda each: each.place.weight)

    @cached_property
    def starved(self) -> Speed | None:
        """One that launches limit."""
        return first_of(
            each for each in self._speeds if each.fast.limits == "launches" and each.alone
        )

    @cached_property
    def eight_gain(self) -> Maybe:
        """The rate of a large product in 8 bits, over that in 16."""
        return over(self.machine.rate("fp8"), self.machine.rate(self.faster))

    # What it does to numbers.

    @cached_property
    def sums(self) -> list[Row]:
        """Of equal addends, with how far they are off."""
        found = []
        for row in self.data.dicts("sums"):
            told = shown(row, sum="exact", exact="exact")
            off = gap(told["sum"], told["exact"])
            found.append(told | {"off": scaled(off, 1, "off")})
        return found

    @cached_property
    def stuck(self) -> Row | None:
        """The one that is furthest off."""
        off = [row for row in self.sums if row["off"] and abs(row["off"].value) > RIGHT]
        return max(off, key=lambda row: abs(row["off"].value), default=None)

    @cached_property
    def wide(self) -> Row | None:
        """A sum in fp32 of addends in 16 bits."""
        return first_of(row for row in self.sums if row["variant"] in WIDE)

    @cached_property
    def forced(self) -> list[Row]:
        """Operations in 16 bits, each in each way and format, as _forced has them."""
        same = {"way": [WHOLE, AUTOCAST], "format": SIXTEEN}
        rows = self.data.dicts("forced", **same)
        return list(map(_forced, grouped(rows, *OF_FORCED).values()))

    def find(self, operation: str, way: str, precision: str) -> Row | None:
        """An operation computed in a way in a format."""
        named = ((tuple(each[name] for name in OF_FORCED), each) for each in self.forced)
        return dict(named).get((operation, way, precision))

    @cached_property
    def types(self) -> list[Row]:
        """Of the modules of a toy model under autocast, in bf16, else in fp16."""
        for precision in SIXTEEN:
            rows = self.data.dicts("dtypes", autocast=precision)
            if rows:
                return list(map(shown, rows))
        return []

    @cached_property
    def layer_norm(self) -> Row | None:
        """LayerNorm's."""
        return first_of(row for row in self.types if row["kind"] == "LayerNorm")

    @property
    def _speeds(self) -> list[Speed]:
        """Those of the 16-bit format."""
        return [each for each in self.speeds if each.place.precision == self.faster]

    @cached_property
    def by_gain(self) -> list[Speed]:
        """The places that launches do not limit, that which gains least first."""
        return ordered([each for each in self._speeds if each.fast.limits != "launches"], "step")

    @property
    def ladder(self) -> Ladder | None:
        """The largest."""
        return first_of(ladders(self.data))

    @property
    def has_any(self) -> bool:
        """Whether anything was measured."""
        return any((self.speeds, self.sums, self.forced, self.types))


def _forced(rows: list[Row]) -> Row:
    """An operation in a format: its largest error over the inputs at which it works, and the first
    input at which it breaks down."""
    broken = [row for row in rows if _is_broken(row)]
    whole = [row for row in rows if not _is_broken(row)]
    worst = max(whole, key=lambda row: row["error"], default={})
    first = min(broken, key=lambda row: row["value"], default={})
    names = {name: Name(rows[0][name]) for name in OF_FORCED}
    return names | {
        "error": number(worst, "error", "error"),
        "breaks": number(first, "value", "exact"),
        "varied": Name(first["quantity"]) if first else None,
    }


def _is_broken(row: Row) -> bool:
    """An error of all of it, or one that is no number; or what is not finite."""
    is_small = row["error"] < 1
    return not is_small or row["infinite"] > 0 or row["nan"] > 0


def facts(data: Data) -> Precision | None:
    """Of the timing and the precision study."""
    rates = machine(data).rates
    faster = next((name for name in SIXTEEN if name in rates), SIXTEEN[0])
    found = Precision(data=data, faster=faster)
    return found if found.has_any else None
