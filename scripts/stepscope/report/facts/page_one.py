"""Page one: the largest step, where its time goes, what to change first, what fits, and what to
doubt."""

import functools
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import last_that, peak
from stepscope.report.kit.data import Data, Row
from stepscope.report.kit.named import Name, first_of, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    exact,
    joined,
    minus,
    over,
    scaled,
    share,
    value_of,
)
from stepscope.report.kit.reserve import usable
from stepscope.results.option_labels import LABELS

from . import applies, method, profile
from . import ladder as climbing
from . import memory as remembering
from .ladders import Ladder, ladders
from .machine import Chapter, Place, machine
from .profile import Profiled, profiled
from .rungs import Rung
from .timed import Timed, in_bf16, timed_at

MOSTLY = 0.5  # of a step
TOKENS = 1e9  # whose electricity is told
JOULES_A_KWH = 3.6e6
LOOSE = 0.1  # half an interval that a reader should be told of
MOST = 3  # that are told


def _of_either(name: str) -> cached_property[Maybe]:
    """The fact that is one of the ladder's plain rung, else of the timed step."""

    def known(facts: "PageOne") -> Maybe:
        steps = (facts.plain, facts.timed)
        found = (getattr(step, name) for step in steps if step)
        return first_of(filter(None, found))

    return cached_property(known)


@frozen
class PageOne(Chapter):
    """Of the baseline at `place`: a ladder's plain rung, else the plain timed step."""

    place: Place

    @cached_property
    def ladder(self) -> Ladder | None:
        """The first of all."""
        return first_of(ladders(self.data))

    @cached_property
    def timed(self) -> Timed | None:
        """The plain step, timed by itself."""
        return timed_at(self.place)

    @property
    def plain(self) -> Rung | Timed | None:
        """The ladder's plain rung, else the timed step."""
        return self.ladder.plain if self.ladder else self.timed

    step = _of_either("step")  # by the clock
    gpu = _of_either("gpu")  # without the host: host-free, else busy
    launches = _of_either("launches")
    reserved = _of_either("peak")

    @cached_property
    def narrower(self) -> Maybe:
        """The plain timed step over that in bf16."""
        fast = None if self.place.dtype else timed_at(self.place, "bf16")
        return over(self.timed.step, fast.step) if self.timed and fast else None

    @cached_property
    def limit(self) -> str:
        """`launches`; else `arithmetic` or `other` (neither), by its share of the step."""
        if self.plain and self.plain.limited == "launches":
            return "launches"
        if self.arithmetic_share is None:
            return ""
        return "arithmetic" if self.arithmetic_share.value >= MOSTLY else "other"

    # its products at the ceiling, of the step
    arithmetic_share = made_of(share, "place.arithmetic", "step")

    @cached_property
    def start(self) -> Profiled | None:
        """The profiled baseline at the place."""
        return profile.start_at(profiled(self.data), self.place, self.ladder)

    @cached_property
    def end(self) -> Profiled | None:
        """The profiled top rung."""
        return profile.top_at(profiled(self.data), self.start)

    @cached_property
    def shown(self) -> Profiled | None:
        """The profiled baseline, there or at the largest place."""
        return self.start or profile.plain_step(profiled(self.data), self.place)

    @cached_property
    def profiled_elsewhere(self) -> Place | None:
        """Where the shares of kernels come from, if not from the place."""
        return self.shown.place if self.shown and not self.start else None

    @cached_property
    def idle(self) -> Maybe:
        """What the clock exceeds the step without the host by."""
        return self.ladder.plain.idle if self.ladder else minus(self.step, self.gpu)

    @property
    def memory(self) -> remembering.Memory | None:
        """What the largest recorded step asks for."""
        return remembering.facts(self.data)

    @cached_property
    def applies(self) -> list[Row]:
        """Other places, on a GPU."""
        return applies.rows(self.data) if self.machine.is_gpu else []

    @cached_property
    def fits(self) -> list[Row]:
        """The most that fits the memory by the closed form, with attention written out, then
        fused.

        context: the longest at the place's batch. batch: the largest at the place's context.
        """
        if not self.machine.is_gpu:
            return []
        if self.ladder is None or not self.ladder.is_tuned:
            return [self._fits(LABELS[name], attention=name) for name in ("naive", "sdpa")]
        rungs = [self._fits(rung.name, **rung.options) for rung in self.ladder.rungs]
        known = [each for each in rungs if each["context"]]
        return known[:1] + known[1:][-1:]  # the first, and the last of the others

    def _fits(self, said: str, **options: str) -> Row:
        return {
            "change": Name(said),
            "context": _most("context", self.place, options),
            "batch": _most("batch", self.place, options),
        }

    @cached_property
    def most(self) -> Rung | None:
        """The rung of the most tokens a second at a larger batch."""
        climbed = climbing.facts(self.data)
        return climbed.most if climbed else None

    @cached_property
    def electricity(self) -> Maybe:
        """Of the card, for so many tokens at the advised rung."""
        joules = self.ladder.advised.energy if self.ladder else None
        return exact(scaled(joules, TOKENS / JOULES_A_KWH, "kWh"))

    @cached_property
    def versions(self) -> list[Name]:
        """Of what the cells ran with."""
        return method.versions(self.data.dicts("cells"))

    @cached_property
    def doubts(self) -> Row:
        """What a reader should be told of."""
        return doubts(self.place, self.ladder, self.profiled_elsewhere)


