"""What the rungs brought: the whole ladder, the greatest change, what is unlike at two places, and whether it holds."""

from stepscope.report.data.ladder import Ladder, kind, time
from stepscope.report.data.ladder_predicted import Prediction, predicted
from stepscope.report.data.predicted import optimizer_ms
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import Comparison, interval_text
from stepscope.report.kit.finding import Finding, Number, enough, without_verdict
from stepscope.report.kit.order import NEUTRAL
from stepscope.report.kit.table import varying
from stepscope.report.studies.page_one.changes import urge

FAR = 1.25  # a prediction that is off by so much failed
FILLED = 0.9  # of a step that kernels take, up to which launches have a part in its time
MOST_POOR = 2  # changes without a gain that are named
UNLIKE = 1.25  # a gain so many times that at another place is worth a sentence


def place(one: Ladder) -> str:
    """`medium at 512`."""
    return f"{one.size} at {one.context:,.0f}"


def gain(row: dict, other: dict, speed: Comparison) -> Number:
    """`× 1.30 [1.28, 1.33], faster`, or the ratio alone where there is no verdict."""
    interval, word = interval_text(speed), f", {speed.verdict}" if speed.has_interval else ""
    text = " ".join(filter(None, [formatting.times(speed.ratio), interval]))
    return Number(speed.ratio, (other["cell"], row["cell"]), lambda _: text + word)


def of_passes(speed_of: object) -> str:
    """What a gain is of where it is not of a step."""
    return " of forward and backward" if speed_of == "forward+backward" else ""


def whole(one: Ladder) -> Finding | None:
    """From the first to the fastest rung; where no step of the first one fits, what first does."""
    top = one.top
    if top is None:
        return None
    fitting = next((row for row in one.climbed if time(row, "step")), None)
    first = one.rungs[0]
    if fitting is not None and first["status"] == "oom" and fitting is not top:
        numbers = {
            "fits": Number(time(fitting, "step"), (fitting["cell"],)),
            "top": Number(time(top, "step"), (top["cell"],)),
        }
        answer = (
            f"In {place(one)} {fitting['name']} is the first rung that fits, with {{fits}} ms a step; the fastest, "
            f"{top['name']}, takes {{top}}."
        )
        return Finding(f"what does the ladder bring to {place(one)}", answer, numbers, one.hardware)
    start, speed = one.at(top.get("started_from")), one.over_start.get(top["cell"])
    if start is None or start is top:
        numbers = {"top": Number(time(top), (top["cell"],))}
        answer = f"In {place(one)} no rung takes less time than {top['name']} ({{top}} ms)."
        if not any(time(row) for row in one.rungs if row is not top):
            answer = f"In {place(one)} {top['name']} takes {{top}} ms; no other rung could be measured."
        return Finding(f"what does the ladder bring to {place(one)}", answer, numbers, one.hardware)
    if speed is None:
        return None
    phase = "forward_backward" if top.get("gain_start_of") == "forward+backward" else "step"
    numbers = {
        "start": Number(time(start, phase), (start["cell"],)),
        "top": Number(time(top, phase), (top["cell"],)),
        "gain": gain(top, start, speed),
    }
    subject = "forward and backward take" if phase == "forward_backward" else "a step takes"
    answer = (
        f"In {place(one)} {subject} {{start}} ms with {start['name']} and {{top}} at best ({top['name']}): {{gain}}."
    )
    return Finding(f"what does the ladder bring to {place(one)}", answer, numbers, one.hardware)


def changes(one: Ladder) -> list[tuple[dict, dict, Comparison]]:
    """(rung, the rung before, its speed over that) of each single change that computes the same."""
    found = []
    for row in one.climbed:
        before, speed = one.at(row.get("compared_with")), one.over_before.get(row["cell"])
        if before and speed and not one.is_passed_over(row):
            found.append((row, before, speed))
    return found


