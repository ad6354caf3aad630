"""Sentences that the warm-up study supports, for the summary and the section's opening."""

from collections.abc import Callable

from stepscope.report.data.warmup import (
    CLOSE,
    WARM,
    Point,
    Setting,
    Warmups,
    part_excess,
    profiled_excess,
    ratio,
    set_up_excess,
)
from stepscope.report.kit import formatting
from stepscope.report.studies.warmup import runs as warmup_runs
from stepscope.report.studies.warmup.first import profiled_points
from stepscope.tables.warmup import PARTS, SET_UP

_PHASES = ("forward", "backward", "optimizer")


def opening(warmups: Warmups) -> list[str]:
    """What was measured, or that nothing was."""
    if not warmups.measured:
        return ["No warm-up cell was measured."]
    rows = [row for setting in warmups.measured for point in setting.measured for row in point.measured]
    counts = [formatting.count(value) for value in sorted({row["warmup"] for row in rows})]
    steps = "1 warm-up step" if counts == ["1"] else f"{formatting.listing(counts, 12)} warm-up steps"
    measured = f"{warmups.steps} steps were measured" if warmups.steps != "1" else "1 step was measured"
    own = ", each count in a process of its own" if len(counts) > 1 else ", in a process of its own"
    return [f"Exactly {measured} after {steps}{own}. Nothing ran before the first step and nothing was discarded."]


def findings(warmups: Warmups) -> list[str]:
    """The findings, machine by machine."""
    if warmups.cells.empty:
        return ["No warm-up cell is in the tables."]
    found = warmup_runs.runs(warmups)
    sentences = []
    for hardware in warmups.hardware:
        own = [sentence for setting in warmups.of(hardware)
               for sentence in _of(warmups, setting, len(warmups.of(hardware)) > 1)]  # fmt: skip
        own += [warmup_runs.told(found, hardware), _lost(warmups, hardware)]
        place = f"On {hardware}: " if len(warmups.hardware) > 1 else ""
        sentences += [place + sentence for sentence in own if sentence]
    return sentences


def _of(warmups: Warmups, setting: Setting, several: bool) -> list[str]:
    """Sentences on a setting, which is named where a machine has several."""
    if not setting.measured:
        return []
    found = [
        _too_high(setting),
        _one_or_two(setting),
        _enough(setting),
        _first(setting),
        _contents(setting),
        _phases(setting),
        _unsettled(setting),
        warmup_runs.against_timing(warmups, setting),
    ]
    return [
        f"{sentence.removesuffix('.')} ({setting.title})." if several else sentence for sentence in found if sentence
    ]


def _cold(setting: Setting) -> list[Point]:
    """The points measured without warm-up that have a steady state which is sure."""
    return [point for point in setting.settled if point.cold and formatting.known(point.cold["step_mean_over_steady"])]


def off(values: list[float]) -> str:
    """How far ratios to the steady state are off, in words that stand after `is`: `12 % too high`."""
    low, high = min(values), max(values)
    if low >= 1 or high < 1:
        sizes = [100 * abs(value - 1) for value in (low, high)]
        return f"{formatting.value_range(sizes, 2, ' %')} too {'high' if low >= 1 else 'low'}"
    return f"between {formatting.percent(1 - low)} too low and {formatting.percent(high - 1)} too high"


def _ends(points: list[Point], value: Callable[[Point], float], shown: Callable[[float], str], unit: str) -> str:
    """`1.2 (small) to 3.4 (xl) UNIT`, the least and the most; `1.2 UNIT (small)` of one point."""
    low, high = min(points, key=value), max(points, key=value)
    if low is high:
        return f"{shown(value(low))} {unit} ({low.size})"
    return f"{shown(value(low))} ({low.size}) to {shown(value(high))} ({high.size}) {unit}"


def _too_high(setting: Setting) -> str:
    points = _cold(setting)
    if not points:
        return ""
    ratios = [point.cold["step_mean_over_steady"] for point in points]
    means = off(ratios)
    if min(ratios) >= 1:
        means = _ends(points, lambda point: point.cold["step_mean_over_steady"] - 1, formatting.percent, "too high")
    text = f"Without warm-up the mean time of a step is {means}"
    spreads = [100 * point.cold["step_std_over_mean"] for point in points
               if formatting.known(point.cold["step_std_over_mean"])]  # fmt: skip
    if spreads:
        text += f", with a standard deviation of {formatting.value_range(spreads, 2, ' %')} of that mean"
    medians = max(abs(point.cold["step_median_over_steady"] - 1) for point in points)
    most = " at most" if len(points) > 1 else ""
    return f"{text}; the median of the same steps is off by {formatting.percent(medians)}{most}."


