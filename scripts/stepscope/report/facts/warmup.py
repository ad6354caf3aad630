"""Warm-up: what a benchmark gets that leaves out no, few or many steps, and what the first step
spends its time on."""

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
    cell.

    rows: sizes, the smallest first, as _means has them; worst: that whose mean is most too high
    without any warm-up; cost: the largest's first step over the steady one; phases: its phases.
    cold: the place of the most parameters whose first step was profiled; parts: what its host did,
    by how much longer it took; cold_first, cold_second, cold_later: what kept it busy.
    """

    rows: list[Row]
    phases: list[Row]
    worst: Row | None
    cost: Maybe
    cold: Place | None
    parts: list[Row]
    cold_first: Maybe
    cold_second: Maybe
    cold_later: Maybe


def facts(data: Data) -> Warmup | None:
    """Of the steps from the very first one on, and of profiled first steps."""
    rows = _sizes(data)
    largest = rows[-1] if rows else {}
    profiled = data.dicts("first_step", phase="step")
    places = [(value_of(where.parameters), where, row) for where, row in placed(data, profiled)]
    _, cold, row = max(places, key=lambda each: each[0], default=(0, None, {}))
    own = [each for each in profiled if each["cell"] == row.get("cell")]
    parts = [_part(each) for each in own if each["first"] or each["later"]]
    if not rows and not parts:
        return None
    busy = [part for part in parts if part["part"] != WAITING]
    first, second, later = (
        plus(*(part[step] for part in busy)) for step in ("first", "second", "later")
    )
    return Warmup(
        data=data,
        rows=rows,
        phases=_phases(data, largest["place"]) if rows else [],
        worst=most(rows, "off"),
        cost=over(largest.get("first"), largest.get("steady")),
        cold=cold,
        parts=ordered(parts, "more", reverse=True),
        cold_first=first,
        cold_second=second,
        cold_later=later,
    )


def _sizes(data: Data) -> list[Row]:
    cells = grouped(data.dicts("warmup", phase="step"), "cell").values()
    means = [_means(place(data, rows[0]), rows) for rows in cells]
    chosen: dict[Name, Row] = {}
    for row in sorted(filter(None, means), key=_order):
        chosen.setdefault(row["place"].size, row)
    return ordered(chosen.values(), "place.parameters")


def _phases(data: Data, where: Place) -> list[Row]:
    rows = data.dicts("warmup", **where.where, precision=where.precision, options="")
    by_phase = grouped(rows, "phase").items()
    return [_means(where, own) | {"phase": Name(phase)} for (phase,), own in by_phase]


def _order(row: Row) -> tuple[int, bool]:
    """Shorter contexts before longer ones, then fp32 before the others."""
    return row["place"].context, row["place"].precision != "fp32"


def _means(where: Place | None, rows: list[Row]) -> Row:
    """A cell; empty without a place.

    first, steady: its steps' times. after_N: the mean of ten steps after N are left out. off: how
    far the mean without any warm-up is off the steady step. enough: from how many on each mean is
    close; None if one alone is, which of few steps are those of the steady step themselves.
    """
    if where is None:
        return {}
    means = {int(row["skipped"]): number(row, "mean", "s") for row in rows}
    steady = number(rows[0], "steady", "s")
    off = {skipped: gap(means[skipped], steady) for skipped in sorted(means)}
    far = [skipped for skipped, each in off.items() if not each or abs(each.value) >= SETTLED]
    close = [skipped for skipped in off if skipped > max(far, default=-1)]
    from_start = [row for row in rows if row["skipped"] == 0]
    told = {f"after_{skipped}": means.get(skipped) for skipped in SKIPPED}
    for row in rows:
        told[f"std_{row['skipped']:.0f}"] = number(row, "std", "s")
    return told | {
        "place": where,
        "first": number((from_start or rows)[0], "first", "s"),
        "steady": steady,
        "off": off.get(0),
        "enough": count(close[0], rows[0]["cell"]) if close[1:] else None,
    }


def _part(row: Row) -> Row:
    """What the host does in the first step of a process and in a later one, and how much longer
    that takes."""
    told = shown(row)
    name = Name(PARTS.get(row["part"], row["part"]))
    return told | {"part": name, "more": minus(told["first"], told["later"])}
