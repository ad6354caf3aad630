"""How memory rises and falls over a step, and when the optimizer's state appears."""

import math

from stepscope.report.chapters.memory.cells import Recorded, numbers, place
from stepscope.report.data.memory import part, prediction_error
from stepscope.report.data.memory_course import Course, course, first_step, second_step_lost
from stepscope.report.data.own_models import is_own
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known
from stepscope.report.kit.sizes import percent_change

_STORY, _STATE, _FORM = (
    "how does memory rise and fall over a step",
    "when does the optimizer's state appear",
    "how good is the closed form",
)
_NEAR = 0.05  # a sum is taken to be what its parts are, if these are no farther off
_ALIVE = 0.9  # of what backward needs, from which on nearly all of it counts as alive
_GONE = 0.01  # of the peak, below which a category counts as gone
_GOOD = 0.01  # an error of a prediction up to which it counts as good


def takeaway(own: Recorded) -> tuple[Finding, ...]:
    """The peak of the chapter's step beside what is there before it, and the closed form's error over all cells."""
    found, peak = course(own.memory, own.row), own.memory.requested(own.row)
    values, words = own.sizes([own.row], peak=peak), ""
    if found:
        values |= own.sizes([own.row], start=found.start)
        what = ", parameters and optimizer state," if _is_state(own, found) else ""
        words = f"; {{start}} of it{what} are there before it begins"
    answer = f"A step of {place(own.row)} in {own.row['precision']} peaks at {{peak}} {own.unit.name}{words}."
    first = Finding(_STORY, answer, values, own.hardware)
    return tuple(each for each in (first, _closed_form(own)) if each)


def _account(own: Recorded, item: str) -> float | None:
    """What was measured of an item of the accounting in the chapter's step, bytes."""
    value = own.memory.account(own.row, item).get("measured_bytes")
    return value if known(value) else None


def _is_state(own: Recorded, found: Course) -> bool:
    held = [_account(own, item) for item in ("parameters", "optimizer state")]
    return all(each is not None for each in held) and abs(sum(held) / found.start - 1) <= _NEAR


def _closed_form(own: Recorded) -> Finding | None:
    """How far the predicted peaks are from the measured ones."""
    rows = [*own.of("step"), *own.of("inference")]
    found = [(row, error) for row in rows if (error := prediction_error(own.memory, row)) is not None]
    if not found:
        return None
    worst, error = max(found, key=lambda pair: abs(pair[1]))
    some = "the peak" if len(found) == 1 else f"all {len(found):,} peaks"
    some += " of sizes" * any(map(is_own, rows))
    if abs(error) <= _GOOD:
        values = numbers([worst], _at_most, worst=abs(error))
        given = any(_holds_libraries(own, row) for row, _ in found)
        form = "With the libraries' recorded buffers the closed form" if given else "The closed form"
        return Finding(_FORM, f"{form} predicts {some} to within {{worst}}.", values, own.hardware)
    values = numbers([worst], percent_change, worst=error)
    answer = f"Of {some} the closed form is farthest off in {place(worst)} in {worst['precision']}: {{worst}}."
    return Finding(_FORM, answer, values, own.hardware)


def _holds_libraries(own: Recorded, row: dict) -> bool:
    """Whether the prediction holds buffers of libraries, which are those that were recorded."""
    return any(each["name"] == "libraries" and each["bytes"] for each in own.memory.rows("predicted", row))


def _at_most(share: float) -> str:
    """A share of one in per cent with two digits, rounded up: `0.016 %` of 0.01506 %."""
    if share < formatting.ROUNDING:
        return formatting.percent(share)
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return formatting.percent(math.ceil(share / unit - formatting.ROUNDING) * unit)


def course_findings(own: Recorded) -> tuple[Finding, ...]:
    """What the forward pass adds, where the peak lies and why, and what remains."""
    found = course(own.memory, own.row)
    if found is None or not {"forward", "backward"} <= set(found.ends):
        return ()
    return (_rise(own, found), _peak(own, found), _rest(own, found))


