"""Tables of the machines themselves, and of the timing grid with the machines beside each other."""

from statistics import median

from stepscope.report.data.machines import NEAR, bandwidth, facts, rate
from stepscope.report.data.points import Grid, Point
from stepscope.report.data.roofline import ROOFS
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.compare import UNCLEAR
from stepscope.report.kit.order import PRECISIONS, label
from stepscope.report.kit.table import marks, number
from stepscope.report.studies.hardware.compared import LOST, legend, ratio_text, speed_cell
from stepscope.tables.reader import Tables

MOST_ROWS = 40  # of a table in the Markdown
_SOFTWARE = {"driver": "driver", "PyTorch": "torch", "CUDA": "cuda"}
_FOLLOWS = (
    "Follows: the ratio that the speed-up is within a fifth of; between: it lies between both; neither: it is nearer "
    "to 1 than both, as where the host's launches set the time; beyond: it lies outside both, and no nearer to 1 than "
    "the nearer of them."
)


def machines_table(tables: Tables, labels: list[str]) -> Table:
    """A column a machine: device, memory, software, data sheet and ceilings, with their ratios to the first one's."""
    known = {each: facts(tables, each) for each in labels}
    rows = [_text("device", [_listed(known[each]["device_name"]) for each in labels])]
    memory = [max(known[each]["device_memory_bytes"], default=None) for each in labels]
    rows.append(_ratios("memory (GiB)", memory, formatting.gib))
    rows += [_text(name, [_listed(known[each][key]) for each in labels]) for name, key in _SOFTWARE.items()]
    for source in reversed(ROOFS):
        for precision in PRECISIONS:
            rates = [rate(tables, each, precision, source) for each in labels]
            rows += [_ratios(f"{source}: {precision} (TFLOP/s)", rates)] if any(rates) else []
        moved = [bandwidth(tables, each, source) for each in labels]
        what = "memory" if source == "data sheet" else "copy"
        rows += [_ratios(f"{source}: {what} (GB/s)", moved)] if any(moved) else []
    columns = [Column("", number=False), *(Column(each) for each in labels)]
    caption = f"The machines. {labels[0]} is the baseline; below a number its ratio to the baseline's."
    notes = [
        "Data sheet: dense products, accumulated in fp32; a dash where it is not in the list. Measured: a large matrix "
        "product and a large copy."
    ]
    return Table("hardware-machines", caption, columns, rows, notes)


def _listed(values: list) -> str:
    return ", ".join(str(value) for value in values)


def _text(name: str, texts: list[str]) -> list[Cell]:
    return [Cell(name), *(Cell(text or "–") for text in texts)]


def _ratios(name: str, values: list[float | None], shown=formatting.significant) -> list[Cell]:
    """Numbers, and below all but the first one the ratio to it."""
    first, cells = values[0], []
    for at, value in enumerate(values):
        below = f"× {ratio_text(value / first)}" if at and value and first else ""
        cells.append(Cell(shown(value), below, float(value)) if value else Cell("–"))
    return [Cell(name), *cells]


def summary_table(grid: Grid) -> Table | None:
    """A row a machine, precision and phase: range and median of the speed-up, verdicts, and the ratios reached."""
    phases = grid.phases
    if len(grid.others) * len(grid.precisions) * len(phases) > MOST_ROWS:
        phases = [grid.main]
    rows = [
        line
        for other in grid.others
        for precision in grid.precisions
        for phase in phases
        if (line := _summary_line(grid, other, precision, phase))
    ]
    if not rows:
        return None
    several = len(grid.others) > 1
    columns = [Column("machine", number=False)] if several else []
    columns += [Column("precision", number=False), Column("phase", number=False), Column("cells")]
    columns += [Column(name, group="speed-up") for name in ("lowest", "median", "highest")]
    columns += [Column(name, group="cells that are") for name in ("faster", "about equal", "slower")]
    for name in ("arithmetic", "memory"):
        columns += [Column("ratio", group=name), Column(f"≥ {100 * NEAR:.0f} % of it", "cells", group=name)]
    rows = rows if several else [row[1:] for row in rows]
    caption = f"Speed-up over {grid.baseline}{'' if several else f' of {grid.others[0]}'}, by precision and phase."
    notes = [
        "Speed-up: the baseline's median over the machine's. Faster and slower are told by repeated runs where both "
        "machines have them, else by disjoint 95 % intervals. Arithmetic and memory: the machine's rate over the "
        "baseline's, by the data sheets if both are known, else as measured."
    ]
    return Table("hardware-summary", caption, columns, rows, notes, grouped=True)


def _summary_line(grid: Grid, other: str, precision: str, phase: str) -> list[Cell]:
    own = [point for point in grid.points if point.precision == precision]
    speeds = [speed for point in own if (speed := grid.speed(point, other, phase))]
    if not speeds:
        return []
    ratios, known = [each.ratio for each in speeds], grid.limits(other, precision)
    line = [Cell(other), Cell(precision), Cell(label(phase)), number(float(len(speeds)), formatting.count)]
    line += [number(float(value), ratio_text) for value in (min(ratios), median(ratios), max(ratios))]
    for word in ("faster", UNCLEAR, "slower"):
        line.append(number(float(sum(each.verdict == word for each in speeds)), formatting.count))
    for name in ("arithmetic", "memory"):
        reached = [known.reached(name, each) for each in ratios]
        line.append(number(getattr(known, name), ratio_text))
        line.append(Cell("–") if None in reached else number(float(sum(reached)), formatting.count))
    return line