def greatest(one: Ladder) -> Finding | None:
    """The change that brings most, and those that bring nothing or cost time; or that none brings anything."""
    own, question = changes(one), f"which change brings most in {place(one)}"
    if not own:
        return None
    gains = [each for each in own if each[2].ratio > 1 and is_sure(each[2])]
    if not gains:
        numbers = {"changes": Number(len(own), tuple(each[0]["cell"] for each in own), formatting.count)}
        answer = (
            f"In {place(one)} none of {{changes}} changes is sure to bring more than unchanged cells may differ by."
        )
        return Finding(question, answer, numbers, one.hardware)
    row, before, speed = max(gains, key=lambda each: each[2].ratio)
    numbers = {"gain": gain(row, before, speed)}
    word = " for sure" if any(each[2].ratio > speed.ratio for each in own) else ""
    brought = f"{{gain}}{of_passes(row.get('gain_of'))} over {before['name']}"
    last, _, later = _latest(own, row)
    then = f" (later {last['name']})" * (last is not row)
    answer = f"In {place(one)} most comes{word} from {row['name']}{then}: {brought}."
    poor = _poor(own)
    cause = ""
    if poor:
        parts = []
        for at, (other, base, ratio) in enumerate(poor):
            numbers[f"poor_{at}"] = gain(other, base, ratio)
            parts.append(f"{other['name']} ({{poor_{at}}})")
        cause = f"No sure gain comes from {formatting.listing(parts, MOST_POOR)}."
    return Finding(question, answer, numbers, one.hardware, cause, f"{urge(later)} {last['name']}.")


def _poor(own: list[tuple[dict, dict, Comparison]]) -> list[tuple[dict, dict, Comparison]]:
    return [each for each in own if each[2].ratio < 1 or not is_sure(each[2])]


def _told(one: Ladder) -> set[str]:
    """The changes that greatest() gives the gains of."""
    own = changes(one)
    gains = [each for each in own if each[2].ratio > 1 and is_sure(each[2])]
    if not gains:
        return set()
    return {each[0]["name"] for each in (max(gains, key=lambda each: each[2].ratio), *_poor(own)[:MOST_POOR])}


def _latest(own: list[tuple[dict, dict, Comparison]], row: dict) -> tuple[dict, dict, Comparison]:
    """A change, or the last one after it that changes the same once more and is sure to gain: bf16 after TF32."""
    at = next(at for at, each in enumerate(own) if each[0] is row)
    replaced = set(_changed(*own[at][:2]))
    later = [each for each in own[at + 1 :] if replaced & set(_changed(*each[:2])) and each[2].ratio > 1]
    return next((each for each in reversed(later) if is_sure(each[2])), own[at])


def _changed(row: dict, before: dict) -> list[str]:
    return varying([row, before], ("precision", *NEUTRAL))


def is_sure(speed: Comparison) -> bool:
    """Whether a verdict tells a difference; without one, whether it is beyond what unchanged cells differ by."""
    return speed.is_different if enough(comparison=speed) else speed.is_beyond_margin


def unlike(found: list[Ladder]) -> Finding | None:
    """The change whose gains differ most between two places, and how long a step has for each launch there."""
    if len(found) < 2:
        return None
    by_name = [{row["name"]: (row, before, speed) for row, before, speed in changes(one)} for one in found]
    shared = [name for name in by_name[0] if name in by_name[1] and _are_alike(by_name[0][name], by_name[1][name])]
    name = max(shared, key=lambda name: _apart(by_name[0][name], by_name[1][name]), default=None)
    if name is None or _apart(by_name[0][name], by_name[1][name]) < UNLIKE:
        return None
    (row, before, speed), (other, other_before, other_speed) = by_name[0][name], by_name[1][name]
    if not (is_sure(speed) or is_sure(other_speed)):
        return None
    numbers = {"gain": gain(row, before, speed), "other": gain(other, other_before, other_speed)}
    verb = "bring" if name.endswith("s") else "brings"
    answer = f"{name} {verb} {{gain}} in {place(found[0])} and {{other}} in {place(found[1])}."
    cause = ""
    spans = [_per_launch(each) for each in (before, other_before)]
    if name == "CUDA graphs" and all(spans) and (spans[0] - spans[1]) * (other_speed.ratio - speed.ratio) > 0:
        numbers |= {
            "span": Number(spans[0], (before["cell"],)),
            "other_span": Number(spans[1], (other_before["cell"],)),
        }
        sizes = [one.size for one in found] if found[0].size != found[1].size else [place(one) for one in found]
        cause = f"Before, a step has {{span}} µs a launch in {sizes[0]}, {{other_span}} in {sizes[1]}: "
        cause += "long steps hide launches."
    if not cause and all(name in _told(one) for one in found[:2]):
        return None  # both gains stand already
    return Finding("which change depends on the place", answer, numbers, found[0].hardware, cause)


