"""A shift that all series have in common, as another driver or clock gives it."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.report.kit.compare import LEAST_MARGIN
from stepscope.report.runs.judging import Machine, Pair

SHARED = 0.9  # the share of the series that has to agree with a shift
FEWEST_CELLS = 4
CLOCK_EXPLAINS = 0.01  # how far a shift may be from that of the SM clock


@dataclass(frozen=True)
class Shift:
    """The factor by which series take as long as before, of how many of how many.

    what: what limits them; empty where it is all of the machine. clocks: the median of the SM clocks before and now,
    MHz, where these explain it.
    """

    machine: Machine
    what: str
    factor: float
    shared: int
    every: int
    clocks: tuple[float, float] | None = None


def shifts(pairs: Sequence[Pair]) -> list[Shift]:
    """A shift of each machine: that of all its series, else those of classes of them."""
    found = []
    for machine in dict.fromkeys(pair.machine for pair in pairs):
        own = [pair for pair in pairs if pair.machine == machine and pair.comparison and pair.ends]
        whole = _shift(machine, "", own)
        classes = dict.fromkeys(pair.limited_by for pair in own)
        parts = [_shift(machine, what, [pair for pair in own if pair.limited_by == what]) for what in classes]
        found += filter(None, [whole] if whole else parts)
    return found


def _shift(machine: Machine, what: str, pairs: Sequence[Pair]) -> Shift | None:
    """The median ratio of some series, if it is beyond what unchanged cells differ by, and nearly all agree with it:
    their intervals, as much wider as the least margin is, hold it."""
    if len({pair.place.cell for pair in pairs}) < FEWEST_CELLS:
        return None
    middle = statistics.median(math.log(pair.times_as_long) for pair in pairs)
    agree = [
        pair
        for pair in pairs
        if math.log(pair.ends[0]) - LEAST_MARGIN <= middle <= math.log(pair.ends[1]) + LEAST_MARGIN
    ]
    beyond = statistics.median(math.log(pair.comparison.margin) for pair in pairs)
    if abs(middle) <= beyond or len(agree) < SHARED * len(pairs):
        return None
    return Shift(machine, what, math.exp(middle), len(agree), len(pairs), _explaining(middle, pairs))


def _explaining(middle: float, pairs: Sequence[Pair]) -> tuple[float, float] | None:
    known = [(pair.before.clock_mhz, pair.after.clock_mhz) for pair in pairs if pair.cycles]
    if not known:
        return None
    clocks = tuple(statistics.median(each) for each in zip(*known, strict=True))
    return clocks if abs(middle + math.log(clocks[1] / clocks[0])) <= CLOCK_EXPLAINS else None
