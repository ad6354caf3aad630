"""What checkpointing and compiling cost and save, beside the rungs that fit without; the best; whether all agree."""

from stepscope.report.chapters.changes.climb import gain, is_sure, place
from stepscope.report.data.control import floors
from stepscope.report.data.ladder import (
    Ladder,
    Recomputed,
    agrees,
    every,
    peak,
    rate,
    recomputed,
    shared_phase,
    time,
    whole_peak,
)
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import compare, timed
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import NEUTRAL
from stepscope.report.kit.sizes import size
from stepscope.report.studies.page_one.changes import urge

# Checkpointing --------------------------------------------------------------------------------------------------------


def largest_recomputed(machine: Machine) -> Recomputed | None:
    """The cells with checkpointing at the largest place that has any whose step ran."""
    tried = [one for one in recomputed(machine.ladders) if one.best]
    return max(tried, key=lambda one: work(one.ladder.parameters, one.ladder.context), default=None)


def checkpointing(machine: Machine) -> Finding | None:
    """Peak and time of the best k, beside the closed form and what recomputing was to add."""
    one = largest_recomputed(machine)
    if one is None:
        return None
    best, base = one.best, one.base
    cells = tuple(row["cell"] for row in (best, base) if row)
    numbers = {"k": Number(every(best), cells[:1], formatting.count), "peak": Number(whole_peak(best), cells[:1], size)}
    closed_form, beside = best.get("predicted_peak_bytes"), ""
    if one.is_of_tensors and formatting.known(closed_form):
        beside = " (predicted {bytes})"
        numbers["bytes"] = Number(closed_form, cells[:1], size)
    where = f"In {place(one.ladder)}, {one.options},"
    if base is not None and whole_peak(base):
        of = "the" if one.is_of_tensors else "the process's"
        numbers["without"] = Number(whole_peak(base), cells[1:], size)
        answer = f"{where} checkpointing every {{k}} blocks takes {of} peak from {{without}} to {{peak}}{beside}."
    elif base is not None and base["status"] == "oom":
        answer = f"{where} a step runs out of memory; checkpointing every {{k}} blocks it peaks at {{peak}}{beside}."
    else:
        answer = f"{where} checkpointing every {{k}} blocks a step peaks at {{peak}}{beside}."
    answer = answer.replace("every {k} blocks", "every block") if every(best) == 1 else answer
    cause, more = _recomputing(one, best)
    return Finding("what does checkpointing save and cost", answer, numbers | more, one.ladder.hardware, cause)


def _recomputing(one: Recomputed, best: dict) -> tuple[str, dict[str, Number]]:
    """One more forward pass: predicted, measured."""
    phase, base = shared_phase(best, one.base), one.base
    if phase is None:
        return "", {}
    forward = time(base, "forward") or time(best, "forward")
    cells = (base["cell"], best["cell"])
    numbers = {"before": Number(time(base, phase), cells[:1]), "after": Number(time(best, phase), cells[1:])}
    text = f"{'A step takes' if phase == 'step' else 'Forward and backward take'} {{after}} ms instead of {{before}}"
    if not forward:
        return f"{text}.", numbers
    numbers["predicted"] = Number(time(base, phase) + forward, cells)
    return f"{text} (one more forward pass predicts {{predicted}}).", numbers


def _all_up_to(ladder: Ladder, rung: dict) -> str:
    """`all changes up to fused AdamW`: a rung has those of the ones before it; by its name alone, one that has none."""
    place = [row["cell"] for row in ladder.rungs].index(rung["cell"])
    of_its_precision = [row for row in ladder.rungs[:place] if row["precision"] == rung["precision"]]
    return f"all changes up to {rung['name']}" if len(of_its_precision) > 1 else rung["name"]


