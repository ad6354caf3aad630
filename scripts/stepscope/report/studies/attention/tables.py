"""The attention study's tables of times and memory: implementations side by side."""

from stepscope.report.data.attention import (
    DIRECTIONS,
    NAIVE,
    Group,
    compared,
    count,
    implementation_rank,
    lost,
    marks,
    median,
    notes,
    speed,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import MIB

POINT = [Column("d"), Column("length", "tokens")]
_DETAIL_NOTE = (
    "Times: median ± half of its 95 % bootstrap interval. ×: times the speed of naive attention at the same point; in "
    "brackets where the two intervals overlap."
)
_MEMORY_NOTE = (
    " Before backward: allocated when the first backward begins, below it the share of what naive attention holds "
    "there. Peak: highest allocated in backward, below it in forward."
)


def times_table(group: Group, precision: str) -> Table | None:
    """A row for each d and length: median forward / backward time of every implementation; None where none ran."""
    names = group.values("implementation", precision)
    rows = [
        [count(d_head), count(length), *(_pair(group, name, precision, d_head, length) for name in names)]
        for d_head, length in group.points(precision)
    ]
    caption = f"Median time of a pass in ms, forward / backward, {precision}, {group.place}."
    told = notes([row for row in group.rows if row["precision"] == precision], rows, disturbed=True)
    name = f"attention-times-{group.hardware}-{precision}"
    table = Table(name, caption, [*POINT, *map(Column, names)], rows, told, grouped=True)
    return table if any(cell.badges or cell.sort is not None for row in rows for cell in row[2:]) else None


def _pair(group: Group, name: str, precision: str, d_head: float, length: float) -> Cell:
    """`0.123 / 0.456`; sorts by the sum, or by the forward pass where that is all there is."""
    both = [group.at(name, precision, d_head, length, direction) for direction in DIRECTIONS]
    badges = tuple(dict.fromkeys(key for row in both for key in (*lost(row), *marks(row)[: row.get("noisy") is True])))
    times = [median(row) for row in both]
    if not any(times):
        return Cell("" if badges else "–", badges=badges)
    text = " / ".join(formatting.significant(time) if time else "–" for time in times)
    return Cell(text, sort=sum(filter(None, times)), badges=badges)


def before_backward(row: dict) -> float | None:
    """Bytes allocated when the first backward begins; None where they are not known (CPU, or forward ran out)."""
    value = row.get("before_backward_bytes")
    return value if formatting.known(value) else None


def memory_table(group: Group, precision: str) -> Table | None:
    """A row for each d and length: memory before backward of every implementation; None on a CPU."""
    names = group.values("implementation", precision)
    own = [row for row in group.rows if row["precision"] == precision]
    if not any(before_backward(row) for row in own):
        return None
    rows = [
        [count(d_head), count(length), *(_memory(group, name, precision, d_head, length) for name in names)]
        for d_head, length in group.points(precision)
    ]
    caption = f"Memory before backward in MiB, {precision}, {group.place}."
    columns = [*POINT, *map(Column, names)]
    name = f"attention-memory-{group.hardware}-{precision}"
    again = precision == "tf32" and "fp32" in group.values("precision")  # the same tensors: for the page alone
    return Table(name, caption, columns, rows, notes([], rows), folded=again, grouped=True, page_only=again)


def _memory(group: Group, name: str, precision: str, d_head: float, length: float) -> Cell:
    """MiB before backward."""
    row = group.at(name, precision, d_head, length, "backward")
    return MIB.cell(before_backward(row), 3, "", lost(row))


def _memory_against(group: Group, name: str, precision: str, d_head: float, length: float) -> Cell:
    """MiB before backward; below it the share of what naive attention holds."""
    row, naive = (group.at(each, precision, d_head, length, "backward") for each in (name, NAIVE))
    own, reference = before_backward(row), before_backward(naive)
    below = formatting.percent(own / reference) if own and reference and name != NAIVE else ""
    return MIB.cell(own, 3, below, lost(row))


def detail_tables(group: Group) -> list[Table]:
    """A table for each precision and d: a row a length, times, speed-ups and memory of every implementation."""
    pairs = [(name, d_head) for name in group.values("precision") for d_head in group.values("d_head", name)]
    return [_detail_table(group, precision, d_head) for precision, d_head in pairs]


def _detail_table(group: Group, precision: str, d_head: float) -> Table:
    own = [row for row in group.rows if row["precision"] == precision and row["d_head"] == d_head]
    names = sorted({row["implementation"] for row in own}, key=implementation_rank)
    with_memory = any(before_backward(row) or formatting.known(row.get("peak_bytes")) for row in own)
    columns = [POINT[1]]
    for name in names:
        columns += [Column(direction, "ms", group=name) for direction in DIRECTIONS]
        columns += [Column(label, "MiB", group=name) for label in ("before backward", "peak") if with_memory]
    rows = []
    for length in sorted({row["length"] for row in own}):
        line = [count(length)]
        for name in names:
            point = (name, precision, d_head, length)
            line += [_time(group, *point, direction) for direction in DIRECTIONS]
            line += [_memory_against(group, *point), _peak(group, *point)] if with_memory else []
        rows.append(line)
    caption = f"d = {formatting.count(d_head)}, {precision}, {group.place}: time and memory by length."
    told = [_DETAIL_NOTE + (_MEMORY_NOTE if with_memory else ""), *notes(own, rows)]
    name = f"attention-{group.hardware}-{precision}-{formatting.count(d_head)}"
    return Table(name, caption, columns, rows, told, folded=True, page_only=True)


def _time(group: Group, name: str, precision: str, d_head: float, length: float, direction: str) -> Cell:
    """Median ± half its interval; below it how many times the speed of naive attention."""
    row, naive = (group.at(each, precision, d_head, length, direction) for each in (name, NAIVE))
    own = median(row)
    if not own:
        return Cell("" if lost(row) else "–", badges=lost(row))
    ratio = speed(row, naive) if name != NAIVE else None
    below = compared(row, naive, f"× {formatting.significant(ratio)}") if ratio else ""
    return Cell(median_and_half(row), below, own, marks(row))


def median_and_half(row: dict) -> str:
    """`12.34 ± 0.05`: median and half the width of its interval (ms)."""
    low, high = row.get("ci_low_ms"), row.get("ci_high_ms")
    half = (high - low) / 2 if formatting.known(low) and formatting.known(high) else float("nan")
    return formatting.mean_and_std(row["median_ms"], half)


def _peak(group: Group, name: str, precision: str, d_head: float, length: float) -> Cell:
    """Highest allocated in backward, below it in forward (MiB); what was reached where memory ran out."""
    forward, backward = (group.at(name, precision, d_head, length, direction) for direction in DIRECTIONS)
    below = MIB.cell(forward.get("peak_bytes"), 3).text
    badges = ("oom",) if "oom" in (*lost(forward), *lost(backward)) else ()
    return MIB.cell(backward.get("peak_bytes"), 3, below if below != "–" else "", badges)
