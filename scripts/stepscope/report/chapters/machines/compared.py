"""A machine beside the baseline: speed and verdicts, what cannot be compared, what the speed follows, what fits."""

from statistics import median

from stepscope.report.data.mixed import REFERENCE
from stepscope.report.data.points import Grid, Point
from stepscope.report.data.side_by_side import Inversion, rate_ratio
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import (
    FASTER,
    NOT_COMPARABLE,
    SAME,
    SLOWER,
    UNCLEAR,
    Comparison,
    ratio_range,
    ratio_text,
)
from stepscope.report.kit.finding import Finding, Number, enough, key_of
from stepscope.report.kit.order import label

MOST_NAMES = 2
_WORDS = (FASTER, SAME, SLOWER, UNCLEAR, NOT_COMPARABLE)


def what(grid: Grid) -> str:
    """What is compared: `a step`, `forward`."""
    return "a step" if grid.main == "step" else label(grid.main)


def speeds(grid: Grid, other: str, precision: str | None = None) -> list[tuple[Point, Comparison]]:
    """(point, speed over the baseline) of what stands for a cell, in one precision or all."""
    points = [point for point in grid.points if precision in (None, point.precision)]
    return [(point, found) for point in points if (found := grid.speed(point, other, grid.main))]


def cells_on(points: list[Point], *machines: str) -> tuple[str, ...]:
    """The names of these machines' cells of the points."""
    return tuple(cell for point in points for cell in point.cells(machines))


def speed(grid: Grid, other: str) -> Finding | None:
    """Range and median, and how many cells have which verdict; None without a cell on both."""
    found = speeds(grid, other)
    if not found:
        return None
    points, ratios = [point for point, _ in found], [each.ratio for _, each in found]
    cells = cells_on(points, grid.baseline, other)
    numbers = {"range": Number(ratios, cells, ratio_range), "middle": Number(median(ratios), cells, ratio_text)}
    middle = f", in the median of {len(found):,} cells {{middle}}" if len(found) > 1 else ""
    answer = f"{other} runs {what(grid)} at {{range}} times the speed of {grid.baseline}{middle}."
    parts = []
    for word in _WORDS:
        own = [point for point, each in found if each.verdict == word and enough(comparison=each)]
        if own:
            numbers[key_of(word)] = Number(len(own), cells_on(own, grid.baseline, other), formatting.count)
            parts.append(f"{word} in {{{key_of(word)}}}")
    verdicts = formatting.listing(parts)
    cause = f"It is {verdicts}." if parts else ""
    return Finding(f"how many times as fast is {other}", answer, numbers, cause=cause)


def extremes(grid: Grid, other: str) -> Finding | None:
    """Where the machine gains most and least over the baseline; None with a single cell."""
    found = sorted(speeds(grid, other), key=lambda pair: pair[1].ratio)
    if len(found) < 2:
        return None
    numbers, names = {}, {}
    for which, (point, each) in {"least": found[0], "most": found[-1]}.items():
        numbers[which] = Number(each.ratio, point.cells([grid.baseline, other]), ratio_text)
        names[which] = f"{point.name} in {point.precision}"
    answer = (
        f"For {other} the ratio is highest in {names['most']}, {{most}}, and lowest in {names['least']}, {{least}}."
    )
    return Finding(f"where is {other} fastest", answer, numbers)


def not_comparable(grid: Grid) -> Finding | None:
    """How many comparisons hosts make impossible, and why."""
    found = [
        (point, machine) for point, machine in grid.pairs
        if (each := grid.speed(point, machine, grid.main)) and each.verdict == NOT_COMPARABLE
    ]  # fmt: skip
    if not found:
        return None
    every = sum(grid.speed(point, machine, grid.main) is not None for point, machine in grid.pairs)
    cells = tuple(cell for point, machine in found for cell in point.cells([grid.baseline, machine]))
    names = formatting.listing(
        list(dict.fromkeys(f"{point.name} in {point.precision}" for point, _ in found)), MOST_NAMES
    )
    answer = f"{{lost}} of {every:,} comparisons cannot be made ({names})."
    cause = "There the host's launches fill the time, and the hosts are not known to be equally fast."
    return Finding(
        "what cannot be compared", answer, {"lost": Number(len(found), cells, formatting.count)}, cause=cause
    )


