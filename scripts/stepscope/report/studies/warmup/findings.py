"""What the warm-up study's table says, for the summary and the section's opening."""

from collections.abc import Callable

import pandas as pd

from stepscope.report.data.warmup import (
    CLOSE,
    Setting,
    SizeRuns,
    Warmups,
    part_excess,
    profiled_excess,
    profiled_points,
    set_up_excess,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import Timed
from stepscope.report.kit.finding import Finding, Number
from stepscope.tables.columns import GPU, LAUNCHES, PROCESSOR, ratio
from stepscope.tables.warmup import PARTS, PHASES, SET_UP

_LIMITED = {LAUNCHES: " that launches limit", GPU: " that the GPU limits", PROCESSOR: " on a CPU"}
# (question, answer without its full stop, numbers); the setting is named at the end of the answer where that is needed.
_Claim = tuple[str, str, dict[str, Number]]


def opening(warmups: Warmups) -> list[Finding]:
    """What was measured, or that nothing was."""
    question = "what was measured"
    if not warmups.measured:
        return [Finding(question, "No warm-up cell was measured.")]
    rows = [row for setting in warmups.measured for point in setting.measured for row in point.measured]
    counts = sorted({row["warmup"] for row in rows})
    numbers = {"counts": Number(counts, _cells(rows), _counts)}
    steps = "1 warm-up step" if counts == [1] else "{counts} warm-up steps"
    measured = f"{warmups.steps} steps were measured" if warmups.steps != "1" else "1 step was measured"
    own = ", each count in a process of its own" if len(counts) > 1 else ", in a process of its own"
    answer = f"Exactly {measured} after {steps}{own}. Nothing ran before the first step and nothing was discarded."
    return [Finding(question, answer, numbers)]


def findings(warmups: Warmups) -> list[Finding]:
    """The findings, machine by machine."""
    if warmups.cells.empty:
        return [Finding("warm-up", "No warm-up cell is in the tables.")]
    found = []
    for hardware in warmups.hardware:
        settings = warmups.of(hardware)
        for setting in settings:
            found += _of(warmups, setting, len(settings) > 1)
        found += [*_between_processes(settings, hardware), *_lost(warmups.cells, hardware)]
    return found


def _of(warmups: Warmups, setting: Setting, several: bool) -> list[Finding]:
    """The findings of a setting, which is named where a machine has several."""
    if not setting.measured:
        return []
    claims = [
        _too_high(setting),
        _one_or_two(setting),
        _enough(setting),
        _first(setting),
        _contents(setting),
        _phases(setting),
        _unsettled(setting),
    ]
    where = f" ({setting.title})" if several else ""
    return [
        Finding(question, f"{answer}{where}.", numbers, setting.hardware)
        for question, answer, numbers in filter(None, claims)
    ]


def _cells(rows: list[dict]) -> tuple[str, ...]:
    return tuple(row["cell"] for row in rows)


def _cold(setting: Setting) -> list[SizeRuns]:
    """The points measured without warm-up, and with a steady state."""
    return [point for point in setting.points if point.cold and formatting.known(point.cold["step_mean_over_steady"])]


def scope(told: list[SizeRuns], setting: Setting, why: Callable[[SizeRuns], str]) -> str:
    """Of how many of the setting's sizes something is said, and why not of the others: ` (4 of 5 sizes; not xl: OOM)`.

    Nothing where the setting has one size alone.
    """
    reasons: dict[str, list[SizeRuns]] = {}
    for point in setting.points:
        if point not in told:
            reasons.setdefault(why(point), []).append(point)
    if len(setting.points) == 1:
        return ""
    if not reasons:
        return f" (all {len(told):,} sizes)"
    left_out = "; ".join(f"not {_sizes(points)}: {reason}" for reason, points in reasons.items())
    return f" ({len(told):,} of {len(setting.points):,} sizes; {left_out})"


def _why_no_mean(count: int) -> Callable[[SizeRuns], str]:
    """Why nothing is said of a size's mean after so many warm-up steps."""

    def why(point: SizeRuns) -> str:
        if not any(row["warmup"] == count for row in point.measured):
            return "no result"
        if point.steady("step") is None:
            return "no steady state"
        if point.width is None:
            return "two processes that disagree" if point.is_unsteady("step") else "a steady state of one process"
        return _WITHIN

    return why


_WITHIN = "within what fresh processes differ by"


def off(values: list[float]) -> str:
    """How far ratios to the steady state are off, in words that stand after `is`: `12 % too high`."""
    low, high = min(values), max(values)
    if low >= 1 or high < 1:
        return f"{_shares([abs(value - 1) for value in (low, high)])} too {'high' if low >= 1 else 'low'}"
    return f"between {formatting.percent(1 - low)} too low and {formatting.percent(high - 1)} too high"


def _shares(values: list[float]) -> str:
    return formatting.value_range([100 * value for value in values], 2, " %")


def _milliseconds(values: list[float]) -> str:
    return formatting.value_range(values, 3, " ms")


def _counts(values: list[float]) -> str:
    return formatting.listing([formatting.count(value) for value in values], 12)


def _ends(
    values: list[tuple[SizeRuns, float]], show: Callable[[float], str], unit: str
) -> tuple[str, dict[str, Number]]:
    """`{least} (small) to {most} (xl) UNIT`; `{least} UNIT (small)` of one point."""
    low, high = (which(values, key=lambda each: each[1]) for which in (min, max))
    numbers = {
        name: Number(value, (point.cold["cell"],), show) for name, (point, value) in (("least", low), ("most", high))
    }
    if low is high:
        return f"{{least}} {unit} ({low[0].size})", {"least": numbers["least"]}
    return f"{{least}} ({low[0].size}) to {{most}} ({high[0].size}) {unit}", numbers


def _too_high(setting: Setting) -> _Claim | None:
    judged = [(point, point.is_beyond("step", point.cold["step_mean_over_steady"])) for point in _cold(setting)]
    points = [point for point, is_beyond in judged if is_beyond]
    question = "what does a benchmark without warm-up get"
    if not points:
        near = [point for point, is_beyond in judged if is_beyond is False]
        words = f"Without warm-up the mean time of a step is {_WITHIN}{scope(near, setting, _why_no_mean(0))}"
        return (question, words, _off_numbers(near, "mean")) if near else None
    rows = [point.cold for point in points]
    means = [row["step_mean_over_steady"] for row in rows]
    words, numbers = "{mean}", {"mean": Number(means, _cells(rows), off)}
    if min(means) >= 1:
        excess = [(point, mean - 1) for point, mean in zip(points, means, strict=True)]
        words, numbers = _ends(excess, formatting.percent, "too high")
    answer = f"Without warm-up the mean time of a step is {words}"
    spread = [row for row in rows if formatting.known(row["step_std_over_mean"])]
    if len(spread) == len(rows):
        answer += ", with a standard deviation of {std} of that mean"
        numbers["std"] = Number([row["step_std_over_mean"] for row in spread], _cells(spread), _shares)
    medians = max(abs(row["step_median_over_steady"] - 1) for row in rows)
    numbers["median_off"] = Number(medians, _cells(rows), formatting.percent)
    are_near = not any(point.is_beyond("step", point.cold["step_median_over_steady"]) for point in points)
    most = " at most" if len(points) > 1 else ""
    answer += f"; the median of the same steps is off by {{median_off}}{most}"
    answer += ", which fresh processes differ by too" if are_near else ""
    return question, answer + scope(points, setting, _why_no_mean(0)), numbers


def _off_numbers(points: list[SizeRuns], name: str) -> dict[str, Number]:
    """The means without warm-up over the steady state."""
    rows = [point.cold for point in points]
    return {name: Number([row["step_mean_over_steady"] for row in rows], _cells(rows), off)}


def _one_or_two(setting: Setting) -> _Claim | None:
    """What one and two warm-up steps leave, where that is more than fresh processes differ by."""
    parts, numbers = [], {}
    for count, name, words in ((1, "one", "1 warm-up step"), (2, "two", "2 warm-up steps")):
        rows = [(point, row) for point in setting.points for row in point.measured if row["warmup"] == count]
        judged = [(point, row, point.is_beyond("step", row["step_mean_over_steady"])) for point, row in rows]
        told = [(point, row) for point, row, is_beyond in judged if is_beyond]
        near = [point for point, _, is_beyond in judged if is_beyond is False]
        start = "after" if parts else "After"
        if told:
            own = [row for _, row in told]
            numbers[name] = Number([row["step_mean_over_steady"] for row in own], _cells(own), off)
            of = scope([point for point, _ in told], setting, _why_no_mean(count))
            parts.append(f"{start} {words} the mean is {{{name}}}{of}")
        elif near:
            parts.append(f"{start} {words} the mean is {_WITHIN}{scope(near, setting, _why_no_mean(count))}")
    return ("what do one and two warm-up steps leave", "; ".join(parts), numbers) if parts else None


def _enough(setting: Setting) -> _Claim | None:
    points = [point for point in setting.points if point.is_settled]
    if not points:
        return None
    enough: dict[float | None, list[SizeRuns]] = {}
    for point in points:
        enough.setdefault(point.enough("step"), []).append(point)
    unknown = enough.pop(None, [])
    parts, numbers = [], {}
    for at, (count, own) in enumerate(sorted(enough.items()), 1):
        rows = [row for point in own for row in point.measured if row["warmup"] == count]
        numbers[f"enough_{at}"] = Number(count, _cells(rows), formatting.count)
        parts.append(f"{{enough_{at}}} for {_sizes(own)}")
    if unknown:
        rows = [row for point in unknown for row in point.measured]
        numbers["tried"] = Number(max(row["warmup"] for row in rows), _cells(rows), formatting.count)
        parts.append(f"more than the {{tried}} that were tried for {_sizes(unknown)}")
    start = f"Warm-up steps after which the mean stays within {CLOSE * 100:.0f} % of the steady state"
    of = scope(points, setting, _why_not_settled)
    return "how many warm-up steps are enough", f"{start}: {'; '.join(parts)}{of}", numbers


def _why_not_settled(point: SizeRuns) -> str:
    return "no steady state" if point.steady("step") is None else "steady state not known well enough"


def _sizes(points: list[SizeRuns]) -> str:
    return formatting.listing([point.size for point in points])


def _first(setting: Setting) -> _Claim | None:
    points = [point for point in _cold(setting) if point.is_first_beyond("step")]
    if not points:
        return None
    ratios = [(point, point.cold["step_first_ms"] / point.steady("step")) for point in points]
    words, numbers = _ends(ratios, formatting.significant, "times as long as a steady one")
    excess = [point.excess("step") for point in points]
    more = ""
    if min(excess) > 0:
        more = ", which is {excess} more"
        numbers["excess"] = Number(excess, _cells([point.cold for point in points]), _milliseconds)
    of = scope(points, setting, _why_no_mean(0))
    return "how long is the first step", f"The first step takes {words}{more}{of}", numbers


def _contents(setting: Setting) -> _Claim | None:
    """The parts' shares of the profiled excess, where they are parts of it, and the set-up's sum against both whole
    differences."""
    profiled = profiled_points(setting)
    points = [point for point in profiled if is_made_of_parts(point)]
    question = "what does the first step spend it on"
    if not points:
        if not profiled:
            return None
        of = scope([], setting, _why_no_shares) or f" ({_why_no_shares(profiled[0])})"
        return question, f"The profiles give no shares of what the first step takes longer{of}", {}
    shares = _shares_of_excess(points)
    ranked = sorted((part for part in shares if shares[part]), key=lambda part: -max(shares[part]))
    named = [part for part in ranked if max(shares[part]) >= 0.01][:4]
    cells = _cells([point.profiled for point in points])
    numbers = {PARTS[part]: Number(shares[part], cells, _shares) for part in named}
    answer = "A profile puts what the first step takes longer down to "
    answer += formatting.listing([f"{part} ({{{PARTS[part]}}})" for part in named])
    answer += scope(points, setting, _why_no_shares)
    sums, told = _set_up_shares(points, setting)
    if told:
        parts = formatting.listing([part for part in SET_UP if any(shares[part])])
        answer += f"; set-up ({parts}) makes up {formatting.listing(told)}"
    return question, answer, numbers | sums


def is_made_of_parts(point: SizeRuns) -> bool:
    """Whether the profiled excess is a sum of parts: none is below zero or above the whole by more than CLOSE of it."""
    whole = profiled_excess(point.profiled)
    parts = [part_excess(point.profiled, part) for part in PARTS]
    return whole > 0 and all(-CLOSE * whole <= part <= (1 + CLOSE) * whole for part in parts if part is not None)


def _why_no_shares(point: SizeRuns) -> str:
    whole = profiled_excess(point.profiled)
    if whole is None:
        return "no profile"
    if whole <= 0:
        return "the profiled first step took no longer"
    excess = {part: part_excess(point.profiled, part) or 0.0 for part in PARTS}
    least = min(excess, key=excess.__getitem__)
    return f"less time went to {least} in the first step" if excess[least] < 0 else "one part took more than the whole"


def _shares_of_excess(points: list[SizeRuns]) -> dict[str, list[float]]:
    """Part -> its share of the profiled excess, point by point."""
    return {
        part: [
            part_excess(point.profiled, part) / profiled_excess(point.profiled)
            for point in points
            if part_excess(point.profiled, part) is not None
        ]
        for part in PARTS
    }


def _set_up_shares(points: list[SizeRuns], setting: Setting) -> tuple[dict[str, Number], list[str]]:
    """The set-up's sum over the profiled excess and over that without a profiler, where it is a part of it.

    (numbers, the words for each).
    """
    wholes = {
        "profiled": {point.size: profiled_excess(point.profiled) for point in points},
        "unprofiled": {point.size: point.excess("step") for point in points if point.is_first_beyond("step")},
    }
    numbers, words = {}, []
    for name, whole in wholes.items():
        shares = {point.size: ratio(set_up_excess(point.profiled), whole.get(point.size)) for point in points}
        told = [point for point in points if _is_share(shares[point.size])]
        if told:
            numbers[name] = Number(
                [shares[point.size] for point in told], _cells([each.profiled for each in told]), _shares
            )
            of = scope(told, setting, _why_not_a_part) if len(told) < len(points) else ""
            words.append(f"{{{name}}} of the {name} excess{of}")
    if "profiled" in numbers and "unprofiled" not in numbers and wholes["unprofiled"]:
        words.append(
            "no known share of the unprofiled excess, since under the profiler it takes longer than all of that"
        )
    return numbers, words


def _is_share(value: float | None) -> bool:
    return value is not None and 0 <= value <= 1 + CLOSE


def _why_not_a_part(point: SizeRuns) -> str:
    if profiled_excess(point.profiled) is None or not is_made_of_parts(point):
        return "no shares"
    if not point.is_first_beyond("step"):
        return "no sure excess without a profiler"
    return "under the profiler it takes longer than the whole excess without"


def _phases(setting: Setting) -> _Claim | None:
    """Which phase pays for the first step."""
    phases = PHASES["step"]
    points = [point for point in _cold(setting) if not _why_no_phases(point)]
    if not points:
        return None
    cells = _cells([point.cold for point in points])
    shares = {phase: [point.excess(phase) / point.excess("step") for point in points] for phase in phases}
    numbers = {phase: Number(values, cells, _shares) for phase, values in shares.items()}
    where = "{forward} is spent in forward, {backward} in backward and {optimizer} in the optimizer"
    answer = f"Of what the first step takes longer, {where}{scope(points, setting, _why_no_phases)}"
    return "which phase pays for the first step", answer, numbers


def _why_no_phases(point: SizeRuns) -> str:
    """Why nothing is said of a size's phases in the first step; empty where something is."""
    if not point.is_first_beyond("step") or point.excess("step") <= 0:
        return _why_no_mean(0)(point)
    faster = [phase for phase in PHASES["step"] if point.excess(phase) < 0 and point.is_first_beyond(phase)]
    return f"its first {faster[0]} was faster than a steady one" if faster else ""


def _unsettled(setting: Setting) -> _Claim | None:
    """Sizes whose steady state has no interval, or one too wide to call a mean close to it."""
    measured = setting.measured
    torn = [point for point in measured if point.width is None and point.is_unsteady("step")]
    single = [point for point in measured if point.width is None and point not in torn]
    wide = [point for point in measured if point.width is not None and not point.is_settled]
    numbers, parts = {}, []
    for at, point in enumerate(wide, 1):
        numbers[f"width_{at}"] = Number(point.width, _cells(point.measured), formatting.plus_minus)
    if wide:
        sizes = formatting.listing([f"{point.size} ({{width_{at}}})" for at, point in enumerate(wide, 1)])
        parts.append(f"{sizes}, too wide an interval to call a mean close to it")
    if torn:
        parts.append(f"{_sizes(torn)}, whose two processes disagree")
    if single:
        alone = "a single process or none ran late steps, so that nothing is compared with it"
        parts.append(f"{_sizes(single)}, of which {alone}")
    if not parts:
        return None
    answer = f"The steady state is not known well enough of {'; and of '.join(parts)}"
    return "what has no steady state", answer, numbers


def _between_processes(settings: list[Setting], hardware: str) -> list[Finding]:
    """What the steady state's processes differ by, for each class of points, and which points are of none."""
    classes: dict[str | None, list[tuple[SizeRuns, Timed]]] = {}
    unsteady = [
        f"{point.size} ({setting.precision})"
        for setting in settings
        for point in setting.measured
        if point.is_unsteady("step")
    ]
    for setting in settings:
        for point in setting.measured:
            state = point.steady_state("step")
            if state and state.spread and state.has_interval and not point.is_unsteady("step"):
                classes.setdefault(state.limited_by, []).append((point, state))
    numbers, parts = {}, []
    for at, (limited_by, own) in enumerate(classes.items(), 1):
        cells = tuple(row["cell"] for point, _ in own for row in point.measured)
        numbers[f"spread_{at}"] = Number(own[0][1].spread.deviation, cells, formatting.percent)
        points = f"{len(own):,} point{'s' * (len(own) > 1)}{_LIMITED.get(limited_by, '')}"
        processes = sum(state.processes for _, state in own)
        parts.append(f"{{spread_{at}}} ({points}, {processes:,} processes)")
    if not parts:
        return []
    answer = f"The median late step of a fresh process differs by a standard deviation of {formatting.listing(parts)}."
    if unsteady:
        answer += f" Left out, since its processes differ by more than chance allows: {formatting.listing(unsteady)}."
    return [Finding("how much do processes differ", answer, numbers, hardware)]


def _lost(cells: pd.DataFrame, hardware: str) -> list[Finding]:
    """Cells without a result."""
    every = cells[cells["hardware"] == hardware]
    parts, numbers = [], {}
    for status, words in (("oom", "out of memory"), ("unsupported", "not possible")):
        own = every[every["status"] == status]
        if len(own):
            numbers[status] = Number(len(own), tuple(own["cell"]), formatting.count)
            of = f"{len(every):,} warm-up {'cell' if len(every) == 1 else 'cells'}"
            start = words if parts else words.capitalize()
            parts.append(f"{start} in {{{status}}} of {of} ({formatting.listing(list(dict.fromkeys(own['size'])))})")
    return [Finding("what has no result", f"{'; '.join(parts)}.", numbers, hardware)] if parts else []
