"""The attention study's tables with a row a precision and implementation, and the closed form of naive attention."""

from collections.abc import Callable
from functools import partial

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import Attention, Group, before_backward, first_cost
from stepscope.report.data.attention_growth import QUANTITIES, Factor, Growth, factors, growths, of_shared_lengths
from stepscope.report.data.attention_memory import (
    MOMENTS,
    first_lost,
    largest,
    memory_of,
    naive_tensors,
    needed,
    ran_out_first,
)
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.sizes import percent_change

SERIES = [Column(name, number=False, value=name) for name in ("precision", "implementation")]
_COSTS_NOTE = (
    "By the host's clock: compiling and tuning, loading libraries, and asking for memory. First passes of backward "
    "hold the forward pass that makes their graph, which is not timed otherwise. Each length is compiled anew."
)


def growth_table(group: Group) -> Table | None:
    """A row for each precision and implementation: factors of the length, over all d, and of d; None without any."""
    grown, with_d = growths(group), factors(group)
    rows = []
    for precision, name in dict.fromkeys((each.precision, each.implementation) for each in grown):
        of_length, of_d = (
            [each for each in found if (each.precision, each.implementation) == (precision, name)]
            for found in (grown, with_d)
        )
        rows.append({"precision": precision, "implementation": name, "factors": of_d}
                    | {"growths": of_shared_lengths(of_length)})  # fmt: skip
    over = "times as much at the longer length"
    columns = [
        *SERIES,
        Column("lengths", "tokens", value=lambda row: _lengths(row["growths"])),
        *(Column(_label(name), group=over, value=partial(_growths, name), optional=True) for name in QUANTITIES),
        *(
            Column(_label(name), group=_factor_group(with_d), value=partial(_factors, name), optional=True)
            for name in QUANTITIES
        ),
        Column("at length", "tokens", value=_longest, show=formatting.count, optional=True),
    ]
    caption = f"Growth with the length and with d, {group.place}."
    note = (
        "The two longest lengths that most d were measured at, the range over d. What grows in proportion grows as the "
        "length does, with its square as its square."
    )
    return table.build(f"attention-growth-{group.hardware}", caption, columns, rows, [note], grouped=True)


def _label(quantity: str) -> str:
    return "memory before backward" if quantity == "memory" else f"{quantity} time"


def _factor_group(found: list[Factor]) -> str:
    ends = {(each.smallest, each.largest) for each in found}
    if len(ends) != 1:
        return "largest d over smallest"
    ((smallest, largest),) = ends
    return f"d = {largest:,.0f} over d = {smallest:,.0f}"


def _lengths(found: list[Growth]) -> TableCell:
    first, last = found[0].lengths
    return TableCell(f"{first:,.0f} to {last:,.0f}", sort=last)


def _growths(quantity: str, row: dict) -> TableCell:
    return _range([each.factor for each in row["growths"] if each.quantity == quantity])


def _factors(quantity: str, row: dict) -> TableCell:
    return _range([each.factor for each in row["factors"] if each.quantity == quantity])


def _longest(row: dict) -> float | None:
    return max((each.length for each in row["factors"]), default=None)


def _range(values: list[float]) -> TableCell:
    return TableCell(two_decimals(values), sort=max(values)) if values else table.NOTHING


def two_decimals(values: list[float]) -> str:
    """`1.96 to 2.03`, or one number; two decimals, since growth is compared with whole numbers."""
    low, high = (formatting.fixed(end(values), 2) for end in (min, max))
    return low if low == high else f"{low} to {high}"


def costs_table(group: Group) -> Table | None:
    """A row for each precision and implementation: the first pass less the median, over d and lengths."""
    rows = []
    for precision, name in group.series():
        own = [row for row in group.of(precision) if row["implementation"] == name and first_cost(row) is not None]
        costs = {way: [first_cost(row) / 1000 for row in own if row["direction"] == way] for way in DIRECTIONS}
        rows += [{"precision": precision, "implementation": name, **costs}] if own else []
    columns = [
        Column(label, "s", group=way, value=partial(_end, way, end), show=_seconds)
        for way in DIRECTIONS
        for label, end in (("least", min), ("most", max), ("in all", sum))
    ]
    caption = f"What the first pass of each length takes longer than the median one, over d and lengths, {group.place}."
    name = f"attention-costs-{group.hardware}"
    return table.build(name, caption, [*SERIES, *columns], rows, [_COSTS_NOTE], grouped=True)


def _end(direction: str, end: Callable[[list[float]], float], row: dict) -> float | None:
    return end(row[direction]) if row[direction] else None


