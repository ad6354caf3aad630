"""What is alive at the peak, and how the closed form's parts compare."""

from stepscope.report.chapters.memory.cells import Recorded, numbers, place
from stepscope.report.data.memory import apart, peak_place
from stepscope.report.kit.finding import Finding
from stepscope.report.kit.sizes import largest_shares, percent_change, shares

_QUESTION = "what is alive at the peak"
_NAMED = 0.05  # of the peak; smaller categories are not named
_OFF = 0.01  # a part's error from which on it is named


def part_findings(own: Recorded) -> tuple[Finding, ...]:
    """The shares of the categories, and the part that is predicted worst."""
    held = largest_shares(own.memory.at_peak(own.row), own.memory.requested(own.row), _NAMED)
    if not held:
        return ()
    values = numbers([own.row], shares, held=held)
    answer = f"The peak of {place(own.row)} in {own.row['precision']} consists of {{held}}."
    first = Finding(_QUESTION, answer, values, own.hardware)
    return tuple(each for each in (first, _worst(own)) if each)


def predicted_parts(own: Recorded) -> dict[str, float]:
    """Category → predicted bytes at the peak; none where the prediction is of another phase than the peak's."""
    if str(own.row.get("predicted_phase") or "") != peak_place(own.memory, own.row)[0]:
        return {}
    return by_category(own, own.row)


def by_category(own: Recorded, row: dict) -> dict[str, float]:
    """Category → predicted bytes at a cell's predicted peak."""
    found: dict[str, float] = {}
    for each in own.memory.rows("predicted", row):
        found[str(each["category"])] = found.get(str(each["category"]), 0.0) + each["bytes"]
    return found


def _worst(own: Recorded) -> Finding | None:
    """The named category whose prediction is farthest off; None where each is as predicted."""
    predicted, held = predicted_parts(own), own.memory.at_peak(own.row)
    least = _NAMED * own.memory.requested(own.row)
    errors = {name: apart(predicted.get(name, 0.0), size) for name, size in held.items() if size >= least}
    errors = {name: error for name, error in errors.items() if error is not None}
    worst = max(errors, key=lambda name: abs(errors[name]), default=None)
    if not predicted or worst is None:
        return None
    if abs(errors[worst]) <= _OFF:
        return None
    values = numbers([own.row], percent_change, error=errors[worst])
    return Finding(_QUESTION, f"Of these, {worst} are predicted worst: {{error}}.", values, own.hardware)
