"""The ladder: each change predicted, measured and its gap; the same changes at other places; what
compiling costs."""

import itertools
from collections.abc import Iterable
from functools import cached_property

from stepscope.report.kit.data import Data, Row
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    exact,
    is_below,
    most,
    over,
    positive,
)

from . import learning, method, profile
from .ladders import Ladder, ladders
from .machine import Chapter, arithmetic
from .rungs import Rung

PARTS = {
    "products": "matrix products",
    "attention": "fused attention",
    "casts": "casts and copies",
    "others": "other kernels",
    "optimizer": "optimizer",
    "idle": "GPU idle",
}
HELD_BACK = 0.95  # of the highest clock


@frozen
class LadderFacts(Chapter):
    """Of `ladder`, that of the largest place, and of all others."""

    ladder: Ladder

    @property
    def _ladders(self) -> list[Ladder]:
        return ladders(self.data)

    @cached_property
    def written(self) -> Ladder | None:
        """The largest that begins at the plain step, where `ladder` does not."""
        plain = [each for each in self._ladders if not each.is_part and not each.is_tuned]
        return plain[0] if plain and self.ladder.is_tuned else None

    @cached_property
    def trained(self) -> Row | None:
        """The coarse rung's precision as the learning study trained it."""
        trained = learning.facts(self.data)
        coarse = self.ladder.coarse
        return trained.of(coarse.kind) if trained and coarse else None

    @cached_property
    def asides(self) -> list[Row]:
        """Of all ladders, as _aside has them."""
        of_place = [(each.place.name, rung) for each in self._ladders for rung in each.asides]
        return [_aside(place, rung, rung.before) for place, rung in of_place if rung.before]

    @property
    def is_other_card(self) -> bool:
        """Whether ceilings were measured on another card than a ladder of the size."""
        return any(each.is_other_card for each in self._of_size)

    @property
    def _of_size(self) -> list[Ladder]:
        return [each for each in self._ladders if each.place.size == self.ladder.place.size]

    @property
    def _elsewhere(self) -> list[Ladder]:
        return [each for each in self._of_size if each is not self.ladder]

    @cached_property
    def reach(self) -> list[Rung]:
        """What each rung delivers at all places of the size, on a GPU."""
        return _delivering(self._of_size) if self.machine.is_gpu else []

    @cached_property
    def most(self) -> Rung | None:
        """Of these that of the most tokens a second, if that is at a larger batch than the
        ladder's."""
        best = most(_delivering(self._elsewhere), "tokens")
        if best is None or best.data.place.batch <= self.ladder.place.batch:
            return None
        return None if is_below(best.tokens, self.ladder.top.tokens) else best

    @cached_property
    def highest_clock(self) -> Maybe:
        """Of the medians of all cells."""
        cells = self.data.dicts("cells")
        return method.highest(method.read(cells, "sm_clock_median_mhz", "MHz"))

    @property
    def is_throttled(self) -> bool:
        """Whether the card lowered its clock during the ladder, as far as clocks were read."""
        slowest = self.ladder.slowest
        is_slower = slowest is None or is_below(slowest.sm_clock, self.highest_clock, HELD_BACK)
        return bool(self.ladder.throttle) and is_slower

    @cached_property
    def left(self) -> list[Row]:
        """The parts of the profiled step, plain and at the top rung, and the least that each can
        take there (`bound`); none where one of both was not profiled."""
        where, top = self.ladder.place, self.ladder.top
        found = profile.profiled(self.data)
        start = profile.start_at(found, where, self.ladder)
        end = profile.top_at(found, start)
        if start is None or end is None or end.place.precision != top.precision:
            return []
        bounds = {
            "products": arithmetic(where, top.precision, only_linear=True),
            "optimizer": where.optimizer_fused,
        }
        made = []
        for name, words in PARTS.items():
            # What the ladder's own clock exceeds the step without the host by.
            steps = (self.ladder.plain, top) if name == "idle" else (start, end)
            before, after = (getattr(each, name) for each in steps)
            if positive(before) or positive(after):
                ends = {"plain": before, "top": after, "bound": bounds.get(name)}
                made.append({"part": Name(words)} | ends)
        return made


def facts(data: Data) -> LadderFacts | None:
    """Of all ladders of the machine."""
    found = ladders(data)
    return LadderFacts(data=data, ladder=found[0]) if found else None


def _aside(place: Name, rung: Rung, before: Rung) -> Row:
    """A variant of a rung, at a place.

    alone: times as fast on the GPU alone: both host-free, else both by the union of their kernels.
    """
    alone = exact(over(before.host_free, rung.host_free) or over(before.busy, rung.busy))
    return {"place": place, "rung": rung, "before": before, "alone": alone}


def _delivering(ladders: Iterable[Ladder]) -> list[Rung]:
    """Their rungs whose tokens are counted."""
    rungs = itertools.chain(*(each.rungs for each in ladders))
    return [rung for rung in rungs if rung.tokens]
