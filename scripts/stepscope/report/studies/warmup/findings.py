"""What the warm-up study's table says, for the summary and the section's opening."""

from collections.abc import Callable

import pandas as pd

from stepscope.report.data.warmup import (
    CLOSE,
    RUN_PHASES,
    WARM,
    Setting,
    SizeRuns,
    Warmups,
    part_excess,
    profiled_excess,
    profiled_points,
    runs,
    set_up_excess,
    timed_elsewhere,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.tables.columns import ratio
from stepscope.tables.warmup import PARTS, PHASES, SET_UP

_STUDIES = {"timing": "timing", "warmup": "warm-up"}  # names in prose
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
    of_runs = runs(warmups)
    found = []
    for hardware in warmups.hardware:
        settings = warmups.of(hardware)
        for setting in settings:
            found += _of(warmups, setting, len(settings) > 1)
        found += [*_between_runs(of_runs, hardware), *_lost(warmups.cells, hardware)]
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
        _against_timing(warmups, setting),
    ]
    where = f" ({setting.title})" if several else ""
    return [
        Finding(question, f"{answer}{where}.", numbers, setting.hardware)
        for question, answer, numbers in filter(None, claims)
    ]


def _cells(rows: list[dict]) -> tuple[str, ...]:
    return tuple(row["cell"] for row in rows)


def _cold(setting: Setting) -> list[SizeRuns]:
    """The points measured without warm-up that have a steady state which is sure."""
    return [point for point in setting.settled if point.cold and formatting.known(point.cold["step_mean_over_steady"])]


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
    points = _cold(setting)
    if not points:
        return None
    rows = [point.cold for point in points]
    means = [row["step_mean_over_steady"] for row in rows]
    words, numbers = "{mean}", {"mean": Number(means, _cells(rows), off)}
    if min(means) >= 1:
        excess = [(point, mean - 1) for point, mean in zip(points, means, strict=True)]
        words, numbers = _ends(excess, formatting.percent, "too high")
    answer = f"Without warm-up the mean time of a step is {words}"
    spread = [row for row in rows if formatting.known(row["step_std_over_mean"])]
    if spread:
        answer += ", with a standard deviation of {std} of that mean"
        numbers["std"] = Number([row["step_std_over_mean"] for row in spread], _cells(spread), _shares)
    medians = max(abs(row["step_median_over_steady"] - 1) for row in rows)
    numbers["median_off"] = Number(medians, _cells(rows), formatting.percent)
    most = " at most" if len(points) > 1 else ""
    answer += f"; the median of the same steps is off by {{median_off}}{most}"
    return "what does a benchmark without warm-up get", answer, numbers


def _one_or_two(setting: Setting) -> _Claim | None:
    """What one and two warm-up steps leave."""
    parts, numbers = [], {}
    for count, name, words in ((1, "one", "1 warm-up step"), (2, "two", "2 warm-up steps")):
        rows = [row for point in setting.settled for row in point.measured if row["warmup"] == count]
        rows = [row for row in rows if formatting.known(row["step_mean_over_steady"])]
        if rows:
            numbers[name] = Number([row["step_mean_over_steady"] for row in rows], _cells(rows), off)
            start, verb = ("after", "") if parts else ("After", "the mean is ")
            parts.append(f"{start} {words} {verb}{{{name}}}")
    return ("what do one and two warm-up steps leave", formatting.listing(parts), numbers) if parts else None


def _enough(setting: Setting) -> _Claim | None:
    points = [point for point in setting.settled if point.steady("step")]
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
    return "how many warm-up steps are enough", f"{start}: {'; '.join(parts)}", numbers


def _sizes(points: list[SizeRuns]) -> str:
    return formatting.listing([point.size for point in points])


def _first(setting: Setting) -> _Claim | None:
    points = [point for point in _cold(setting) if formatting.known(point.cold["step_first_ms"])]
    if not points:
        return None
    ratios = [(point, point.cold["step_first_ms"] / point.steady("step")) for point in points]
    words, numbers = _ends(ratios, formatting.significant, "times as long as a steady one")
    excess = [point.excess("step") for point in points]
    more = ""
    if min(excess) > 0:
        more = ", which is {excess} more"
        numbers["excess"] = Number(excess, _cells([point.cold for point in points]), _milliseconds)
    return "how long is the first step", f"The first step takes {words}{more}", numbers


