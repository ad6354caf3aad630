"""Whether the second step still differs, how many warm-up steps are enough, and what compiling adds to the first."""

from stepscope.confidence import discoveries
from stepscope.report.chapters.warmup.first_step import By, cells, percents
from stepscope.report.data.ladder import Ladder
from stepscope.report.data.warmup import CLOSE, Setting, SizeRuns
from stepscope.report.data.warmup_process import Process, chance_of_at_least
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import NEUTRAL
from stepscope.tables.warmup import PHASES


def second_step(by: By, hardware: str) -> Finding | None:
    """The sizes in which the second step took longer than every late one in more processes than chance explains.

    Were it one step like the late ones, it would be the longest of them with probability 1 / (late steps + 1). Each
    size is judged by itself, with false discoveries controlled.
    """
    if not by:
        return None
    above = {name: [each for each in own if each.is_above_late_ones(1)] for name, own in by.items()}
    chances = {name: [1 / (each.lates + 1) for each in own] for name, own in by.items()}
    sure = discoveries([chance_of_at_least(len(above[name]), chances[name]) for name in by])
    slow = [name for name, is_sure in zip(by, sure, strict=True) if is_sure]
    told = slow or list(by)
    every = [each for name in told for each in by[name]]
    numbers = {
        "above": Number(sum(len(above[name]) for name in told), cells(every), formatting.count),
        "chance": Number(sum(sum(chances[name]) for name in told), cells(every), _one_decimal),
    }
    where = f" of {formatting.listing(slow)}" if slow else ""
    answer = (
        f"The second step took longer than every late one in {{above}} of {len(every)} processes{where}; chance alone "
        "gives {chance}."
    )
    cause = "In no size is it known to differ."
    if slow:
        shares = {phase: [_share(above[name], phase) for name in slow] for phase in PHASES["step"]}
        most = max(shares, key=lambda phase: sum(shares[phase]))
        cause = f"So it is still slow there: {{share}} of what it takes longer is in {most}."
        numbers["share"] = Number([100 * share for share in shares[most]], cells(every), percents)
    return Finding("does the second step still differ", answer, numbers, hardware, cause)


def _one_decimal(value: float) -> str:
    return formatting.fixed(value, 1)


def _share(found: list[Process], phase: str) -> float:
    """A phase's share of what the second step took longer in processes of one size."""
    longer = {each: sum(max(0.0, own.excess(1, each)) for own in found) for each in PHASES["step"]}
    return longer[phase] / whole if (whole := sum(longer.values())) else 0.0


def scatter(by: By, hardware: str) -> Finding | None:
    """The second step over the late ones in the smallest and the largest size, process by process."""
    if len(by) < 2:
        return None
    ends = {"small": next(iter(by)), "large": next(reversed(by))}
    numbers = {key: Number([each.ratio(1) for each in by[name]], cells(by[name]), _two_decimals)
               for key, name in ends.items()}  # fmt: skip
    answer = (
        f"The second step takes {{small}} times as long as the late steps of its process in {ends['small']} and "
        f"{{large}} times in {ends['large']}."
    )
    return Finding("how far is the second step off", answer, numbers, hardware)


