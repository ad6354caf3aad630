"""Warm-up: what a benchmark gets that leaves out no, few or many steps, and what the first step
spends its time on."""

from functools import cached_property

from stepscope.report.facts.machine import Chapter, Place, place, placed
from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    count,
    gap,
    minus,
    most,
    ordered,
    over,
    plus,
    value_of,
)
from stepscope.results.warmup import SKIPPED

SETTLED = 0.05  # a mean that is off the steady step by less needs no more warm-up
WAITING = "waiting for the device"
PARTS = {
    # A launch loads its kernel when it is the first.
    "module loading": "launches, module loading",
}


@frozen
class Warmup(Chapter):
    """Of the shortest context of each size, so that one series shows; the cold step of the largest
    cell."""

    @cached_property
    def rows(self) -> list[Row]:
        """The smallest size first."""
        cells = grouped(self.data.dicts("warmup", phase="step"), "cell").values()
        means = [_means(place(self.data, rows[0]), rows) for rows in cells]
        chosen: dict[Name, Row] = {}
        for row in sorted(filter(None, means), key=_order):
            chosen.setdefault(row["place"].size, row)
        return list(ordered(chosen.values(), "place.parameters"))

    @cached_property
    def phases(self) -> list[Row]:
        """The largest size's phases, likewise."""
        if not self.rows:
            return []
        where = self.rows[-1]["place"]
        rows = self.data.dicts("warmup", **where.where, precision=where.precision, options="")
        by_phase = grouped(rows, "phase").items()
        return [_means(where, own) | {"phase": Name(phase)} for (phase,), own in by_phase]

    @cached_property
    def worst(self) -> Row | None:
        """The size whose mean is most too high without any warm-up."""
        return most(self.rows, "off")

    @cached_property
    def cost(self) -> Maybe:
        """The largest size's first step over the steady one."""
        largest = self.rows[-1] if self.rows else {}
        return over(largest.get("first"), largest.get("steady"))

    @cached_property
    def cold(self) -> Place | None:
        """The one of the most parameters whose first step was profiled."""
        return max(self._cold, key=lambda where: value_of(where.parameters), default=None)

    @cached_property
    def _cold(self) -> dict[Place, str]:
        """Place → its cell."""
        rows = self.data.dicts("first_step", phase="step")
        cells = {row["cell"]: row for row in rows}
        return {where: row["cell"] for where, row in placed(self.data, cells.values())}

    @cached_property
    def parts(self) -> list[Row]:
        """What its host did, by how much longer it took."""
        if self.cold is None:
            return []
        rows = self.data.dicts("first_step", phase="step", cell=self._cold[self.cold])
        parts = [_part(row) for row in rows if row["first"] or row["later"]]
        return list(ordered(parts, "more", reverse=True))

    @cached_property
    def cold_first(self) -> Maybe:
        """What kept the host busy in the first step."""
        return self._busy("first")

    @cached_property
    def cold_second(self) -> Maybe:
        """The same in the second."""
        return self._busy("second")

    @cached_property
    def cold_later(self) -> Maybe:
        """The same in a later one."""
        return self._busy("later")

    def _busy(self, column: str) -> Maybe:
        return plus(*(part[column] for part in self.parts if part["part"] != WAITING))


def facts(data: Data) -> Warmup | None:
    """Of the steps from the very first one on, and of profiled first steps."""
    found = Warmup(data=data)
    return found if found.rows or found.parts else None


def _order(row: Row) -> tuple[int, bool]:
    """Shorter contexts before longer ones, then fp32 before the others."""
    return row["place"].context, row["place"].precision != "fp32"


def _means(where: Place | None, rows: list[Row]) -> Row:
    """A cell; empty without a place.

    first, steady: its steps' times. after_N: the mean of ten steps after N are left out. off: how
    far the mean without any warm-up is off the steady step. enough: after how many it is close.
    """
    if where is None:
        return {}
    means = {int(row["skipped"]): number(row, "mean", "s") for row in rows}
    steady = number(rows[0], "steady", "s")
    off = {skipped: gap(means[skipped], steady) for skipped in sorted(means)}
    close = [skipped for skipped, each in off.items() if each and abs(each.value) < SETTLED]
    from_start = [row for row in rows if row["skipped"] == 0]
    told = {f"after_{skipped}": means.get(skipped) for skipped in SKIPPED}
    for row in rows:
        told[f"std_{row['skipped']:.0f}"] = number(row, "std", "s")
    return told | {
        "place": where,
        "first": number((from_start or rows)[0], "first", "s"),
        "steady": steady,
        "off": off.get(0),
        "enough": count(close[0], rows[0]["cell"]) if close else None,
    }


def _part(row: Row) -> Row:
    """What the host does in the first step of a process and in a later one, and how much longer
    that takes."""
    told = shown(row)
    name = Name(PARTS.get(row["part"], row["part"]))
    return told | {"part": name, "more": minus(told["first"], told["later"])}
