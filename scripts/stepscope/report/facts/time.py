"""Where the time goes: a plain step by its phases, beside its arithmetic and bytes, and along the
context."""

from dataclasses import dataclass

from stepscope.report.facts import profile
from stepscope.report.facts.machine import SCORE_BYTES_FORWARD as FORWARD_SHARE
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.rungs import ladders
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, gap, is_below, over, plus, scaled

THIRD = (
    1 / 3
)  # of a step's products: the forward pass; backward has two for each of forward's (Kaplan et al. 2020)
DIFFERENT = 0.05  # two clocks of one step, of which a reader should be told
CLOSE = 0.15  # a prediction that is off by less explains the phase


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A phase, or the step: products at the ceiling, bytes of attention's scores and of AdamW, the
    clock, and the GPU.

    gap: of the clock; where launches limit, of the step without the host, and none of its phases.
    """

    phase: Name
    arithmetic: Maybe
    moved: Maybe
    predicted: Maybe
    measured: Maybe
    gpu: Maybe
    gap: Maybe

    @property
    def is_explained(self) -> bool:
        """Whether the prediction is close."""
        return self.gap is not None and abs(self.gap.value) < CLOSE

    @property
    def is_less(self) -> bool:
        """Whether it takes less than predicted, by more than that."""
        return self.gap is not None and self.gap.value <= -CLOSE


@dataclass(frozen=True, kw_only=True)
class At:
    """The step at a context."""

    context: Quantity
    step: Maybe
    gpu: Maybe
    tokens: Maybe
    of_peak: Maybe
    limits: str


@dataclass(frozen=True, kw_only=True)
class Time:
    """place: of page one, in its precision. backward_ratio: backward over forward; free: the step
    without waiting.

    grad: forward with graph over inference. whole: where launches limit, the step beside its
    prediction. other: the same step by another study, where it is not the same.
    """

    machine: Machine
    place: Place | None = None
    step: Maybe = None
    phases: tuple[Phase, ...] = ()
    by_phase: dict[str, Phase] | None = None
    backward_ratio: Maybe = None
    is_backward_cheap: bool = False
    whole: Phase | None = None
    other: Maybe = None
    inference: Maybe = None
    grad: Maybe = None
    contexts: tuple[At, ...] = ()
    first: At | None = None
    last: At | None = None
    growth: Maybe = None
    gpu_growth: Maybe = None
    tokens_ratio: Maybe = None
    is_starved: bool = False


def facts(data: Data) -> Time | None:
    """Of the place of page one, timed plainly; else of the largest plain step that was."""
    own = machine(data)
    where = _timed_place(data, own)
    if where is None:
        return None
    same = {"study": "timing", "options": "", "precision": where.precision, **where.where}
    of = lambda phase, mode="step": data.measured("time", mode=mode, phase=phase, **same)  # noqa: E731
    step, measured = (
        of("step"),
        {phase: of(phase) for phase in ("forward", "backward", "optimizer")},
    )
    gpu = data.measured("host_free_time", mode="step", phase="step", **same)
    is_starved = gpu is not None and any(
        row["limits"] == "launches" for row in data.series(**same, quantity="time", phase="step")
    )
    phases = tuple(
        _phase(name, where, own, time, is_starved) for name, time in measured.items() if time
    )
    whole = _whole(phases, step, gpu) if is_starved and phases else None
    contexts = _contexts(data, where)
    first, last = (contexts[0], contexts[-1]) if contexts else (None, None)
    inference = of("inference", "inference")
    tokens_ratio = over(last.tokens, first.tokens) if last else None
    return Time(
        machine=own,
        place=where,
        step=step,
        phases=(*phases, whole) if whole else phases,
        whole=whole,
        other=_other(data, own, where, step),
        by_phase={} if whole else {str(each.phase): each for each in phases},
        backward_ratio=over(measured["backward"], measured["forward"]),
        is_backward_cheap=where.is_mixed
        and is_below(measured["backward"], measured["forward"], 2 * (1 - CLOSE)),
        inference=inference,
        grad=over(of("forward", "forward"), inference),
        contexts=contexts,
        first=first,
        last=last,
        growth=over(last.step, first.step) if last else None,
        gpu_growth=over(last.gpu, first.gpu) if last else None,
        tokens_ratio=tokens_ratio,
        is_starved=any(each.limits == "launches" for each in contexts),
    )


def _value(quantity: Maybe) -> float:
    return quantity.value if quantity else 0.0


def _timed_place(data: Data, own: Machine) -> Place | None:
    plain = data.series(study="timing", options="", mode="step", phase="step", quantity="time")
    subject = profile.subject(data, own)
    if subject and any((row["size"], row["context"], row["batch"]) == subject.key for row in plain):
        return subject
    places = [place(data, own, row, row["precision"]) for row in plain]
    return max(
        places,
        key=lambda each: (each.precision == "bf16", _value(each.parameters), each.context),
        default=None,
    )


def _other(data: Data, own: Machine, where: Place, step: Maybe) -> Maybe:
    """The plain step of the ladder at the place, if its clock says something else."""
    plain = next((each.plain for each in ladders(data, own) if each.place.key == where.key), None)
    difference = gap(plain.step, step) if plain and plain.kind == where.precision else None
    return plain.step if difference and abs(difference.value) > DIFFERENT else None


def _whole(phases: tuple[Phase, ...], step: Maybe, gpu: Maybe) -> Phase:
    arithmetic = plus(*(each.arithmetic for each in phases if each.arithmetic))
    moved, predicted = (
        plus(*(each.moved for each in phases if each.moved)),
        plus(*(each.predicted for each in phases)),
    )
    own_gap = gap(gpu, predicted)
    return Phase(
        phase=Name("step"),
        arithmetic=arithmetic,
        moved=moved,
        predicted=predicted,
        measured=step,
        gpu=gpu,
        gap=own_gap,
    )


def _phase(name: str, where: Place, own: Machine, measured: Quantity, is_starved: bool) -> Phase:
    work = {
        "forward": scaled(where.arithmetic, THIRD),
        "backward": scaled(where.arithmetic, 2 * THIRD),
    }.get(name)
    forward = FORWARD_SHARE[where.is_mixed]
    moved = {
        "forward": scaled(where.scores, forward),
        "backward": scaled(where.scores, 1 - forward),
        "optimizer": where.optimizer_written,
    }[name]
    predicted = plus(*(part for part in (work, moved) if part))
    return Phase(
        phase=Name(name),
        arithmetic=work,
        moved=moved,
        predicted=predicted,
        measured=measured,
        gpu=None,
        gap=None if is_starved else gap(measured, predicted),
    )


def _contexts(data: Data, where: Place) -> tuple[At, ...]:
    """The plain step of the size at every context, if there are several."""
    same = {"study": "timing", "options": "", "precision": where.precision, "size": str(where.size)}
    rows = data.series(**same, batch=where.batch, mode="step", phase="step")
    found = []
    for context in sorted({row["context"] for row in rows}):
        by_name = {row["quantity"]: row for row in reversed(rows) if row["context"] == context}
        if "time" not in by_name:
            continue
        made = {name: of_series(row) for name, row in by_name.items()}
        found.append(
            At(
                context=Quantity(context, "count"),
                step=made.get("time"),
                gpu=made.get("host_free_time") or made.get("busy_time"),
                tokens=made.get("tokens_per_second"),
                of_peak=made.get("mfu"),
                limits=by_name["time"]["limits"].replace("gpu", "GPU"),
            )
        )
    return tuple(found) if len(found) > 1 else ()
