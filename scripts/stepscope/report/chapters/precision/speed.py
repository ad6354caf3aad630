"""What bf16 and tf32 bring in time, by size: matrix products, other kernels, and the wait for launches."""

from collections.abc import Iterable

from stepscope.report.data.bound import LAUNCH_BOUND
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.mixed import REFERENCE, MixedPair
from stepscope.report.data.spotlight import MIXED, Machine
from stepscope.report.data.step_parts import StepParts, side_by_side, work
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.compare import ratio_range
from stepscope.report.kit.finding import Finding, Number, enough
from stepscope.report.kit.sizes import percent_change
from stepscope.report.studies.page_one.tables import time_cell

SINGLE = "single processes: no verdict"
ALIKE = 0.05  # a share, up to which two times of the optimizer count as the same
FALLS_SHORT = 0.8  # of a prediction, below which a measured gain is said to need an explanation
_STEP = "step"


def both_precisions(machine: Machine) -> list[tuple[StepParts, StepParts, MixedPair]]:
    """(step in fp32, in bf16, the two timed) of each place that was profiled in both, the largest first."""
    steps = {(each.place, each.precision): each for each in machine.steps}
    found = []
    for pair in machine.pairs:
        place = pair.row["size"], pair.row["context"], pair.row["batch"]
        if (place, REFERENCE) in steps and (place, MIXED) in steps:
            found.append((steps[place, REFERENCE], steps[place, MIXED], pair))
    return sorted(found, key=lambda each: each[1].work, reverse=True)


def overall(pairs: list[MixedPair]) -> Finding | None:
    """The range of a step's speed in bf16 over fp32's, with the cells of both ends and the verdicts."""
    if not pairs:
        return None
    ordered = sorted(pairs, key=lambda pair: pair.speeds[_STEP].ratio)
    least, most = ordered[0], ordered[-1]
    ratios = [pair.speeds[_STEP].ratio for pair in pairs]
    numbers = {"speed": Number(ratios, tuple(cell for pair in pairs for cell in pair.cells), ratio_range)}
    ends = f" ({least.point})" if least is most else f" (least {least.point}, most {most.point})"
    answer = f"A step in {MIXED} runs at {{speed}} times {REFERENCE}'s speed{ends}; {_verdicts(pairs)}."
    return Finding("what does mixed precision bring", answer, numbers, pairs[0].row["hardware"])


def _verdicts(pairs: list[MixedPair]) -> str:
    """`faster in 12, slower in 1 of 18 cells`, or that there is no verdict."""
    words = [pair.verdict(_STEP) for pair in pairs if enough(comparison=pair.speeds[_STEP])]
    told = [f"{word} in {words.count(word):,}" for word in dict.fromkeys(sorted(words))]
    cells = formatting.cells(len(pairs))
    return f"{', '.join(told)} of {cells}" if told else f"{cells}, {SINGLE}"


def where_it_pays(machine: Machine) -> Finding | None:
    """The largest step that was profiled in both: products against all other kernels, and what the casts add."""
    found = both_precisions(machine)
    if not found:
        told = f"No step was profiled on a GPU in both {REFERENCE} and {MIXED}: profile one to see why."
        return Finding("why does it pay", told, hardware=machine.hardware) if machine.pairs else None
    before, after, pair = found[0]
    rest = [each.busy - each.products for each in (before, after)]
    numbers = {
        "before": Number(before.products, pair.cells),
        "after": Number(after.products, pair.cells),
        "rest_before": Number(rest[0], pair.cells),
        "rest_after": Number(rest[1], pair.cells),
    }
    answer = (
        f"In {after.name} matrix products take {{after}} instead of {{before}} ms, all other kernels {{rest_after}} "
        "instead of {rest_before} ms."
    )
    if rest[1] < rest[0]:
        return Finding("why does it pay", answer, numbers, machine.hardware, "The others gain too.")
    parts = []
    if before.optimizer and abs(after.optimizer / before.optimizer - 1) <= ALIKE:
        parts.append("the optimizer stays in fp32 ({optimizer} ms)")
        numbers["optimizer"] = Number(after.optimizer, pair.cells)
    casts = [_casts(machine, each, "ms_per_step") for each in (before, after)]
    if None not in casts and casts[1] > casts[0]:
        parts.append("casts and copies add {casts} ms")
        numbers["casts"] = Number(casts[1] - casts[0], pair.cells)
    cause = f"{formatting.listing(parts)}." if parts else ""
    return Finding("why does it pay", answer, numbers, machine.hardware, cause[:1].upper() + cause[1:])


def _casts(machine: Machine, step: StepParts, column: str) -> float | None:
    """Of the kernels that copy or cast: ms or instances a step."""
    value = machine.profile.row("categories", step.row["cell"], phase="step", category="copy/cast").get(column)
    return value if formatting.known(value) else None


def predicted(machine: Machine, step: StepParts, precision: str) -> float | None:
    """How many times as fast a step in fp32 is if its products alone gain what the measured ceilings promise."""
    low, plain = (matmul_ceiling(machine.tables["ceilings"], machine.hardware, name) for name in (precision, REFERENCE))
    return step.total / (step.total - step.products * (1 - plain / low)) if low and plain else None


def beside_prediction(machine: Machine) -> Finding | None:
    """The largest step's gain beside that which the ceilings' rates of matrix products predict."""
    found = both_precisions(machine)
    promised = predicted(machine, found[0][0], MIXED) if found else None
    if not promised:
        return None
    pair = found[0][2]
    ratio = pair.speeds[_STEP].ratio
    numbers = {
        "predicted": Number(promised, pair.cells, formatting.times),
        "measured": Number(ratio, pair.cells, formatting.times),
        "gap": Number(ratio / promised - 1, pair.cells, percent_change),
    }
    answer = "The products alone, at the ceilings' rates, predict {predicted}; {measured} was measured ({gap})."
    return Finding("how near is that to the prediction", answer, numbers, machine.hardware)


