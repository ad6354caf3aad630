"""Why the first step is slow, and what a mean gets that holds it: each process beside its own late steps."""

from stepscope.report.data.warmup import Setting, SizeRuns, largest, part_excess, profiled_excess
from stepscope.report.data.warmup_process import Process
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.sizes import size
from stepscope.report.studies.warmup.findings import is_made_of_parts
from stepscope.tables.warmup import PARTS, PHASES

By = dict[str, list[Process]]  # the processes of each size, the smallest size first
AS_MANY = 1.05  # times as many calls, up to which they count as the same work
STATE_BYTES = 8  # of AdamW's state: two moments a parameter, in fp32
LEAST_CALL_MS = 1.0  # that a call must have taken longer in all to be named
LEAST_SHARE = 0.01  # of the first step's excess, from which on a part is named
_NAMED = 4  # parts, two a sentence
# What is made ready in a part; the others need no word.
_MADE_READY = {
    "operators": ", which are set up at their first call",
    "memory allocation": ", which asks the driver for memory",
    "matrix products": ", whose library sets itself up",
    "module loading": ", at each kernel's first launch",
}


def cells(found: list[Process]) -> tuple[str, ...]:
    return tuple(each.cell for each in found)


def ratios(by: By, hardware: str, place: str) -> Finding | None:
    """The first step over the late ones, process by process, in the smallest and the largest size.

    place: what the sizes have in common, such as `context 128, fp32, batch 4`.
    """
    if not by:
        return None
    numbers, parts = {}, []
    for key, name in {"small": next(iter(by)), "large": next(reversed(by))}.items():
        own = by[name]
        if key == "large" and name == next(iter(by)):
            continue
        numbers[key] = Number([each.ratio(0) for each in own], cells(own), _range)
        parts.append(f"{{{key}}} {'' if parts else 'times as long as late ones '}in {name}")
    most = max(len(own) for own in by.values())
    of = f"{most} processes a size" if len(by) > 1 else f"{most} process{'es' * (most > 1)}"
    answer = f"The first step takes {formatting.listing(parts)} ({place}; {of})."
    return Finding("how long is the first step", answer, numbers, hardware)


def _range(values: list[float]) -> str:
    return formatting.value_range(values, 3)


def cold(found: list[Process]) -> Process | None:
    """The process without warm-up."""
    return next((each for each in found if each.warmup == 0), None)


def means(by: By, hardware: str) -> tuple[Finding, ...]:
    """mean_of() the largest and the smallest size; where launches limit one on a slow host, of the next."""
    every = [own for found in by.values() if (own := cold(found)) and not own.is_slowed]
    ends = {own.size: own for own in [*every[-1:], *every[:1]]}
    return tuple(mean_of(own, hardware) for own in ends.values())


def mean_of(own: Process, hardware: str) -> Finding:
    """The mean of a process without warm-up beside its late steps, and what the first step alone adds to it."""
    off = own.times["step"].mean() / own.late() - 1
    alone = own.excess(0) / len(own.times) / own.late()
    numbers = {"off": Number(abs(off), (own.cell,), formatting.percent)}
    numbers["std"] = Number(own.times["step"].std() / own.times["step"].mean(), (own.cell,), formatting.percent)
    word = "above" if off >= 0 else "below"
    answer = (
        f"In {own.size} the mean of the first {len(own.times)} steps is {{off}} {word} the late ones; the standard "
        "deviation is {std} of that mean."
    )
    cause = ""
    if off > 0 and alone > 0:
        cause = "The first step alone predicts {alone}; the median is off by {median}."
        numbers["alone"] = Number(alone, (own.cell,), formatting.percent)
        numbers["median"] = Number(abs(own.times["step"].median() / own.late() - 1), (own.cell,), formatting.percent)
    return Finding("what does a mean without warm-up get", answer, numbers, hardware, cause)


