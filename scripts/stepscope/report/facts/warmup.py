"""Warm-up: what a benchmark gets that leaves out no, few or many steps, and what the first step
spends its time on."""

from functools import cached_property

from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    count,
    gap,
    minus,
    ordered,
    over,
    plus,
    value_of,
)

from .machine import Chapter, Place, placed

SETTLED = 0.05  # a mean that is off the steady step by less needs no more warm-up
WAITING = "waiting for the device"
PARTS = {
    # A launch loads its kernel when it is the first.
    "module loading": "launches, module loading",
}


@frozen
class Warmup(Chapter):
    """Of the largest size at its shortest context; the cold step of the largest cell.

    warmed: that place; phases: of its step, each as _means has it; step: the whole one; cost: the
    first over the steady one. cold: the place of the most parameters whose first step was profiled;
    parts: what its host did, by how much longer it took; busy: how long that kept it busy in the
    `first`, `second` and a `later` step.
    """

    warmed: Place | None
    phases: list[Row]
    cold: Place | None
    parts: list[Row]
    busy: dict[str, Maybe]

    @cached_property
    def step(self) -> Row:
        """Of its phases."""
        return next((row for row in self.phases if row["phase"] == "step"), {})

    cost = made_of(over, "step.first", "step.steady")


def facts(data: Data) -> Warmup | None:
    """Of the steps from the very first one on, and of profiled first steps."""
    warmed = placed(data, data.dicts("warmup", phase="step"))
    where, whole = min(warmed, key=_order, default=(None, {}))
    by_phase = grouped(data.dicts("warmup", cell=whole.get("cell")), "phase").items()
    profiled = data.dicts("first_step", phase="step")
    places = [(value_of(where.parameters), where, row) for where, row in placed(data, profiled)]
    _, cold, row = max(places, key=lambda each: each[0], default=(0, None, {}))
    own = [each for each in profiled if each["cell"] == row.get("cell")]
    parts = [_part(each) for each in own if each["first"] or each["later"]]
    if not where and not parts:
        return None
    busy = [part for part in parts if part["part"] != WAITING]
    steps = ("first", "second", "later")
    return Warmup(
        data=data,
        warmed=where,
        phases=[_means(rows) | {"phase": Name(phase)} for (phase,), rows in by_phase],
        cold=cold,
        parts=ordered(parts, "more", reverse=True),
        busy={step: plus(*(part[step] for part in busy)) for step in steps},
    )


def _order(warmed: tuple[Place, Row]) -> tuple[float, bool, int, bool]:
    """Large sizes before small ones, neutral options before others, shorter contexts before longer
    ones, fp32 before other precisions."""
    where, row = warmed
    size = value_of(where.parameters)
    return -size, row["options"] != "", where.context, where.precision != "fp32"


def _means(rows: list[Row]) -> Row:
    """A phase of a cell's steps.

    first, steady: its times. after_N, std_N: the mean of ten steps after N are left out, and their
    deviation. off: how far the mean without any warm-up is off the steady step. enough: from how
    many on each mean is close; None if one alone is, which of few steps are those of the steady
    step themselves.
    """
    steady = number(rows[0], "steady", "s")
    told: Row = {"first": number(rows[0], "first", "s"), "steady": steady}
    off = {}
    for row in sorted(rows, key=lambda each: each["skipped"]):
        skipped = int(row["skipped"])
        mean = number(row, "mean", "s")
        told |= {f"after_{skipped}": mean, f"std_{skipped}": number(row, "std", "s")}
        off[skipped] = gap(mean, steady)
    far = [skipped for skipped, each in off.items() if not each or abs(each.value) >= SETTLED]
    close = [skipped for skipped in off if skipped > max(far, default=-1)]
    enough = count(close[0], rows[0]["cell"]) if close[1:] else None
    return told | {"off": off.get(0), "enough": enough}


def _part(row: Row) -> Row:
    """What the host does in the first step of a process and in a later one, and how much longer
    that takes."""
    told = shown(row)
    name = Name(PARTS.get(row["part"], row["part"]))
    return told | {"part": name, "more": minus(told["first"], told["later"])}