def _seconds(value: float) -> str:
    return formatting.fixed(value, 3 if abs(value) < 1 else 2 if abs(value) < 100 else 0)


def limits_table(group: Group) -> Table | None:
    """A row for each precision and implementation that ran out: the first length that did, by d; None if none did."""
    rows, headings = [], {f"d = {d_head:,.0f}": d_head for d_head in group.values("d_head")}
    for precision, name in group.series():
        limits = {heading: _limit(group, name, precision, d_head) for heading, d_head in headings.items()}
        if any(cell.sort is not None for cell in limits.values()):
            rows.append({"precision": precision, "implementation": name, **limits})
    columns = [Column(heading, "tokens", value=heading) for heading in headings]
    caption = f"The first length that runs out of memory, forward / backward, {group.place}."
    note = "Longer ones are not tried. –: none did. Implementations that are not listed ran out nowhere that they ran"
    note += f" (longest: {formatting.count(max(group.values('length')))})."
    name = f"attention-limits-{group.hardware}"
    return table.build(name, caption, [*SERIES, *columns], rows, [note], grouped=True)


def _limit(group: Group, name: str, precision: str, d_head: float) -> TableCell:
    """`16,384 / 4,096`."""
    both = [first_lost(group, name, precision, d_head, direction) for direction in DIRECTIONS]
    known = [length for length in both if length is not None]
    text = " / ".join(formatting.count(length) if length is not None else "–" for length in both)
    return TableCell(text, sort=min(known)) if known else table.NOTHING


def accounting_table(attention: Attention, hardware: str) -> Table | None:
    """The closed form of the smallest naive configuration that ran out, or of the largest; None without memory."""
    results = attention.results(hardware)
    row = ran_out_first(results) or largest(results)
    if not row:
        return None
    measured = _measured(results, row)
    moments = [moment for moment in MOMENTS if row["status"] == "ok" or moment in (*measured, row["direction"])]
    sums = {moment: needed(row, moment) for moment in moments}
    lines = [
        {"name": each.name, "formula": each.formula, **dict.fromkeys(each.moments, each.size)}
        for each in naive_tensors(row)
        if set(each.moments) & set(moments)
    ]
    lines.append({"name": "sum", **sums})
    if measured:
        beside = {moment: _beside(*measured[moment], sums[moment]) for moment in moments if moment in measured}
        lines.append({"name": "measured", **beside})
    if capacity := memory_of(row):
        lines.append({"name": "the card's memory", **dict.fromkeys(moments, capacity)})
    columns = [
        Column("tensors", number=False, value="name"),
        Column("size", number=False, value=lambda line: TableCell(line.get("formula", ""))),
        *(Column(moment, "GiB", value=moment, show=formatting.gib) for moment in moments),
    ]
    what = "The smallest configuration of naive attention that ran out of memory"
    what = what if row["status"] == "oom" else "Naive attention never ran out of memory: its largest configuration"
    caption = f"{what}, in closed form: {configuration(row)}, {row['precision']}, {row['direction']}, on {hardware}."
    note = "The closed form counts the tensors that the code keeps alive; it is not fitted to any measurement."
    note += " Measured: highest allocated, or reached when memory ran out; below it the closed form against it."
    name = f"attention-accounting-{hardware}"
    return table.build(name, caption, columns, lines, [note], meanings=table.PLAIN_MEANINGS)


def configuration(row: dict) -> str:
    """`batch 8, length 16,384, d = 64`; heads and the mask if there are any."""
    parts = [f"batch {formatting.count(row['batch'])}"]
    parts += [f"{row['heads']:,.0f} heads"] if formatting.known(row["heads"]) and row["heads"] else []
    parts += [f"length {formatting.count(row['length'])}", f"d = {formatting.count(row['d_head'])}"]
    return ", ".join(parts + ["causal"] * (row["causal"] == "yes"))


def _measured(results: list[dict], row: dict) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Moment -> (bytes, badges) at a result's point, where they were measured."""
    names = ("cell", "length")
    both = {each["direction"]: each for each in results if all(each[name] == row[name] for name in names)}
    found = {way: (each.get("peak_bytes"), table.lost(each)) for way, each in both.items()}
    found["before backward"] = (before_backward(both.get("backward", {})), ())
    return {moment: pair for moment, pair in found.items() if formatting.known(pair[0])}


def _beside(measured: float, badges: tuple[str, ...], closed: float) -> TableCell:
    """Measured bytes; below them the closed form against them."""
    below = "" if badges else percent_change(closed / measured - 1)
    return table.number(measured, formatting.gib, below, badges)
