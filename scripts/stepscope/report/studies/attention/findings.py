"""Sentences that the attention study supports, for the summary."""

from collections import Counter

from stepscope.report.data.attention import (
    DIRECTIONS,
    NAIVE,
    OURS,
    Attention,
    Group,
    implementation_rank,
    median,
    point_name,
    speed,
    verdict,
)
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.kit import formatting
from stepscope.report.kit.sizes import size
from stepscope.report.studies.attention import memory as attention_memory
from stepscope.report.studies.attention import precision as attention_precision
from stepscope.report.studies.attention.growth import Factor, Growth, factors, growths, two_decimals
from stepscope.report.studies.attention.rates import fastest
from stepscope.report.studies.attention.tables import before_backward

_RIVALS = ("sdpa-flash", "sdpa-cudnn", "flex")
_SINGLE = "Single runs, here and below: only points with disjoint 95 % intervals count as faster or slower."


def findings(attention: Attention) -> list[str]:
    """The findings, machine by machine."""
    if not attention.rows:
        return ["No attention cell is in the tables."]
    sentences = []
    for hardware in attention.hardware:
        found = [sentence for sentence in _of(attention, hardware) if sentence]
        sentences += [f"On {hardware}: {text}" if len(attention.hardware) > 1 else text for text in found]
    return sentences


def _of(attention: Attention, hardware: str) -> list[str]:
    groups = [group for group in attention.of(hardware) if any(median(row) for row in group.rows)]
    if not groups:
        return ["No pass of attention finished.", _lost(attention, hardware)]
    main = max(groups, key=lambda group: (not group.setting.tokens, len(group.rows)))
    papers = [group for group in groups if group.setting.tokens] or [main]
    precision = main_precision(main)
    return [
        _time_growth(main, precision),
        _memory_growth(main, precision),
        _head_dimension(main, precision),
        *_comparisons(main, papers),
        *(_rates(attention, group) for group in papers),
        attention_precision.told(main),
        attention_memory.told(attention, hardware),
        _lost(attention, hardware),
    ]


def main_precision(group: Group) -> str:
    """The precision in which most implementations ran; the lowest one of equals."""
    done = {precision: set() for precision in group.values("precision")}
    for row in group.rows:
        if median(row):
            done[row["precision"]].add(row["implementation"])
    return max(reversed(done), key=lambda precision: len(done[precision]))


def _time_growth(group: Group, precision: str) -> str:
    """The exponents of naive attention, or of all implementations, forward and backward."""
    found = [each for each in growths(group) if each.precision == precision and each.quantity in DIRECTIONS]
    if not found:
        return ""
    own = [each for each in found if each.implementation == NAIVE] or found
    who = "of naive attention " if own[0].implementation == NAIVE else ""
    parts = [f"{two_decimals(exponents)} {way}" for way in DIRECTIONS if (exponents := _exponents(own, way))]
    first, last = min(each.first for each in own), max(each.last for each in own)
    others = ""
    low, high = (end(found, key=lambda each: each.exponent) for end in (min, max))
    if len({each.implementation for each in found}) > 1 and f"{low.exponent:.2f}" != f"{high.exponent:.2f}":
        others = f"; of all implementations {_named(low)} to {_named(high)}"
    return (
        f"Between lengths {first:,.0f} and {last:,.0f} ({precision}, {group.setting.title}) the time {who}grows as the "
        f"length to the power of {formatting.listing(parts)}, over d{others}."
    )


def _exponents(found: list[Growth], quantity: str) -> list[float]:
    return [each.exponent for each in found if each.quantity == quantity]


def _named(each: Growth) -> str:
    return f"{each.exponent:.2f} ({each.implementation}, d = {each.d_head:,.0f}, {each.quantity})"


def _memory_growth(group: Group, precision: str) -> str:
    """How memory before backward grows in each implementation, and what the least and the most hold."""
    found = [each for each in growths(group) if each.precision == precision and each.quantity == "memory"]
    if not found:
        return ""
    names: dict[str, list[str]] = {}
    for name in sorted({each.implementation for each in found}, key=implementation_rank):
        text = two_decimals([each.exponent for each in found if each.implementation == name])
        names.setdefault(text, []).append(name)
    grown = "; ".join(f"{text} ({formatting.listing(who, 7)})" for text, who in names.items())
    return f"Memory before backward grows as the length to the power of {grown}{_most_and_least(group, precision)}."


def _most_and_least(group: Group, precision: str) -> str:
    """`: at length 16,384 and d = 64 naive holds 12.0 GiB, triton 66.0 MiB`."""
    rows = [row for row in group.rows if row["precision"] == precision and before_backward(row)]
    points = Counter((row["length"], row["d_head"]) for row in rows)
    if max(points.values()) < 2:
        return ""
    length, d_head = max(points, key=lambda point: (points[point], point))
    there = [row for row in rows if (row["length"], row["d_head"]) == (length, d_head)]
    most, least = (end(there, key=before_backward) for end in (max, min))
    parts = [f"{row['implementation']} {'holds ' * (row is most)}{size(before_backward(row))}" for row in (most, least)]
    return f"; at length {length:,.0f} and d = {d_head:,.0f} {', '.join(parts)}"


