"""What recomputation saves, and what the head dimension costs."""

from stepscope.report.data.attention import NAIVE, Attention
from stepscope.report.data.attention_memory import needed
from stepscope.report.data.ladder import Recomputed, peak, recomputed, whole_peak
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import interval_text
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known
from stepscope.report.kit.sizes import percent_change

_AGAIN, _HEAD = "what does recomputation save", "what does the head dimension cost"


def saving_findings(machine: Machine) -> tuple[Finding, ...]:
    """Checkpoints where the step does not fit without, and where it does; then the head dimension."""
    tried = [one for one in recomputed(machine.ladders) if one.best and one.is_of_tensors and known(peak(one.best))]
    ranked = sorted(tried, key=lambda one: work(one.ladder.parameters, one.ladder.context))
    alone = [one for one in ranked if one.base is None or whole_peak(one.base) is None]
    beside = [one for one in ranked if one not in alone]
    found = [_only(alone[-1]) if alone else None, _beside(beside[-1]) if beside else None, _head(machine)]
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


def _only(one: Recomputed) -> Finding:
    """A step that fits with checkpoints alone."""
    after, values = _checkpoints(one)
    answer = f"With blocks checkpointed, {_place(one)} fits, in {after}."
    return Finding(_AGAIN, answer, values, one.ladder.hardware)


def _beside(one: Recomputed) -> Finding:
    """A step with checkpoints beside the same without: memory, then time."""
    after, values = _checkpoints(one)
    both = (one.base["cell"], one.best["cell"])
    values["before"] = Number(whole_peak(one.base), both[:1], formatting.gib)
    verb = "falls" if whole_peak(one.best) < whole_peak(one.base) else "does not fall, but goes"
    answer = f"In {_place(one)} the peak {verb} from {{before}} to {after}"
    speed = one.speed(one.best)
    if speed:
        said = f" {interval_text(speed)}, {speed.verdict}" if speed.has_interval else f", {_said(one)}"
        values["speed"] = Number(speed.ratio, both, lambda ratio: f"{formatting.times(ratio)}{said}")
        answer += "; speed {speed}"
    return Finding(_AGAIN, f"{answer}.", values, one.ladder.hardware)


def _said(one: Recomputed) -> str:
    processes = [row.get("step_processes") for row in (one.base, one.best)]
    return "once measured" if all((each or 1) <= 1 for each in processes) else "no verdict"


# The head dimension. --------------------------------------------------------------------------------------------------


def _head(machine: Machine) -> Finding | None:
    """The peak of naive attention at the longest length, from the smallest to the largest head, beside the length."""
    rows = [row for row in Attention(machine.tables).results(machine.hardware) if _is_measured(row)]
    series: dict[tuple, dict[float, dict]] = {}
    for row in rows:
        key = (row["length"], row["precision"], row["batch"], row["causal"])
        series.setdefault(key, {})[row["d_head"]] = row
    key = max((key for key in series if len(series[key]) > 1), key=lambda key: (len(series[key]), key[0]), default=None)
    if key is None:
        return None
    low, high = (series[key][edge(series[key])] for edge in (min, max))
    cells = (low["cell"], high["cell"])
    values = {
        "change": Number(high["peak_bytes"] / low["peak_bytes"] - 1, cells, percent_change),
        "predicted": Number(needed(high, "backward") / needed(low, "backward") - 1, cells, percent_change),
    }
    answer = (
        f"A head of {high['d_head']:.0f} instead of {low['d_head']:.0f} changes naive attention's peak by {{change}} "
        f"(predicted {{predicted}}; length {key[0]:,.0f}, {key[1]})"
    )
    half = series.get((key[0] / 2, *key[1:]), {}).get(low["d_head"])
    if half:
        values["double"] = Number(low["peak_bytes"] / half["peak_bytes"], (half["cell"], low["cell"]), formatting.times)
        answer += ", twice the length {double}"
    return Finding(_HEAD, f"{answer}.", values, machine.hardware)


def _is_measured(row: dict) -> bool:
    """Backward of naive attention without heads, which it computes as so many sequences."""
    is_naive = row["implementation"] == NAIVE and row["direction"] == "backward" and row["status"] == "ok"
    return is_naive and known(row.get("peak_bytes")) and not row.get("heads") and not known(row.get("tokens"))
