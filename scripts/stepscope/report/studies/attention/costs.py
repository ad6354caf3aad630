"""What the first pass costs over the others (compiling, tuning), and how many passes were timed."""

from stepscope.report.data.attention import DIRECTIONS, Attention, Group, median, point_name
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table


def first_cost(row: dict) -> float | None:
    """Milliseconds that the warm-up's first pass took longer than the median one; None where one is not known."""
    first, own = row.get("first_pass_ms"), median(row)
    return first - own if formatting.known(first) and own else None


def costs_table(group: Group) -> Table | None:
    """A row for each precision and implementation: the first pass less the median, over d and lengths."""
    rows = []
    for precision in group.values("precision"):
        for name in group.values("implementation", precision):
            own = [row for row in group.rows if (row["precision"], row["implementation"]) == (precision, name)]
            of_ways = [[row for row in own if row["direction"] == direction] for direction in DIRECTIONS]
            if any(first_cost(row) is not None for row in own):
                rows.append([Cell(precision), Cell(name), *(cell for way in of_ways for cell in _cells(way))])
    if not rows:
        return None
    columns = [Column(name, number=False) for name in ("precision", "implementation")]
    columns += [Column(what, "s", group=way) for way in DIRECTIONS for what in ("least", "most", "in all")]
    caption = f"What the first pass of each length takes longer than the median one, over d and lengths, {group.place}."
    note = (
        "By the host's clock: compiling and tuning, loading libraries, and asking for memory. First passes of backward "
        "hold the forward pass that makes their graph, which is not timed otherwise. Each length is compiled anew."
    )
    return Table(f"attention-costs-{group.hardware}", caption, columns, rows, [note], grouped=True)


def _cells(rows: list[dict]) -> list[Cell]:
    """Least, most and sum (seconds)."""
    known = [cost / 1000 for row in rows if (cost := first_cost(row)) is not None]
    return [_seconds(end(known)) for end in (min, max, sum)] if known else [Cell("–")] * 3


def _seconds(value: float) -> Cell:
    decimals = 3 if abs(value) < 1 else 2 if abs(value) < 100 else 0
    return Cell(formatting.fixed(value, decimals), sort=value)


def passes_sentence(attention: Attention) -> str:
    """How many passes were timed where that is fewer than asked for; empty without any result."""
    done = [row for row in attention.rows if formatting.known(row.get("samples")) and median(row)]
    if not done:
        return ""
    asked = formatting.listing([formatting.count(value) for value in sorted({row["passes"] for row in done})])
    fewer = [row for row in done if row["samples"] < row["passes"]]
    if not fewer:
        return f"All {len(done):,} series have the {asked} passes that were asked for."
    least = min(fewer, key=lambda row: row["samples"])
    return (
        f"Of {len(done):,} series {len(fewer):,} have fewer than the {asked} passes that were asked for, since the "
        f"time for a series was over; the fewest, {formatting.count(least['samples'])}, has {point_name(least)}."
    )
