"""Where the time goes: a plain step by its phases, beside its arithmetic and bytes, and along the
context."""

from dataclasses import replace
from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import SCORE_BYTES_FORWARD as FORWARD_SHARE
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, gap, is_below, over, plus, scaled

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
        return plus(*filter(None, (self.arithmetic, self.moved)))

    @cached_property
    def gap(self) -> Maybe:
        """How far that is off."""
        return gap(self.held, self.predicted)

    @property
    def is_explained(self) -> bool:
        """Whether the prediction is close."""
        return self.gap is not None and abs(self.gap.value) < CLOSE

    @property
    def is_less(self) -> bool:
        """Whether it takes less than predicted, by more than that."""
        return self.gap is not None and self.gap.value <= -CLOSE


@frozen
class At:
    """The step at a context."""

    context: Quantity
    step: Maybe
    gpu: Maybe
    tokens: Maybe
    of_peak: Maybe
    limits: str


@frozen
class Time:
    """Of the plain step at a place, in the place's precision."""

    data: Data
    machine: Machine
    place: Place

    @cached_property
    def step(self) -> Maybe:
        """The step without waiting between phases."""
        return self._clock("step")

    @cached_property
    def other(self) -> Maybe:
        """The same step by the ladder at the place, if its clock says something else."""
        at_place = (
            each for each in ladders(self.data, self.machine) if each.place.key == self.place.key
        )
        ladder = next(at_place, None)
        if ladder is None or ladder.plain.kind != self.place.precision:
            return None
        difference = gap(ladder.plain.step, self.step)
        is_other = difference is not None and abs(difference.value) > DIFFERENT
        return ladder.plain.step if is_other else None

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Each by itself; where launches limit, the whole step below them."""
        return (*self._phases, self.whole) if self.whole else self._phases

    @cached_property
    def by_phase(self) -> dict[str, Phase]:
        """The phases by their names; none where launches limit, since their clock is the host's."""
        return {} if self.whole else {str(each.phase): each for each in self._phases}

    @cached_property
    def whole(self) -> Phase | None:
        """Where launches limit, the step without the host beside its prediction."""
        phases = self._phases
        if not phases or not self._is_launch_limited:
            return None
        return Phase(
            phase=Name("step"),
            arithmetic=plus(*filter(None, (each.arithmetic for each in phases))),
            moved=plus(*filter(None, (each.moved for each in phases))),
            measured=self.step,
            gpu=self._host_free,
            held=self._host_free,
        )

    @cached_property
    def backward_ratio(self) -> Maybe:
        """Backward over forward."""
        return over(self._clock("backward"), self._clock("forward"))

    @cached_property
    def is_backward_cheap(self) -> bool:
        """Whether backward takes clearly less than two forward passes, under autocast."""
        limit = BACKWARD / FORWARD * (1 - CLOSE)
        is_less = is_below(self._clock("backward"), self._clock("forward"), limit)
        return self.place.is_mixed and is_less

    @cached_property
    def inference(self) -> Maybe:
        """The forward pass that keeps nothing."""
        return self._clock("inference", mode="inference")

    @cached_property
    def grad(self) -> Maybe:
        """The forward pass of training over that of inference."""
        return over(self._clock("forward", mode="forward"), self.inference)

    @cached_property
    def contexts(self) -> tuple[At, ...]:
        """The plain step of the size at every context, the shortest first; none of a single one."""
        size = {"size": str(self.place.size), "batch": self.place.batch}
        rows = self.data.series(**self._plain, **size, mode="step", phase="step")
        by_context: dict[int, dict[str, dict]] = {}
        for row in reversed(rows):
            by_context.setdefault(row["context"], {})[row["quantity"]] = row
        timed = {context: own for context, own in by_context.items() if "time" in own}
        found = tuple(_at(context, timed[context]) for context in sorted(timed))
        return found if len(found) > 1 else ()

    @property
    def is_across_cards(self) -> bool:
        """Whether one of them is held against a ceiling that another card reached."""
        return any(each.of_peak is not None and each.of_peak.doubt for each in self.contexts)

    @cached_property
    def first(self) -> At | None:
        """At the shortest context."""
        return self.contexts[0] if self.contexts else None

    @cached_property
    def last(self) -> At | None:
        """At the longest."""
        return self.contexts[-1] if self.contexts else None

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

    @cached_property
    def is_starved(self) -> bool:
        """Whether launches limit the step at one of the contexts."""
        return any(each.limits == "launches" for each in self.contexts)

    def _grown(self, name: str) -> Maybe:
        return over(getattr(self.last, name), getattr(self.first, name)) if self.last else None

    @property
    def _plain(self) -> dict[str, str]:
        return {"study": "timing", "options": "", "precision": self.place.precision}

    def _clock(self, phase: str, mode: str = "step", quantity: str = "time") -> Maybe:
        same = self._plain | self.place.where
        return self.data.measured(quantity, mode=mode, phase=phase, **same)

    @property
    def _host_free(self) -> Maybe:
        return self._clock("step", quantity="host_free_time")

    @property
    def _is_launch_limited(self) -> bool:
        same = self._plain | self.place.where
        clocks = self.data.series(quantity="time", phase="step", limits="launches", **same)
        return bool(clocks) and self._host_free is not None

    @cached_property
    def _phases(self) -> tuple[Phase, ...]:
        return tuple(map(self._phase, filter(self._clock, ("forward", "backward", "optimizer"))))

    def _phase(self, name: str) -> Phase:
        """A phase by its mechanisms: its products, and its scores' or AdamW's bytes."""
        place, measured = self.place, self._clock(name)
        forward_bytes = FORWARD_SHARE[place.is_mixed]
        work, moved = {
            "forward": (scaled(place.arithmetic, FORWARD), scaled(place.scores, forward_bytes)),
            "backward": (
                scaled(place.arithmetic, BACKWARD),
                scaled(place.scores, 1 - forward_bytes),
            ),
            "optimizer": (None, place.optimizer_written),
        }[name]
        held = None if self._is_launch_limited else measured
        return Phase(phase=Name(name), arithmetic=work, moved=moved, measured=measured, held=held)


