"""What the attention study's table says, for the summary and for the opening of the section."""

from collections import Counter
from collections.abc import Iterable

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import (
    NAIVE,
    OURS,
    Attention,
    Compared,
    Group,
    before_backward,
    fullest,
    implementation_rank,
    median,
    point_name,
    setting_of,
)
from stepscope.report.data.attention_growth import Factor, Growth, factors, growths, of_shared_lengths
from stepscope.report.data.attention_memory import first_too_long, largest, memory_of, needed, ran_out_first
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, NOT_COMPARABLE, SAME, SLOWER, UNCLEAR, ratio_and_interval
from stepscope.report.kit.finding import Finding, Number, enough, key_of, without_verdict
from stepscope.report.kit.sizes import size
from stepscope.report.studies.attention.tables_series import configuration, two_decimals

_RIVALS = ("sdpa-flash", "sdpa-cudnn", "flex")
_COMPARED = "which implementation is faster"
Part = tuple[str, dict[str, Number]]  # a part of an answer, and the numbers in it


def findings(attention: Attention) -> list[Finding]:
    """The findings, machine by machine."""
    if not attention.rows:
        return [Finding("attention", "No attention cell is in the tables.")]
    found = [each for hardware in attention.hardware for each in _of(attention, hardware)]
    return [each for each in found if each]


def _of(attention: Attention, hardware: str) -> list[Finding | None]:
    groups = [group for group in attention.of(hardware) if any(median(row) for row in group.rows)]
    if not groups:
        none = Finding("how fast is attention", "No pass of attention finished.", hardware=hardware)
        return [none, _lost(attention, hardware)]
    main = fullest(groups)
    papers = [group for group in groups if group.setting.tokens] or [main]
    precision = main_precision(main)
    return [
        _time_growth(main, precision),
        _memory_growth(main, precision),
        _head_dimension(main, precision),
        _over_naive(main, "compiled", "compiled"),
        _over_naive(main, OURS, f"{OURS}, this project's kernel,"),
        *(_ours(group, main_precision(group)) for group in papers),
        _ours_disturbed(attention, hardware),
        *(_rates(attention, group) for group in papers),
        _tf32(main),
        *without_verdict(_all_speeds(main, papers), hardware),
        _limit(attention, hardware),
        _lost(attention, hardware),
    ]


def main_precision(group: Group) -> str:
    """The precision in which most implementations ran; the lowest one of equals."""
    done = {
        precision: {row["implementation"] for row in group.of(precision) if median(row)}
        for precision in group.values("precision")
    }
    return max(reversed(done), key=lambda precision: len(done[precision]))


def _cells(rows: Iterable[dict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["cell"] for row in rows))


def _cells_of(found: Iterable[Growth | Factor]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell for each in found for cell in each.cells))


def _time_growth(group: Group, precision: str) -> Finding | None:
    """How many times as long naive attention, or all implementations, take at the longest length; over d."""
    found = [each for each in growths(group) if each.precision == precision and each.quantity in DIRECTIONS]
    own = of_shared_lengths([each for each in found if each.implementation == NAIVE] or found)
    if not own:
        return None
    who = "naive attention takes" if own[0].implementation == NAIVE else "attention takes"
    found = [each for each in found if each.lengths == own[0].lengths]
    numbers = {}
    for way in DIRECTIONS:
        if there := [each for each in own if each.quantity == way]:
            numbers[way] = Number([each.factor for each in there], _cells_of(there), two_decimals)
    parts = [f"{{{way}}} times as long {way}" for way in numbers]
    others = ""
    ends = {name: end(found, key=lambda each: each.factor) for name, end in (("least", min), ("most", max))}
    extremes = {name: Number([each.factor], each.cells, two_decimals) for name, each in ends.items()}
    if len({each.implementation for each in found}) > 1 and len(set(map(str, extremes.values()))) > 1:
        low, high = (
            f"{{{name}}} ({each.implementation}, d = {each.d_head:,.0f}, {each.quantity})"
            for name, each in ends.items()
        )
        others = f"; of all implementations {low} to {high}"
        numbers |= extremes
    answer = (
        f"From length {own[0].first:,.0f} to {own[0].last:,.0f} ({precision}, {group.setting.title}), {_longer(own)}, "
        f"{who} {formatting.listing(parts)}, over d{others}."
    )
    return Finding("how does time grow with the length", answer, numbers, group.hardware)


