"""What is found by setting machines beside each other: speed-ups, what they follow, who is fastest, what fits."""

from collections.abc import Iterable
from functools import partial
from statistics import median

from stepscope.report.data.machines import NEAR
from stepscope.report.data.mixed import MIXED, REFERENCE
from stepscope.report.data.points import Grid, Point
from stepscope.report.data.side_by_side import (
    Inversion,
    Shared,
    attention,
    inversions,
    memory,
    peaks,
    rate_ratio,
)
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, Comparison, ratio_range, ratio_text
from stepscope.report.kit.finding import Finding, Number, counted, enough, key_of, speed, without_verdict
from stepscope.report.kit.order import label
from stepscope.report.kit.sizes import EXACT
from stepscope.report.studies.hardware.tables_studies import absent, everyone
from stepscope.tables.reader import Tables

_RATES = {"arithmetic": "the ratio of matrix-product rates", "memory": "the ratio of bandwidths"}


def findings(tables: Tables, grid: Grid) -> list[Finding]:
    """The findings, machine by machine over the baseline, and then over all machines."""
    found = []
    for other in grid.others:
        found += [speed_up(grid, other), by_phase(grid, other), limits(grid, other), *fits(grid, other)]
    found += [fastest(grid), of_attention(attention(tables, grid.labels))]
    found += of_memory(memory(tables, grid.labels))
    found += of_inversions(grid, inversions(grid))
    found += without_verdict(speed for other in grid.others for _, speed in _speeds(grid, other, grid.main))
    return [each for each in found if each]


def _what(phase: str) -> str:
    return "a step" if phase == "step" else label(phase)


def share_of(count: int, total: int) -> str:
    """formatting.some_of(), with per cent where it is neither all nor none: `26 of 47 cells (55 %)`."""
    return formatting.some_of(count, total) + (f" ({formatting.percent(count / total)})" if 0 < count < total else "")


# The timing grid ------------------------------------------------------------------------------------------------------


def _speeds(grid: Grid, other: str, phase: str) -> list[tuple[Point, Comparison]]:
    """(point, speed) of the points that both machines have a time of."""
    return [(point, speed) for point in grid.points if (speed := grid.speed(point, other, phase))]


def _cells(points: Iterable[Point], *machines: str) -> tuple[str, ...]:
    return tuple(cell for point in points for cell in point.cells(machines))


def _range(name: str, ratios: list[float], cells: tuple[str, ...]) -> dict[str, Number]:
    """The numbers `name` and, unless all are the same, `name_median`."""
    numbers = {name: Number(ratios, cells, ratio_range)}
    if min(ratios) != max(ratios):
        numbers[f"{name}_median"] = Number(median(ratios), cells, ratio_text)
    return numbers


def speed_up(grid: Grid, other: str) -> Finding | None:
    """Range and median of what stands for a cell, and in how many cells the machine is faster."""
    question = f"how many times as fast is {other}"
    found = _speeds(grid, other, grid.main)
    if not found:
        answer = f"No cell of the timing study has a time on both {other} and {grid.baseline}."
        return Finding(question, answer) if grid.every else None
    ratios, cells = [speed.ratio for _, speed in found], _cells((point for point, _ in found), grid.baseline, other)
    if len(found) == 1:
        numbers, middle = {"range": speed(found[0][1], cells)}, ""
    else:
        numbers = {"range": Number(ratios, cells, ratio_range), "median": Number(median(ratios), cells, ratio_text)}
        middle = f", median {{median}} of {formatting.cells(len(found))}"
    named = [(f"{point.name} in {point.precision}", each) for point, each in found]
    told, words = counted(named, most_names=3, is_most_first=True)
    for word in words:
        own = [point for point, each in found if each.verdict == word]
        numbers[key_of(word)] = Number(len(own), _cells(own, other), formatting.count)
    told = f"; {told}" if told else ""
    answer = f"{other} runs {_what(grid.main)} at {{range}} times the speed of {grid.baseline}{middle}{told}."
    return Finding(question, answer, numbers)