def _are_alike(one: tuple, other: tuple) -> bool:
    """Whether both gains are of the same phase, between the same options."""
    return one[0].get("gain_of") == other[0].get("gain_of") and one[1]["name"] == other[1]["name"]


def _apart(one: tuple, other: tuple) -> float:
    ratios = sorted((one[2].ratio, other[2].ratio))
    return ratios[1] / ratios[0]


def _per_launch(row: dict) -> float | None:
    """Microseconds of a step over its launches."""
    step, launches = time(row, "step"), row.get("launches")
    return 1e3 * step / launches if step and formatting.known(launches) and launches > 0 else None


def predicted_optimizer(machine: Machine, one: Ladder) -> Finding | None:
    """The fused optimizer beside what its bytes predict, and what it took."""
    for row, before, speed in changes(one):
        told = predicted(machine, one, row)
        if told and row.get("optimizer") != before.get("optimizer"):
            numbers = {
                "predicted": Number(told.gain, told.cells, formatting.times),
                "gain": gain(row, before, speed),
                "before": Number(before["optimizer_median_ms"], (before["cell"],)),
                "least": Number(optimizer_ms(machine.tables, before), told.cells),
            }
            answer = f"By its bytes {row['name']} should bring {{predicted}} in {place(one)}; it brought {{gain}}."
            cause = ""
            if formatting.known(row.get("optimizer_median_ms")):
                numbers["after"] = Number(row["optimizer_median_ms"], (row["cell"],))
                cause = "The optimizer took {after} instead of {before} ms; its bytes need {least}."
            return Finding("what does the fused optimizer bring", answer, numbers, one.hardware, cause)
    return None


def missed(machine: Machine, found: list[Ladder]) -> Finding | None:
    """The change that is farthest from its prediction, of those that are FAR from it."""
    both = [
        (one, row, before, speed, told)
        for one in found
        for row, before, speed in changes(one)
        if (told := predicted(machine, one, row))
    ]
    far = [each for each in both if _miss(each[3], each[4]) > FAR and not _holds(each[3], each[4])]
    if not far:
        return None
    one, row, before, speed, told = max(far, key=lambda each: _miss(each[3], each[4]))
    numbers = {
        "predicted": Number(told.gain, told.cells, formatting.times),
        "gain": gain(row, before, speed),
        "far": Number(len(far), tuple(each[1]["cell"] for each in far), formatting.count),
    }
    beyond = f"off by over {formatting.percent(FAR - 1)} and outside the measured interval"
    off = f"are {beyond}, most that of" if len(far) > 1 else f"is {beyond}:"
    answer = (
        f"{{far}} of {len(both):,} predictions {off} {row['name']} in {place(one)}: predicted {{predicted}}, measured "
        "{gain}."
    )
    return Finding("which prediction fails", answer, numbers, one.hardware)


def _miss(speed: Comparison, told: Prediction) -> float:
    """The larger of prediction and measurement over the smaller."""
    return max(speed.ratio / told.gain, told.gain / speed.ratio)


def _holds(speed: Comparison, told: Prediction) -> bool:
    """Whether the measured interval has the prediction in it; without an interval it does not."""
    return speed.has_interval and speed.low <= told.gain <= speed.high


# Whether it holds -----------------------------------------------------------------------------------------------------


