"""What is not a matrix product: why it stays, what of it the optimizer takes, of which kind it is, what fuses it."""

from stepscope.model.traffic import OPTIMIZER_BYTES, WRITTEN_OUT_BYTES
from stepscope.report.chapters.kernels.words import cells, doubts, gain, place, where, work_of
from stepscope.report.data.bound import PRODUCTS, bound_of_others
from stepscope.report.data.kernels import Mix, at_place_of, by_category, mix, whole_steps
from stepscope.report.data.ladder_predicted import predicted
from stepscope.report.data.machines import bandwidth
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known, percent
from stepscope.report.studies.page_one.changes import changes

_QUESTION = "what is not a matrix product"
_LEAST_CATEGORY = 0.05  # of the step's time in kernels; smaller categories are not named
_ALIKE = 0.1  # times that differ by less count as the same
_LIMITS = {
    "memory-bound": "With few operations a byte, memory limits them.",
    "latency-bound": "They are so short that starting takes most of their time.",
}


def rest_findings(machine: Machine, own: dict) -> tuple[Finding, ...]:
    """The most telling first."""
    first = _against_fp32(machine, own) or _alone(machine, own)
    return tuple(each for each in (first, _optimizer(machine, own)) if each)


def _against_fp32(machine: Machine, own: dict) -> Finding | None:
    """The products' time and the rest's, in fp32 and in the step's precision, and what the rest consists of."""
    plain = at_place_of(whole_steps(machine.profile, machine.hardware), own).get("fp32")
    before, after = (mix(machine.profile, row) if row else None for row in (plain, own))
    if not before or not after or plain["cell"] == own["cell"]:
        return None
    times = {"before": before.products, "after": after.products, "rest_before": before.rest, "rest_after": after.rest}
    numbers = {name: Number(time, cells([plain, own])) for name, time in times.items()}
    answer = (
        f"In {place(own)}, products take {{before}} ms in fp32 and {{after}} in {own['precision']}; all other "
        "kernels {rest_before} and {rest_after}."
    )
    kinds, more = _kinds(machine, own)
    cause = f"In {own['precision']} {kinds} of kernel time. {_why(before, after)}" if kinds else ""
    return Finding(_QUESTION, answer, numbers | more, machine.hardware, cause=cause.strip())


def _why(before: Mix, after: Mix) -> str:
    """Why the rest does not shrink as the products do; nothing where it does."""
    if after.rest < (1 - _ALIKE) * before.rest or not after.kernels:
        return ""
    return _LIMITS.get(bound_of_others(1e3 * after.rest / after.kernels), "")


def _alone(machine: Machine, own: dict) -> Finding | None:
    """What the rest consists of, where there is no step in fp32 beside it."""
    kinds, numbers = _kinds(machine, own)
    if not kinds:
        return None
    answer = f"In {place(own)} in {own['precision']} {kinds} of all {machine.profile.words(own).time}."
    return Finding(_QUESTION, answer, numbers, machine.hardware)


def _kinds(machine: Machine, own: dict) -> tuple[str, dict[str, Number]]:
    """The kinds of kernels that are not products, as shares of the step's time in kernels: words and numbers."""
    times = by_category(machine.profile, own)
    whole = sum(times.values())
    named = {name: time / whole for name, time in times.items() if name not in (*PRODUCTS, "other")}
    named = {name: share for name, share in named.items() if share >= _LEAST_CATEGORY}
    numbers = {f"share{at}": Number(share, (own["cell"],), percent) for at, share in enumerate(named.values())}
    told = [
        f"{name} kernels take {{share{at}}}" if at == 0 else f"{name} {{share{at}}}" for at, name in enumerate(named)
    ]
    return formatting.listing(told), numbers


def _optimizer(machine: Machine, own: dict) -> Finding | None:
    """The optimizer beside the time that its bytes need at the measured copy rate, and what the fused one saved."""
    line = machine.profile.row("phases", own["cell"], phase="optimizer")
    time, kernels = line.get("gpu_ms_per_step"), line.get("kernels_per_step")
    rate, parameters = bandwidth(machine.tables, machine.hardware, "measured"), own.get("parameters")
    if not machine.reference or not all(map(known, (time, kernels, rate, parameters))):
        return None
    least = OPTIMIZER_BYTES * parameters / rate / 1e6  # GB/s are 1e6 bytes a millisecond
    numbers = {
        "time": Number(time, (own["cell"],)),
        "least": Number(least, (own["cell"],)),
        "kernels": Number(kernels, (own["cell"],), formatting.count),
    }
    answer = (
        f"The optimizer's kernels take {{time}} ms. At a large copy's rate its {OPTIMIZER_BYTES} bytes a parameter "
        "would take {least}"
    )
    if time <= (1 + _ALIKE) * least:
        return Finding(_QUESTION, f"{answer}.", numbers, machine.hardware)
    numbers["written_out"] = Number(least * WRITTEN_OUT_BYTES / OPTIMIZER_BYTES, (own["cell"],))
    answer += f", the {WRITTEN_OUT_BYTES} that its {{kernels}} kernels move {{written_out}}."
    advice, more = _saved(machine, own)
    return Finding(_QUESTION, answer, numbers | more, machine.hardware, advice=advice)


def _saved(machine: Machine, own: dict) -> tuple[str, dict[str, Number]]:
    """What a fused optimizer saved on a ladder of as many parameters, beside what its bytes let expect, ms; else what
    it brought on the largest ladder."""
    made = changes(machine.ladders, "optimizer", lambda value: value == "fused")
    alike = next((each for each in made if each.ladder.parameters == own["parameters"]), None)
    time = alike.speed.times[0] - alike.speed.times[1] if alike else 0.0
    if time > 0:
        numbers = {"saved": Number(time, alike.cells)}
        said = f"Fusing it shortened a step by {{saved}} ms ({alike.place}{doubts(alike)})"
        told = predicted(machine, alike.ladder, alike.row)
        if told:
            numbers["predicted"] = Number(alike.speed.times[0] * (1 - 1 / told.gain), told.cells)
            said += "; {predicted} were predicted"
        return f"{said}.", numbers
    largest = max(made, key=work_of, default=None)
    return (f"Fusing it brought {{gain}} ({where(largest)}).", {"gain": gain(largest)}) if largest else ("", {})
