"""Tables of the machines themselves, and of the timing grid with the machines beside each other."""

from collections.abc import Callable, Iterable
from functools import partial
from statistics import median

from stepscope.report.data.machines import NEAR, bandwidth, facts, rate
from stepscope.report.data.mixed import MIXED, REFERENCE
from stepscope.report.data.points import EXTRA, Grid, Point
from stepscope.report.data.roofline import ROOFS
from stepscope.report.data.side_by_side import Inversion
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import FASTER, NOT_COMPARABLE, SAME, SLOWER, UNCLEAR, Comparison, ratio_text
from stepscope.report.kit.finding import enough
from stepscope.report.kit.order import PRECISIONS, label
from stepscope.tables.reader import Tables

_SOFTWARE = {"driver": "driver", "PyTorch": "torch", "CUDA": "cuda"}
_FOLLOWS = (
    "Follows: the ratio that the speed-up is within a fifth of; between: it lies between both; neither: it is nearer "
    "to 1 than both, as where the host's launches set the time; beyond: it lies outside both, and no nearer to 1 than "
    "the nearer of them."
)
_MEANINGS = table.PLAIN_MEANINGS | {"unsupported": "not possible on that machine"}


# A row a point, a column a machine ------------------------------------------------------------------------------------


def lines(points: Iterable[Point], place: Callable[[Point], object], key: Callable[[Point], object]) -> list[dict]:
    """A row for the points of each place: the columns of the first one, and in `at` every point by its key."""
    found: dict[object, dict] = {}
    for point in points:
        found.setdefault(place(point), {**point.row, "at": {}})["at"][key(point)] = point
    return list(found.values())


def machine_columns(
    machines: Iterable[str], key: object, group: str, cell: Callable[[Point, str], TableCell], heading: str = ""
) -> list[Column]:
    """A column for each machine: its cell of the point with this key. heading: instead of the machine's label."""

    def shown(row: dict, machine: str) -> TableCell:
        point = row["at"].get(key)
        return cell(point, machine) if point else table.NOTHING

    return [Column(heading or each, group=group, value=partial(shown, machine=each)) for each in machines]


def speed_columns(
    machines: list[str], key: object, group: str, cell: Callable[[Point, str], TableCell]
) -> list[Column]:
    """The same for speed-ups; one machine alone is named in the caption."""
    return machine_columns(machines, key, group, cell, "× (ms)" if len(machines) == 1 else "")


def speed_cell(
    point: Point,
    machines: tuple[str, str],
    phase: str,
    speed: Comparison | None,
    statuses: Iterable[str | None],
    disturbed: Callable[[dict], tuple[str, ...]] = lambda row: (),
) -> TableCell:
    """`1.43` over its interval and `28.5 → 19.9`: the second of two machines beside the first.

    Where one of both has no time, its badge and a dash in its place. statuses: of the first and of the second.
    disturbed: the badges of a row besides noisy.
    """
    series = [point.timed(each, phase) for each in machines]
    below = " → ".join(formatting.significant(each.median) if each else "–" for each in series)
    if speed is None:
        return table.lost_of(statuses, below if any(series) else "")
    badges = [
        badge
        for machine, own in zip(machines, series, strict=True)
        for badge in (*["noisy"] * own.noisy, *disturbed(point.rows[machine]))
    ]
    return table.times_as_fast(speed, below, tuple(dict.fromkeys(badges)))


def comparison_table(
    name: str, caption: str, columns: Iterable[Column], rows: Iterable[dict], notes: Iterable[str]
) -> Table | None:
    """A table of such rows; a long one is folded."""
    rows = list(rows)
    return table.build(
        f"hardware-{name}", caption, columns, rows, notes,
        meanings=_MEANINGS, folded=len(rows) > table.LONG, grouped=True,
    )  # fmt: skip


SIZE = Column("size", value="size", number=False)


def place_columns(points: Iterable[Point]) -> list[Column]:
    """Size and context, and what else the points differ in but the precision."""
    return [SIZE, *table.point("context", *table.varying([point.row for point in points], EXTRA))]


# The machines ---------------------------------------------------------------------------------------------------------


def machines_table(tables: Tables, labels: list[str]) -> Table:
    """A column a machine: device, memory, software, data sheet and ceilings, with their ratios to the first one's."""
    known = [facts(tables, each) for each in labels]
    memory = [max(each["device_memory_bytes"], default=None) for each in known]
    rows = {
        "device": _texts(each["device_name"] for each in known),
        "memory (GiB)": _ratios(memory, formatting.gib),
        **{name: _texts(each[key] for each in known) for name, key in _SOFTWARE.items()},
    }
    for source in reversed(ROOFS):
        for precision in PRECISIONS:
            rates = [rate(tables, each, precision, source) for each in labels]
            rows |= {f"{source}: {precision} (TFLOP/s)": _ratios(rates)} if any(rates) else {}
        moved = [bandwidth(tables, each, source) for each in labels]
        what = "memory" if source == "data sheet" else "copy"
        rows |= {f"{source}: {what} (GB/s)": _ratios(moved)} if any(moved) else {}
    columns = [
        Column("", value=lambda row: row[0], number=False),
        *(Column(each, value=lambda row, at=at: row[1][at]) for at, each in enumerate(labels)),
    ]
    caption = f"The machines. {labels[0]} is the baseline; below a number its ratio to the baseline's."
    note = (
        "Data sheet: dense products, accumulated in fp32; a dash where it is not in the list. Measured: a large matrix "
        "product and a large copy."
    )
    return table.build("hardware-machines", caption, columns, rows.items(), [note])


