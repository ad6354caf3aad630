"""The findings of page one: what costs most on this machine, why, and what to do about it.

A candidate without enough data gives nothing. Each has a cost: milliseconds of a step, by which they are sorted.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepscope.model.traffic import OPTIMIZER_BYTES
from stepscope.report.data.bound import LAUNCH_BOUND, PRODUCTS
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.ladder import recomputed, time, whole_peak
from stepscope.report.data.predicted import optimizer_ms
from stepscope.report.data.profile import Profile
from stepscope.report.data.spotlight import MIXED, Machine
from stepscope.report.data.step_parts import PARTS, StepParts, work
from stepscope.report.data.warmup import CLOSE, Warmups
from stepscope.report.data.warmup_process import WHOLE, main_setting, processes
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import badge
from stepscope.report.kit.compare import NOT_COMPARABLE, UNCLEAR, Comparison, Timed, interval_text, timed
from stepscope.report.kit.finding import Finding, Number, enough
from stepscope.report.kit.formatting import known, percent
from stepscope.report.kit.table import disturbed, unsure
from stepscope.report.studies.page_one.changes import Change, advice, change, urge
from stepscope.report.studies.page_one.tables import largest_ladder, memory_of
from stepscope.tables.columns import LAUNCHES

LEAST_SHARE = 0.05  # of a step; what costs less is no finding of page one
MOST_FINDINGS = 7
LEAST_TOLD, HALF = 0.1, 0.5
# A part of the step -> what it is called in a sentence.
_NAMES = {
    "products": "matrix products",
    "attention": "attention's softmax, mask and casts (forward)",
    "other": "other memory-bound kernels",
    "optimizer": "the optimizer",
    "idle": "an idle GPU",
}


@dataclass(frozen=True)
class Cost:
    """A finding with the chapter that it links to, and what it costs in ms of the step that it is about.

    What does not run at all costs without end. is_part: whether that is a part of the reference cell's step.
    """

    cost: float
    chapter: str
    finding: Finding
    is_part: bool = False


def costs(machine: Machine) -> list[Cost]:
    """The findings, those of the reference cell's step first, then the dearest first; at most MOST_FINDINGS."""
    found = [each for candidate in CANDIDATES if (each := candidate(machine))]
    return sorted(found, key=lambda each: (not each.is_part, -each.cost))[:MOST_FINDINGS]


def answer(machine: Machine) -> Finding | None:
    """Where the reference cell's step goes, and what limits it; None without a profiled step."""
    own = machine.reference
    if own is None:
        return None
    cells = (own.row["cell"],)
    numbers = {"step": _step(machine, own)}
    told = sorted((name for name in PARTS if own.share(name) >= LEAST_TOLD), key=lambda name: -getattr(own, name))
    numbers |= {name: Number(own.share(name), cells, percent) for name in told}
    where = formatting.listing([f"{_NAMES[name]} {{{name}}}" for name in told])
    parameters = own.row.get("parameters")
    size = (
        f"{own.row['size']} ({formatting.parameters(parameters)} parameters)" if known(parameters) else own.row["size"]
    )
    place = f"{size} at context {own.row['context']:,.0f} in {own.precision}"
    answer = f"A training step of {place} takes {{step}}: {where}. {_limit(own)}"
    plain = next((each for each in machine.steps if (each.place, each.precision) == (own.place, "fp32")), None)
    if plain and plain is not own:
        answer += " In fp32 it takes {plain}, {plain_products} of them in matrix products."
        numbers["plain"] = _step(machine, plain)
        numbers["plain_products"] = Number(plain.share("products"), (plain.row["cell"],), percent)
    if larger := _only_timed(machine, own):
        answer += f" No {own.precision} step of the larger {formatting.listing(larger, 3)} was profiled."
    return Finding("where does the step go", answer, numbers, own.row["hardware"])


def _only_timed(machine: Machine, own: StepParts) -> list[str]:
    """Sizes larger than that of a profiled step, of which steps in its precision were timed and none was profiled."""
    profiled = {each.row["size"] for each in machine.alike}
    larger = {
        row["size"]: row["parameters"]
        for row in machine.timing
        if (row["precision"], row["options"]) == (own.precision, "")
        and timed(row, "step_")
        and work(row.get("parameters"), 1) > work(own.row.get("parameters"), 1)
        and row["size"] not in profiled
    }
    return sorted(larger, key=larger.get)