def by_phase(grid: Grid, other: str) -> Finding | None:
    """Range and median of each phase; None where only one was timed."""
    numbers, parts = {}, []
    for phase in (each for each in grid.phases if each != grid.main):
        found = _speeds(grid, other, phase)
        if found:
            cells = _cells((point for point, _ in found), grid.baseline, other)
            own = _range(phase, [speed.ratio for _, speed in found], cells)
            scope = f"{len(found):,} of {formatting.cells(len(grid.points))}" * (len(found) < len(grid.points))
            inner = ", ".join(filter(None, [f"{{{phase}_median}}" if len(own) > 1 else "", scope]))
            middle = f" ({inner})" if inner else ""
            parts.append(f"{label(phase)} {{{phase}}}{middle}")
            numbers |= own
    answer = f"{other} over {grid.baseline} by phase, range and median: {'; '.join(parts)}."
    return Finding(f"how many times as fast is each phase on {other}", answer, numbers) if parts else None


def limits(grid: Grid, other: str) -> Finding | None:
    """How many cells reach NEAR of the ratio of peaks, and of bandwidths; how many follow neither."""
    found = [
        (point, speed.ratio, grid.limits(other, point.precision)) for point, speed in _speeds(grid, other, grid.main)
    ]
    numbers, parts = {}, []
    for name, words in _RATES.items():
        known = [each for each in found if getattr(each[2], name) is not None]
        if known:
            reached = [point for point, ratio, own in known if own.reached(name, ratio)]
            ratios, of_rates = _ratios(grid, other, name)
            count = Number(len(reached), _cells(reached, other), partial(share_of, total=len(known)))
            numbers |= {name: count, **of_rates}
            parts.append(f"{words}, {ratios}, in {{{name}}}")
    if not parts:
        return None
    answer = f"{_what(grid.main).capitalize()} on {other} reaches at least {100 * NEAR:.0f} % of {'; of '.join(parts)}."
    neither = [point for point, ratio, own in found if own.follows(ratio) == "neither"]
    if neither:
        numbers["neither"] = Number(len(neither), _cells(neither, other), formatting.count)
        answer += (
            f" {{neither}} of {formatting.cells(len(found))} {'lies' if len(neither) == 1 else 'lie'} nearer to 1 than "
            "both ratios: neither sets the time there, as where the host's launches do."
        )
    return Finding(f"what does the speed of {other} follow", answer, numbers)


def _ratios(grid: Grid, other: str, name: str) -> tuple[str, dict[str, Number]]:
    """`1.00 in fp32 and 3.20 in bf16 (data sheet)`, `1.43 (measured)`, and its numbers by name and precision."""
    place = list(_RATES).index(name)
    known = {precision: grid.limits(other, precision) for precision in grid.precisions}
    ratios = {precision: ratio for precision, own in known.items() if (ratio := getattr(own, name))}
    sources = formatting.listing(list(dict.fromkeys(known[each].sources[place] for each in ratios)))
    alike: dict[str, list[str]] = {}
    for precision, ratio in ratios.items():
        alike.setdefault(ratio_text(ratio), []).append(precision)
    numbers = {key_of(name, precision): Number(ratio, show=ratio_text) for precision, ratio in ratios.items()}
    texts = [f"{{{key_of(name, own[0])}}} in {formatting.listing(own)}" for own in alike.values()]
    told = ", ".join(texts) if len(texts) > 1 else f"{{{key_of(name, next(iter(ratios)))}}}"
    return f"{told} ({sources})", numbers


def fits(grid: Grid, other: str) -> list[Finding]:
    """Cells that ran out of memory on one of both machines only."""
    found = []
    for machine, lost in ((other, grid.baseline), (grid.baseline, other)):
        own = [
            point
            for point in grid.points
            if point.status(machine, grid.main) == "ok" and point.status(lost, grid.main) == "oom"
        ]
        if own:
            names = formatting.listing([f"{point.name} in {point.precision}" for point in own], 4)
            answer = f"On {machine}, but not on {lost}, {_what(grid.main)} fits with {names}."
            numbers = {"fitting": Number(len(own), _cells(own, machine, lost), formatting.count)}
            found.append(Finding(f"what fits on {machine} only", answer, numbers))
    return found