def doubts(where: Place, ladder: Ladder | None, elsewhere: Place | None) -> Row:
    """Of page one's place and ladder and of all cells. elsewhere: where the kernels were profiled,
    if not there.

    told: those that weigh most, of those that there are, the first of these: missing: cells of the
    `planned`; least: rates are at least what is said; older: cells that other code measured;
    loosest: half the widest interval of a rung (`loosest_rung`), of its step, where that is wide;
    coarse: the top rung rounds more than 16 bits do; slower: what the card does slower than all
    others of its type that are known, of several; at_once: on how many GPUs cells ran at a time;
    hosts: the plain step that launches limit which is known worst by the clock; elsewhere;
    throttled. trained: the coarse rung's precision as the learning study trained it.
    """
    data = where.data
    cells = data.dicts("cells")
    climbed = climbing.facts(data)
    standing = [row for row in method.beside_others(data) if row["standing"] == "slower"]
    rung = max(ladder.rungs if ladder else (), key=_half_width, default=None)
    width = _half_width(rung) if rung else 0.0
    loosest = Quantity(width, "share", cells=joined(rung.step)) if rung and width > LOOSE else None
    loose = [each for each in in_bf16(data, limits="launches") if _half_width(each) > LOOSE]
    ran = [row for row in cells if row["status"] == "ok"]
    found: Row = {
        "missing": _some([row for row in cells if row["status"] == "missing"]),
        "least": where.is_least,
        "older": _some([row for row in ran if not row["is_current"]]),
        "loosest": loosest,
        "coarse": ladder is not None and ladder.top_is_coarse,
        "slower": first_of(row for row in standing if value_of(row["cards"]) > 1),
        "at_once": method.at_once(cells),
        "hosts": None if loosest else max(loose, key=_half_width, default=None),
        "elsewhere": elsewhere,
        "throttled": climbed is not None and climbed.is_throttled,
    }
    return found | {
        "told": [name for name, weight in found.items() if weight][:MOST],
        "planned": count(len(cells)),
        "loosest_rung": rung,
        "trained": climbed.trained if climbed else None,
    }


def _half_width(measured: Rung | Timed) -> float:
    return measured.step.half_width if measured.step else 0.0


def _some(rows: list[Row]) -> Maybe:
    return count(len(rows), *(row["cell"] for row in rows)) if rows else None


def _most(field: str, where: Place, options: Mapping[str, str]) -> Maybe:
    """The most of a field, `context` or `batch`, with which the step so run fits what is usable of
    the GPU's memory, the others as at the place; 0 if none does.

    None without a GPU, of a model of one's own, and of what the closed form does not know.
    """
    own = machine(where.data)
    if not own.is_gpu or own.memory is None or where.shape is None:
        return None
    given: dict[str, Any] = {"precision": where.precision, **options}
    given["checkpoint"] = int(given.get("checkpoint", 0))
    setup = Setup(where.shape, where.batch, where.context, **given)
    if not setup.is_known:
        return None
    return count(_largest(field, setup, int(usable(own.memory.value))))


@functools.cache
def _largest(field: str, setup: Setup, memory: int) -> int:
    def fits(number: int) -> bool:
        changed: dict[str, Any] = {field: number}
        return peak(replace(setup, **changed), "step").bytes <= memory

    return last_that(fits)


def facts(data: Data) -> PageOne | None:
    """Of the place of the first ladder; without one, of the largest step that was timed."""
    found = ladders(data)
    where = found[0].place if found else profile.subject(data)
    return PageOne(data=data, place=where) if where else None
