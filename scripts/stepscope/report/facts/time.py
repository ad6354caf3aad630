"""Where the time goes: a plain step by its phases, beside its arithmetic and bytes, and along the
context."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import ladder_at
from stepscope.report.facts.machine import SCORE_BYTES, SCORE_FORWARD, Chapter, Place, largest
from stepscope.report.facts.timed import Timed, timed, timed_at
from stepscope.report.kit.data import Data
from stepscope.report.kit.named import Name, frozen, made_of
from stepscope.report.kit.quantity import Maybe, gap, over, plus, scaled

# Of a step's products: backward has two for each of forward's (Kaplan et al. 2020).
FORWARD, BACKWARD = 1 / 3, 2 / 3
DIFFERENT = 0.05  # two clocks of one step, of which a reader should be told
CLOSE = 0.15  # a prediction that is off by less explains the phase


@frozen
class Phase:
    """A phase, or the step.

    arithmetic: products at the ceiling. moved: bytes of attention's scores and of AdamW. measured:
    by the clock. gpu: without the host. held: of these, what the prediction is held against.
    """

    phase: Name
    arithmetic: Maybe
    moved: Maybe
    measured: Maybe
    gpu: Maybe = None
    held: Maybe

    @cached_property
    def predicted(self) -> Maybe:
        """By both mechanisms, or the one that it has."""
        return _known(self.arithmetic, self.moved)

    gap = made_of(gap, "held", "predicted")  # how far that is off

    @property
    def is_explained(self) -> bool:
        """Whether the prediction is close."""
        return self.gap is not None and abs(self.gap.value) < CLOSE

    @property
    def is_less(self) -> bool:
        """Whether it takes less than predicted, by more than that."""
        return self.gap is not None and self.gap.value <= -CLOSE


@frozen
class Time(Chapter):
    """Of the plain step at a place, in the place's precision."""

    timed: Timed

    @property
    def place(self) -> Place:
        """Where that is."""
        return self.timed.place

    @cached_property
    def other(self) -> Maybe:
        """The same step by the ladder at the place, if its clock says something else."""
        ladder = ladder_at(self.data, self.place)
        if ladder is None or ladder.plain.kind != self.place.precision:
            return None
        difference = gap(ladder.plain.step, self.timed.step)
        is_other = difference is not None and abs(difference.value) > DIFFERENT
        return ladder.plain.step if is_other else None

    @cached_property
    def phases(self) -> list[Phase]:
        """Each by itself; where launches limit, the whole step below them."""
        return [*self._phases, self.whole] if self.whole else self._phases

    @cached_property
    def by_phase(self) -> dict[str, Phase]:
        """The phases by their names; none where launches limit, since their clock is the host's."""
        return {} if self.whole else {str(each.phase): each for each in self._phases}

    @cached_property
    def whole(self) -> Phase | None:
        """Where launches limit, the step without the host beside its prediction."""
        if not self._phases or not self._is_launch_limited:
            return None
        return Phase(
            phase=Name("step"),
            arithmetic=_known(*(each.arithmetic for each in self._phases)),
            moved=_known(*(each.moved for each in self._phases)),
            measured=self.timed.step,
            gpu=self.timed.host_free,
            held=self.timed.host_free,
        )

    # the forward pass of training over that of inference
    grad = made_of(over, "timed.training", "timed.inference")

    @cached_property
    def sizes(self) -> list[Timed]:
        """The plain step of every size at the place's context, batch and precision, the smallest
        first; none of a single one."""
        place = self.place
        same = {"context": place.context, "batch": place.batch, "precision": place.precision}
        found = sorted(timed(self.data, **same), key=lambda each: each.place.weight)
        return found if len(found) > 1 else []

    @cached_property
    def contexts(self) -> list[Timed]:
        """The plain step of the size at every context, the shortest first; none of a single one."""
        place = self.place
        same = {"size": str(place.size), "batch": place.batch, "precision": place.precision}
        found = sorted(timed(self.data, **same), key=lambda each: each.place.context)
        return found if len(found) > 1 else []

    @cached_property
    def growth(self) -> Maybe:
        """How many times as long the step takes at the longest context."""
        return self._grown("step")

    @cached_property
    def gpu_growth(self) -> Maybe:
        """The same without the host."""
        return self._grown("gpu")

    @cached_property
    def tokens_ratio(self) -> Maybe:
        """The same of tokens a second."""
        return self._grown("tokens")

    def _grown(self, name: str) -> Maybe:
        ends = [getattr(each, name) for each in self.contexts]
        return over(ends[-1], ends[0]) if ends else None

    @property
    def _is_launch_limited(self) -> bool:
        return self.timed.limits == "launches" and self.timed.host_free is not None

    @cached_property
    def _phases(self) -> list[Phase]:
        """Each by its mechanisms: its products, and its scores' or AdamW's bytes."""
        place = self.place
        forward_bytes = SCORE_FORWARD[place.is_mixed] / SCORE_BYTES[place.is_mixed]
        mechanisms = {
            "forward": (scaled(place.arithmetic, FORWARD), scaled(place.scores, forward_bytes)),
            "backward": (
                scaled(place.arithmetic, BACKWARD),
                scaled(place.scores, 1 - forward_bytes),
            ),
            "optimizer": (None, place.optimizer_written),
        }
        found = []
        for name, (work, moved) in mechanisms.items():
            clock = getattr(self.timed, name)
            held = None if self._is_launch_limited else clock
            phase = Phase(phase=Name(name), arithmetic=work, moved=moved, measured=clock, held=held)
            found.append(phase)
        return [phase for phase in found if phase.measured]


def _known(*parts: Maybe) -> Maybe:
    """The sum of those that there are."""
    return plus(*filter(None, parts))


def facts(data: Data) -> Time | None:
    """Of the place of page one, timed plainly; else of the largest plain step that was."""
    subject = profile.subject(data)
    found = timed_at(subject) if subject else None
    if found is None:
        where = largest(each.place for each in timed(data))
        found = timed_at(where) if where else None
    return Time(data=data, timed=found) if found else None