def fastest(grid: Grid) -> Finding | None:
    """Of three machines or more: in how many cells each is faster than all others."""
    if len(grid.labels) < 3:
        return None
    question = "which machine is fastest"
    done = [point for point in grid.points if all(point.time(each, grid.main) for each in grid.labels)]
    if not done:
        return Finding(question, "No cell of the timing study has a time on all machines.")
    wins: dict[str, list[Point]] = {name: [] for name in (*grid.labels, "none")}
    judged = 0
    for point in done:
        best = min(grid.labels, key=lambda each: point.time(each, grid.main))
        speeds = [grid.speed(point, best, grid.main, over=each) for each in grid.labels if each != best]
        judged += all(enough(comparison=speed) for speed in speeds)
        wins[best if all(speed.verdict == FASTER for speed in speeds) else "none"].append(point)
    if not judged:
        return None
    wins = {name: own for name, own in wins.items() if own}
    numbers = {key_of(name): Number(len(own), _cells(own, *grid.labels), formatting.count)
               for name, own in wins.items()}  # fmt: skip
    parts = [f"{name} is fastest in {{{key_of(name)}}}" for name in wins if name != "none"]
    parts += ["which is fastest is not sure in {none}"] * ("none" in wins)
    answer = f"Of {formatting.cells(len(done))} with a time on all machines, {formatting.listing(parts)}."
    return Finding(question, answer, numbers)


# The other studies ----------------------------------------------------------------------------------------------------


def of_attention(found: Shared) -> Finding | None:
    """Range and median of attention's speed-ups at the longest lengths that all machines finished."""
    numbers, parts = {}, []
    for other in found.others if found.points else []:
        both = [(point, speed) for point in found.points if (speed := found.speed(point, other))]
        if both:
            key = key_of("on", other)
            cells = _cells((point for point, _ in both), found.baseline, other)
            own = _range(key, [speed.ratio for _, speed in both], cells)
            middle = f" (median {{{key}_median}})" if len(own) > 1 else ""
            parts.append(f"{other} at {{{key}}} times the speed of {found.baseline}{middle}")
            numbers |= own
    if not parts:
        return None
    where = f"the longest length that {everyone(found)} finished"
    answer = f"Attention by itself runs, at {where}, on {'; on '.join(parts)}. {absent(found)}"
    return Finding("how many times as fast is attention", answer.strip(), numbers)


def of_memory(found: Shared) -> list[Finding]:
    """Where the peak is the smallest, by how much they differ, and what fits on some machines only."""
    done = [point for point in found.points if all(peaks(point).values())]
    told = [_least(done, found)] if done else []
    fitting: dict[tuple[tuple[str, ...], ...], list[Point]] = {}
    for point in found.points:
        ran, lost = (tuple(name for name, row in point.rows.items() if row["status"] == word) for word in ("ok", "oom"))
        if ran and lost:
            fitting.setdefault((ran, lost), []).append(point)
    for (ran, lost), own in fitting.items():
        names = formatting.listing([f"{point.name} ({point.precision}, {label(mode(point.row))})" for point in own],
                                   4, "; ")  # fmt: skip
        verb = "fits" if len(own) == 1 else "fit"
        elsewhere = _elsewhere(ran, lost, found.machines)
        answer = f"In the memory study {names} {verb} on {formatting.listing(ran)}{elsewhere}."
        numbers = {"fitting": Number(len(own), _cells(own, *ran, *lost), formatting.count)}
        told.append(Finding(f"what fits on {formatting.listing(ran)} only", answer, numbers))
    return told + ([Finding("what has no memory study", absent(found))] if told and found.lacking else [])


