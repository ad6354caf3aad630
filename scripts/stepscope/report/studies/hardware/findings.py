"""Sentences on machines beside each other: speed-ups, what they follow, who is fastest, memory and mixed precision."""

from statistics import median

from stepscope.report.data.machines import NEAR
from stepscope.report.data.memory import Memory
from stepscope.report.data.points import Grid
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import UNCLEAR, Comparison
from stepscope.report.kit.order import label
from stepscope.report.studies.hardware import attention, memory, mixed
from stepscope.report.studies.hardware.compared import absent, everyone, judged, machines_of, ratio_text
from stepscope.tables.reader import Tables


def findings(tables: Tables, grid: Grid) -> list[str]:
    """The findings, machine by machine over the baseline, and then over all machines."""
    sentences = []
    for other in grid.others:
        sentences += [speed_up(grid, other), by_phase(grid, other), *limits(grid, other), *fits(grid, other)]
    sentences += [fastest(grid), of_attention(tables, grid)]
    sentences += memory.findings(memory.peaks(Memory(tables), grid.labels), grid.labels)
    sentences += mixed.findings(grid, mixed.inversions(grid))
    return [sentence for sentence in sentences if sentence]


def _what(phase: str) -> str:
    return "a step" if phase == "step" else label(phase)


def _cells(many) -> str:
    return "1 cell" if len(many) == 1 else f"{len(many):,} cells"


def share(count: int, many) -> str:
    """`all 47 cells`, `26 of 47 cells (55 %)`, `none of 47 cells`, `the 1 cell`, `no cell`."""
    if len(many) == 1:
        return "the 1 cell" if count else "no cell"
    if count in (0, len(many)):
        return f"{'all' if count else 'none of'} {_cells(many)}"
    return f"{count:,} of {_cells(many)} ({formatting.percent(count / len(many))})"


def _range(ratios: list[float]) -> str:
    """`1.20 to 3.41`, or one number where both are the same."""
    low, high = ratio_text(min(ratios)), ratio_text(max(ratios))
    return low if low == high else f"{low} to {high}"


def _speeds(grid: Grid, other: str, phase: str) -> list[tuple]:
    """(point, speed) of the points that both machines have a time of."""
    return [(point, speed) for point in grid.points if (speed := grid.speed(point, other, phase))]


def speed_up(grid: Grid, other: str) -> str:
    """Range and median of what stands for a cell, and in how many cells the machine is faster."""
    found = _speeds(grid, other, grid.main)
    if not found:
        return f"No cell of the timing study has a time on both {other} and {grid.baseline}." if grid.every else ""
    ratios = [speed.ratio for _, speed in found]
    middle = f", median {ratio_text(median(ratios))}" if len(ratios) > 1 else ""
    return (
        f"{other} runs {_what(grid.main)} at {_range(ratios)} times the speed of {grid.baseline}{middle}; "
        f"{_counted(found)}{judged([speed for _, speed in found])}."
    )


def _counted(found: list[tuple]) -> str:
    """`faster in 12 of 18 cells, about equal in 6 (small at 128 in bf16, …)`; the most frequent first, not named."""
    kinds = {"faster": "faster", UNCLEAR: "about equal", "slower": "slower"}
    own = {kind: [point for point, speed in found if speed.verdict == kind] for kind in kinds}
    parts = []
    for kind in sorted(own, key=lambda each: -len(own[each])):
        if own[kind]:
            names = [f"{point.name} in {point.precision}" for point in own[kind]]
            where = f" ({formatting.listing(names, 3)})" if parts else ""
            many = share(len(names), found).split(" (")[0] if not parts else f"{len(names):,}"
            parts.append(f"{kinds[kind]} in {many}{where}")
    return ", ".join(parts)


def by_phase(grid: Grid, other: str) -> str:
    """Range and median of each phase; nothing where only one was timed."""
    parts = []
    for phase in (each for each in grid.phases if each != grid.main):
        ratios = [speed.ratio for _, speed in _speeds(grid, other, phase)]
        if ratios:
            middle = f" ({ratio_text(median(ratios))})" if min(ratios) != max(ratios) else ""
            parts.append(f"{label(phase)} {_range(ratios)}{middle}")
    return f"{other} over {grid.baseline} by phase, range and median: {'; '.join(parts)}." if parts else ""