def _texts(values: Iterable[list]) -> list[TableCell]:
    return [table.text(", ".join(map(str, each))) for each in values]


def _ratios(values: list[float | None], show: Callable[[float], str] = formatting.significant) -> list[TableCell]:
    """Numbers, and below all but the first one the ratio to it."""
    first, *others = [value or None for value in values]
    below = [f"× {ratio_text(value / first)}" if value and first else "" for value in others]
    return [table.number(value, show, text) for value, text in zip([first, *others], ["", *below], strict=True)]


# The timing grid ------------------------------------------------------------------------------------------------------


def summary_table(grid: Grid) -> Table | None:
    """A row a machine, precision and phase: range and median of the speed-up, verdicts, and the ratios reached."""
    is_short = len(grid.others) * len(grid.precisions) * len(grid.phases) <= table.LONG
    rows = [
        {"machine": other, "precision": precision, "phase": phase, "speeds": speeds,
         "limits": grid.limits(other, precision), "ratios": [each.ratio for each in speeds]}
        for other in grid.others
        for precision in grid.precisions
        for phase in (grid.phases if is_short else [grid.main])
        if (speeds := _speeds(grid, other, precision, phase))
    ]  # fmt: skip
    several = len(grid.others) > 1
    measures = {"lowest": min, "median": median, "highest": max}
    told = {each.verdict for row in rows for each in row["speeds"] if enough(comparison=each)}
    verdicts = [word for word in (FASTER, SAME, UNCLEAR, SLOWER, NOT_COMPARABLE) if word in told]
    columns = [
        *[Column("machine", value="machine", number=False)] * several,
        *table.point("precision"),
        _PHASE,
        Column("cells", value=lambda row: table.count(len(row["speeds"]))),
        *(
            Column(name, group="speed-up", value=lambda row, of=of: of(row["ratios"]), show=ratio_text)
            for name, of in measures.items()
        ),
        *(
            Column(word, group="cells that are", value=partial(_count, word=word), show=formatting.count)
            for word in verdicts
        ),
    ]
    for name in ("arithmetic", "memory"):
        columns += [
            Column("ratio", group=name, value=lambda row, name=name: getattr(row["limits"], name), show=ratio_text),
            Column(
                f"≥ {100 * NEAR:.0f} % of it", "cells", name, value=partial(_reached, name=name), show=formatting.count
            ),
        ]
    caption = f"Speed-up over {grid.baseline}{'' if several else f' of {grid.others[0]}'}, by precision and phase."
    note = (
        "Speed-up: the baseline's median over the machine's. Arithmetic and memory: the machine's rate over the "
        "baseline's, by the data sheets if both are known, else as measured."
    )
    return table.build("hardware-summary", caption, columns, rows, [note], grouped=True)


_PHASE = Column("phase", value="phase", show=label, number=False)


def _speeds(grid: Grid, other: str, precision: str, phase: str) -> list[Comparison]:
    own = [point for point in grid.points if point.precision == precision]
    return [speed for point in own if (speed := grid.speed(point, other, phase))]


def _count(row: dict, word: str) -> int | None:
    """None where none has a verdict."""
    judged = [each for each in row["speeds"] if enough(comparison=each)]
    return sum(each.verdict == word for each in judged) if judged else None


def _reached(row: dict, name: str) -> int | None:
    reached = [row["limits"].reached(name, each) for each in row["ratios"]]
    return None if None in reached else sum(reached)


def grid_table(grid: Grid) -> Table | None:
    """A row a size and context, a column a precision and machine: the speed-up of what stands for a cell."""
    points = sorted(grid.points, key=lambda point: point.place_rank)
    columns = place_columns(grid.points)
    for precision in grid.precisions:
        columns += speed_columns(grid.others, precision, precision, partial(_over_baseline, grid))
    what = "a whole step" if grid.main == "step" else label(grid.main)
    of = "each machine" if len(grid.others) > 1 else grid.others[0]
    caption = f"How many times as fast {what} is on {of} as on {grid.baseline}; below it the baseline's ms → its own."
    speeds = [grid.speed(point, other, grid.main) for point in points for other in grid.others]
    note = f"Medians. {table.verdict_note(speeds)} A badge without numbers: so on both."
    rows = lines(points, lambda point: point.place, lambda point: point.precision)
    return comparison_table("grid", caption, columns, rows, [note])


def _over_baseline(grid: Grid, point: Point, other: str) -> TableCell:
    both = grid.baseline, other
    statuses = [point.status(each, grid.main) for each in both]
    return speed_cell(point, both, grid.main, grid.speed(point, other, grid.main), statuses, table.disturbed)