def _longer(found: list[Growth]) -> str:
    """`which is 4 times the length and 16 times its square`."""
    ratio = found[0].last / found[0].first
    return f"which is {ratio:,.3g} times the length and {ratio**2:,.3g} times its square"


def _memory_growth(group: Group, precision: str) -> Finding | None:
    """How memory before backward grows in each implementation, and what the least and the most hold."""
    found = [each for each in growths(group) if each.precision == precision and each.quantity == "memory"]
    found = of_shared_lengths(found)
    if not found:
        return None
    alike: dict[str, list[str]] = {}
    for name in sorted({each.implementation for each in found}, key=implementation_rank):
        text = two_decimals([each.factor for each in found if each.implementation == name])
        alike.setdefault(text, []).append(name)
    numbers, parts = {}, []
    for names in alike.values():
        own = [each for each in found if each.implementation in names]
        key = key_of(names[0])
        numbers[key] = Number([each.factor for each in own], _cells_of(own), two_decimals)
        parts.append(f"{{{key}}} ({formatting.listing(names, 7)})")
    ends, more = _most_and_least(group, precision)
    answer = (
        f"From length {found[0].first:,.0f} to {found[0].last:,.0f} ({precision}), {_longer(found)}, memory before "
        f"backward grows by a factor of {'; '.join(parts)}{ends}."
    )
    return Finding("how does memory grow with the length", answer, numbers | more, group.hardware)


def _most_and_least(group: Group, precision: str) -> Part:
    """`; at length 16,384 and d = 64 naive holds 12.0 GiB, triton 66.0 MiB`."""
    rows = [row for row in group.of(precision) if before_backward(row)]
    points = Counter((row["length"], row["d_head"]) for row in rows)
    if max(points.values()) < 2:
        return "", {}
    length, d_head = max(points, key=lambda point: (points[point], point))
    there = [row for row in rows if (row["length"], row["d_head"]) == (length, d_head)]
    most, least = (end(there, key=before_backward) for end in (max, min))
    if before_backward(most) == before_backward(least):
        return "", {}
    ends = {"most": most, "least": least}
    numbers = {name: Number(before_backward(row), (row["cell"],), size) for name, row in ends.items()}
    holds = f"{most['implementation']} holds {{most}}, {least['implementation']} {{least}}"
    return f"; at length {length:,.0f} and d = {d_head:,.0f} {holds}", numbers


def _head_dimension(group: Group, precision: str) -> Finding | None:
    """What the largest d takes over the smallest, in naive attention, ours, and the one that pays most."""
    found = [each for each in factors(group) if each.precision == precision and each.quantity in DIRECTIONS]
    if not found:
        return None
    smallest, largest, length = found[0].smallest, found[0].largest, max(each.length for each in found)
    there = [each for each in found if each.length == length]
    by_name = {name: [each for each in there if each.implementation == name] for name in group.values("implementation")}
    shown = [name for name in (NAIVE, OURS) if by_name.get(name)]
    rest = [name for name, own in by_name.items() if own and name not in shown]
    shown += [max(rest, key=lambda name: max(each.factor for each in by_name[name]))] if rest else []
    numbers, parts = {}, []
    for name in shown:
        own = {key_of(name, each.quantity): each for each in by_name[name]}
        numbers |= {key: Number(each.factor, each.cells) for key, each in own.items()}
        parts.append(f"{name} {formatting.listing([f'{{{key}}} {each.quantity}' for key, each in own.items()])}")
    answer = (
        f"d = {largest:,.0f} instead of {smallest:,.0f}, {largest / smallest:,.3g} times the arithmetic, takes this "
        f"many times as long at length {length:,.0f} ({precision}): {'; '.join(parts)}."
    )
    return Finding("what does a larger d cost", answer, numbers, group.hardware)


def _all_speeds(main: Group, papers: list[Group]) -> list:
    """Every comparison that a sentence is about."""
    found = [each for each in main.over_naive if each.row["implementation"] in ("compiled", OURS)] + main.tf32_over_fp32
    for group in papers:
        found += [each for each in group.ours_over if each.reference["implementation"] in _RIVALS]
    return [each.speed for each in found]