def _two_decimals(values: list[float]) -> str:
    low, high = (f"{end(values):.2f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def after_one_or_two(setting: Setting, point: SizeRuns | None) -> Finding | None:
    """How far the means after one and two warm-up steps are off in a size, and whether that means anything."""
    if point is None:
        return None
    rows = [row for row in point.measured if row["warmup"] in (1, 2) and formatting.known(row["step_mean_over_steady"])]
    judged = [point.is_beyond("step", row["step_mean_over_steady"]) for row in rows]
    if not rows or None in judged:
        return None
    numbers, parts = {}, []
    for row in rows:
        key = f"after_{row['warmup']:.0f}"
        numbers[key] = Number(abs(row["step_mean_over_steady"] - 1), (row["cell"],), formatting.percent)
        parts.append(f"{{{key}}} after {row['warmup']:.0f}")
    answer = (
        f"In {point.size} the mean is off by {formatting.listing(parts)} warm-up step{'s' * (rows[-1]['warmup'] != 1)}"
    )
    end = "more than fresh processes differ by" if any(judged) else "no more than fresh processes differ by"
    return Finding("what do one and two warm-up steps leave", f"{answer}, {end}.", numbers, setting.hardware)


def enough(setting: Setting) -> Finding | None:
    """The warm-up steps after which every mean is close to the steady state; else what to run to know them."""
    settled = [point for point in setting.measured if point.is_settled]
    counts = {point.size: point.enough("step") for point in settled}
    known = {size: count for size, count in counts.items() if count is not None}
    question = "how many warm-up steps are enough"
    if known:
        rows = [row for point in settled for row in point.measured]
        most = max(known, key=lambda size: known[size])
        numbers = {"count": Number(known[most], tuple(row["cell"] for row in rows), formatting.count)}
        answer = (
            f"From {{count}} warm-up steps on the mean stays within {CLOSE * 100:.0f} % of the steady state "
            f"({formatting.listing(list(known))})."
        )
        return Finding(question, answer, numbers, setting.hardware)
    widths = [(point, point.width) for point in setting.measured if point.width is not None]
    if not widths or settled:
        return None
    point, width = max(widths, key=lambda each: each[1])
    alike = len(widths) > 1 and len({formatting.plus_minus(each) for _, each in widths}) == 1
    where = f"in each of {len(widths)} sizes, whose spread is taken together" if alike else point.size
    numbers = {"width": Number(width, tuple(row["cell"] for row in point.measured), formatting.plus_minus)}
    answer = f"How many are enough is not known: the steady state is known to {{width}} only ({where})."
    text = "Measure it in more processes."
    return Finding(question, answer, numbers, setting.hardware, advice=text)


def compiling(found: list[Ladder]) -> Finding | None:
    """What compiling adds to the first step, and after how many steps that is saved; of rungs that only compile.

    Later cells of a place find kernels in the compiler's cache, so that the first one that compiled tells the time;
    nothing is told where that compiled the whole model.
    """
    rungs = []
    for one in found:
        for row in one.climbed:
            before, speed = one.at(row.get("compared_with")), one.over_before.get(row["cell"])
            first = one.first_compiled or row
            is_known = formatting.known(row.get("compile_seconds")) and _way(first) != "model"
            is_new = before and _way(before) == NEUTRAL["compile"] != _way(row)
            if is_new and speed and is_known and not one.is_passed_over(row):
                rungs.append((one, row, first, speed))
    if not rungs:
        return None
    names = tuple(first["cell"] for *_, first, _ in rungs)
    numbers = {"seconds": Number([first["compile_seconds"] for *_, first, _ in rungs], names, formatting.value_range)}
    of = formatting.listing([f"{one.size} at {one.context:,.0f}" for one, *_ in rungs], 4)
    answer = f"Compiling adds {{seconds}} s to the first step ({of})."
    saved = {
        row["cell"]: 1e3 * first["compile_seconds"] / (speed.times[0] - speed.times[1])
        for _, row, first, speed in rungs
        if speed.ratio > 1 and (speed.verdict == FASTER or not speed.has_interval)
    }
    if not saved:
        return Finding("what does compiling add", answer, numbers, found[0].hardware, "No step is sure to gain by it.")
    single = any(not speed.has_interval for *_, speed in rungs)
    numbers["steps"] = Number(list(saved.values()), tuple(saved), _steps)
    sure = [f"{one.size} at {one.context:,.0f}" for one, row, *_ in rungs if row["cell"] in saved]
    where = f"In {formatting.listing(sure, 4)} the" if len(sure) < len(rungs) else "The"
    cause = f"{where} gain makes up for that after {{steps}} steps{' (single processes: no verdict)' * single}."
    return Finding("what does compiling add", answer, numbers, found[0].hardware, cause)


def _way(row: dict) -> str:
    return str(row.get("compile") or NEUTRAL["compile"])


def _steps(values: list[float]) -> str:
    low, high = (formatting.count(end(values)) for end in (min, max))
    return low if low == high else f"{low} to {high}"
