"""Which implementation of attention takes the least time, by length and precision, and what disturbed it."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import NAIVE, OURS, Compared, Group, before_backward, beside, median
from stepscope.report.data.attention_fastest import Fastest, fastest, typical_d
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.compare import FASTER, SLOWER
from stepscope.report.kit.finding import Finding, Number, enough
from stepscope.report.kit.order import precision_rank

LOW_RATE = 0.5  # of the measured matrix product's, below which the arithmetic of a kernel is called slow
_NO_INTERVAL = "no interval: no verdict"
_HOST_NOTE = (
    "host: how long a call, forward and backward, keeps it busy, at the shortest length{over}. What the GPU finishes "
    "sooner takes as long."
)


def least_time(group: Group, precisions: list[str], others: Sequence[Group] = ()) -> Finding | None:
    """The implementation with the shortest forward and backward pass, length by length, in each of these precisions.

    others: groups of other settings, of which the causal ones are told where the first is not causal, as the model is.
    """
    parts, every = [], []
    for precision in precisions:
        found = fastest(group, precision, typical_d(group, precision))
        runs = [list(own) for _, own in groupby(found, key=lambda each: each.name)]
        if runs:
            told = [f"{own[0].name} at {_lengths(own, len(found))}" for own in runs]
            parts.append(f"in {precision} with {formatting.listing(told)}")
        every += found
    if not every:
        return None
    numbers = {"lengths": Number(len({each.length for each in every}), _cells(every), formatting.count)}
    d_heads = dict.fromkeys(f"{typical_d(group, precision):,.0f}" for precision in precisions)
    mask = ", not causal" * (group.setting.causal == "no")
    answer = (
        f"Of {{lengths}} lengths (d = {formatting.listing(list(d_heads))}{mask}) forward plus backward takes least "
        f"time {'; '.join(parts)} ({_verdict(every)})."
    )
    plain = [each for each in others if not each.setting.is_special]
    causal = [each for each in plain if each.setting.causal == "yes" != group.setting.causal]
    cause, more = _with_mask(causal, precisions[0])
    return Finding("which takes the least time", answer, numbers | more, group.hardware, cause)


def _with_mask(groups: list[Group], precision: str) -> tuple[str, dict[str, Number]]:
    """The implementation that takes least time at most of the causal points, and at how many; empty without any."""
    every = [(d_head, each) for group in groups for d_head in group.values("d_head", precision)
             for each in fastest(group, precision, d_head)]  # fmt: skip
    if not every:
        return "", {}
    names = [each.name for _, each in every]
    name = max(dict.fromkeys(names), key=names.count)
    numbers = {"causal": Number(names.count(name), _cells([each for _, each in every]), formatting.count)}
    d_heads = formatting.listing([f"{d_head:,.0f}" for d_head in dict.fromkeys(d_head for d_head, _ in every)])
    return f"Causal, {name} does at {{causal}} of {len(every):,} points ({precision}, d = {d_heads}).", numbers


def _lengths(own: list[Fastest], every: int) -> str:
    """`each`, `256` or `256 to 1,024`."""
    if len(own) == every:
        return "each"
    ends = f"{own[0].length:,.0f}", f"{own[-1].length:,.0f}"
    return ends[0] if len(own) == 1 else " to ".join(ends)


def _verdict(found: list[Fastest]) -> str:
    """What may be said of the shortest times."""
    single = sum(not each.is_judged for each in found)
    if single == len(found):
        return _NO_INTERVAL
    sure = sum(each.is_judged and not each.rivals for each in found)
    if len(found) == 1:
        return "faster than all others" if sure else "not sure to be faster than all others"
    unjudged = f"; no verdict at {single:,}" if single else ""
    if not sure:
        return f"at no point surely faster than all others{unjudged}"
    return f"faster than all others at {formatting.some_of(sure, len(found)).replace('cell', 'point')}{unjudged}"


def alternative(group: Group, precision: str) -> Finding | None:
    """The fastest at the longest length beside naive attention: time, and memory before backward."""
    d_head = typical_d(group, precision)
    last = next(reversed(fastest(group, precision, d_head)), None)
    if last is None or last.name == NAIVE:
        return None
    own, naive = ([group.at(name, precision, d_head, last.length, way) for way in DIRECTIONS]
                  for name in (last.name, NAIVE))  # fmt: skip
    if not all(median(row) for row in naive if row) or not all(naive):
        return None
    cells = (naive[0]["cell"], own[0]["cell"])
    numbers = {"times": Number(sum(map(median, naive)) / last.total, cells, formatting.times)}
    held = [before_backward(rows[-1]) for rows in (naive, own)]
    memory = ""
    if all(held):
        memory = " and holds {less} times less memory before backward"
        numbers["less"] = Number(held[0] / held[1], cells)
    where = f"length {last.length:,.0f} ({precision}, d = {d_head:,.0f})"
    answer = (
        f"At {where} forward plus backward of {last.name} runs {{times}} as fast as naive attention's{memory}; "
        f"{_verdict([last])}."
    )
    return Finding("what avoids that", answer, numbers, group.hardware)


def _cells(found: list[Fastest]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell for each in found for cell in each.cells))


def ours_in_fp32(machine: Machine, group: Group) -> Finding | None:
    """This project's kernel against naive attention in fp32, and how near its products come to the machine's rate."""
    own = [each for each in group.over_naive if (each.row["implementation"], each.row["precision"]) == (OURS, "fp32")]
    if not own:
        return None
    ratios = [each.speed.ratio for each in own]
    cells = tuple(dict.fromkeys(row["cell"] for each in own for row in (each.row, each.reference)))
    numbers = {"speed": Number(ratios, cells, _two_digits)}
    points = f"{len(own):,} point{'s' * (len(own) > 1)}"
    answer = f"In fp32 {OURS} runs at {{speed}} times naive's speed ({points}; {_counted(own)})."
    best = max((each.row for each in own if formatting.known(each.row.get("tflops"))), key=_rate, default=None)
    ceiling, cause = matmul_ceiling(machine.tables["ceilings"], group.hardware, "fp32"), ""
    if best and ceiling and max(ratios) < 1 and _rate(best) < LOW_RATE * ceiling:
        cause = "At best it reaches {share} of the measured fp32 matmul rate, which uses no tensor cores either."
        numbers["share"] = Number(_rate(best) / ceiling, (best["cell"],), formatting.percent)
    return Finding("how is it in fp32", answer, numbers, group.hardware, cause)


def _two_digits(values: list[float]) -> str:
    return formatting.value_range(values, 2)


def _rate(row: dict) -> float:
    return row["tflops"]


def _counted(own: list[Compared]) -> str:
    """`slower in 20`, `faster in 3, slower in 4`, or `no verdict`."""
    words = [each.speed.verdict for each in own if enough(comparison=each.speed)]
    if not words:
        return "no verdict"
    return ", ".join(f"{word} in {words.count(word):,}" for word in (FASTER, SLOWER) if word in words) or "none surely"


def throttled(rows: list[dict], hardware: str) -> Finding | None:
    """Which implementations ran on a throttled GPU, in how many cells."""
    timed = [row for row in rows if median(row)]
    every = dict.fromkeys(row["cell"] for row in timed)
    own = {row["cell"]: row for row in timed if row.get("throttle")}
    if not own:
        return None
    numbers = {"throttled": Number(len(own), tuple(own), formatting.count)}
    names = dict.fromkeys(str(row["implementation"]) for row in own.values())
    answer = f"{{throttled}} of {formatting.cells(len(every))} ran throttled: {formatting.listing(list(names), 4)}."
    return Finding("what not to trust", answer, numbers, hardware)


def speeds_table(group: Group, precisions: list[str]) -> Table | None:
    """A row a precision and length: naive's times, the shortest, and both passes over naive's, beside our kernel's.

    Where naive attention was not timed, times stand in milliseconds.
    """
    lines = []
    for precision in sorted(precisions, key=precision_rank):
        d_head = typical_d(group, precision)
        lines += [(precision, d_head, each) for each in fastest(group, precision, d_head)]
    lines = lines[-MOST_ROWS:]
    has_naive = any(_time(group, line, NAIVE, way) for line in lines for way in DIRECTIONS)
    show, unit = (_speed, "× naive") if has_naive else (_time, "ms")
    both = [(line, name) for line in lines for name in (line[2].name, OURS)]
    has_ratio = any(formatting.known(_host_row(group, *each).get("host_over_sdpa")) for each in both)
    host, host_unit = partial(_host, group, has_ratio), "×\u00a0SDPA's" if has_ratio else "µs"
    columns = [
        Column("precision", value=lambda line: line[0], number=False),
        Column("length", "tokens", value=lambda line: line[2].length, show=formatting.count),
        *(Column(way, "ms", "naive", value=lambda line, way=way: _time(group, line, NAIVE, way), optional=True)
          for way in DIRECTIONS),
        Column("implementation", "", "shortest", value=lambda line: line[2].name, number=False),
        *(Column(way, unit, "shortest", value=lambda line, way=way: show(group, line, line[2].name, way))
          for way in DIRECTIONS),
        Column("host", host_unit, "shortest", value=lambda line: host(line, line[2].name), optional=True),
        *(Column(way, unit, OURS, value=lambda line, way=way: show(group, line, OURS, way), optional=True)
          for way in DIRECTIONS),
        Column("host", host_unit, OURS, value=lambda line: host(line, OURS), optional=True),
    ]  # fmt: skip
    d_heads = formatting.listing([f"{value:,.0f}" for value in dict.fromkeys(line[1] for line in lines)])
    ours = f" and {OURS}, this project's kernel, run" if any(_has_ours(group, line) for line in lines) else " runs"
    over_naive = f", and how many times naive's speed it{ours} at" * has_naive
    caption = (
        f"The implementation with the shortest forward plus backward pass{over_naive}. d = {d_heads}, {group.place}."
    )
    shown = [_comparison(group, *each, way) for each in both for way in DIRECTIONS]
    over = ", over PyTorch's own in turns" * has_ratio
    notes = [_HOST_NOTE.format(over=over)] if any(host(*each).sort for each in both) else []
    notes = [table.verdict_note(shown), *notes]
    return table.build(f"chapter-attention-speeds-{group.hardware}", caption, columns, lines, notes)


def _has_ours(group: Group, line: tuple) -> bool:
    return any(_comparison(group, line, OURS, way) for way in DIRECTIONS)


def _host(group: Group, as_ratio: bool, line: tuple, name: str) -> TableCell:
    """How long a call, forward and backward, keeps the host busy, in µs or over PyTorch's own; a dash where that was
    not measured."""
    row = _host_row(group, line, name)
    if as_ratio:
        return table.number(row.get("host_over_sdpa"), partial(formatting.fixed, decimals=2))
    is_slow = formatting.known(row.get("host_us")) and row.get("slow_host") is True
    return table.number(row.get("host_us"), badges=("slow_host",) * is_slow)


def _host_row(group: Group, line: tuple, name: str) -> dict:
    precision, d_head, each = line
    return group.at(name, precision, d_head, each.length, DIRECTIONS[-1])


def _time(group: Group, line: tuple, name: str, way: str) -> float | None:
    precision, d_head, each = line
    row = group.at(name, precision, d_head, each.length, way)
    return median(row) if row else None


def _comparison(group: Group, line: tuple, name: str, way: str):
    precision, d_head, each = line
    own, naive = (group.at(which, precision, d_head, each.length, way) for which in (name, NAIVE))
    return beside(group.over_naive, own, naive) if own and naive else None


def _speed(group: Group, line: tuple, name: str, way: str) -> TableCell:
    found = _comparison(group, line, name, way)
    row = group.at(name, line[0], line[1], line[2].length, way)
    return table.times_as_fast(found, badges=table.disturbed(row)) if found else table.NOTHING
