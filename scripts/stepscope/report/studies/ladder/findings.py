"""What the ladder study's table says, for the summary."""

import pandas as pd

from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.ladder import (
    Ladder,
    Recomputed,
    agrees,
    by_hardware,
    every,
    rate,
    recomputed,
    shared_phase,
    time,
    whole_peak,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, SLOWER, Comparison, interval_text
from stepscope.report.kit.finding import Finding, Number, enough, without_verdict
from stepscope.report.kit.sizes import size

_MOST = 6  # ladders in a sentence
_CARE = {"noisy": "noisy", "throttle": "throttled"}  # columns of cells to be careful with, and what they say


def findings(found: list[Ladder], ceilings: pd.DataFrame) -> list[Finding]:
    """The findings, machine by machine."""
    if not found:
        return [Finding("ladder", "No ladder cell is in the tables.")]
    return [each for hardware, own in by_hardware(found).items() for each in _of_one_machine(hardware, own, ceilings)]


def _of_one_machine(hardware: str, found: list[Ladder], ceilings: pd.DataFrame) -> list[Finding]:
    rows = [row for ladder in found for row in ladder.rows]
    if not any(time(row) for row in rows):
        told = [Finding("what does the ladder bring", "No rung of the ladder finished.", hardware=hardware)]
    else:
        told = [
            _total(found, hardware),
            _runs_elsewhere(found, hardware),
            _greatest(found, hardware),
            _slower(found, hardware),
            _rate(found, ceilings, hardware),
            _whole_model(found, hardware),
            _checkpointing(recomputed(found), hardware),
            _rule(recomputed(found), hardware),
            _agreement(found, hardware),
            *without_verdict([speed for one in found for speed in one.over_before.values()], hardware),
        ]
    return [each for each in (*told, _lost(rows, hardware)) if each]


class _Parts:
    """The parts of an answer, a part a ladder, with their numbers: `gain` of the second part is `gain_2`."""

    def __init__(self):
        self.texts: list[str] = []
        self.numbers: dict[str, Number] = {}

    def add(self, text: str, **numbers: Number) -> None:
        """Add a part, whose text has `{gain}` wherever that number stands."""
        at = len(self.texts) + 1
        for name, number in numbers.items():
            text = text.replace(f"{{{name}}}", f"{{{name}_{at}}}")
            self.numbers[f"{name}_{at}"] = number
        self.texts.append(text)

    @property
    def listed(self) -> str:
        """All parts as one text."""
        return formatting.listing(self.texts, _MOST, "; ")


def _ms(row: dict, prefix: str) -> Number:
    return Number(time(row, prefix), (row["cell"],))


def _gain(row: dict, other: object, speed: Comparison | None, name: str = "gain_before") -> Number:
    """How many times as fast a cell is as another one, with the interval of that."""
    interval = f" {interval_text(speed)}" if speed and speed.has_interval else ""
    return Number(row[name], (row["cell"], str(other)), lambda gain: formatting.times(gain) + interval)


def _percent3(share: float) -> str:
    return formatting.percent(share, 3)


def _total(found: list[Ladder], hardware: str) -> Finding | None:
    """The fastest rung against the first."""
    parts = _Parts()
    for one in found:
        top = one.top
        start = one.at(top.get("started_from")) if top else None
        if not start or start is top:
            continue
        prefix = "forward_backward" if top.get("gain_start_of") == "forward+backward" else "step"
        numbers = {
            "start": _ms(start, prefix),
            "top": _ms(top, prefix),
            "gain": _gain(top, start["cell"], one.over_start.get(top["cell"]), "gain_start"),
        }
        of, beside, run = "", "", one.again.get(start["cell"])
        if prefix != "step":
            of = " of forward and backward"
        if run and run.phase == prefix and enough(change=run.speed):
            beside = ", or {other_gain} from the timing study's {other_start} ms"
            ratio = run.median / time(top, prefix)
            numbers["other_gain"] = Number(ratio, (top["cell"], run.cell), formatting.times)
            numbers["other_start"] = Number(run.median, (run.cell,))
        text = f"{one.place}: {{start}} to {{top}} ms{of}, {{gain}}{beside} ({start['name']} to {top['name']})"
        parts.add(text, **numbers)
    if not parts.texts:
        return None
    answer = f"The ladder, from its first to its fastest rung: {parts.listed}."
    return Finding("what does the whole ladder bring", answer, parts.numbers, hardware)


def _runs_elsewhere(found: list[Ladder], hardware: str) -> Finding | None:
    """Rungs whose time is another one than in the timing study."""
    parts, places = _Parts(), []
    shared = differing = ()
    for one in found:
        runs = [(one.at(cell), run) for cell, run in one.again.items()]
        others = [(row, run) for row, run in runs if enough(change=run.speed)]
        first = len(parts.texts)
        for row, run in others:
            parts.add(f"{row['name']}: {{here}} instead of {{there}} ms", here=_ms(row, run.phase),
                      there=Number(run.median, (run.cell,)))  # fmt: skip
        places += [f"{one.place} ({'; '.join(parts.texts[first:])})"] if others else []
        shared += tuple(row["cell"] for row, _ in runs)
        differing += tuple(row["cell"] for row, _ in others)
    if not places:
        return None
    numbers = parts.numbers | {
        "shared": Number(len(shared), shared, formatting.count),
        "differing": Number(len(differing), differing, formatting.count),
    }
    differ = "differs" if len(differing) == 1 else "differ"
    which = f"Of {{shared}} rungs that the timing study measured too, {{differing}} {differ}"
    if len(shared) == 1:
        which = "The one rung that the timing study measured too differs"
    answer = f"{which} in time by more than unchanged cells may: {formatting.listing(places, _MOST, '; ')}."
    return Finding("do runs at another time agree", answer, numbers, hardware)


def _greatest(found: list[Ladder], hardware: str) -> Finding | None:
    """The single change that brings most, ladder by ladder, of those that are faster."""
    parts = _Parts()
    for one in found:
        gained = [row for row in one.climbed if _is_change(one, row, FASTER)]
        if gained:
            _add_change(parts, one, max(gained, key=lambda row: row["gain_before"]))
    if not parts.texts:
        return None
    answer = f"The single change that brings most: {parts.listed}."
    return Finding("which single change brings most", answer, parts.numbers, hardware)


def _is_change(one: Ladder, row: dict, verdict: str) -> bool:
    """Whether a rung has this verdict against the rung right before."""
    speed = one.over_before.get(row["cell"])
    return speed is not None and speed.verdict == verdict and not one.is_passed_over(row)


def _add_change(parts: _Parts, one: Ladder, row: dict) -> None:
    text = f"{row['name']}, {{gain}}{_of(row)} ({one.place})"
    parts.add(text, gain=_gain(row, row["compared_with"], one.over_before.get(row["cell"])))


def _of(row: dict) -> str:
    return " of forward and backward" if row.get("gain_of") == "forward+backward" else ""


def _slower(found: list[Ladder], hardware: str) -> Finding | None:
    """Changes that make it slower."""
    parts = _Parts()
    for one in found:
        for row in one.climbed:
            if _is_change(one, row, SLOWER):
                _add_change(parts, one, row)
    if not parts.texts:
        return None
    what = "A change that makes" if len(parts.texts) == 1 else "Changes that make"
    answer = f"{what} it slower: {parts.listed}."
    return Finding("which change makes it slower", answer, parts.numbers, hardware)


def _rate(found: list[Ladder], ceilings: pd.DataFrame, hardware: str) -> Finding | None:
    """The highest rate of all rungs, its MFU and its share of the measured ceiling."""
    rows = [(one, row) for one in found for row in one.climbed if rate(row, "tflops") is not None]
    if not rows:
        return None
    one, row = max(rows, key=lambda pair: rate(pair[1], "tflops"))
    cells = (row["cell"],)
    numbers, parts = {"tflops": Number(rate(row, "tflops"), cells)}, ["{tflops} TFLOP/s"]
    unknown = "; the GPU's peak is in no table, so no MFU" if row.get("device") == "cuda" else ""
    if rate(row, "mfu") is not None:
        numbers["mfu"], unknown = Number(rate(row, "mfu"), cells, _percent3), ""
        parts.append("an MFU of {mfu}")
    ceiling = matmul_ceiling(ceilings, hardware, row["precision"])
    if ceiling:
        numbers["share"] = Number(rate(row, "tflops") / ceiling, cells, formatting.percent)
        parts.append("{share} of the measured matrix product")
    what = "" if time(row, "step") else ", forward and backward"
    where = f"{one.place}, {row['name']}{what}"
    answer = f"The highest arithmetic rate of {len(rows):,} rungs: {formatting.listing(parts)} ({where}){unknown}"
    for words, more in (_without_optimizer(row), _highest_mfu(rows, row)):
        answer += words
        numbers |= more
    return Finding("how near is it to the machine's peak", f"{answer}.", numbers, hardware)


def _without_optimizer(row: dict) -> tuple[str, dict[str, Number]]:
    """The rate of forward and backward alone, beside that of a step."""
    value, mfu = row.get("forward_backward_tflops"), row.get("forward_backward_mfu")
    if not time(row, "step") or not formatting.known(value):
        return "", {}
    words, numbers = (
        "; forward and backward alone: {both_tflops} TFLOP/s",
        {"both_tflops": Number(value, (row["cell"],))},
    )
    if formatting.known(mfu):
        words += ", an MFU of {both_mfu}"
        numbers["both_mfu"] = Number(mfu, (row["cell"],), _percent3)
    return words, numbers


def _highest_mfu(rows: list[tuple[Ladder, dict]], best: dict) -> tuple[str, dict[str, Number]]:
    """The highest MFU, where another rung has it than the one with the highest rate."""
    rated = [pair for pair in rows if rate(pair[1], "mfu") is not None]
    one, row = max(rated, key=lambda pair: rate(pair[1], "mfu"), default=(None, best))
    if row is best:
        return "", {}
    of = "a rung's step" if time(row, "step") else "a rung's forward and backward"
    words = f"; the highest MFU of {of}: {{highest_mfu}} of the {row['precision']} peak ({one.place}, {row['name']})"
    return words, {"highest_mfu": Number(rate(row, "mfu"), (row["cell"],), _percent3)}


def _whole_model(found: list[Ladder], hardware: str) -> Finding | None:
    """Compiling the whole model against compiling its blocks."""
    parts = _Parts()
    for one in found:
        for row in one.wholes:
            other = one.at(row.get("compared_with"))
            if not other or not formatting.known(row.get("gain_before")):
                continue
            speed = one.over_before.get(row["cell"])
            numbers = {"gain": _gain(row, other["cell"], speed)}
            cost = ""
            if all(formatting.known(each.get("compile_seconds")) for each in (row, other)):
                cost = ", {whole} s of compiling instead of {blocks} s"
                for name, each in (("whole", row), ("blocks", other)):
                    numbers[name] = Number(each["compile_seconds"], (each["cell"],))
            is_told = speed and enough(comparison=speed) and not speed.is_different
            unclear = f", {speed.verdict}" if is_told else ""
            parts.add(f"{{gain}}{_of(row)}{unclear}{cost} ({one.place})", **numbers)
    if not parts.texts:
        return None
    answer = f"The whole model compiled instead of its blocks, times the speed: {parts.listed}."
    return Finding("what does compiling the whole model bring", answer, parts.numbers, hardware)


def _checkpointing(groups: list[Recomputed], hardware: str) -> Finding | None:
    """What checkpointing saves and costs."""
    parts = _Parts()
    for one in groups:
        if one.best:
            _add_saving(parts, one, one.best)
    if not parts.texts:
        return None
    answer = f"Checkpointing every k blocks: {parts.listed}."
    return Finding("what does checkpointing save and cost", answer, parts.numbers, hardware)


def _add_saving(parts: _Parts, one: Recomputed, best: dict) -> None:
    """What the best k saves and costs."""
    base, prefix, share = one.base, shared_phase(best, one.base), one.saved_share(best)
    cells = tuple(row["cell"] for row in (best, base) if row)
    numbers = {"k": Number(every(best), cells[:1], formatting.count), "peak": Number(whole_peak(best), cells[:1], size)}
    cost = ""
    if prefix:
        numbers["longer"] = _longer(one, best, cells)
        of = "forward and backward" if prefix == "forward_backward" else "a step"
        noisy = " (noisy)" if any(row.get(f"{prefix}_noisy") for row in (best, base)) else ""
        cost = f" for {{longer}} times the time of {of}{noisy}"
    if share is None:
        is_needed = base is not None and base["status"] == "oom"
        needed = "; without checkpointing the step ran out of memory" if is_needed else ""
        text = f"{one.place}: k = {{k}} has the lowest peak, {{peak}}{',' * bool(cost)}{cost}{needed}"
    else:
        numbers |= {"base": Number(whole_peak(base), cells[1:], size), "saved": Number(share, cells, _signed)}
        text = f"{one.place}: k = {{k}} takes the peak from {{base}} to {{peak}} ({{saved}}){cost}"
    parts.add(text, **numbers)


def _longer(one: Recomputed, best: dict, cells: tuple[str, ...]) -> Number:
    """How many times as long it takes, with the interval of that."""
    speed = one.speed(best)
    if speed is None or not speed.has_interval:
        return Number(one.longer(best), cells)
    ends = 1 / speed.high, 1 / speed.low
    return Number(one.longer(best), cells, lambda longer: formatting.median_and_interval(longer, *ends))


def _signed(share: float) -> str:
    return f"{'−' if share < 0 else '+'}{formatting.percent(abs(share))}"


def _rule(groups: list[Recomputed], hardware: str) -> Finding | None:
    """The rule for k, and whether the closed form's k has the lowest peak, where both are of tensors."""
    rules = [one for one in groups if one.best and formatting.known(one.best.get("predicted_checkpoint"))]
    if not rules:
        return None
    best = [one.best for one in rules]
    cells = tuple(row["cell"] for row in best)
    numbers = {
        "ratio": Number(
            [row["block_saved_bytes"] / row["boundary_bytes"] for row in best], cells, formatting.value_range
        ),
        "k": Number([row["predicted_checkpoint"] for row in best], cells, _two_digits),
        "root": Number([row["num_layers"] ** 0.5 for row in best], cells, _two_digits),
    }
    tried = [one for one in rules if one.is_confirmed is not None]
    confirmed = [one for one in tried if one.is_confirmed]
    if tried:
        for name, own in (("tried", tried), ("confirmed", confirmed)):
            numbers[name] = Number(len(own), tuple(one.best["cell"] for one in own), formatting.count)
    answer = (
        "A block saves {ratio} times what is kept at a boundary, so the rule √(n b / a) gives a best k of {k}, where "
        f"√n, for equal a and b, would be {{root}}{_confirmed(len(tried), len(confirmed))}."
    )
    return Finding("which k is best", answer, numbers, hardware)


def _two_digits(values: list[float]) -> str:
    return formatting.value_range(values, 2)


def _confirmed(tried: int, confirmed: int) -> str:
    if not tried:
        return ""
    start = "; the k that the closed form chooses"
    if tried == 1:
        return f"{start} {'has' if confirmed else 'does not have'} the lowest peak measured"
    return f"{start} has the lowest peak measured in {{confirmed}} of {{tried}} cases"


def _agreement(found: list[Ladder], hardware: str) -> Finding | None:
    """How many cells compute the loss and gradients of the first rung that has them, which itself does not count."""
    checked = []
    for one in found:
        checked += [(one, row) for row in one.rows if agrees(row) is not None][1:]
    if not checked:
        return None
    wrong = [(one, row) for one, row in checked if agrees(row) is False]
    numbers = {
        name: Number(len(own), tuple(row["cell"] for _, row in own), formatting.count)
        for name, own in (("checked", checked), ("wrong", wrong))
    }
    question = "do all rungs compute the same step"
    if not wrong:
        cells = "the other cell" if len(checked) == 1 else "all {checked} other cells"
        answer = f"Loss and gradients agree with the first rung's, within the precision's tolerance, in {cells}."
        return Finding(question, answer, numbers, hardware)
    cells = "the other cell" if len(checked) == 1 else "{wrong} of {checked} other cells"
    rungs = "is no rung" if len(wrong) == 1 else "are no rungs"
    names = formatting.listing([f"{row['name']} ({one.place})" for one, row in wrong], _MOST, "; ")
    answer = f"Loss or gradients differ from the first rung's beyond the tolerance in {cells}, which {rungs}: {names}."
    return Finding(question, answer, numbers, hardware)


def _lost(rows: list[dict], hardware: str) -> Finding | None:
    """How many cells have no step, and how many are to be read with care."""
    words = {"oom": "out of memory", "unsupported": "unsupported", "failed": "failed", "missing": "missing"}
    kinds = {key: [row for row in rows if row["status"] == key] for key in words}
    kinds |= {word: [row for row in rows if time(row) and row.get(name)] for name, word in _CARE.items()}
    numbers = {
        key: Number(len(own), tuple(row["cell"] for row in own), formatting.count) for key, own in kinds.items() if own
    }
    if not numbers:
        return None
    parts = {key: f"{{{key}}} {words.get(key, key)}" for key in numbers}
    partly = [row for row in kinds["oom"] if time(row, "forward_backward")]
    if partly:
        parts["oom"] += " ({partly} of them only in the step)"
        numbers["partly"] = Number(len(partly), tuple(row["cell"] for row in partly), formatting.count)
    cells = "1 ladder cell" if len(rows) == 1 else f"{len(rows):,} ladder cells"
    answer = f"Of {cells}: {formatting.listing(list(parts.values()))}."
    return Finding("what is missing or to be read with care", answer, numbers, hardware)