def _limit(own: StepParts) -> str:
    """What limits a step: what takes more than half of it."""
    if own.share("products") > HALF:
        return "Arithmetic limits it."
    if own.share("idle") > HALF:
        return "Launches limit it."
    if own.share("attention") + own.share("other") + own.share("optimizer") > HALF:
        return "Traffic to memory limits it, not arithmetic."
    return "Nothing takes more than half of it."


def _step(machine: Machine, own: StepParts) -> Number:
    """`154 [149, 158] ms (unsteady, slow host)`: the step without a profiler, and what disturbed it."""
    row = machine.profile.unprofiled(own.row)
    doubts = ", ".join("noisy" if key == "noisy" else badge(key)[0] for key in (*unsure(row, "step_"), *disturbed(row)))

    def text(step: Timed) -> str:
        return f"{_time_text(step)}{f' ({doubts})' * bool(doubts)}"

    return Number(own.step, (own.row["cell"],), text)


def _time_text(step: Timed) -> str:
    return f"{formatting.median_and_interval(step.median, step.low, step.high)} ms"


def _without(own: StepParts, *parts: str) -> float | None:
    """How many times as fast the step would be without these parts; None where nothing else is in it."""
    rest = own.total - sum(getattr(own, part) for part in parts)
    return own.total / rest if rest > 0 else None


def _part_numbers(own: StepParts, part: str) -> dict[str, Number]:
    cells = (own.row["cell"],)
    return {
        "cost": Number(getattr(own, part), cells),
        "share": Number(own.share(part), cells, percent),
    }


# The candidates. ------------------------------------------------------------------------------------------------------


def _place_of(own: StepParts) -> str:
    """`xl at 256`."""
    return f"{own.row['size']} at {own.row['context']:,.0f}"


def _places(found: list[StepParts]) -> str:
    """`small and medium at 256, small at 1,024`."""
    contexts = sorted({each.row["context"] for each in found})
    sizes = [formatting.listing([each.row["size"] for each in found if each.row["context"] == at]) for at in contexts]
    return ", ".join(f"{names} at {at:,.0f}" for names, at in zip(sizes, contexts, strict=True))


def _other(machine: Machine) -> Cost | None:
    """Kernels that move memory: against compiling the blocks."""
    own = machine.reference
    if own is None or own.share("other") < LEAST_SHARE:
        return None
    cells = (own.row["cell"],)
    numbers = _part_numbers(own, "other")
    cause = ""
    largest = max(_categories(machine.profile, own), key=lambda pair: pair[1], default=None)
    if largest:
        name = f"{largest[0][:1].upper()}{largest[0][1:]}"
        cause = f"{name} takes most: {{most}} ms, with that of attention."
        numbers["most"] = Number(largest[1], cells)
    made = change(machine.ladders, own, "compile", lambda value: value in ("block", "model"))
    text, more = advice(own, "compiled blocks", "at most", _without(own, "other"), made)
    found = Finding("what do memory-bound kernels cost",
                    "Other memory-bound kernels cost {cost} ms, {share}.",
                    numbers | more, own.row["hardware"], cause, text)  # fmt: skip
    return Cost(own.other, "kernels", found, is_part=True)


def _categories(profile: Profile, own: StepParts) -> Iterator[tuple[str, float]]:
    """(category, ms a step) of the kernels outside the optimizer that multiply no matrices."""
    for line in profile.rows("categories", own.row["cell"]).to_dict("records"):
        if line["phase"] == "step" and line["category"] not in PRODUCTS:
            of_optimizer = profile.row("categories", own.row["cell"], phase="optimizer", category=line["category"])
            yield line["category"], line["ms_per_step"] - of_optimizer.get("ms_per_step", 0.0)