def _over_naive(group: Group, name: str, title: str) -> Finding | None:
    """An implementation against naive attention, a part for each precision."""
    parts, numbers = [], {}
    for precision in group.values("precision"):
        own = [each for each in group.over_naive
               if (each.row["implementation"], each.row["precision"]) == (name, precision)]  # fmt: skip
        text, more = _by_direction(own, precision)
        parts += [f"{precision}: {text}"] if text else []
        numbers |= more
    if not parts:
        return None
    answer = f"{title} against naive ({group.setting.title}), times the speed: {'; '.join(parts)}."
    return Finding(_COMPARED, answer, numbers, group.hardware)


def _by_direction(found: list[Compared], key: str) -> Part:
    """`0.92 to 1.10 forward (faster in 3, slower in 2 of 6 points) and …`; empty where the two never both ran."""
    parts, numbers = [], {}
    for direction in DIRECTIONS:
        own = [each for each in found if each.row["direction"] == direction]
        if own:
            text, more = _against(own, direction, key_of(key, direction))
            parts.append(text)
            numbers |= more
    return formatting.listing(parts), numbers


def _against(found: list[Compared], direction: str, key: str) -> Part:
    """The range of these ratios, or the one with its interval, and how many of the points have which verdict."""
    cells = _cells(row for each in found for row in (each.row, each.reference))
    ratios = [each.speed.ratio for each in found]
    show = formatting.value_range if len(found) > 1 else lambda _: ratio_and_interval(found[0].speed)
    numbers = {key: Number(ratios, cells, show)}
    verdicts = Counter(each.speed.verdict for each in found if enough(comparison=each.speed))
    told = []
    for word in (FASTER, SAME, UNCLEAR, SLOWER, NOT_COMPARABLE):
        if verdicts[word]:
            name = f"{key}_{key_of(word)}"
            numbers[name] = Number(verdicts[word], cells, formatting.count)
            told.append(f"{word} in {{{name}}}")
    many = _points(len(found))
    words = f"{next(iter(verdicts))} in all {many}" if list(verdicts.values()) == [len(found)] else ""
    words = words or (f"{', '.join(told)} of {many}" if told else many)
    return f"{{{key}}} {direction} ({words})", numbers


def _points(number: int) -> str:
    return f"{number:,} point{'s' * (number != 1)}"


def _ours(group: Group, precision: str) -> Finding | None:
    """Our kernel against each that it wants to match."""
    parts, numbers = [], {}
    for other in _RIVALS:
        own = [each for each in group.ours_over
               if (each.reference["implementation"], each.row["precision"]) == (other, precision)]  # fmt: skip
        text, more = _by_direction(own, other)
        parts += [f"{other} {text}"] if text else []
        numbers |= more
    if not parts:
        return None
    what = f"{OURS}, this project's kernel, in {precision} ({group.setting.title}), times the speed of others"
    return Finding(_COMPARED, f"{what}: {'; '.join(parts)}.", numbers, group.hardware)


def _ours_disturbed(attention: Attention, hardware: str) -> Finding | None:
    """How many of our kernel's cells ran on a throttled GPU."""
    rows = [row for row in attention.results(hardware) if row["implementation"] == OURS and median(row)]
    every, throttled = _cells(rows), _cells(row for row in rows if row.get("throttle"))
    if not throttled:
        return None
    numbers = {"throttled": Number(len(throttled), throttled, formatting.count)}
    answer = f"{{throttled}} of {formatting.cells(len(every))} of {OURS} ran on a throttled GPU."
    return Finding("what was throttled", answer, numbers, hardware)


def _rates(attention: Attention, group: Group) -> Finding | None:
    """The highest rate of each direction, with its share of the ceiling."""
    parts, numbers = [], {}
    for direction in DIRECTIONS:
        row = _fastest(group, direction)
        if row:
            numbers[direction] = Number(row["tflops"], (row["cell"],))
            ceiling, share = matmul_ceiling(attention.ceilings, group.hardware, row["precision"]), ""
            if ceiling:
                key = f"{direction}_share"
                numbers[key] = Number(row["tflops"] / ceiling, (row["cell"],), formatting.percent)
                share = f"; {{{key}}} of the matrix product's"
            where = point_name(row, ("direction",))
            parts.append(f"{direction} {{{direction}}} TFLOP/s ({where}{share})")
    if not parts:
        return None
    answer = f"The highest arithmetic rate of attention ({group.setting.title}): {'; '.join(parts)}."
    return Finding("how near is it to the machine's ceiling", answer, numbers, group.hardware)


