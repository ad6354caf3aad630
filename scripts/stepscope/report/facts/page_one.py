"""Page one: the largest step, where its time goes, what to change first, what fits, and what to
doubt."""

from functools import cached_property

from stepscope.report.facts import applies, method, profile
from stepscope.report.facts import ladder as climbing
from stepscope.report.facts import memory as remembering
from stepscope.report.facts.doubts import Doubts
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place, machine
from stepscope.report.facts.profile import Profiled
from stepscope.report.facts.rungs import Rung
from stepscope.report.facts.setup import STATE_BYTES
from stepscope.report.facts.shape import largest_batch, longest_context
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    exact,
    minus,
    over,
    plus,
    scaled,
    share,
)
from stepscope.results.option_labels import LABELS

MOSTLY = 0.5  # of a step
TOKENS = 1e9  # whose electricity is told
JOULES_A_KWH = 3.6e6


@frozen
class Fits:
    """The most that fits the memory by the closed form, with attention as it is named."""

    change: Name
    context: Maybe
    batch: Maybe


@frozen
class PageOne:
    """Of the baseline at `place`: a ladder's plain rung, else the plain timed step."""

    data: Data
    machine: Machine
    place: Place

    @cached_property
    def ladder(self) -> Ladder | None:
        """The largest."""
        return next(iter(ladders(self.data, self.machine)), None)

    @cached_property
    def step(self) -> Maybe:
        """By the clock."""
        return self._plain.step if self._plain else self._timed.get("time")

    @cached_property
    def gpu(self) -> Maybe:
        """Without the host: host-free, else busy."""
        of_ladder = self._plain.gpu if self._plain else None
        return of_ladder or self._timed.get("alone_time")

    @cached_property
    def is_host_free(self) -> bool:
        """Which of both, of the timed step."""
        return "host_free_time" in self._timed

    @cached_property
    def launches(self) -> Maybe:
        """Of the step."""
        of_ladder = self._plain.launches if self._plain else None
        return of_ladder or self._timed.get("launches")

    @cached_property
    def again(self) -> Maybe:
        """The same step timed by itself, where the ladder's is told of."""
        return self._timed.get("time") if self.ladder else None

    @cached_property
    def gpu_again(self) -> Maybe:
        """The same without the host."""
        return self._timed.get("host_free_time") if self.ladder else None

    @cached_property
    def narrower(self) -> Maybe:
        """The plain timed step over that in bf16."""
        return over(self._timed.get("time"), self._timed_in("bf16").get("time"))

    @property
    def _plain(self) -> Rung | None:
        return self.ladder.plain if self.ladder else None

    @cached_property
    def _timed(self) -> dict[str, Quantity | None]:
        return self._timed_in(self.place.precision)

    def _timed_in(self, precision: str) -> dict[str, Quantity | None]:
        """Quantity → the plain timed step's."""
        return {row["quantity"]: of_series(row) for row in reversed(self._rows(precision))}

    def _rows(self, precision: str) -> list[dict]:
        same = {"study": "timing", "precision": precision, "options": "", "mode": "step"}
        return self.data.series(phase=["step", ""], **same, **self.place.where)

    @cached_property
    def limit(self) -> str:
        """`launches`; else `arithmetic` or `other` (neither), by its share of the step."""
        if self._limits == "launches":
            return "launches"
        if self.arithmetic_share is None:
            return ""
        return "arithmetic" if self.arithmetic_share.value >= MOSTLY else "other"

    @property
    def _limits(self) -> str:
        if self._plain:
            return self._plain.limits
        clocks = (row for row in self._rows(self.place.precision) if row["quantity"] == "time")
        return next(clocks, {}).get("limits", "")

    @cached_property
    def arithmetic_share(self) -> Maybe:
        """Its products at the ceiling, of the step."""
        return share(self.place.arithmetic, self.step)

    @cached_property
    def start(self) -> Profiled | None:
        """The profiled baseline at the place."""
        return profile.plain_at(self._profiled, self.place, self.place.precision)

    @cached_property
    def end(self) -> Profiled | None:
        """The profiled top rung."""
        return profile.top_at(self._profiled, self.place)

    @cached_property
    def profiled_elsewhere(self) -> Place | None:
        """Where the shares of kernels come from, if not from the place."""
        return self._largest.place if self._largest and not self.start else None

    @property
    def _profiled(self) -> list[Profiled]:
        return profile.profiled(self.data, self.machine)

    @property
    def _largest(self) -> Profiled | None:
        return profile.plain_step(self._profiled, self.place)

    @cached_property
    def idle(self) -> Maybe:
        """What the clock exceeds the step without the host by."""
        return self._plain.idle if self._plain else minus(self.step, self.gpu)

    @cached_property
    def products_share(self) -> Maybe:
        """Of the time in kernels or operators; with the next two it is all of it."""
        return share(self._shown.products, self._shown.kernels_time) if self._shown else None

    @cached_property
    def optimizer_share(self) -> Maybe:
        """Likewise."""
        return share(self._shown.optimizer, self._shown.kernels_time) if self._shown else None

    @cached_property
    def others_share(self) -> Maybe:
        """Likewise."""
        if self._shown is None:
            return None
        known = plus(self._shown.products, self._shown.optimizer)
        return share(minus(self._shown.kernels_time, known), self._shown.kernels_time)

    @property
    def _shown(self) -> Profiled | None:
        return self.start or self._largest

    @cached_property
    def memory(self) -> remembering.Memory | None:
        """What it asks for, without a GPU."""
        return remembering.facts(self.data) if not self.machine.is_gpu else None

    @cached_property
    def floor(self) -> Maybe:
        """Bytes of parameters, gradients and moments."""
        return scaled(self.place.parameters, STATE_BYTES, "B")

    @cached_property
    def reserved(self) -> Maybe:
        """By the plain step."""
        of_ladder = self._plain.peak if self._plain else None
        return of_ladder or self._timed.get("peak_reserved")

    @cached_property
    def top_reserved(self) -> Maybe:
        """By the top rung."""
        if self.ladder is None or self.ladder.top is self.ladder.plain:
            return None
        return self.ladder.top.peak

    @cached_property
    def applies(self) -> tuple[applies.Applies, ...]:
        """Other places, on a GPU."""
        return applies.rows(self.data, self.machine) if self.machine.is_gpu else ()

    @cached_property
    def fits(self) -> tuple[Fits, ...]:
        """With attention written out, then fused."""
        return tuple(map(self._fits, ("naive", "sdpa"))) if self.machine.is_gpu else ()

    def _fits(self, attention: str) -> Fits:
        data, where, memory = self.data, self.place, self.machine.memory
        return Fits(
            change=Name(LABELS[attention]),
            context=longest_context(data, where, memory, attention),
            batch=largest_batch(data, where, memory, attention),
        )

    @cached_property
    def most(self) -> climbing.Reach | None:
        """The rung of the most tokens a second at a larger batch."""
        return self._climbed.most if self._climbed else None

    @property
    def _climbed(self) -> climbing.LadderFacts | None:
        return climbing.facts(self.data)

    @cached_property
    def left(self) -> Maybe:
        """What is beyond the two bounds at the top."""
        return self.ladder.left if self.ladder else None

    @cached_property
    def electricity(self) -> Maybe:
        """Of the card, for so many tokens at the top rung."""
        joules = self.ladder.top.energy if self.ladder else None
        return exact(scaled(joules, TOKENS / JOULES_A_KWH, "kWh"))

    @cached_property
    def sustained(self) -> Maybe:
        """The top rung's arithmetic at the rates that large products sustain."""
        return self.ladder.sustained if self.ladder else None

    @cached_property
    def coarse_slower(self) -> tuple[Name, ...]:
        """Other sizes at which the coarse rung was judged slower than the one before."""
        found = ladders(self.data, self.machine)[1:]
        others = [each for each in found if each.place.size != self.place.size]
        slower = [each for each in others if each.coarse and each.coarse.verdict == "slower"]
        return tuple(dict.fromkeys(each.place.size for each in slower))

    @property
    def has_graphs_to_try(self) -> bool:
        """Whether launches limit a place, and the ladder's gains have no recipe for it."""
        kinds = [rung.kind for rung in self.ladder.gains] if self.ladder else []
        is_limited = any(each.limits == "launches" for each in self.applies)
        return is_limited and "graphs" not in kinds

    @cached_property
    def alone_gain(self) -> Maybe:
        """The top rung's gain by the GPU's work alone, where the clock's is loose."""
        return self.ladder.alone_over_plain if self.ladder and self.doubts.loosest else None

    @cached_property
    def versions(self) -> tuple[Name, ...]:
        """Of what the cells ran with."""
        return method.versions(self.data.dicts("cells"))

    @cached_property
    def doubts(self) -> Doubts:
        """What a reader should be told of."""
        elsewhere = self.profiled_elsewhere
        return Doubts(data=self.data, machine=self.machine, ladder=self.ladder, elsewhere=elsewhere)


def facts(data: Data) -> PageOne | None:
    """Of the place of the largest ladder; without one, of the largest step that was timed."""
    own = machine(data)
    where = profile.subject(data, own)
    return PageOne(data=data, machine=own, place=where) if where else None