def _idle(machine: Machine) -> Cost | None:
    """The GPU waiting between launches, in the profiled step where it waits longest: against CUDA graphs."""
    own = max(machine.alike, key=lambda each: each.idle, default=None)
    if own is None or own.share("idle") < LEAST_SHARE:
        return None
    cells = tuple(each.row["cell"] for each in machine.alike)
    bound = [each for each in machine.alike if each.busy / each.total < LAUNCH_BOUND]
    numbers = _part_numbers(own, "idle")
    if bound:
        idle = [each.share("idle") for each in bound]
        numbers["shares"] = Number(idle, cells, lambda shares: formatting.value_range([100 * s for s in shares], 2))
        said = f"In {own.precision} launches limit {_places(bound)}: the GPU idles {{shares}} %."
        cause = f"{_place_of(own)} idles {{cost}} ms." if own not in bound else ""
    else:
        said = f"The GPU idles {{cost}} ms ({{share}}) in {_place_of(own)}; launches limit no {own.precision} step."
        cause = ""
    made = change(machine.ladders, own, "compile", lambda value: value == "graphs", _waiting)
    thing, without = "CUDA graphs", ("idle",)
    if made and not made.is_from("compile", "block"):
        thing, without = "compiled blocks in CUDA graphs", ("idle", "other")
    where = "here" if own is machine.reference else "there" if own in bound or not bound else f"in {_place_of(own)}"
    text, more = advice(own, thing, "at most", _without(own, *without), made, where)
    if "predicted" in more and len(bound) > 1 and own in bound and own is not machine.reference:
        most = [ratio for each in bound if (ratio := _without(each, *without))]
        more["predicted"] = Number(most, cells, lambda ratios: f"× {formatting.value_range(ratios, 2)}")
    found = Finding("what does waiting for launches cost", said, numbers | more, own.row["hardware"], cause, text)
    return Cost(own.idle, "kernels", found, is_part=own is machine.reference)


def _waiting(made: Change) -> int:
    """0 for what is sure where launches limited the step before it, then what is not; last what the GPU limited."""
    before = made.ladder.at(made.row["compared_with"]) or {}
    if before.get("step_limited_by") != LAUNCHES:
        return 2
    return 0 if made.speed.has_interval and made.speed.verdict not in (UNCLEAR, NOT_COMPARABLE) else 1


def _precision(machine: Machine) -> Cost | None:
    """fp32 against bf16, at the reference's place, else at the largest, of which there is a verdict if of any."""
    own = machine.reference
    pairs = machine.pairs
    judged = [pair for pair in pairs if enough(comparison=pair.speeds["step"])] or pairs
    there = [pair for pair in pairs if own and (pair.row["size"], pair.row["context"], pair.row["batch"]) == own.place]
    pair = next(iter(there), None) or max(judged, key=lambda pair: _work(pair.row), default=None)
    if pair is None:
        return None
    speed = pair.speeds["step"]
    if not (speed.is_different if enough(comparison=speed) else speed.is_beyond_margin):
        return None
    ratio = " ".join(filter(None, [formatting.times(speed.ratio), interval_text(speed)]))
    numbers = {"speed": Number(speed.ratio, pair.cells, lambda _: ratio)}
    both = {each.precision: each for each in machine.steps if each.place == _place(pair.row)}
    cause = ""
    predicted = None
    if {"fp32", MIXED} <= set(both):
        before, after = both["fp32"], both[MIXED]
        cause = "Matrix products take {after} instead of {before} ms, all else {rest_after} instead of {rest_before}."
        values = {"before": before.products, "after": after.products}
        values |= {"rest_before": before.total - before.products, "rest_after": after.total - after.products}
        cells = (before.row["cell"], after.row["cell"])
        numbers |= {name: Number(value, cells) for name, value in values.items()}
        predicted = _by_ceilings(machine, before)
    text = f"{urge(speed)} bf16."
    if predicted:
        text = f"{urge(speed)} bf16: predicted {{predicted}}."
        numbers["predicted"] = Number(predicted, pair.cells, formatting.times)
    least = min(judged, key=lambda each: each.speeds["step"].ratio)
    if least is not pair:
        text += f" In {least.point}: {{lowest}}{_verdict(least.speeds['step'], ', ')}."
        numbers["lowest"] = Number(least.speeds["step"].ratio, least.cells, formatting.times)
    said = f"bf16 autocast is {{speed}} as fast as fp32 without TF32 ({pair.point}){_verdict(speed, ': ')}."
    found = Finding("what does mixed precision bring", said, numbers, machine.hardware, cause, text)
    return Cost(abs(speed.times[0] - speed.times[1]), "precision", found)


