"""Warm-up: what a benchmark gets that leaves out no, few or many steps, and what the first step
spends its time on."""

from functools import cached_property

from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.kit.data import Data, Row, grouped, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, count, gap, minus, over, plus, value_of
from stepscope.results.warmup import SKIPPED

SETTLED = 0.05  # a mean that is off the steady step by less needs no more warm-up
WAITING = "waiting for the device"
PARTS = {
    # A launch loads its kernel when it is the first.
    "module loading": "launches, module loading",
}


@frozen
class Means:
    """A cell: its first and steady step, and means of ten steps after so many are left out."""

    place: Place
    first: Maybe
    steady: Maybe
    after_0: Maybe
    after_1: Maybe
    after_2: Maybe
    after_5: Maybe
    after_10: Maybe
    off: Maybe
    enough: Maybe


@frozen
class Part:
    """What the host does in the first step of a process and in a later one."""

    part: Name
    first: Maybe
    later: Maybe
    more: Maybe

    @property
    def is_there(self) -> bool:
        """Whether it takes any time."""
        return bool(value_of(self.first) or value_of(self.later))


@frozen
class Warmup:
    """Of the shortest context of each size, so that one series shows; the cold step of the largest
    cell."""

    data: Data
    machine: Machine

    @cached_property
    def rows(self) -> tuple[Means, ...]:
        """The smallest size first."""
        chosen: dict[str, tuple[Place, list[Row]]] = {}
        for rows in grouped(self.data.dicts("warmup", phase="step"), "cell").values():
            where = place(self.data, self.machine, rows[0], rows[0]["precision"])
            if where and _is_before(where, chosen.get(str(where.size))):
                chosen[str(where.size)] = (where, rows)
        by_size = sorted(chosen.values(), key=lambda each: value_of(each[0].parameters))
        return tuple(_means(where, rows) for where, rows in by_size)

    @cached_property
    def largest(self) -> Means | None:
        """The largest size."""
        return self.rows[-1] if self.rows else None

    @cached_property
    def worst(self) -> Means | None:
        """The size whose mean is most too high without any warm-up."""
        known = [row for row in self.rows if row.off]
        return max(known, key=lambda row: value_of(row.off), default=None)

    @cached_property
    def cost(self) -> Maybe:
        """The largest size's first step over the steady one."""
        return over(self.largest.first, self.largest.steady) if self.largest else None

    @cached_property
    def is_never(self) -> bool:
        """Whether a size does not settle."""
        return any(row.enough is None for row in self.rows)

    @cached_property
    def cold(self) -> Place | None:
        """The cell of the most parameters whose first step was profiled."""
        return self._cold_places[self._cold_cell] if self._cold_cell else None

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What its host did, by how much longer it took."""
        rows = self.data.dicts("first_step", phase="step", cell=self._cold_cell)
        shown = [part for part in map(_part, rows) if part.more and part.is_there]
        return tuple(sorted(shown, key=lambda part: -value_of(part.more)))

    @cached_property
    def dearest(self) -> Part | None:
        """The first of these."""
        return self.parts[0] if self.parts else None

    @cached_property
    def cold_first(self) -> Maybe:
        """What kept the host busy in the first step."""
        return plus(*(part.first for part in self._busy))

    @cached_property
    def cold_later(self) -> Maybe:
        """The same in a later one."""
        return plus(*(part.later for part in self._busy))

    @property
    def _busy(self) -> list[Part]:
        return [part for part in self.parts if part.part != WAITING]

    @cached_property
    def _cold_places(self) -> dict[str, Place]:
        found = {}
        for row in self.data.dicts("first_step", phase="step"):
            where = place(self.data, self.machine, row, row["precision"])
            if where:
                found[row["cell"]] = where
        return found

    @cached_property
    def _cold_cell(self) -> str:
        places = self._cold_places
        return max(places, key=lambda cell: value_of(places[cell].parameters), default="")


def facts(data: Data) -> Warmup | None:
    """Of the steps from the very first one on, and of profiled first steps."""
    found = Warmup(data=data, machine=machine(data))
    return found if found.rows or found.parts else None


def _is_before(where: Place, chosen: tuple[Place, list[Row]] | None) -> bool:
    """Shorter contexts first, then fp32 before the others."""
    if chosen is None:
        return True
    other, _ = chosen
    order = (where.context, where.precision != "fp32")
    return order < (other.context, other.precision != "fp32")


def _means(where: Place, rows: list[Row]) -> Means:
    means = {int(row["skipped"]): number(row, "mean", "s") for row in rows}
    steady = number(rows[0], "steady", "s")
    from_start = (number(row, "first", "s") for row in rows if row["skipped"] == 0)
    close = []
    for skipped in sorted(means):
        off = gap(means[skipped], steady)
        if off and abs(off.value) < SETTLED:
            close.append(skipped)
    return Means(
        place=where,
        first=next(from_start, number(rows[0], "first", "s")),
        steady=steady,
        off=gap(means.get(0), steady),
        enough=count(close[0], rows[0]["cell"]) if close else None,
        **{f"after_{skipped}": means.get(skipped) for skipped in SKIPPED},
    )


def _part(row: Row) -> Part:
    first, later = number(row, "first", "s"), number(row, "later", "s")
    name = Name(PARTS.get(row["part"], row["part"]))
    return Part(part=name, first=first, later=later, more=minus(first, later))