def _one_or_two(setting: Setting) -> str:
    """What one and two warm-up steps leave."""
    parts = []
    for count, words in ((1, "1 warm-up step"), (2, "2 warm-up steps")):
        rows = [row for point in setting.settled for row in point.measured if row["warmup"] == count]
        values = [row["step_mean_over_steady"] for row in rows if formatting.known(row["step_mean_over_steady"])]
        if values:
            parts.append(f"after {words} {'' if parts else 'the mean is '}{off(values)}")
    text = formatting.listing(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _enough(setting: Setting) -> str:
    points = [point for point in setting.settled if point.steady("step")]
    if not points:
        return ""
    sizes: dict[float | None, list[str]] = {}
    for point in points:
        sizes.setdefault(point.enough("step"), []).append(point.size)
    counts = sorted(count for count in sizes if count is not None)
    parts = [f"{count:,.0f} for {formatting.listing(sizes[count])}" for count in counts]
    if None in sizes:
        most = max(row["warmup"] for point in points if point.size in sizes[None] for row in point.measured)
        parts.append(f"more than the {most:,.0f} that were tried for {formatting.listing(sizes[None])}")
    start = f"Warm-up steps after which the mean stays within {CLOSE * 100:.0f} % of the steady state"
    return f"{start}: {'; '.join(parts)}."


def _first(setting: Setting) -> str:
    points = [point for point in _cold(setting) if formatting.known(point.cold["step_first_ms"])]
    if not points:
        return ""
    unit = "times as long as a steady one"
    ratios = _ends(
        points, lambda point: point.cold["step_first_ms"] / point.steady("step"), formatting.significant, unit
    )
    excess = [point.excess("step") for point in points]
    more = f", which is {formatting.value_range(excess, 3, ' ms')} more" if min(excess) > 0 else ""
    return f"The first step takes {ratios}{more}."


def _contents(setting: Setting) -> str:
    """The parts' shares of the profiled excess, and the set-up's sum against both whole differences."""
    points = [point for point in profiled_points(setting) if profiled_excess(point.profiled) > 0]
    if not points:
        return ""
    shares = {part: [part_excess(point.profiled, part) / profiled_excess(point.profiled) for point in points
                     if part_excess(point.profiled, part) is not None] for part in PARTS}  # fmt: skip
    ranked = sorted((part for part in shares if shares[part]), key=lambda part: -max(shares[part]))
    named = [f"{part} ({_shares(shares[part])})" for part in ranked if max(shares[part]) >= 0.01][:4]
    if not named:
        return ""
    whole = [ratio(set_up_excess(point.profiled), profiled_excess(point.profiled)) for point in points]
    cold = [point for point in points if point.is_settled and (point.excess("step") or 0) > 0]
    plain = [ratio(set_up_excess(point.profiled), point.excess("step")) for point in cold]
    known = {name: [value for value in values if value is not None] for name, values in
             (("profiled", whole), ("unprofiled", plain))}  # fmt: skip
    parts = [f"{_shares(values)} of the {name} excess" for name, values in known.items() if values]
    together = f"; set-up ({formatting.listing(list(SET_UP))}) makes up {formatting.listing(parts)}" if parts else ""
    least = {part: min(shares[part], default=0) for part in shares}
    less = [f"{part} (by up to {formatting.percent(-share)})" for part, share in least.items() if share < -CLOSE]
    saved = f", while less time goes to {formatting.listing(less)}" if less else ""
    return f"A profile puts what the first step takes longer down to {formatting.listing(named)}{saved}{together}."


def _shares(values: list[float]) -> str:
    return formatting.value_range([100 * value for value in values], 2, " %")


def _phases(setting: Setting) -> str:
    """Which phase pays for the first step."""
    points = [
        point
        for point in _cold(setting)
        if point.excess("step") > 0 and all(point.excess(each) >= 0 for each in _PHASES)
    ]
    if not points:
        return ""
    where = {"forward": "is spent in forward", "backward": "in backward", "optimizer": "in the optimizer"}
    shares = {phase: [point.excess(phase) / point.excess("step") for point in points] for phase in _PHASES}
    parts = [f"{_shares(values)} {where[phase]}" for phase, values in shares.items()]
    return f"Of what the first step takes longer, {formatting.listing(parts)}."


def _unsettled(setting: Setting) -> str:
    """Sizes of which nothing is said, because their warm processes disagree."""
    points = setting.unsettled
    if not points:
        return ""
    sizes = formatting.listing([f"{point.size} ({formatting.percent(point.disagreement)})" for point in points])
    has, them, its = ("has", "it", "its") if len(points) == 1 else ("have", "them", "their")
    return (
        f"{sizes} {has} no sure steady state, and the comparisons with it above leave {them} out: "
        f"{its} processes with {WARM} or more warm-up steps differ by so much in the median step."
    )


def _lost(warmups: Warmups, hardware: str) -> str:
    """Cells without a result."""
    parts = []
    for status, words in (("oom", "out of memory"), ("unsupported", "not possible")):
        every = warmups.cells[warmups.cells["hardware"] == hardware]
        own = every[every["status"] == status]
        if len(own):
            sizes = formatting.listing(list(dict.fromkeys(own["size"])))
            parts.append(
                f"{words} in {len(own):,} of {len(every):,} warm-up {'cell' if len(every) == 1 else 'cells'} ({sizes})"
            )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""