def _elsewhere(ran: tuple[str, ...], lost: tuple[str, ...], machines: list[str]) -> str:
    """` only`, if all others ran out of memory; else which did, and of which others it is not known."""
    unknown = [name for name in machines if name not in ran + lost]
    if not unknown:
        return " only"
    return f", but not on {formatting.listing(lost)}; of {formatting.listing(unknown)} it is not known"


def _least(done: list[Point], found: Shared) -> Finding:
    """Who needs least how often, and the largest difference."""
    question, cells = "where does a cell need least memory", _cells(done, *found.machines)
    ranges = [(min(own), max(own)) for own in (peaks(point).values() for point in done)]
    widest = max(most / least - 1 for least, most in ranges)
    numbers = {"widest": Number(widest, cells, formatting.percent)}
    all_of_them = f"{formatting.some_of(len(done), len(done))} that {everyone(found)} finished"
    if widest < EXACT:
        answer = f"Peak memory is the same on {formatting.listing(found.machines)} in {all_of_them}."
        return Finding(question, answer, numbers)
    smallest = {
        name: own
        for name in found.machines
        if (own := [point for point, (least, most) in zip(done, ranges, strict=True)
                    if peaks(point)[name] == least < most])
    }  # fmt: skip
    numbers |= {key_of(name): Number(len(own), _cells(own, name), formatting.count) for name, own in smallest.items()}
    above = "the largest peak is at most {widest} above the smallest"
    if [len(own) for own in smallest.values()] == [len(done)]:
        answer = f"Peak memory is smallest on {next(iter(smallest))} in {all_of_them}; {above}."
    else:
        parts = formatting.listing([f"on {name} in {{{key_of(name)}}}" for name in smallest])
        answer = f"Of {all_of_them.removeprefix('all ')}, peak memory is smallest {parts}; {above}."
    return Finding(question, answer, numbers)


# Mixed precision ------------------------------------------------------------------------------------------------------


def of_inversions(grid: Grid, found: list[Inversion]) -> list[Finding]:
    """One for each pair of machines and precision that has inversions; or that there is none."""
    groups: dict[tuple[str, str, str], list[Inversion]] = {}
    for each in found:
        groups.setdefault((each.machine, each.precision, each.other), []).append(each)
    compared = any(
        (speed := grid.over_reference(point, machine, other)) and enough(comparison=speed)
        for point in grid.points
        if point.precision in MIXED
        for machine in point.rows
        for other in point.rows
        if machine != other
    )
    if compared and not groups:
        answer = f"No machine in 16 bits is surely slower than another in {REFERENCE} that it should be faster than."
        return [Finding(f"is a machine in 16 bits slower than another in {REFERENCE}", answer)]
    return [_of_two_machines(grid, own) for own in groups.values()]


def _of_two_machines(grid: Grid, own: list[Inversion]) -> Finding:
    worst = own[0]
    machine, precision, other = worst.machine, worst.precision, worst.other
    both = [
        point for point in grid.every if point.precision == precision and grid.over_reference(point, machine, other)
    ]
    cells = tuple(
        cell for each in own for cell in (*each.point.cells([machine]), *grid.plain[each.point.place].cells([other]))
    )
    numbers = {
        "slower": Number(len(own), cells, formatting.count),
        "both": Number(len(both), _cells(both, machine), formatting.count),
        "own": Number(worst.speed.times[1], cells[:1]),
        "other": Number(worst.speed.times[0], cells[1:2]),
    }
    there = "in {slower} of {both} cells" if len(both) > 1 else "in the one cell of both"
    answer = (
        f"{machine} in {precision} takes longer for {_what(grid.main)} than {other} in {REFERENCE} {there}"
        f"{', most' if len(own) > 1 else ''} with {worst.point.name}: "
        "{own} against {other} ms"
    )
    ratio = rate_ratio(grid, machine, precision, other)
    if ratio:
        numbers["rates"] = Number(ratio)
        answer += ", although its rate of matrix products is {rates} times as high"
    return Finding(f"is {machine} in {precision} slower than {other} in {REFERENCE}", f"{answer}.", numbers)
