"""Where the time goes: a plain step by its phases, beside its arithmetic and bytes, and along the
context."""

from functools import cached_property

from stepscope.report.kit.data import Data
from stepscope.report.kit.named import Name, first_of, frozen, made_of
from stepscope.report.kit.quantity import Maybe, gap, over, plus, scaled

from . import profile
from .ladders import ladder_at
from .machine import SCORE_BYTES, SCORE_FORWARD, Chapter, Place, largest
from .timed import Timed, timed, timed_at

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
    """Of `timed`, the plain step at a place, in the place's precision.

    other: the same step by the ladder at the place, if its clock says something else. each: the
    phases by themselves; whole: where launches limit, the step without the host beside its
    prediction. grad: the forward pass of training over that of inference. sizes: the plain step of
    every size at the place's context, batch and precision, the smallest first; contexts: that of
    the size at every context, the shortest first; none of a single one. growth, gpu_growth,
    tokens_ratio: how many times as long the step takes at the longest context, without the host,
    and the same of tokens a second.
    """

    timed: Timed
    place: Place
    other: Maybe
    each: list[Phase]
    whole: Phase | None
    sizes: list[Timed]
    contexts: list[Timed]
    growth: Maybe
    gpu_growth: Maybe
    tokens_ratio: Maybe

    grad = made_of(over, "timed.training", "timed.inference")

    @cached_property
    def phases(self) -> list[Phase]:
        """Each by itself; where launches limit, the whole step below them."""
        return [*self.each, self.whole] if self.whole else self.each

    @cached_property
    def by_phase(self) -> dict[str, Phase]:
        """The phases by their names; none where launches limit, since their clock is the host's."""
        return {} if self.whole else {str(each.phase): each for each in self.each}


def facts(data: Data) -> Time | None:
    """Of the place of page one, timed plainly; else of the largest plain step that was."""
    subject, steps = profile.subject(data), [each.place for each in timed(data)]
    there = [each for each in steps if subject and each.key == subject.key]
    places = [subject, largest(there), largest(steps)]
    found = first_of(filter(None, map(timed_at, filter(None, places))))
    if found is None:
        return None
    where = found.place
    is_limited = found.limits == "launches" and found.host_free is not None
    phases = _phases(found, is_limited)
    same = {"batch": where.batch, "precision": where.precision}
    sizes = timed(data, context=where.context, **same)
    sizes = [each for each in sizes if each.place.number_type == where.number_type]
    contexts = timed(data, size=str(where.size), **same)
    contexts = _several(sorted(contexts, key=lambda each: each.place.context))
    ends = [contexts[-1], contexts[0]] if contexts else []
    growth, gpu_growth, tokens_ratio = (
        over(*(getattr(each, name) for each in ends)) if ends else None
        for name in ("step", "gpu", "tokens")
    )
    return Time(
        data=data,
        timed=found,
        place=where,
        other=_other(data, found),
        each=phases,
        whole=_whole(found, phases) if is_limited and phases else None,
        sizes=_several(sorted(sizes, key=lambda each: each.place.weight)),
        contexts=contexts,
        growth=growth,
        gpu_growth=gpu_growth,
        tokens_ratio=tokens_ratio,
    )


def _several(found: list[Timed]) -> list[Timed]:
    return found if len(found) > 1 else []


def _other(data: Data, found: Timed) -> Maybe:
    ladder = ladder_at(data, found.place)
    if ladder is None or ladder.plain.kind != found.place.precision:
        return None
    difference = gap(ladder.plain.step, found.step)
    is_other = difference is not None and abs(difference.value) > DIFFERENT
    return ladder.plain.step if is_other else None


def _phases(found: Timed, is_limited: bool) -> list[Phase]:
    """Each by its mechanisms: its products, and its scores' or AdamW's bytes."""
    place = found.place
    of_forward = SCORE_FORWARD[place.is_mixed] / SCORE_BYTES[place.is_mixed]
    of_products = place.forward_share
    mechanisms = {
        "forward": (scaled(place.arithmetic, of_products), scaled(place.scores, of_forward)),
        "backward": (
            scaled(place.arithmetic, 1 - of_products),
            scaled(place.scores, 1 - of_forward),
        ),
        "optimizer": (None, place.optimizer_written),
    }
    phases = []
    for name, (work, moved) in mechanisms.items():
        clock = getattr(found, name)
        held = None if is_limited else clock
        phase = Phase(phase=Name(name), arithmetic=work, moved=moved, measured=clock, held=held)
        phases.append(phase)
    return [phase for phase in phases if phase.measured]


def _whole(found: Timed, phases: list[Phase]) -> Phase:
    return Phase(
        phase=Name("step"),
        arithmetic=_known(*(each.arithmetic for each in phases)),
        moved=_known(*(each.moved for each in phases)),
        measured=found.step,
        gpu=found.host_free,
        held=found.host_free,
    )


def _known(*parts: Maybe) -> Maybe:
    """The sum of those that there are."""
    return plus(*filter(None, parts))