def _fastest(group: Group, direction: str) -> dict:
    """The result with the highest rate in a direction; empty where nothing ran."""
    known = [row for row in group.rows if row["direction"] == direction and median(row)]
    return max((row for row in known if formatting.known(row.get("tflops"))), key=lambda row: row["tflops"], default={})


def _tf32(group: Group) -> Finding | None:
    """What TF32 brings in each implementation, over d and lengths; None without pairs."""
    parts, numbers = [], {}
    for name in group.values("implementation", "tf32"):
        text, more = _by_direction([each for each in group.tf32_over_fp32 if each.row["implementation"] == name], name)
        parts += [f"{name} {text}"] if text else []
        numbers |= more
    if not parts:
        return None
    answer = f"tf32 against fp32, times the speed: {'; '.join(parts)}."
    return Finding("what does tf32 bring", answer, numbers, group.hardware)


def _limit(attention: Attention, hardware: str) -> Finding | None:
    """Where naive attention ran out of memory, with the closed form; or from where on it will."""
    question = "where does naive attention run out of memory"
    results = attention.results(hardware)
    if row := ran_out_first(results):
        numbers = {"need": Number(needed(row, row["direction"]), (row["cell"],), size)}
        if capacity := memory_of(row):
            numbers["capacity"] = Number(capacity, (row["cell"],), size)
        beside = "; the card has {capacity}" if capacity else ""
        name = f"{configuration(row)}, {row['precision']}, {row['direction']}"
        start = f"The smallest configuration of naive attention that ran out of memory ({name})"
        return Finding(question, f"{start} needs {{need}}{beside}.", numbers, hardware)
    row = largest(results)
    length = first_too_long(row, "backward") if row else None
    if length is None:
        return None
    numbers = {
        "length": Number(length, (row["cell"],), formatting.count),
        "capacity": Number(memory_of(row), (row["cell"],), size),
    }
    fixed = point_name(row, ("implementation", "length", "direction"))
    answer = (
        "Naive attention ran out of memory nowhere; in closed form its backward pass does from length {length} on "
        f"({fixed}, {setting_of(row).title}), on a card with {{capacity}}."
    )
    return Finding(question, answer, numbers, hardware)


def _lost(attention: Attention, hardware: str) -> Finding | None:
    """How many results are lost or noisy, of how many."""
    rows = attention.results(hardware)
    words = {"oom": "out of memory", "unsupported": "unsupported", "failed": "failed", "missing": "missing"}
    which = {word: [row for row in rows if row["status"] == status] for status, word in words.items()}
    which["noisy"] = [row for row in rows if row.get("noisy") and median(row)]
    numbers, parts = {}, []
    for word, own in which.items():
        if own:
            key = key_of(word)
            numbers[key] = Number(len(own), _cells(own), formatting.count)
            parts.append(f"{{{key}}} {word}")
    if not parts:
        return None
    what = "results (a length and direction of a cell)"
    answer = f"Of {len(rows):,} attention {what}: {formatting.listing(parts)}."
    return Finding("what is missing", answer, numbers, hardware)


def opening(attention: Attention) -> list[Finding]:
    """How many passes were timed where that is fewer than asked for, or that there is nothing."""
    question = "how many passes were timed"
    if not any(median(row) for row in attention.rows):
        return [Finding(question, "No pass of attention was timed.")]
    done = [row for row in attention.rows if formatting.known(row.get("samples")) and median(row)]
    if not done:
        return []
    asked = formatting.listing([formatting.count(value) for value in sorted({row["passes"] for row in done})])
    fewer = [row for row in done if row["samples"] < row["passes"]]
    if not fewer:
        return [Finding(question, f"All {len(done):,} series have the {asked} passes that were asked for.")]
    least = min(fewer, key=lambda row: row["samples"])
    numbers = {
        "fewer": Number(len(fewer), _cells(fewer), formatting.count),
        "least": Number(least["samples"], (least["cell"],), formatting.count),
    }
    answer = (
        f"Of {len(done):,} series {{fewer}} have fewer than the {asked} passes that were asked for, since the time for "
        f"a series was over; the fewest, {{least}}, has {point_name(least)}."
    )
    return [Finding(question, answer, numbers)]