def limits(grid: Grid, other: str) -> list[str]:
    """How many cells reach NEAR of the ratio of peaks, and of bandwidths; how many follow neither."""
    found = [(speed.ratio, grid.limits(other, point.precision)) for point, speed in _speeds(grid, other, grid.main)]
    parts = []
    for name, words in (("arithmetic", "the ratio of matrix-product rates"), ("memory", "the ratio of bandwidths")):
        known = [(ratio, each) for ratio, each in found if each.reached(name, ratio) is not None]
        if known:
            count = sum(each.reached(name, ratio) for ratio, each in known)
            parts.append(f"{words}, {_ratios(grid, other, name)}, in {share(count, known)}")
    if not parts:
        return []
    text = f"{_what(grid.main).capitalize()} on {other} reaches at least {100 * NEAR:.0f} % of "
    lies = [each.follows(ratio) for ratio, each in found]
    neither = sum(each == "neither" for each in lies)
    after = ""
    if neither:
        lie = "lies" if neither == 1 else "lie"
        after = (
            f" {neither:,} of {_cells(lies)} {lie} nearer to 1 than both ratios: neither sets the time there, as where "
            "the host's launches do."
        )
    return [f"{text}{'; of '.join(parts)}.{after}"]


def _ratios(grid: Grid, other: str, name: str) -> str:
    """`1.00 in fp32 and 3.20 in bf16 (data sheet)`, `1.43 (measured)`."""
    place = 0 if name == "arithmetic" else 1
    known = {precision: grid.limits(other, precision) for precision in grid.precisions}
    ratios = {each: getattr(limit, name) for each, limit in known.items() if getattr(limit, name)}
    sources = formatting.listing(list(dict.fromkeys(known[each].sources[place] for each in ratios)))
    alike: dict[str, list[str]] = {}
    for precision, ratio in ratios.items():
        alike.setdefault(ratio_text(ratio), []).append(precision)
    if len(alike) == 1:
        return f"{next(iter(alike))} ({sources})"
    texts = [f"{text} in {formatting.listing(precisions)}" for text, precisions in alike.items()]
    return f"{', '.join(texts)} ({sources})"


def fits(grid: Grid, other: str) -> list[str]:
    """Cells that ran out of memory on one of both machines only."""
    sentences = []
    for machine, lost in ((other, grid.baseline), (grid.baseline, other)):
        own = [
            f"{point.name} in {point.precision}"
            for point in grid.points
            if point.status(machine, grid.main) == "ok" and point.status(lost, grid.main) == "oom"
        ]
        if own:
            names = formatting.listing(own, 4)
            sentences.append(f"On {machine}, but not on {lost}, {_what(grid.main)} fits with {names}.")
    return sentences


def fastest(grid: Grid) -> str:
    """Of three machines or more: in how many cells each is faster than all others."""
    if len(grid.labels) < 3:
        return ""
    done = [point for point in grid.points if all(point.time(each, grid.main) for each in grid.labels)]
    if not done:
        return "No cell of the timing study has a time on all machines."
    wins: dict[str, list[Comparison]] = {}
    for point in done:
        best = min(grid.labels, key=lambda each: point.time(each, grid.main))
        speeds = [grid.speed(point, best, grid.main, over=each) for each in grid.labels if each != best]
        if all(speed.verdict == "faster" for speed in speeds):
            wins.setdefault(best, []).extend(speeds)
    others = len(grid.labels) - 1
    parts = [f"{name} in {len(wins[name]) // others:,}" for name in grid.labels if name in wins]
    undecided = len(done) - sum(len(each) // others for each in wins.values())
    parts += [f"none in {undecided:,}"] if undecided else []
    return f"Of {_cells(done)} with a time on all machines, fastest is {formatting.listing(parts)}."


def of_attention(tables: Tables, grid: Grid) -> str:
    """Range and median of attention's speed-ups at the longest lengths that all machines finished."""
    lines = attention.lines(tables, grid.labels)
    present = machines_of(lines, grid.labels)
    parts = []
    for other in present[1:]:
        ratios = [ratio for line in lines if (ratio := line.ratio(other, present[0]))]
        if ratios:
            middle = f" (median {ratio_text(median(ratios))})" if min(ratios) != max(ratios) else ""
            parts.append(f"{other} at {_range(ratios)} times the speed of {present[0]}{middle}")
    where = f"the longest length that {everyone(grid.labels, present)} finished"
    lacking = " ".join(["", *absent(grid.labels, present, "attention")])
    return f"Attention by itself runs, at {where}, on {'; on '.join(parts)}.{lacking}" if parts else ""