def facts(data: Data) -> Time | None:
    """Of the place of page one, timed plainly; else of the largest plain step that was."""
    own = machine(data)
    plain = data.series(study="timing", options="", mode="step", phase="step", quantity="time")
    subject = profile.subject(data, own)
    timed = [(row["size"], row["context"], row["batch"]) for row in plain]
    where = subject if subject and subject.key in timed else _largest(data, own, plain)
    return Time(data=data, machine=own, place=where) if where else None


def _largest(data: Data, own: Machine, plain: list[dict]) -> Place | None:
    def weight(where: Place) -> tuple[bool, float, int]:
        parameters = where.parameters.value if where.parameters else 0.0
        return where.precision == "bf16", parameters, where.context

    places = (place(data, own, row, row["precision"]) for row in plain)
    return max(filter(None, places), key=weight, default=None)


def _at(context: int, rows: dict[str, dict]) -> At:
    """The step at a context. rows: of series.csv, by quantity."""
    made = {name: of_series(row) for name, row in rows.items()}
    return At(
        context=Quantity(context, "count"),
        step=made["time"],
        gpu=made.get("alone_time"),
        tokens=made.get("tokens_per_second"),
        of_peak=_marked(made.get("share_of_ceiling"), rows),
        limits=rows["time"]["limits"].replace("gpu", "GPU"),
    )


def _marked(share: Maybe, rows: dict[str, dict]) -> Maybe:
    """In doubt, where another card reached the ceiling."""
    return (
        replace(share, doubt=True) if share and rows["share_of_ceiling"]["across_cards"] else share
    )
