"""Mixed precision on every machine, and machines in 16 bits that are slower than others in fp32."""

from dataclasses import dataclass

from stepscope.report.data.machines import rate
from stepscope.report.data.mixed import MIXED, REFERENCE, Pair
from stepscope.report.data.points import EXTRA, Grid, Point, place_of, varying
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.compare import Comparison
from stepscope.report.kit.order import label
from stepscope.report.kit.table import number
from stepscope.report.studies.hardware.compared import judged, legend, ratio_text
from stepscope.report.studies.hardware.tables import MOST_ROWS
from stepscope.report.studies.precision.tables_mixed import speed_cell


def mixed_table(grid: Grid) -> Table | None:
    """A row a size and context, a column a precision and machine: how many times fp32's speed each reaches."""
    pairs: dict[tuple, dict[tuple[str, str], Pair]] = {}
    for pair in grid.mixed.pairs:
        pairs.setdefault(place_of(pair.row), {})[pair.precision, pair.row["hardware"]] = pair
    found = {(pair.precision, pair.row["hardware"]) for pair in grid.mixed.pairs}
    if len({hardware for _, hardware in found}) < 2:
        return None
    heads = [(name, each) for name in MIXED for each in grid.labels if (name, each) in found]
    extra = varying([pair.row for pair in grid.mixed.pairs])
    columns = [Column("size", number=False), Column("context", "tokens")]
    columns += [Column(name, number=name == "batch") for name in extra]
    columns += [Column(each, group=f"{name} over {REFERENCE}") for name, each in heads]
    rows = []
    for place in sorted(pairs, key=lambda place: _rank(next(iter(pairs[place].values())).row)):
        line = [Cell(str(place[0])), number(place[1], formatting.count)]
        line += _extra(next(iter(pairs[place].values())).row, extra)
        rows.append(line + [_mixed_cell(pairs[place].get(head), grid.main) for head in heads])
    caption = f"What mixed precision brings on each machine: {_what(grid)} over that in {REFERENCE} on the same one."
    notes = [f"In brackets: about equal. With the name {REFERENCE}: only {REFERENCE} ran out of memory.", *legend(rows)]
    is_long = len(rows) > MOST_ROWS
    return Table("hardware-mixed", caption, columns, rows, notes, is_long, True, page_only=is_long)


def _extra(row: dict, names: list[str]) -> list[Cell]:
    return [number(row[name], formatting.count) if name == "batch" else Cell(row[name] or "–") for name in names]


def _rank(row: dict) -> tuple:
    parameters = row["parameters"] if formatting.known(row.get("parameters")) else float("inf")
    return (
        parameters,
        str(row["size"]),
        row["context"],
        row.get("batch") or 0,
        *(str(row.get(name)) for name in EXTRA),
    )


def _mixed_cell(pair: Pair | None, phase: str) -> Cell:
    return speed_cell(pair, phase) if pair else Cell("–")


def _what(grid: Grid) -> str:
    return "the speed of a whole step" if grid.main == "step" else f"the speed of {label(grid.main)}"


@dataclass(frozen=True)
class Inversion:
    """A point at which a machine in 16 bits is slower than another in fp32; `speed` over that one is less than 1."""

    machine: str
    precision: str
    other: str
    point: Point
    speed: Comparison


def inversions(grid: Grid) -> list[Inversion]:
    """All of them, slowest first in each pair of machines.

    Only machines count that should be the faster ones: by their rates in these precisions, or, where those are not
    known, by their times in fp32 at the same point.
    """
    plain = {point.place: point for point in grid.every if point.precision == REFERENCE}
    found = []
    for machine in grid.labels:
        for precision in MIXED:
            for other in (each for each in grid.labels if each != machine):
                ratio = rates(grid, machine, precision, other)
                own = []
                for point in (each for each in grid.every if each.precision == precision):
                    reference = plain.get(point.place)
                    speed = reference and _speed(grid, point, machine, reference, other)
                    if not speed or speed.verdict != "slower":
                        continue
                    faster = grid.speed(reference, machine, grid.main, over=other)
                    if ratio > 1 if ratio else faster is not None and faster.verdict == "faster":
                        own.append(Inversion(machine, precision, other, point, speed))
                found += sorted(own, key=lambda each: each.speed.ratio)
    return found


