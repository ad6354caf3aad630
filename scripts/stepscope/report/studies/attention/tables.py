"""The attention study's tables with a row a shape: implementations side by side."""

from collections.abc import Iterable
from functools import partial

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import (
    NAIVE,
    OURS,
    Attention,
    Compared,
    Group,
    Shape,
    before_backward,
    beside,
    median,
    point_name,
)
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import BADGES, Column, Table, TableCell
from stepscope.report.kit.compare import Timed, timed
from stepscope.report.kit.sizes import MIB

LENGTH = Column("length", "tokens", value=lambda shape: shape.length, show=formatting.count)
SHAPE = [Column("d", value=lambda shape: shape.d_head, show=formatting.count), LENGTH]
_DETAIL_NOTE = "Times: median ± half of its 95 % interval. ×: times the speed of naive attention at the same point."
_MEMORY_NOTE = (
    " Before backward: allocated when the first backward begins, below it the share of what naive attention holds "
    "there. Peak: highest allocated in backward, below it in forward."
)


def times_table(group: Group, precision: str) -> Table | None:
    """A row for each d and length: median forward / backward time of every implementation; None where none ran."""
    own = group.of(precision)
    if not any(median(row) or table.lost(row) for row in own):
        return None
    names = group.values("implementation", precision)
    columns = [*SHAPE, *(Column(name, value=partial(_both_times, group, name, precision)) for name in names)]
    return table.build(
        f"attention-times-{group.hardware}-{precision}",
        f"Median time of a pass in ms, forward / backward, {precision}, {group.place}.",
        columns,
        group.shapes(precision),
        [*_reasons(own), *_disturbed_cells(own)],
        meanings=table.PLAIN_MEANINGS,
        grouped=True,
        about={"hardware": group.hardware, "precision": precision},
    )


def _both_times(group: Group, name: str, precision: str, shape: Shape) -> TableCell:
    """`0.123 / 0.456`; sorts by the sum, or by the forward pass where that is all there is."""
    both = group.passes(name, precision, shape)
    badges = tuple(dict.fromkeys(badge for row in both for badge in (*table.lost(row), *_noisy(row))))
    times = [median(row) for row in both]
    if not any(times):
        return table.number(None, badges=badges)
    text = " / ".join(formatting.significant(time) if time else "–" for time in times)
    return TableCell(text, sort=sum(filter(None, times)), badges=badges)


def _noisy(row: dict) -> tuple[str, ...]:
    return table.unsure(row) if median(row) else ()


def _badges(row: dict) -> tuple[str, ...]:
    """The badges of a result with a number: noisy or unsteady, throttled, shared."""
    return (*_noisy(row), *table.disturbed(row))


def _reasons(rows: list[dict]) -> list[str]:
    """Why cells have no result, each reason once."""
    statuses, but = ("unsupported", "failed", "missing"), ("precision", "length", "direction")
    name = partial(point_name, but=but)
    return table.reasons(rows, name, statuses=statuses, most_names=8, between="; ", most=6)