def _head_dimension(group: Group, precision: str) -> str:
    """What the largest d takes over the smallest, in naive attention, ours, and the one that pays most."""
    found = [each for each in factors(group) if each.precision == precision and each.quantity in DIRECTIONS]
    if not found:
        return ""
    smallest, largest, length = found[0].smallest, found[0].largest, max(each.length for each in found)
    there = [each for each in found if each.length == length]
    by_name = {name: [each for each in there if each.implementation == name] for name in group.values("implementation")}
    shown = [name for name in (NAIVE, OURS) if by_name.get(name)]
    rest = [name for name, own in by_name.items() if own and name not in shown]
    shown += [max(rest, key=lambda name: max(each.factor for each in by_name[name]))] if rest else []
    parts = [f"{name} {_factors(by_name[name])}" for name in shown]
    return (
        f"d = {largest:,.0f} instead of {smallest:,.0f}, {largest / smallest:,.3g} times the arithmetic, takes this "
        f"many times as long at length {length:,.0f} ({precision}): {'; '.join(parts)}."
    )


def _factors(found: list[Factor]) -> str:
    return formatting.listing([f"{formatting.significant(each.factor)} {each.quantity}" for each in found])


def _comparisons(main: Group, papers: list[Group]) -> list[str]:
    """Implementation against implementation; the first sentence says what a verdict means."""
    made = [_compiled(main), *(_ours(group, main_precision(group)) for group in papers)]
    first, *rest = [sentence for sentence in made if sentence] or [""]
    return [f"{first} {_SINGLE}" if first else "", *rest]


def _compiled(group: Group) -> str:
    """The compiler against naive attention, a part for each precision."""
    parts = []
    for precision in group.values("precision"):
        texts = [_against(group, precision, way, "compiled", NAIVE) for way in DIRECTIONS]
        parts += [f"{precision}: {formatting.listing(texts)}"] if all(texts) else []
    return f"compiled against naive, times the speed: {'; '.join(parts)}." if parts else ""


def _against(group: Group, precision: str, direction: str, name: str, other: str) -> str:
    """`0.92 to 1.10 forward (faster in 3, slower in 2 of 6 points)`; empty where the two never both ran."""
    pairs = [
        tuple(group.at(who, precision, d_head, length, direction) for who in (name, other))
        for d_head, length in group.points(precision)
    ]
    pairs = [pair for pair in pairs if speed(*pair)]
    if not pairs:
        return ""
    verdicts = Counter(verdict(*pair) for pair in pairs)
    points = f"{len(pairs):,} point{'s' * (len(pairs) != 1)}"
    told = [f"{word} in {verdicts[word]:,}" for word in ("faster", "slower") if verdicts[word]]
    told = f"{next(iter(verdicts))} in all {points}" if len(verdicts) == 1 else f"{', '.join(told)} of {points}"
    ratios = formatting.value_range([speed(*pair) for pair in pairs])
    return f"{ratios} {direction} ({told})"


def _ours(group: Group, precision: str) -> str:
    """Our kernel against each that it wants to match."""
    parts = []
    for other in _RIVALS:
        texts = [text for way in DIRECTIONS if (text := _against(group, precision, way, OURS, other))]
        parts += [f"{other} {formatting.listing(texts)}"] if texts else []
    if not parts:
        return ""
    what = f"{OURS}, this project's kernel, in {precision} ({group.setting.title}), times the speed of others"
    return f"{what}: {'; '.join(parts)}."


def _rates(attention: Attention, group: Group) -> str:
    """The highest rate of each direction, with its share of the ceiling."""
    parts = []
    for direction in DIRECTIONS:
        row = fastest(group, direction)
        if row:
            ceiling = matmul_ceiling(attention.ceilings, group.hardware, row["precision"])
            share = f"; {formatting.percent(row['tflops'] / ceiling)} of the matrix product's" if ceiling else ""
            rate = f"{formatting.significant(row['tflops'])} TFLOP/s"
            parts.append(f"{direction} {rate} ({point_name(row, ('direction',))}{share})")
    return f"The highest arithmetic rate of attention ({group.setting.title}): {'; '.join(parts)}." if parts else ""


def _lost(attention: Attention, hardware: str) -> str:
    """How many results are lost or noisy, of how many."""
    rows = [row for group in attention.of(hardware) for row in group.rows]
    statuses = Counter(str(row["status"]) for row in rows)
    words = {"oom": "out of memory", "unsupported": "unsupported", "failed": "failed", "missing": "missing"}
    parts = [f"{statuses[key]:,} {word}" for key, word in words.items() if statuses[key]]
    noisy = sum(bool(row.get("noisy")) for row in rows if median(row))
    parts += [f"{noisy:,} noisy"] if noisy else []
    what = "results (a length and direction of a cell)"
    return f"Of {len(rows):,} attention {what}: {formatting.listing(parts)}." if parts else ""
