"""Warm-up: what a benchmark gets that leaves out no, few or many steps, and what the first step
spends its time on."""

from dataclasses import dataclass

from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.kit.data import Data, number
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, gap, minus, over, plus

CLOSE = 0.05  # of the steady step
PARTS = {
    "module loading": "launches, module loading"
}  # a launch loads its kernel when it is the first
SKIPPED = (0, 1, 2, 5, 10)


@dataclass(frozen=True, kw_only=True)
class Row:
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """What the host does in the first step of a process and in a later one."""

    part: Name
    first: Maybe
    later: Maybe
    more: Maybe


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """largest: of the rows. cost: its first step over the steady one. cold_first, cold_later: of
    the host's parts, without waiting."""

    machine: Machine
    rows: tuple[Row, ...] = ()
    largest: Row | None = None
    worst: Row | None = None
    cost: Maybe = None
    is_never: bool = False
    cold: Place | None = None
    parts: tuple[Part, ...] = ()
    dearest: Part | None = None
    cold_first: Maybe = None
    cold_later: Maybe = None


def facts(data: Data) -> Warmup | None:
    """Of the shortest context of each size, so that one series shows; the cold step of the largest
    cell."""
    own = machine(data)
    rows = _rows(data, own)
    parts, cold = _parts(data, own)
    if not rows and not parts:
        return None
    busy = [part for part in parts if str(part.part) != "waiting for the device"]
    return Warmup(
        machine=own,
        rows=rows,
        largest=rows[-1] if rows else None,
        worst=max((row for row in rows if row.off), key=lambda row: row.off.value, default=None),
        cost=over(rows[-1].first, rows[-1].steady) if rows else None,
        is_never=any(row.enough is None for row in rows),
        cold=cold,
        parts=parts,
        dearest=max(parts, key=lambda part: part.more.value, default=None),
        cold_first=plus(*(part.first for part in busy)),
        cold_later=plus(*(part.later for part in busy)),
    )


def _rows(data: Data, own: Machine) -> tuple[Row, ...]:
    found: dict[str, list[dict]] = {}
    for row in data.dicts("warmup", phase="step"):
        found.setdefault(row["cell"], []).append(row)
    chosen: dict[str, tuple[Place, list[dict]]] = {}
    for rows in found.values():
        where = place(data, own, rows[0], rows[0]["precision"])
        if where and (str(where.size) not in chosen or _before(where, chosen[str(where.size)][0])):
            chosen[str(where.size)] = (where, rows)
    made = sorted(
        chosen.values(), key=lambda each: each[0].parameters.value if each[0].parameters else 0
    )
    return tuple(_row(where, rows) for where, rows in made)


def _before(one: Place, other: Place) -> bool:
    """Shorter contexts first, then fp32 before the others."""
    return (one.context, one.precision != "fp32") < (other.context, other.precision != "fp32")


def _row(where: Place, rows: list[dict]) -> Row:
    means = {int(row["skipped"]): number(row, "mean", "s") for row in rows}
    steady, first = number(rows[0], "steady", "s"), number(rows[0], "first", "s")
    start = next((number(row, "first", "s") for row in rows if row["skipped"] == 0), first)
    close = [
        n
        for n in sorted(means)
        if means[n] and steady and abs(means[n].value / steady.value - 1) < CLOSE
    ]
    return Row(
        place=where,
        first=start,
        steady=steady,
        **{f"after_{n}": means.get(n) for n in SKIPPED},
        off=gap(means.get(0), steady),
        enough=Quantity(float(close[0]), "count", cells=(rows[0]["cell"],)) if close else None,
    )


def _parts(data: Data, own: Machine) -> tuple[tuple[Part, ...], Place | None]:
    """Of the cold cell of the most parameters."""
    rows = [row for row in data.dicts("first_step") if row["phase"] == "step"]
    places = {row["cell"]: place(data, own, row, row["precision"]) for row in rows}
    known = {cell: where for cell, where in places.items() if where}
    if not known:
        return (), None
    cell = max(
        known, key=lambda each: known[each].parameters.value if known[each].parameters else 0
    )
    made = [
        Part(
            part=Name(PARTS.get(row["part"], row["part"])),
            first=number(row, "first", "s"),
            later=number(row, "later", "s"),
            more=minus(number(row, "first", "s"), number(row, "later", "s")),
        )
        for row in rows
        if row["cell"] == cell
    ]  # fmt: skip
    shown = [part for part in made if part.more and (part.first.value or part.later.value)]
    return tuple(sorted(shown, key=lambda part: -part.more.value)), known[cell]