def where_it_pays_least(machine: Machine) -> Finding | None:
    """The profiled step that gains least: busy and idle in both precisions, and its launches."""
    found = both_precisions(machine)
    if len(found) < 2:
        return None
    before, after, pair = min(found, key=lambda each: each[2].speeds[_STEP].ratio)
    gain = pair.speeds[_STEP]
    numbers = {
        "idle_before": Number(before.idle, pair.cells),
        "idle_after": Number(after.idle, pair.cells),
        "speed": Number(gain.ratio, pair.cells, formatting.times),
    }
    word = f", {gain.verdict}" if gain.has_interval else ""
    cause = "Launches do not explain that."
    if after.share("idle") > 1 - LAUNCH_BOUND:
        cause = "Launches limit it: shorter kernels only lengthen the wait."
        if more := _more_launches(machine, before, after):
            cause = "Launches limit it, and casts raise them from {kernels_before} to {kernels_after}."
            for name, value in zip(("kernels_before", "kernels_after"), more, strict=True):
                numbers[name] = Number(value, pair.cells, formatting.count)
    answer = (
        f"{after.name} gains least of these ({{speed}}{word}): it idles {{idle_after}} ms in {MIXED}, "
        f"{{idle_before}} in {REFERENCE}."
    )
    return Finding("why does it bring nothing elsewhere", answer, numbers, machine.hardware, cause)


def _more_launches(machine: Machine, before: StepParts, after: StepParts) -> list[float] | None:
    """Kernels a step in both precisions, where casts and copies make up at least half of what is added; else None."""
    kernels = [_kernels(machine, each) for each in (before, after)]
    casts = [_casts(machine, each, "instances_per_step") for each in (before, after)]
    if None in kernels or None in casts or kernels[1] <= kernels[0]:
        return None
    return kernels if casts[1] - casts[0] >= (kernels[1] - kernels[0]) / 2 else None


def _kernels(machine: Machine, step: StepParts) -> float | None:
    found = machine.profile.row("phases", step.row["cell"], phase="step").get("kernels_per_step")
    return found if formatting.known(found) else None


def tf32(machine: Machine) -> Finding | None:
    """What tf32 brought on the ladder, beside what the ceilings predict for the same step."""
    rungs = [
        (one, row, one.over_before[row["cell"]])
        for one in machine.ladders
        for row in one.climbed
        if row["precision"] == "tf32" and row["cell"] in one.over_before and _is_over_fp32(one, row)
    ]
    if not rungs:
        return None
    one, row, speed = max(rungs, key=lambda each: work(each[0].parameters, each[0].context))
    cells = (row["compared_with"], row["cell"])
    word = speed.verdict if speed.has_interval else "no verdict"
    numbers = {"measured": Number(speed.ratio, cells, formatting.times)}
    own = next(iter(_at(machine.steps, one, REFERENCE)), None)
    promised = predicted(machine, own, "tf32") if own else None
    place = f"{one.size} at {one.context:,.0f}"
    told, text = f"On the ladder tf32 brings {{measured}} ({word}) in a step of {place}", ""
    if promised:
        numbers["predicted"] = Number(promised, (own.row["cell"],), formatting.times)
        told += "; {predicted} is predicted"
        if speed.ratio < FALLS_SHORT * promised:
            text = "Profile it in tf32 to see why."
    return Finding("what does tf32 bring", f"{told}.", numbers, machine.hardware, advice=text)


def _is_over_fp32(one, row: dict) -> bool:
    before = one.at(row.get("compared_with"))
    return before is not None and before["precision"] == REFERENCE and not one.is_passed_over(row)


def _at(steps: Iterable[StepParts], one, precision: str) -> list[StepParts]:
    place = one.size, one.context, one.batch
    return [each for each in steps if each.place == place and each.precision == precision]


def by_size(machine: Machine) -> Table | None:
    """A row a size at the context at which most were profiled: the step and its parts in fp32 and bf16."""
    context, _ = side_by_side(machine.steps)
    found = [each for each in both_precisions(machine) if each[0].row["context"] == context][::-1][-MOST_ROWS:]

    def two(label: str, get) -> list[Column]:
        return [
            Column(name, "ms", label, value=lambda each, at=at: get(each[at]))
            for at, name in enumerate((REFERENCE, MIXED))
        ]

    columns = [
        Column("size", value=lambda each: each[0].row["size"], number=False),
        Column(REFERENCE, "ms", "step", value=lambda each: time_cell(each[2].reference)),
        Column(MIXED, "ms", "step", value=lambda each: time_cell(each[2].row)),
        Column("speed", "×", "step", value=lambda each: table.times_as_fast(each[2].speeds[_STEP])),
        Column("predicted", "×", "step", value=lambda each: predicted(machine, each[0], MIXED), show=_ratio),
        *two("matrix products", lambda step: step.products),
        *two("other kernels", lambda step: step.busy - step.products),
        *two("GPU idle", lambda step: step.idle),
    ]
    caption = (
        f"Where {MIXED} gains and where it does not: a step, its kernels by the profile, and idle time. Predicted: "
        "matrix products alone gain, as much as the measured ceilings are apart. "
        f"Context {context:,.0f}, batch {found[0][0].row['batch']:,.0f}, on {machine.hardware}."
        if found
        else ""
    )
    notes = [table.verdict_note(each[2].speeds[_STEP] for each in found)]
    return table.build(f"chapter-precision-sizes-{machine.hardware}", caption, columns, found, notes)


def _ratio(value: float) -> str:
    return formatting.fixed(value, 2)