def instead(machine: Machine) -> Finding | None:
    """A rung without checkpointing at that place, beside it: the first that fits where the plain one does not, else the
    one that needs least. Checkpointing is advised only where no such rung is faster."""
    one = largest_recomputed(machine)
    if one is None:
        return None
    ladder, best = one.ladder, one.best
    others = [row for row in ladder.climbed if row is not one.base and row["precision"] == best["precision"]]
    others = [row for row in others if not every(row) and whole_peak(row) and time(row, "step")]
    is_lost = one.base is not None and one.base["status"] == "oom"
    least = min(others, key=whole_peak, default=None)
    if least is None:
        return _nothing_else(one) if is_lost else None
    if not is_lost and not (one.is_of_tensors and whole_peak(one.base or best) > whole_peak(least)):
        return None
    first = others[0] if is_lost else least
    found = compare(timed(first, "step_"), timed(best, "step_"), floors(machine.tables["timing"]))
    if found is None:
        return None
    numbers = {
        "peak": Number(whole_peak(first), (first["cell"],), size),
        "gain": gain(first, best, found),
        "step": Number(time(first, "step"), (first["cell"],)),
        "slow": Number(time(best, "step"), (best["cell"],)),
    }
    times = "a step takes {step} instead of {slow} ms, {gain}"
    name = _all_up_to(ladder, first)
    one_alone = name == first["name"]
    verb = ("fits, in" if one_alone else "fit, in") if is_lost else "needs" if one_alone else "need"
    answer = f"Without it {name} {verb} {{peak}}; {times}."
    cause, more = _scores(one, first)
    numbers |= more
    advice = "Checkpoint where memory ends."
    if found.ratio > 1 and is_sure(found):
        advice = f"{urge(found)} {name if one_alone else 'these'} first; checkpoint where nothing else fits."
    return Finding("what fits without checkpointing", answer, numbers, ladder.hardware, cause.strip(), advice)


def _scores(one: Recomputed, first: dict) -> tuple[str, dict[str, Number]]:
    """That attention which stores no scores is what makes it fit, by the closed form of both peaks; empty if not."""
    rows = [row for row in (one.base, first) if row and formatting.known(row.get("predicted_peak_bytes"))]
    both = [row["predicted_peak_bytes"] for row in rows]
    is_naive = [row.get("attention") in (None, "naive") for row in rows]
    if not one.is_of_tensors or is_naive != [True, False] or both[1] >= both[0]:
        return "", {}
    cells = (one.base["cell"], first["cell"])
    numbers = {"naive": Number(both[0], cells[:1], size), "fused": Number(both[1], cells[1:], size)}
    return "Fused attention stores no context × context scores: by closed form {naive} become {fused}.", numbers


def _nothing_else(one: Recomputed) -> Finding:
    numbers = {"peak": Number(whole_peak(one.best), (one.best["cell"],), size)}
    answer = f"No rung at {place(one.ladder)} was measured that fits without it."
    advice = "Checkpoint the blocks."
    return Finding("what fits without checkpointing", answer, numbers, one.ladder.hardware, advice=advice)


# Compiling ------------------------------------------------------------------------------------------------------------


def compiling(one: Ladder) -> Finding | None:
    """The seconds that compiling the blocks takes, and after how many steps they are earned back."""
    row = next((row for row in one.climbed if row.get("compile") == "block" and _seconds(row)), None)
    before, speed = (one.at(row.get("compared_with")), one.over_before.get(row["cell"])) if row else (None, None)
    if not row or not before or not speed or one.is_passed_over(row):
        return None
    numbers = {"seconds": Number(_seconds(row), (row["cell"],)), "gain": gain(row, before, speed)}
    question = f"what does compiling cost in {place(one)}"
    fused = ""
    if all(formatting.known(each.get("kernels")) for each in (before, row)) and row["kernels"] < before["kernels"]:
        fused = ", makes {kernels} kernels of {before}"
        numbers["kernels"] = Number(row["kernels"], (row["cell"],), formatting.count)
        numbers["before"] = Number(before["kernels"], (before["cell"],), formatting.count)
    first, later = one.first_compiled, ""
    if first and first is not row and first.get("compile") != "model" and _seconds(first) > _seconds(row):
        numbers |= {
            "seconds": Number(_seconds(first), (first["cell"],)),
            "later": Number(_seconds(row), (row["cell"],)),
        }
        later = " ({later} later)"
    answer = f"In {place(one)} compiling blocks takes {{seconds}} s{later}{fused} and brings {{gain}}"
    phase = shared_phase(row, before)
    saved = time(before, phase) - time(row, phase)
    if saved <= 0 or not is_sure(speed):
        return Finding(question, f"{answer}: not earned back.", numbers, one.hardware)
    taken = numbers["seconds"]
    cells = dict.fromkeys((before["cell"], row["cell"], *taken.cells))
    numbers["steps"] = Number(1e3 * taken.value / saved, tuple(cells), formatting.count)
    return Finding(question, f"{answer}: earned back after {{steps}} steps.", numbers, one.hardware)