def phases(by: By, hardware: str) -> Finding | None:
    """Which phase pays for the first step, over all processes in which every phase took longer."""
    every = [each for own in by.values() for each in own]
    told = [each for each in every if all(each.excess(0, phase) > 0 for phase in PHASES["step"])]
    if not told:
        return None
    shares = {phase: [each.excess(0, phase) / each.excess(0) for each in told] for phase in PHASES["step"]}
    most = max(shares, key=lambda phase: sorted(shares[phase])[len(told) // 2])
    numbers = {"most": Number([100 * share for share in shares[most]], cells(told), percents)}
    answer = f"Of what the first step takes longer, {{most}} is in {most} ({len(told)} of {len(every)} processes)."
    is_forward = most == "forward" and min(shares[most]) > 0.5
    cause = "Forward runs first." if is_forward else ""
    return Finding("which phase pays for it", answer, numbers, hardware, cause)


def percents(values: list[float]) -> str:
    return formatting.value_range(values, 2, " %")


def profiled_point(setting: Setting) -> SizeRuns | None:
    """The largest size whose profiled first step is a sum of parts, else the largest with a profile."""
    profiled = sorted((point for point in setting.points if point.profiled), key=lambda point: point.parameters)
    whole = [point for point in profiled if profiled_excess(point.profiled) and is_made_of_parts(point)]
    return next(reversed(whole or profiled), None)


def contents(setting: Setting) -> Finding | None:
    """What the profile puts the first step's excess down to: its largest parts, two a sentence."""
    point = profiled_point(setting)
    if point is None:
        return None
    question, cell = "what does the first step spend it on", (point.profiled["cell"],)
    if not profiled_excess(point.profiled) or not is_made_of_parts(point):
        answer = "No profile of a first step splits what it takes longer into parts."
        return Finding(question, answer, hardware=setting.hardware)
    whole = profiled_excess(point.profiled)
    shares = {part: (part_excess(point.profiled, part) or 0.0) / whole for part in PARTS}
    named = sorted((part for part in shares if shares[part] >= LEAST_SHARE), key=lambda part: -shares[part])[:_NAMED]
    numbers = {PARTS[part]: Number(shares[part], cell, formatting.percent) for part in named}
    told = [f"{part} ({{{PARTS[part]}}}){_MADE_READY.get(part, '')}" for part in named]
    answer = f"In {point.size} the profile puts what the first step takes longer down to {_both(told[:2])}."
    cause = f"Then come{'s' * (len(told) == 3)} {_both(told[2:])}." if len(told) > 2 else ""
    return Finding(question, answer, numbers, setting.hardware, cause)


def _both(told: list[str]) -> str:
    """One or two, of which each may hold a comma."""
    return ", and ".join(told)


def first_use(setting: Setting) -> Finding | None:
    """The call that took most longer with as many calls, and the one that only the first step makes."""
    point = profiled_point(setting)
    events = largest(point.profiled) if point else []
    again = max(filter(_is_again, events), key=_longer, default=None)
    once = max((each for each in events if _is_once(each)), key=_longer, default=None)
    if not again and not once:
        return None
    cell, numbers, parts = (point.profiled["cell"],), {}, []
    if again:
        numbers["calls"] = Number(again["calls_first"], cell, formatting.count)
        numbers["first"] = Number(1e3 * again["first_seconds"], cell)
        numbers["steady"] = Number(1e3 * again["steady_seconds"], cell)
        parts.append(
            f"The {{calls}} calls of {again['name']} take {{first}} instead of {{steady}} ms, though a steady step has "
            "as many."
        )
    if once:
        numbers["once"] = Number(once["calls_first"], cell, formatting.count)
        kept = ": the allocator keeps its memory" if once["part"] == "memory allocation" else ""
        parts.append(f"{once['name']} is called {{once}} times in the first step, never in a steady one{kept}.")
    return Finding("why does it take longer", parts[0], numbers, setting.hardware, " ".join(parts[1:]))


def optimizer_state(by: By, points: list[SizeRuns], hardware: str) -> Finding | None:
    """What the optimizer's first step takes longer in the largest size, where it creates its state."""
    name = next(reversed(by), None)
    excess = [each.excess(0, "optimizer") for each in by.get(name, ())]
    parameters = next((point.parameters for point in points if point.size == name), 0)
    if not excess or min(excess) <= 0 or not parameters > 0:
        return None
    numbers = {"excess": Number(excess, cells(by[name]), _range)}
    numbers["state"] = Number(STATE_BYTES * parameters, cells(by[name]), size)
    answer = f"The optimizer takes {{excess}} ms longer in {name}: its first step creates both moments, {{state}}."
    return Finding("when does the optimizer's state appear", answer, numbers, hardware)


def _is_again(event: dict) -> bool:
    """Whether the steady step made about as many of these calls, in less time."""
    first, steady = event["calls_first"], event["calls_steady"]
    alike = bool(first and steady) and steady <= first <= AS_MANY * steady
    return alike and 1e3 * _longer(event) >= LEAST_CALL_MS


def _is_once(event: dict) -> bool:
    """Whether only the first step made these calls."""
    return bool(event["calls_first"]) and not event["calls_steady"]


def _longer(event: dict) -> float:
    return event["first_seconds"] - event["steady_seconds"]


def biggest(points: tuple[SizeRuns, ...]) -> SizeRuns | None:
    """The measured size with most parameters."""
    measured = [point for point in points if point.measured]
    return max(measured, key=lambda point: point.parameters, default=None)