def _verdict(speed: Comparison, between: str) -> str:
    """`, unclear`; empty where a single process measured one of both."""
    return f"{between}{speed.verdict}" if speed.has_interval else ""


def _work(row: dict) -> tuple[float, float]:
    return work(row.get("parameters"), row["context"])


def _place(row: dict) -> tuple[str, float, float]:
    return row["size"], row["context"], row["batch"]


def _by_ceilings(machine: Machine, before: StepParts) -> float | None:
    """The step's speed-up if its matrix products alone became as much faster as the measured ceilings are apart."""
    low, plain = (matmul_ceiling(machine.tables["ceilings"], machine.hardware, name) for name in (MIXED, "fp32"))
    if not low or not plain:
        return None
    return before.total / (before.total - before.products * (1 - plain / low))


def _attention(machine: Machine) -> Cost | None:
    """Attention but its products, in the profiled step where it costs most: against a fused kernel."""
    own = max(machine.alike, key=lambda each: each.attention, default=None)
    if own is None or own.share("attention") < LEAST_SHARE:
        return None
    cells = (own.row["cell"],)
    numbers, cause = _part_numbers(own, "attention"), ""
    softmax = machine.profile.row("attention", own.row["cell"], part="softmax").get("gpu_ms_per_step")
    if known(softmax):
        cause = "The softmax takes {softmax} ms."
        numbers["softmax"] = Number(softmax, cells)
    made = change(machine.ladders, own, "attention", lambda value: value != "naive")
    text, more = advice(own, "fused attention", "from the forward pass alone", _without(own, "attention"), made)
    found = Finding("what does attention cost",
                    f"Attention's softmax, mask and casts take {{cost}} ms ({{share}}) in forward in {_place_of(own)}.",
                    numbers | more, own.row["hardware"], cause, text)  # fmt: skip
    return Cost(own.attention, "attention", found, is_part=own is machine.reference)


def _optimizer(machine: Machine) -> Cost | None:
    """The optimizer: against a fused one."""
    own = machine.reference
    if own is None or own.share("optimizer") < LEAST_SHARE:
        return None
    cells = (own.row["cell"],)
    numbers, cause, predicted, cost = _part_numbers(own, "optimizer"), "", None, own.optimizer
    least = optimizer_ms(machine.tables, own.row)
    if least:
        cause = f"Its {OPTIMIZER_BYTES} bytes a parameter take {{least}} ms at the measured copy rate."
        numbers["least"] = Number(least, cells)
        cost = max(0.0, own.optimizer - least)
        predicted = own.total / (own.total - cost) if cost else None
    made = change(machine.ladders, own, "optimizer", lambda value: value == "fused")
    text, more = advice(own, "a fused optimizer", "", predicted, made)
    found = Finding("what does the optimizer cost", "The optimizer's kernels cost {cost} ms, {share}.",
                    numbers | more, own.row["hardware"], cause, text)  # fmt: skip
    return Cost(cost, "kernels", found, is_part=True)


def _memory(machine: Machine) -> Cost | None:
    """The first context of which a step does not fit, of the largest size of which a shorter one does."""
    precision = machine.reference.precision if machine.reference else _first_precision(machine.timing)
    by_size: dict[str, list[dict]] = {}
    for row in machine.timing:
        if row["precision"] == precision and row["mode"] == "step" and not row["options"]:
            by_size.setdefault(row["size"], []).append(row)
    found = []
    for own in by_size.values():
        fitting = [row for row in own if row.get("step_status") == "ok" and known(memory_of(row))]
        last = max(fitting, key=lambda row: row["context"], default=None)
        lost = [row for row in own if row.get("step_status") == "oom" and last and row["context"] > last["context"]]
        if lost:
            found.append((last, min(lost, key=lambda row: row["context"])))
    if not found:
        return None
    last, first = max(found, key=lambda pair: _work(pair[0]))
    numbers = {
        "peak": Number(memory_of(last), (last["cell"],), formatting.gib),
        "lost": Number(first["context"], (first["cell"],), formatting.count),
        "fits": Number(last["context"], (last["cell"],), formatting.count),
    }
    whole = ""
    if known(last.get("device_memory_bytes")):
        whole = " of {whole}"
        numbers["whole"] = Number(last["device_memory_bytes"], (last["cell"],), formatting.gib)
    text, more = _remedy(machine)
    said = (
        f"A step of {last['size']} in {precision} fits up to context {{fits}} ({{peak}}{whole} GiB); {{lost}} runs out "
        "of memory."
    )
    found = Finding("what does not fit", said, numbers | more, machine.hardware, advice=text)
    return Cost(math.inf, "memory", found)