def _rise(own: Recorded, found: Course) -> Finding:
    """What the forward pass adds."""
    risen, kept = found.change("forward"), _kept(own, found)
    values = own.sizes([own.row], risen=risen)
    answer = f"The forward pass adds {{risen}} {own.unit.name}"
    if kept:
        saved, casts = kept
        values |= own.sizes([own.row], saved=saved)
        answer += ": activations that backward needs" + " ({saved})" * bool(casts)
        if casts:
            values |= own.sizes([own.row], casts=casts)
            answer += " and 16-bit copies of weights ({casts})"
    return Finding(_STORY, f"{answer}.", values, own.hardware)


def _kept(own: Recorded, found: Course) -> tuple[float, float] | None:
    """(activations saved for backward, copies of weights), where these are what the forward pass adds, bytes."""
    saved, casts = _account(own, "saved in all"), _account(own, "cast weights") or 0.0
    if not saved or abs((saved + casts) / found.change("forward") - 1) > _NEAR:
        return None
    return saved, casts


def _peak(own: Recorded, found: Course) -> Finding:
    """Where the peak lies, and what is alive there."""
    phase = {"optimizer": "the optimizer"}.get(found.phase, found.phase)
    start = "at the start of" if found.is_early and found.phase == "backward" else "in"
    inside = f" ({part(found.part)})" if found.part else ""
    where = Number(f"{start} {phase}{inside}", (own.row["cell"],), str)
    held, kept = own.memory.at_peak(own.row), _kept(own, found)
    alive = sum(held.get(name, 0.0) for name in ("activations", "cast weights"))
    cause = ""
    if start != "in" and kept and alive >= _ALIVE * sum(kept):
        cause = "There nearly all of that is alive" + ", and first gradients" * bool(held.get("gradients")) + "."
    elif found.phase == "optimizer" and held.get("activations", 0.0) < _GONE * found.peak:
        cause = "There all gradients are alive, and activations are gone."
    return Finding(_STORY, "The peak lies {where}.", {"where": where}, own.hardware, cause=cause)


def _rest(own: Recorded, found: Course) -> Finding:
    """What remains after backward: what was there before, and the gradients."""
    left, gradients = found.ends["backward"], _account(own, "gradients")
    values = own.sizes([own.row], left=left)
    answer = f"After backward {{left}} {own.unit.name} remain"
    if not gradients or abs((found.start + gradients) / left - 1) > _NEAR:
        return Finding(_STORY, f"{answer}.", values, own.hardware)
    values |= own.sizes([own.row], gradients=gradients)
    more = ", more than before it" if left > found.ends["forward"] else ""
    answer += f"{more}: activations go, gradients of {{gradients}} come."
    return Finding(_STORY, answer, values, own.hardware, cause="The next step frees the gradients first.")


def state_findings(own: Recorded) -> tuple[Finding, ...]:
    """What the first step leaves, predicted and measured, and where a second step does not fit for it."""
    return tuple(each for each in (_state(own), _second(own)) if each)


def _state(own: Recorded) -> Finding | None:
    found = first_step(own.memory, own.row)
    if found is None:
        return None
    values = own.sizes([own.row], before=found.before, after=found.after, predicted=found.predicted, added=found.added)
    answer = (
        f"It appears in the first step's optimizer: what stays allocated grows from {{before}} to {{after}} "
        f"{own.unit.name}, by {{added}}."
    )
    is_near = abs(found.added / found.predicted - 1) <= _NEAR
    cause = f"Two fp32 moments a parameter {'are predicted to take' if is_near else 'would be'} {{predicted}}."
    return Finding(_STATE, answer, values, own.hardware, cause=cause)


def _second(own: Recorded) -> Finding | None:
    """The smallest step that fits once and not twice."""
    found = [each for row in own.rows if (each := second_step_lost(own.memory, row))]
    if not found:
        return None
    least = min(found, key=lambda each: each.first)
    values = own.sizes([least.row], first=least.first, reached=least.reached)
    answer = (
        f"So the first step of {place(least.row)} in {least.row['precision']} fits, with {{first}} {own.unit.name}; a "
        "later one runs out of memory at {reached}."
    )
    return Finding(_STATE, answer, values, own.hardware)