def _disturbed_cells(rows: list[dict]) -> list[str]:
    """The cells that were throttled or shared the GPU, where no badge says it."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for key in table.disturbed(row):
            found.setdefault(key, {})[point_name(row, ("length", "direction"))] = None
    return [
        f"{BADGES[key][0].capitalize()} ({BADGES[key][1]}): {formatting.listing(list(names), 6, '; ')}."
        for key, names in found.items()
    ]


def memory_table(group: Group, precision: str) -> Table | None:
    """A row for each d and length: memory before backward of every implementation; None on a CPU."""
    if not any(before_backward(row) for row in group.of(precision)):
        return None
    names = group.values("implementation", precision)
    columns = [*SHAPE, *(Column(name, value=partial(_held, group, name, precision)) for name in names)]
    again = precision == "tf32" and "fp32" in group.values("precision")  # the same tensors: for the page alone
    return table.build(
        f"attention-memory-{group.hardware}-{precision}",
        f"Memory before backward in MiB, {precision}, {group.place}.",
        columns,
        group.shapes(precision),
        meanings=table.PLAIN_MEANINGS,
        folded=again,
        grouped=True,
        about={"hardware": group.hardware, "precision": precision},
    )


def _held(group: Group, name: str, precision: str, shape: Shape) -> TableCell:
    """MiB before backward."""
    row = group.at(name, precision, *shape, "backward")
    return MIB.cell(before_backward(row), 3, badges=table.lost(row))


def detail_tables(group: Group) -> list[Table]:
    """A table for each precision and d: a row a length, times, speed-ups and memory of every implementation."""
    return [
        _detail_table(group, precision, d_head)
        for precision in group.values("precision")
        for d_head in group.values("d_head", precision)
    ]


def _detail_table(group: Group, precision: str, d_head: float) -> Table:
    own = [row for row in group.of(precision) if row["d_head"] == d_head]
    ran = {row["implementation"] for row in own}
    names = [name for name in group.values("implementation", precision) if name in ran]
    with_memory = any(before_backward(row) or formatting.known(row.get("peak_bytes")) for row in own)
    columns = [LENGTH]
    for name in names:
        columns += [Column(way, "ms", name, value=partial(_time, group, name, precision, way)) for way in DIRECTIONS]
        if with_memory:
            columns += [
                Column("before backward", "MiB", name, value=partial(_held_against_naive, group, name, precision)),
                Column("peak", "MiB", name, value=partial(_peak, group, name, precision)),
            ]
    return table.build(
        f"attention-{group.hardware}-{precision}-{formatting.count(d_head)}",
        f"d = {formatting.count(d_head)}, {precision}, {group.place}: time and memory by length.",
        columns,
        [shape for shape in group.shapes(precision) if shape.d_head == d_head],
        [
            _DETAIL_NOTE + (_MEMORY_NOTE if with_memory else ""),
            _verdicts(each for each in group.over_naive if any(each.row is row for row in own)),
            *_reasons(own),
        ],
        meanings=table.PLAIN_MEANINGS,
        folded=True,
        about={"hardware": group.hardware, "precision": precision},
    )


def _time(group: Group, name: str, precision: str, direction: str, shape: Shape) -> TableCell:
    """Median ± half its interval; below it how many times the speed of naive attention."""
    row, naive = (group.at(each, precision, *shape, direction) for each in (name, NAIVE))
    series = timed(row)
    if not series:
        return table.number(None, badges=table.lost(row))
    found = beside(group.over_naive, row, naive) if name != NAIVE else None
    speed = table.times_as_fast(found, show=formatting.times) if found else table.NOTHING
    below = f"{speed.text} {speed.below}".strip() if found else ""
    return TableCell(_median_and_half(series), below, series.median, _badges(row))


def _verdicts(found: Iterable[Compared]) -> str:
    return table.verdict_note(each.speed for each in found)


def _median_and_half(series: Timed) -> str:
    """`12.34 ± 0.05`: median and half the width of its interval (ms)."""
    half = (series.high - series.low) / 2 if series.has_interval else float("nan")
    return formatting.mean_and_std(series.median, half)


def _held_against_naive(group: Group, name: str, precision: str, shape: Shape) -> TableCell:
    """MiB before backward; below it the share of what naive attention holds."""
    row, naive = (group.at(each, precision, *shape, "backward") for each in (name, NAIVE))
    own, reference = before_backward(row), before_backward(naive)
    below = formatting.percent(own / reference) if own and reference and name != NAIVE else ""
    return MIB.cell(own, 3, below, table.lost(row))


def _peak(group: Group, name: str, precision: str, shape: Shape) -> TableCell:
    """Highest allocated in backward, below it in forward (MiB); what was reached where memory ran out."""
    forward, backward = group.passes(name, precision, shape)
    below = MIB.cell(forward.get("peak_bytes"), 3).text if formatting.known(forward.get("peak_bytes")) else ""
    badges = ("oom",) if "oom" in (*table.lost(forward), *table.lost(backward)) else ()
    return MIB.cell(backward.get("peak_bytes"), 3, below, badges)


def tf32_table(group: Group) -> Table | None:
    """A row for each d and length: how many times as fast each implementation is in tf32; None without pairs."""
    if not group.tf32_over_fp32:
        return None
    in_fp32 = group.values("implementation", "fp32")
    columns = [
        Column(way, group=name, value=partial(_tf32_speed, group, name, way))
        for name in group.values("implementation", "tf32")
        if name in in_fp32
        for way in DIRECTIONS
    ]
    return table.build(
        f"attention-tf32-{group.hardware}",
        f"What TF32 brings: times the speed in fp32, {group.place}.",
        [*SHAPE, *columns],
        group.shapes("tf32"),
        [_verdicts(group.tf32_over_fp32)],
        meanings=table.PLAIN_MEANINGS,
        grouped=True,
    )


def _tf32_speed(group: Group, name: str, direction: str, shape: Shape) -> TableCell:
    tf32, fp32 = (group.at(name, precision, *shape, direction) for precision in ("tf32", "fp32"))
    found = beside(group.tf32_over_fp32, tf32, fp32)
    if not found:
        return table.number(None, badges=tuple(dict.fromkeys((*table.lost(tf32), *table.lost(fp32)))))
    return table.times_as_fast(found)


def rates_table(attention: Attention, group: Group, precision: str) -> Table | None:
    """TFLOP/s of every implementation at each d and length, over their share of the ceiling; None where none ran."""
    own = group.of(precision)
    if not any(formatting.known(row.get("tflops")) for row in own):
        return None
    ceiling = matmul_ceiling(attention.ceilings, group.hardware, precision)
    columns = [
        Column(name, group=f"{way} (TFLOP/s)", value=partial(_rate, group, name, precision, way, ceiling))
        for way in DIRECTIONS
        for name in group.values("implementation", precision)
    ]
    share = "; below it the share of the measured matrix product" if ceiling else ""
    return table.build(
        f"attention-rates-{group.hardware}-{precision}",
        f"Arithmetic rate in TFLOP/s{share}, {precision}, {group.place}.",
        [*SHAPE, *columns],
        group.shapes(precision),
        [_ceiling_note(ceiling, precision), *_reasons(own)],
        meanings=table.PLAIN_MEANINGS,
        grouped=True,
        about={"hardware": group.hardware, "precision": precision},
    )


def _rate(group: Group, name: str, precision: str, direction: str, ceiling: float | None, shape: Shape) -> TableCell:
    row = group.at(name, precision, *shape, direction)
    rate = row.get("tflops")
    if not formatting.known(rate):
        return table.number(None, badges=table.lost(row))
    return table.number(rate, below=formatting.percent(rate / ceiling) if ceiling else "", badges=_badges(row))


def _ceiling_note(ceiling: float | None, precision: str) -> str:
    if not ceiling:
        return f"No matrix product in {precision} was measured on this hardware: no shares."
    rate = formatting.significant(ceiling)
    return f"Shares are of the rate of a large matrix product in {precision} on this hardware: {rate} TFLOP/s."


def ours_table(group: Group, precision: str) -> Table | None:
    """How many times the speed of each other implementation ours has; None without ours, or without another."""
    found = [each for each in group.ours_over if each.row["precision"] == precision]
    if not found:
        return None
    columns = [
        Column(name, group=f"{way}, against", value=partial(_ours_against, group, name, precision, way))
        for way in DIRECTIONS
        for name in group.values("implementation", precision)
        if name != OURS
    ]
    return table.build(
        f"attention-ours-{group.hardware}-{precision}",
        f"The speed of {OURS}, this project's kernel, over that of the others, {precision}, {group.place}.",
        [*SHAPE, *columns],
        group.shapes(precision),
        [f"Ratio of the medians; above 1 ours takes less time. {_verdicts(found)}"],
        meanings=table.PLAIN_MEANINGS,
        grouped=True,
        about={"hardware": group.hardware, "precision": precision},
    )


def _ours_against(group: Group, other: str, precision: str, direction: str, shape: Shape) -> TableCell:
    rows = [group.at(name, precision, *shape, direction) for name in (OURS, other)]
    found = beside(group.ours_over, *rows)
    if not found:
        return table.number(None, badges=table.lost(rows[0]) or table.lost(rows[1]))
    return table.times_as_fast(found)