def _first_precision(rows: list[dict]) -> str:
    precisions = {row["precision"] for row in rows}
    return MIXED if MIXED in precisions else next(iter(precisions), "")


def _remedy(machine: Machine) -> tuple[str, dict[str, Number]]:
    """(what makes the ladder's largest place fit, its numbers).

    The first rung of which a step fits where the first one of the ladder does not; else checkpoints.
    """
    one = largest_ladder(machine)
    if one and one.rungs[0]["status"] == "oom":
        rung = next((row for row in one.climbed if whole_peak(row) and time(row, "step")), None)
        if rung:
            numbers = {"fitting": Number(whole_peak(rung), (rung["cell"],), formatting.gib)}
            numbers["takes"] = Number(timed(rung, "step_"), (rung["cell"],), _time_text)
            place = f"{one.size} at {one.context:,.0f}"
            return f"{rung['name']} makes {place} fit: {{fitting}} GiB, {{takes}} a step.", numbers
    return _checkpoints(machine)


def _checkpoints(machine: Machine) -> tuple[str, dict[str, Number]]:
    """(what checkpointing did at the largest place of a ladder, its numbers)."""
    tried = [one for one in recomputed(machine.ladders) if one.best and one.best.get("predicted_peak_bytes")]
    one = max(tried, key=lambda one: work(one.ladder.parameters, one.ladder.context), default=None)
    if one is None or not one.is_of_tensors:
        return "", {}
    best, cells = one.best, (one.best["cell"],)
    numbers = {
        "foretold": Number(best["predicted_peak_bytes"], cells, formatting.gib),
        "checkpointed": Number(whole_peak(best), cells, formatting.gib),
    }
    place = f"{one.ladder.size} at {one.ladder.context:,.0f}"
    text = f"Checkpoint the blocks: predicted {{foretold}} GiB, measured {{checkpointed}} ({place})"
    speed = one.speed(best)
    if speed and (speed.is_different or not speed.has_interval) and speed.ratio < 1:
        text += f", {{added}} ms longer{'' if speed.has_interval else ', no verdict'}"
        numbers["added"] = Number(speed.times[1] - speed.times[0], cells)
    return f"{text}.", numbers


def _warmup(machine: Machine) -> Cost | None:
    """A mean without warm-up that is not close to the late steps of its own process, of the largest size with one: it
    costs a measurement, and no step of a training.

    As in the chapter, nothing is compared between processes; the first step must take longer than every late one.
    """
    warmups = Warmups(machine.tables)
    setting = main_setting(warmups, machine.hardware)
    found = []
    for point in setting.measured if setting else ():
        for cold in processes(warmups, point):
            ratio = cold.times[WHOLE].mean() / cold.late()
            if cold.warmup == 0 and cold.is_above_late_ones(0) and ratio > 1 + CLOSE:
                found.append((point, cold, ratio))
    if not found:
        return None
    point, cold, ratio = max(found, key=lambda each: each[0].parameters)
    numbers = {
        "ratio": Number(ratio, (cold.cell,), formatting.times),
        "excess": Number(cold.excess(0), (cold.cell,)),
    }
    text, steps = "Leave the first step out.", point.enough("step") if point.is_settled else None
    if steps:
        text = f"Drop {{enough}} step{'s' * (steps != 1)} first: then it stays within ± {percent(CLOSE)}."
        numbers["enough"] = Number(steps, (cold.cell,), formatting.count)
    said = (
        f"Without warm-up the mean of {len(cold.times):,} steps is {{ratio}} a late step "
        f"({point.size} at {setting.context:,.0f}, {setting.precision})."
    )
    cause = "The first step takes {excess} ms longer."
    return Cost(
        0.0,
        "warmup",
        Finding("how much warm-up is needed", said, numbers, machine.hardware, cause, text),
    )


CANDIDATES: tuple[Callable[[Machine], Cost | None], ...] = (
    _other,
    _idle,
    _precision,
    _attention,
    _optimizer,
    _memory,
    _warmup,
)