def grid_table(grid: Grid) -> Table | None:
    """A row a size and context, a column a precision and machine: the speed-up of what stands for a cell."""
    places = list(dict.fromkeys(point.place for point in _by_size(grid)))
    at = {(point.place, point.precision): point for point in grid.points}
    if not places:
        return None
    names = grid.extra
    columns = [Column("size", number=False), Column("context", "tokens"), *(_column(name) for name in names)]
    several = len(grid.others) > 1
    heads = [(precision, other) for precision in grid.precisions for other in grid.others]
    columns += [Column(other if several else "× (ms)", group=precision) for precision, other in heads]
    rows = []
    for place in places:
        point = next(at[place, precision] for precision in grid.precisions if (place, precision) in at)
        line = _lead(point, names)
        line += [_speed_cell(grid, at.get((place, precision)), other) for precision, other in heads]
        rows.append(line)
    what = "a whole step" if grid.main == "step" else label(grid.main)
    of = "each machine" if several else grid.others[0]
    caption = f"How many times as fast {what} is on {of} as on {grid.baseline}; below it the baseline's ms → its own."
    note = (
        "Medians. In brackets: the two differ no more than repeated runs do, or within their 95 % intervals. A badge "
        "without numbers: so on both."
    )
    is_long = len(rows) > MOST_ROWS
    return Table("hardware-grid", caption, columns, rows, [note, *legend(rows)], is_long, True, page_only=is_long)


def _by_size(grid: Grid) -> list[Point]:
    order = {name: rank for rank, name in enumerate(dict.fromkeys(point.size for point in grid.points))}
    return sorted(grid.points, key=lambda point: (order[point.size], point.context))


def _column(name: str) -> Column:
    return Column(name, number=name == "batch")


def _lead(point: Point, names: list[str]) -> list[Cell]:
    cells = [Cell(point.size), number(point.context, formatting.count)]
    for name in names:
        value = point.value(name)
        cells.append(number(value, formatting.count) if name == "batch" else Cell(value or "–"))
    return cells


def _speed_cell(grid: Grid, point: Point | None, other: str) -> Cell:
    if point is None:
        return Cell("–")
    speed, both = grid.speed(point, other, grid.main), (grid.baseline, other)
    times = [point.time(each, grid.main) for each in both]
    badges = dict.fromkeys(mark for each in both for mark in _marks(point, each, grid.main))
    statuses = [point.status(each, grid.main) for each in both]
    return speed_cell(*times, bool(speed) and speed.verdict != UNCLEAR, statuses, tuple(badges))


def _marks(point: Point, machine: str, phase: str) -> tuple[str, ...]:
    """The badges of a machine's time: noisy, throttled, shared."""
    row = point.rows.get(machine, {})
    noisy = ("noisy",) if row.get(f"{phase}_noisy") and point.time(machine, phase) else ()
    return noisy + tuple(mark for mark in marks(row) if mark not in LOST)


def phases_table(grid: Grid) -> Table | None:
    """A row a point and phase: the median of each machine, the speed-ups, the ratios, and which of them they follow."""
    rows = [_phase_line(grid, point, phase) for point in grid.points for phase in grid.phases]
    if not rows:
        return None
    columns = [Column("size", number=False), Column("context", "tokens"), *(_column(name) for name in grid.extra)]
    columns += [Column("precision", number=False), Column("phase", number=False)]
    columns += [Column(each, group="median (ms)") for each in grid.labels]
    for other in grid.others:
        group = "speed-up, and ratios of rates" if len(grid.others) == 1 else other
        columns += [Column(name, group=group) for name in ("speed-up", "arithmetic", "memory")]
        columns.append(Column("follows", group=group, number=False))
    caption = f"Every phase on every machine; speed-ups over {grid.baseline} beside the ratios of the machines' rates."
    notes = [f"{_FOLLOWS} In brackets: about equal.", *legend(rows)]
    is_long = len(rows) > MOST_ROWS
    return Table("hardware-phases", caption, columns, rows, notes, is_long, True, page_only=is_long)


def _phase_line(grid: Grid, point: Point, phase: str) -> list[Cell]:
    line = [*_lead(point, grid.extra), Cell(point.precision), Cell(label(phase))]
    for machine in grid.labels:
        time, status = point.time(machine, phase), point.status(machine, phase)
        lost = (status,) if status in LOST else ()
        text = formatting.significant(time, 4) if time else "" if lost else "–"
        line.append(Cell(text, sort=time, badges=lost or _marks(point, machine, phase)))
    for other in grid.others:
        speed, known = grid.speed(point, other, phase), grid.limits(other, point.precision)
        if speed is None:
            line.append(Cell("–"))
        else:
            text = ratio_text(speed.ratio)
            line.append(Cell(f"({text})" if speed.verdict == UNCLEAR else text, sort=speed.ratio))
        line += [number(value, ratio_text) for value in (known.arithmetic, known.memory)]
        line.append(Cell(known.follows(speed.ratio) or "–" if speed else "–"))
    return line