def follows(grid: Grid, other: str) -> list[Finding]:
    """In each precision: the ratio of the rates, of the bandwidths, and the speed that was measured beside them."""
    return [found for precision in grid.precisions if (found := _follows(grid, other, precision))]


def _follows(grid: Grid, other: str, precision: str) -> Finding | None:
    found, limits = speeds(grid, other, precision), grid.limits(other, precision)
    if not found or limits.arithmetic is None or limits.memory is None:
        return None
    ratios = [each.ratio for _, each in found]
    cells = cells_on([point for point, _ in found], grid.baseline, other)
    numbers = {
        "arithmetic": Number(limits.arithmetic, (), ratio_text),
        "memory": Number(limits.memory, (), ratio_text),
        "middle": Number(median(ratios), cells, ratio_text),
    }
    sources = formatting.listing(list(dict.fromkeys(limits.sources)))
    answer = (
        f"In {precision} {other} multiplies at {{arithmetic}} and moves at {{memory}} times {grid.baseline}'s rate "
        f"({sources}); {what(grid)} runs at {{middle}} (median of {formatting.cells(len(found))})."
    )
    near = [point for point, each in found if limits.follows(each.ratio) == "neither"]
    cause = ""
    if near:
        numbers["neither"] = Number(len(near), cells_on(near, other), formatting.count)
        cause = "{neither} lie nearer to 1 than both ratios: something that both machines share sets the time there."
        cause = cause.replace("lie nearer", "lies nearer") if len(near) == 1 else cause
    return Finding(f"what does {other} follow in {precision}", answer, numbers, cause=cause)


def inverted(grid: Grid, own: list[Inversion]) -> Finding:
    """Where a machine in 16 bits takes longer than another in fp32, the worst first."""
    worst = own[0]
    plain = grid.plain[worst.point.place]
    cells = (*worst.point.cells([worst.machine]), *plain.cells([worst.other]))
    numbers = {
        "slower": Number(len(own), cells_on([each.point for each in own], worst.machine), formatting.count),
        "own": Number(worst.speed.times[1], cells[:1]),
        "other": Number(worst.speed.times[0], cells[1:]),
    }
    places = "cell" if len(own) == 1 else "cells"
    answer = (
        f"{worst.machine} in {worst.precision} is slower than {worst.other} in {REFERENCE} in {{slower}} {places}: "
        f"{{own}} against {{other}} ms with {worst.point.name}."
    )
    ratio, cause = rate_ratio(grid, worst.machine, worst.precision, worst.other), ""
    if ratio:
        numbers["rates"] = Number(ratio)
        cause = "Its matrix products run at {rates} times the rate: they are not what sets the time."
    return Finding("is a machine in 16 bits slower than another in fp32", answer, numbers, cause=cause)


def fits(grid: Grid, other: str) -> list[Finding]:
    """Cells that ran out of memory on one of two machines only."""
    found = []
    for machine, lost in ((other, grid.baseline), (grid.baseline, other)):
        own = [
            point for point in grid.points
            if point.status(machine, grid.main) == "ok" and point.status(lost, grid.main) == "oom"
        ]  # fmt: skip
        if own:
            names = formatting.listing([f"{point.name} in {point.precision}" for point in own], MOST_NAMES)
            answer = (
                f"{{fitting}} {'cell fits' if len(own) == 1 else 'cells fit'} on {machine}, not on {lost}: {names}."
            )
            numbers = {"fitting": Number(len(own), cells_on(own, machine, lost), formatting.count)}
            found.append(Finding(f"what fits on {machine} only", answer, numbers))
    return found