def _contents(setting: Setting) -> _Claim | None:
    """The parts' shares of the profiled excess, and the set-up's sum against both whole differences."""
    points = [point for point in profiled_points(setting) if profiled_excess(point.profiled) > 0]
    shares = _shares_of_excess(points)
    ranked = sorted((part for part in shares if shares[part]), key=lambda part: -max(shares[part]))
    named = [part for part in ranked if max(shares[part]) >= 0.01][:4]
    if not named:
        return None
    cells = _cells([point.profiled for point in points])
    numbers = {PARTS[part]: Number(shares[part], cells, _shares) for part in named}
    less = [part for part in shares if min(shares[part], default=0) < -CLOSE]
    numbers |= {f"less_{PARTS[part]}": Number(-min(shares[part]), cells, formatting.percent) for part in less}
    answer = "A profile puts what the first step takes longer down to "
    answer += formatting.listing([f"{part} ({{{PARTS[part]}}})" for part in named])
    if less:
        told = [f"{part} (by up to {{less_{PARTS[part]}}})" for part in less]
        answer += f", while less time goes to {formatting.listing(told)}"
    sums = _set_up_shares(points)
    if sums:
        told = [f"{{{name}}} of the {name} excess" for name in sums]
        answer += f"; set-up ({formatting.listing(list(SET_UP))}) makes up {formatting.listing(told)}"
    return "what does the first step spend it on", answer, numbers | sums


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


def _set_up_shares(points: list[SizeRuns]) -> dict[str, Number]:
    """The set-up's sum over the profiled excess and over that without a profiler."""
    whole = {"profiled": [(point, profiled_excess(point.profiled)) for point in points]}
    cold = [point for point in points if point.is_settled and (point.excess("step") or 0) > 0]
    whole["unprofiled"] = [(point, point.excess("step")) for point in cold]
    found = {}
    for name, pairs in whole.items():
        shares = [(point, ratio(set_up_excess(point.profiled), excess)) for point, excess in pairs]
        shares = [(point, share) for point, share in shares if share is not None]
        if shares:
            cells = _cells([point.profiled for point, _ in shares])
            found[name] = Number([share for _, share in shares], cells, _shares)
    return found


def _phases(setting: Setting) -> _Claim | None:
    """Which phase pays for the first step."""
    phases = PHASES["step"]
    points = [
        point
        for point in _cold(setting)
        if point.excess("step") > 0 and all(point.excess(each) >= 0 for each in phases)
    ]
    if not points:
        return None
    cells = _cells([point.cold for point in points])
    shares = {phase: [point.excess(phase) / point.excess("step") for point in points] for phase in phases}
    numbers = {phase: Number(values, cells, _shares) for phase, values in shares.items()}
    where = "{forward} is spent in forward, {backward} in backward and {optimizer} in the optimizer"
    return "which phase pays for the first step", f"Of what the first step takes longer, {where}", numbers


def _unsettled(setting: Setting) -> _Claim | None:
    """Sizes of which nothing is said, because their warm processes disagree."""
    points = setting.unsettled
    if not points:
        return None
    numbers, sizes = {}, []
    for at, point in enumerate(points, 1):
        cells = _cells([row for row in point.measured if row["warmup"] >= WARM])
        numbers[f"differ_{at}"] = Number(point.disagreement, cells, formatting.percent)
        sizes.append(f"{point.size} ({{differ_{at}}})")
    has, them, its = ("has", "it", "its") if len(points) == 1 else ("have", "them", "their")
    answer = (
        f"{formatting.listing(sizes)} {has} no sure steady state, and the comparisons with it above leave {them} out: "
        f"{its} processes with {WARM} or more warm-up steps differ by so much in the median step"
    )
    return "what has no steady state", answer, numbers


def _against_timing(warmups: Warmups, setting: Setting) -> _Claim | None:
    """The timing study's phased steps of the same points over the steady state."""
    found = timed_elsewhere(warmups, setting)
    if not found:
        return None
    low, high = (which(found, key=lambda each: each.over_steady) for which in (min, max))
    ends = {"least": low} if low is high else {"least": low, "most": high}
    numbers = {name: Number(each.over_steady, each.cells, _two_decimals) for name, each in ends.items()}
    words = " to ".join(f"{{{name}}} ({each.size})" for name, each in ends.items())
    start = "The timing study's phased steps of the same points, at another time, took"
    return "does the timing study agree", f"{start} {words} times the steady state", numbers


def _two_decimals(value: float) -> str:
    return f"{value:.2f}"


def _between_runs(found: pd.DataFrame, hardware: str) -> list[Finding]:
    """By how much runs of the same cell differ; none where nothing ran twice."""
    own = found[found["hardware"] == hardware]
    phase = next((phase for phase in reversed(RUN_PHASES) if (own["phase"] == phase).any()), None)
    if phase is None:
        return []
    own = own[own["phase"] == phase]
    worst = own.loc[own["spread"].idxmax()]
    numbers = {
        "spread": Number(float(worst["spread"]), worst["cells"], formatting.percent),
        "points": Number(len(own), sum(own["cells"], ()), formatting.count),
    }
    answer = (
        f"Fresh runs of the same cell differ in the median time of {'a step' if phase == 'step' else phase} by up "
        f"to {{spread}} ({worst['size']}, context {worst['context']:,.0f}, {worst['precision']}; "
        f"{_STUDIES[worst['study']]} study; {{points}} {'point' if len(own) == 1 else 'points'})."
    )
    return [Finding("how much do runs differ", answer, numbers, hardware)]


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