def unproven(found: list[Ladder]) -> Finding | None:
    """That gains without an interval are of one process each, or of two that disagree."""
    speeds = [speed for one in found for speed in (*one.over_before.values(), *one.over_start.values())]
    told = without_verdict(speeds)
    if not told:
        return None
    rows = [row for one in found for row in one.rows if kind(row)]
    if all(row.get(f"{kind(row)}_processes") == 1 for row in rows):
        numbers = {"cells": Number(len(rows), tuple(row["cell"] for row in rows), formatting.count)}
        answer = "Each of {cells} cells was measured once, by one process: ratios, no verdicts."
        return Finding("what has no verdict", answer, numbers, found[0].hardware)
    return told[0]


def elsewhere(machine: Machine, found: list[Ladder]) -> Finding | None:
    """Rungs that the timing study measured too, and the one that differs most from it.

    Where its kernels, by the profile, fill neither run, what differs is how fast the host launches them.
    """
    runs = [(one, one.at(cell), run) for one in found for cell, run in one.again.items()]
    apart = [each for each in runs if enough(change=each[2].speed)]
    if not apart:
        return None
    one, row, run = max(apart, key=lambda each: max(each[2].speed.ratio, 1 / each[2].speed.ratio))
    numbers = {
        "apart": Number(len(apart), tuple(row["cell"] for _, row, _ in apart), formatting.count),
        "here": Number(time(row, run.phase), (row["cell"],)),
        "there": Number(run.median, (run.cell,)),
    }
    rungs = f"{{apart}} of {len(runs):,} rungs" if len(runs) > 1 else "The one rung of both"
    most = ", most" * (len(apart) > 1)
    answer = (
        f"{rungs} took another time in the timing study{most}: {row['name']} in {place(one)}, {{here}} ms here, "
        "{there} there."
    )
    busy, cause = _busy(machine, one, row), ""
    if busy and run.phase == "step" and busy <= FILLED * min(numbers["here"].value, numbers["there"].value):
        cause = "Kernels fill {busy} of both; launches set the rest."
        numbers["busy"] = Number(busy, (row["cell"],))
    return Finding("do runs at another time agree", answer, numbers, one.hardware, cause)


def _busy(machine: Machine, one: Ladder, row: dict) -> float | None:
    """Ms that kernels take in the profiled step of a rung at neutral options; None without one."""
    if any(str(row.get(name) or neutral).removesuffix(".0") != neutral for name, neutral in NEUTRAL.items()):
        return None
    here = one.size, one.context, one.batch
    return next((own.busy for own in machine.steps if (own.place, own.precision) == (here, row["precision"])), None)


def throttled(found: list[Ladder]) -> Finding | None:
    """How many rungs of each ladder ran at lowered clocks, and where those fell from rung to rung."""
    numbers, parts, falls, reasons = {}, [], [], {}
    is_one_size = len({one.size for one in found}) < len(found)
    for at, one in enumerate(found):
        rows = [row for row in one.rungs if kind(row)]
        slow = [row for row in rows if row.get("throttle")]
        if not slow:
            continue
        reasons |= dict.fromkeys(str(row["throttle"]) for row in slow)
        numbers[f"slow_{at}"] = Number(len(slow), tuple(row["cell"] for row in slow), formatting.count)
        parts.append(f"{{slow_{at}}} of {len(rows):,}{' rungs' * (not parts)} of {place(one)}")
        clocks = [(row["sm_clock_median_mhz"], row["cell"]) for row in rows]
        clocks = [each for each in clocks if formatting.known(each[0])]
        if clocks and clocks[-1][0] < clocks[0][0]:
            for name, (clock, cell) in (("first", clocks[0]), ("last", clocks[-1])):
                numbers[f"{name}_{at}"] = Number(clock, (cell,), formatting.count)
            falls.append(f"from {{first_{at}}} to {{last_{at}}} MHz in {place(one) if is_one_size else one.size}")
    if not parts:
        return None
    answer = f"{formatting.listing(parts)} ran at lowered clocks ({formatting.listing(list(reasons), 2)})."
    cause = f"Clocks fell {formatting.listing(falls)}: at equal clocks later rungs may gain more." if falls else ""
    return Finding("did the clocks hold", answer, numbers, found[0].hardware, cause)