def _seconds(row: dict) -> float | None:
    value = row.get("compile_seconds")
    return value if formatting.known(value) and value > 0 else None


def whole_model(machine: Machine) -> Finding | None:
    """The whole model compiled instead of its blocks, at the largest place where it was tried."""
    tried = [
        (one, row, one.at(row.get("compared_with")))
        for one in machine.ladders
        for row in one.wholes
        if row.get("compile") == "model" and row["cell"] in one.over_before and _seconds(row)
    ]
    one, row, blocks = max(tried, key=lambda each: work(each[0].parameters, each[0].context), default=(None,) * 3)
    if row is None or not _seconds(blocks):
        return None
    numbers = {
        "whole": Number(_seconds(row), (row["cell"],)),
        "blocks": Number(_seconds(blocks), (blocks["cell"],)),
        "gain": gain(row, blocks, one.over_before[row["cell"]]),
    }
    both = "{whole} instead of {blocks} s"
    if one.first_compiled:
        both = "{whole} s (later its blocks: {blocks})"
        both = both if one.first_compiled is row else "{whole} s after its blocks ({blocks})"
    answer = f"Compiling the whole model takes {both} in {place(one)}, for {{gain}} over its blocks."
    return Finding("what does compiling the whole model bring", answer, numbers, one.hardware)


# The best, and whether all compute the same ---------------------------------------------------------------------------


def best(one: Ladder) -> Finding | None:
    """The fastest rung with its options, its rates and its memory."""
    top = one.top
    if top is None or not time(top, "step"):
        return None
    cells = (top["cell"],)
    numbers, parts = {"step": Number(time(top, "step"), cells)}, []
    if rate(top, "tokens_per_s") is not None:
        numbers["tokens"] = Number(rate(top, "tokens_per_s"), cells, formatting.count)
        parts.append("{tokens} tokens/s")
    if rate(top, "mfu") is not None:
        numbers["mfu"] = Number(rate(top, "mfu"), cells, formatting.percent)
        parts.append("MFU {mfu}")
    if peak(top) is not None:
        numbers["peak"] = Number(peak(top), cells, size)
        parts.append("{peak}")
    more = f" with {formatting.listing(parts)}" if parts else ""
    answer = f"In {place(one)} {configuration(top)} takes {{step}} ms a step{more}."
    return Finding(f"which configuration is best in {place(one)}", answer, numbers, one.hardware)


def configuration(row: dict) -> str:
    """`bf16, attention=triton, compile=graphs`."""
    given = {name: str(row.get(name) or neutral).removesuffix(".0") for name, neutral in NEUTRAL.items()}
    return ", ".join(
        [row["precision"], *(f"{name}={value}" for name, value in given.items() if value != NEUTRAL[name])]
    )


def agreement(found: list[Ladder]) -> Finding | None:
    """How many cells give the loss and gradients of the first rung, which does not count."""
    checked = [(one, row) for one in found for row in [row for row in one.rows if agrees(row) is not None][1:]]
    if not checked:
        return None
    wrong = [f"{row['name']} ({place(one)})" for one, row in checked if agrees(row) is False]
    own = [row for _, row in checked if agrees(row)]
    numbers = {"own": Number(len(own), tuple(row["cell"] for row in own), formatting.count)}
    answer = f"{{own}} of {len(checked):,} others give the first rung's loss and gradients, up to rounding"
    more = f"; not {formatting.listing(wrong, 3)}, which count as no rungs" if wrong else ""
    return Finding("do all rungs compute the same step", f"{answer}{more}.", numbers, found[0].hardware)