def phases_table(grid: Grid) -> Table | None:
    """A row a point and phase: the median of each machine, the speed-ups, the ratios, and which of them they follow."""
    rows = [{**point.row, "point": point, "phase": phase} for point in grid.points for phase in grid.phases]
    columns = [*place_columns(grid.points), *table.point("precision"), _PHASE]
    columns += [Column(each, group="median (ms)", value=partial(_median_cell, machine=each)) for each in grid.labels]
    for other in grid.others:
        columns += _ratio_columns(grid, other, "speed-up, and ratios of rates" if len(grid.others) == 1 else other)
    note = table.verdict_note(grid.speed(row["point"], other, row["phase"]) for row in rows for other in grid.others)
    caption = f"Every phase on every machine; speed-ups over {grid.baseline} beside the ratios of the machines' rates."
    return comparison_table("phases", caption, columns, rows, [_FOLLOWS, note])


def _median_cell(row: dict, machine: str) -> TableCell:
    point, phase = row["point"], row["phase"]
    series, status = point.timed(machine, phase), point.status(machine, phase)
    if status in table.LOST or not series:
        return table.lost_of([status])
    badges = (*["noisy"] * series.noisy, *table.disturbed(point.rows[machine]))
    return table.number(series.median, partial(formatting.significant, digits=4), badges=badges)


def _ratio_columns(grid: Grid, other: str, group: str) -> list[Column]:
    def speed(row: dict) -> TableCell:
        found = grid.speed(row["point"], other, row["phase"])
        return table.times_as_fast(found) if found else table.NOTHING

    def ratio(row: dict, name: str) -> float | None:
        return getattr(grid.limits(other, row["precision"]), name)

    def follows(row: dict) -> str:
        found = grid.speed(row["point"], other, row["phase"])
        return grid.limits(other, row["precision"]).follows(found.ratio) if found else ""

    return [
        Column("speed-up", group=group, value=speed),
        *(Column(name, group=group, value=partial(ratio, name=name), show=ratio_text)
          for name in ("arithmetic", "memory")),
        Column("follows", group=group, value=follows, number=False),
    ]  # fmt: skip


# Mixed precision ------------------------------------------------------------------------------------------------------


def mixed_table(grid: Grid) -> Table | None:
    """A row a size and context, a column a precision and machine: how many times fp32's speed each reaches."""
    points = [point for point in grid.every if point.precision in MIXED and _machines_of_both(grid, point)]
    having = {precision: {machine for point in points if point.precision == precision
                          for machine in _machines_of_both(grid, point)} for precision in MIXED}  # fmt: skip
    if len(set().union(*having.values())) < 2:
        return None
    columns = place_columns(points)
    for precision, machines in having.items():
        own = [each for each in grid.labels if each in machines]
        columns += machine_columns(own, precision, f"{precision} over {REFERENCE}", partial(_over_reference, grid))
    what = "the speed of a whole step" if grid.main == "step" else f"the speed of {label(grid.main)}"
    caption = f"What mixed precision brings on each machine: {what} over that in {REFERENCE} on the same one."
    speeds = [grid.over_reference(point, each, each) for point in points for each in _machines_of_both(grid, point)]
    note = f"{table.verdict_note(speeds)} With the name {REFERENCE}: only {REFERENCE} ran out of memory."
    points = sorted(points, key=lambda point: point.place_rank)
    rows = lines(points, lambda point: point.place, lambda point: point.precision)
    return comparison_table("mixed", caption, columns, rows, [note])


def _machines_of_both(grid: Grid, point: Point) -> list[str]:
    """The machines that have the point in fp32 too."""
    plain = grid.plain.get(point.place)
    return [label for label in point.rows if plain and label in plain.rows]


def _over_reference(grid: Grid, point: Point, machine: str) -> TableCell:
    """`1.58` with its interval and verdict; badges of what has no result."""
    if machine not in _machines_of_both(grid, point):
        return table.NOTHING
    speed = grid.over_reference(point, machine, machine)
    if speed:
        return table.times_as_fast(speed)
    statuses = [each.status(machine, grid.main) for each in (grid.plain[point.place], point)]
    return TableCell(REFERENCE, badges=("oom",)) if statuses == ["oom", "ok"] else table.lost_of(statuses)


def inversions_table(found: list[Inversion]) -> Table | None:
    """A row an inversion; None without one."""
    rows = [{**each.point.row, "machine": each.machine, "other": each.other, "speed": each.speed} for each in found]
    columns = [
        Column("machine", value="machine", number=False),
        *table.point("precision"),
        Column(f"slower than this in {REFERENCE}", value="other", number=False),
        *place_columns(each.point for each in found),
        Column("machine", "ms", group="median", value=lambda row: row["speed"].times[1]),
        Column("the other", "ms", group="median", value=lambda row: row["speed"].times[0]),
        Column("times as fast", value=lambda row: table.times_as_fast(row["speed"])),
    ]
    caption = f"Where a machine in 16 bits is slower than another in {REFERENCE}, although it should be the faster one."
    note = (
        f"Should be: its matrix products run at a higher rate; where rates are not known, it is faster in {REFERENCE}."
    )
    return comparison_table("inversions", caption, columns, rows, [note])
