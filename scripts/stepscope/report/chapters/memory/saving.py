"""What recomputation saves."""

from stepscope.report.data.ladder import Recomputed, peak, recomputed, whole_peak
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known

_AGAIN = "what does recomputation save"


def saving_findings(machine: Machine) -> tuple[Finding, ...]:
    """Checkpoints where the step does not fit without, and where it does."""
    tried = [one for one in recomputed(machine.ladders) if one.best and one.is_of_tensors and known(peak(one.best))]
    ranked = sorted(tried, key=lambda one: work(one.ladder.parameters, one.ladder.context))
    alone = [one for one in ranked if one.base is None or whole_peak(one.base) is None]
    beside = [one for one in ranked if one not in alone]
    found = [_only(alone[-1]) if alone else None, _beside(beside[-1]) if beside else None]
    return tuple(each for each in found if each)


def _checkpoints(one: Recomputed) -> tuple[str, dict[str, Number]]:
    """(`{after} GiB (predicted {predicted})`, its numbers)."""
    cells = (one.best["cell"],)
    values = {"after": Number(whole_peak(one.best), cells, formatting.gib)}
    if not known(one.best.get("predicted_peak_bytes")):
        return "{after} GiB", values
    values["predicted"] = Number(one.best["predicted_peak_bytes"], cells, formatting.gib)
    return "{after} GiB (predicted {predicted})", values


def _place(one: Recomputed) -> str:
    return f"{one.ladder.size} at {one.ladder.context:,.0f} in {one.best['precision']}"


def _every(one: Recomputed) -> str:
    """`a checkpoint at every block`, `a checkpoint every 4 blocks`."""
    blocks = int(one.best["checkpoint"])
    return "a checkpoint at every block" if blocks == 1 else f"a checkpoint every {blocks:,} blocks"


def _only(one: Recomputed) -> Finding:
    """A step that fits with checkpoints alone."""
    after, values = _checkpoints(one)
    answer = f"With {_every(one)}, {_place(one)} fits, in {after}."
    return Finding(_AGAIN, answer, values, one.ladder.hardware)


def _beside(one: Recomputed) -> Finding:
    """The memory of a step with checkpoints beside that of the same without."""
    after, values = _checkpoints(one)
    values["before"] = Number(whole_peak(one.base), (one.base["cell"],), formatting.gib)
    verb = "falls" if whole_peak(one.best) < whole_peak(one.base) else "does not fall, but goes"
    answer = f"With {_every(one)}, the peak of {_place(one)} {verb} from {{before}} to {after}"
    return Finding(_AGAIN, f"{answer}.", values, one.ladder.hardware)