def _speed(grid: Grid, point: Point, machine: str, reference: Point, other: str) -> Comparison | None:
    """Of a machine at one point over another machine at the same point in fp32."""
    row, slow = point.rows.get(machine), reference.rows.get(other)
    return grid.mixed.speed(row, slow, grid.main) if row and slow else None


def rates(grid: Grid, machine: str, precision: str, other: str) -> float | None:
    """A machine's arithmetic rate in a precision over another's in fp32, by the data sheets or else as measured."""
    for source in ("data sheet", "measured"):
        own, slow = rate(grid.tables, machine, precision, source), rate(grid.tables, other, REFERENCE, source)
        if own and slow:
            return own / slow
    return None


def inversions_table(found: list[Inversion]) -> Table | None:
    """A row an inversion; None without one."""
    if not found:
        return None
    columns = [Column("machine", number=False), Column("precision", number=False)]
    columns += [Column(f"slower than this in {REFERENCE}", number=False), Column("size", number=False)]
    extra = varying([next(iter(each.point.rows.values())) for each in found])
    columns += [Column("context", "tokens"), *(Column(name, number=name == "batch") for name in extra)]
    columns += [*(Column(each, "ms", group="median") for each in ("machine", "the other"))]
    columns.append(Column("times as fast"))
    rows = []
    for each in found:
        line = [Cell(each.machine), Cell(each.precision), Cell(each.other), Cell(each.point.size)]
        line.append(number(each.point.context, formatting.count))
        line += _extra(next(iter(each.point.rows.values())), extra)
        line += [number(time, formatting.significant) for time in reversed(each.speed.times)]
        rows.append([*line, number(each.speed.ratio, ratio_text)])
    caption = f"Where a machine in 16 bits is slower than another in {REFERENCE}, although it should be the faster one."
    is_long = len(rows) > MOST_ROWS
    notes = [
        f"Should be: its matrix products run at a higher rate; where rates are not known, it is faster in {REFERENCE}."
    ]
    return Table("hardware-inversions", caption, columns, rows, notes, is_long, True, page_only=is_long)


def findings(grid: Grid, found: list[Inversion]) -> list[str]:
    """A sentence for each pair of machines and precision that has inversions; one that there is none."""
    sentences = []
    for machine, precision, other in dict.fromkeys((each.machine, each.precision, each.other) for each in found):
        own = [each for each in found if (each.machine, each.precision, each.other) == (machine, precision, other)]
        sentences.append(_sentence(grid, own))
    compared = any(
        point.precision in MIXED and sum(bool(point.time(each, grid.main)) for each in grid.labels) > 1
        for point in grid.points
    )
    if not found and compared:
        sentences.append(f"No machine in 16 bits is slower than another in {REFERENCE} that it should be faster than.")
    return sentences


def _sentence(grid: Grid, own: list[Inversion]) -> str:
    worst = own[0]
    points = [point for point in grid.every if point.precision == worst.precision]
    places = {point.place: point for point in grid.every if point.precision == REFERENCE}
    both = [
        point
        for point in points
        if point.time(worst.machine, grid.main)
        and point.place in places
        and places[point.place].time(worst.other, grid.main)
    ]
    there = f"in {len(own):,} of {len(both):,} cells" if len(both) > 1 else "in the one cell of both"
    times = [formatting.significant(each) for each in reversed(worst.speed.times)]
    what = "a step" if grid.main == "step" else label(grid.main)
    text = (
        f"{worst.machine} in {worst.precision} takes longer for {what} than {worst.other} in {REFERENCE} {there}"
        f"{judged([each.speed for each in own])}{', most' if len(own) > 1 else ''} with {worst.point.name}: "
        f"{times[0]} against {times[1]} ms"
    )
    ratio = rates(grid, worst.machine, worst.precision, worst.other)
    return text + (
        f", although its rate of matrix products is {formatting.significant(ratio)} times as high." if ratio else "."
    )
