"""The tables of the roofline section: what phases and attention could reach below the roofs, and what they reach."""

from stepscope.report.data.attention import DIRECTIONS, Group, implementation_rank, notes
from stepscope.report.data.roofline import PHASES, ROOFS, Point, Roof, attention_points, device_name, roofs
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.order import ordered, precision_rank
from stepscope.report.kit.table import number
from stepscope.tables.peaks import peak_of
from stepscope.tables.reader import Tables

_ROOF_COLUMNS = (
    Column("intensity", "FLOP/byte"),
    *(Column(name, group="attainable (TFLOP/s)") for name in ROOFS),
    Column("reached", "TFLOP/s"),
    *(Column(name, group="share of attainable") for name in ROOFS),
    Column("roof above", number=False),
)


def roofs_table(tables: Tables, places: list[tuple[str, str]]) -> Table | None:
    """Both roofs of each (hardware, precision), below them the data sheets; None without a place."""
    rows = []
    for hardware, precision in places:
        known = roofs(tables, hardware, precision)
        numbers = []
        for roof in (known[name] for name in ROOFS):
            numbers += (roof.rate, roof.bandwidth, roof.ridge) if roof else (None, None, None)
        rows.append([Cell(hardware), Cell(precision), *(number(value, formatting.significant) for value in numbers)])
    columns = [Column("hardware", number=False), Column("precision", number=False)]
    for name in ROOFS:
        labels = (("arithmetic", "TFLOP/s"), ("memory", "GB/s"), ("ridge", "FLOP/byte"))
        columns += [Column(*words, group=name) for words in labels]
    caption = "The roofs: arithmetic and memory at their best, and the intensity at which they meet (the ridge)."
    note = "Measured: a large matrix product and a large copy. Data sheet: dense products, accumulated in fp32."
    sources = [_source(device_name(tables, hardware)) for hardware in dict.fromkeys(place[0] for place in places)]
    return Table("roofs", caption, columns, rows, [note, *sources], grouped=True) if rows else None


def _source(gpu: str | None) -> str:
    """Where a device's rates come from, or that they are not known."""
    peak = peak_of(gpu)
    if peak is None:
        return f"No data sheet of {gpu or 'this device'} is in the list."
    return f"{gpu}: {peak.source}."


def phases_table(hardware: str, precision: str, points: list[Point], known: dict[str, Roof | None]) -> Table:
    """Forward, backward and optimizer of each size at its largest context that has a rate."""
    rows, longer = [], []
    for size in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == size]
        done = [point.tokens for point in own if point.tflops] or [max(point.tokens for point in own)]
        there = [point for point in own if point.tokens == max(done)]
        rows += [_line(point, known) for point in sorted(there, key=lambda point: PHASES.index(point.phase))]
        gone = sorted({point.tokens for point in own if point.tokens > max(done)})
        longer += [f"{size} at {formatting.listing([f'{each:,}' for each in gone])}"] if gone else []
    columns = [Column("size", number=False), Column("context", "tokens"), Column("phase", number=False), *_ROOF_COLUMNS]
    caption = f"Phases below the roofs, {precision}, on {hardware}: each size at its largest context with a result."
    told = [_NOTE, *([f"Without any result: {formatting.listing(longer, 8, '; ')}."] if longer else [])]
    return Table(f"roofline-{hardware}-{precision}", caption, columns, rows, told + notes([], rows), grouped=True)


_NOTE = (
    "The bytes are a lower bound, so intensity and attainable rates are upper bounds. Roof above: which of the two "
    "limits at this intensity, measured if known; memory left of the ridge, arithmetic right of it."
)


def _line(point: Point, known: dict[str, Roof | None]) -> list[Cell]:
    return [Cell(point.series), number(float(point.tokens), formatting.count), Cell(point.phase), *_below(point, known)]


def _below(point: Point, known: dict[str, Roof | None]) -> list[Cell]:
    """The cells of _ROOF_COLUMNS."""
    pair = [known[name] for name in ROOFS]
    attainable = [number(roof.attainable(point.intensity) if roof else None, formatting.significant) for roof in pair]
    shares = [number(point.share(roof), formatting.percent) for roof in pair]
    badges = ("noisy",) if point.noisy else ()
    badges += ("throttled",) if point.throttled else ()
    reached = Cell(formatting.significant(point.tflops), sort=point.tflops, badges=badges) if point.tflops else None
    lost = Cell("" if point.status != "ok" else "–", badges=(point.status,) * (point.status != "ok"))
    roof = pair[0] or pair[1]
    kind = roof.limit(point.intensity) if roof else "–"
    intensity = number(point.intensity, formatting.significant)
    return [intensity, *attainable, reached or lost, *shares, Cell(kind)]


def attention_tables(tables: Tables, group: Group) -> list[Table]:
    """A table for each precision: every implementation and d at its longest length with a rate. For the page alone."""
    points = attention_points(group)
    made = []
    for precision in ordered([point.precision for point in points], key=precision_rank):
        own, known = (
            [point for point in points if point.precision == precision],
            roofs(tables, group.hardware, precision),
        )
        rows = []
        for name in ordered([point.series for point in own], key=implementation_rank):
            for d_head in ordered([point.d_head for point in own if point.series == name]):
                for direction in DIRECTIONS:
                    line = [p for p in own if (p.series, p.d_head, p.phase) == (name, d_head, direction)]
                    rows += [_attention_line(_longest(line), known)] if line else []
        columns = [Column("implementation", number=False), Column("d"), Column("length", "tokens")]
        columns += [Column("direction", number=False), *_ROOF_COLUMNS]
        caption = f"Attention below the roofs, {precision}, {group.place}: each at its longest length with a result."
        name = f"roofline-attention-{group.hardware}-{precision}"
        made.append(Table(name, caption, columns, rows, [_NOTE, *notes([], rows)], True, True, page_only=True))
    return made


def _longest(points: list[Point]) -> Point:
    """The longest with a rate, else the longest."""
    return max(points, key=lambda point: (point.tflops is not None, point.tokens))


def _attention_line(point: Point, known: dict[str, Roof | None]) -> list[Cell]:
    sizes = [number(float(value), formatting.count) for value in (point.d_head, point.tokens)]
    return [Cell(point.series), *sizes, Cell(point.phase), *_below(point, known)]
