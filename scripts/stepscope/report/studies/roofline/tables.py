"""The tables of the roofline section: what phases and attention could reach below the roofs, and what they reach."""

from stepscope.report.data.attention import DIRECTIONS, Group, implementation_rank
from stepscope.report.data.roofline import PHASES, ROOFS, Roof, RoofPoint, attention_points, device_name, roofs
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.order import ordered, precision_rank
from stepscope.tables.peaks import peak_of
from stepscope.tables.reader import Tables

_ROOF = {"rate": ("arithmetic", "TFLOP/s"), "bandwidth": ("memory", "GB/s"), "ridge": ("ridge", "FLOP/byte")}
_ROOFS_NOTE = "Measured: a large matrix product and a large copy. Data sheet: dense products, accumulated in fp32."
_NOTE = (
    "The bytes are a lower bound, so intensity and attainable rates are upper bounds. Roof above: which of the two "
    "limits at this intensity, measured if known; memory left of the ridge, arithmetic right of it."
)


def roofs_table(tables: Tables, places: list[tuple[str, str]]) -> Table | None:
    """Both roofs of each (hardware, precision), below them the data sheets; None without a place."""
    rows = [{"hardware": place[0], "precision": place[1], **roofs(tables, *place)} for place in places]
    columns = [
        *table.point("hardware", "precision"),
        *(
            Column(*words, group=name, value=lambda row, name=name, part=part: getattr(row[name], part, None))
            for name in ROOFS
            for part, words in _ROOF.items()
        ),
    ]
    caption = "The roofs: arithmetic and memory at their best, and the intensity at which they meet (the ridge)."
    sources = [_source(device_name(tables, hardware)) for hardware in dict.fromkeys(place[0] for place in places)]
    return table.build("roofs", caption, columns, rows, [_ROOFS_NOTE, *sources], grouped=True)


def _source(gpu: str | None) -> str:
    """Where a device's rates come from, or that they are not known."""
    peak = peak_of(gpu)
    if peak is None:
        return f"No data sheet of {gpu or 'this device'} is in the list."
    return f"{gpu}: {peak.source}."


def phases_table(hardware: str, precision: str, points: list[RoofPoint], known: dict[str, Roof | None]) -> Table:
    """Forward, backward and optimizer of each size at its largest context that has a rate."""
    rows, longer = [], []
    for size in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == size]
        done = [point.tokens for point in own if point.tflops] or [max(point.tokens for point in own)]
        there = [point for point in own if point.tokens == max(done)]
        rows += sorted(there, key=lambda point: PHASES.index(point.phase))
        gone = sorted({point.tokens for point in own if point.tokens > max(done)})
        longer += [f"{size} at {formatting.listing([f'{each:,}' for each in gone])}"] if gone else []
    columns = [
        Column("size", number=False, value=lambda point: point.series),
        Column("context", "tokens", value=lambda point: point.tokens, show=formatting.count),
        Column("phase", number=False, value=lambda point: point.phase),
        *_below(known),
    ]
    caption = f"Phases below the roofs, {precision}, on {hardware}: each size at its largest context with a result."
    told = [_NOTE, f"Without any result: {formatting.listing(longer, 8, '; ')}." if longer else ""]
    name, about = f"roofline-{hardware}-{precision}", {"hardware": hardware, "precision": precision}
    return table.build(name, caption, columns, rows, told, meanings=table.PLAIN_MEANINGS, grouped=True, about=about)


def _below(known: dict[str, Roof | None]) -> list[Column]:
    """The columns that hold a point against the roofs above it."""
    best = next((known[name] for name in ROOFS if known[name]), None)

    def attainable(name: str):
        return lambda point: known[name].attainable(point.intensity) if known[name] else None

    def share(name: str):
        return lambda point: point.share(known[name])

    return [
        Column("intensity", "FLOP/byte", value=lambda point: point.intensity),
        *(Column(name, group="attainable (TFLOP/s)", value=attainable(name)) for name in ROOFS),
        Column("reached", "TFLOP/s", value=_reached),
        *(Column(name, group="share of attainable", value=share(name), show=formatting.percent) for name in ROOFS),
        Column("roof above", number=False, value=lambda point: best.limit(point.intensity) if best else None),
    ]


def _reached(point: RoofPoint) -> TableCell:
    """The rate with its marks, or what became of it."""
    if not point.tflops:
        return table.NOTHING if point.status == "ok" else TableCell(badges=(point.status,))
    marks = ("noisy",) * point.noisy + ("throttled",) * point.throttled
    return TableCell(formatting.significant(point.tflops), sort=point.tflops, badges=marks)


def attention_tables(tables: Tables, group: Group) -> list[Table]:
    """A table for each precision: every implementation and d at its longest length with a rate. For the page alone."""
    points = attention_points(group)
    made = []
    for precision in ordered([point.precision for point in points], key=precision_rank):
        columns = [
            Column("implementation", number=False, value=lambda point: point.series),
            Column("d", value=lambda point: point.d_head, show=formatting.count),
            Column("length", "tokens", value=lambda point: point.tokens, show=formatting.count),
            Column("direction", number=False, value=lambda point: point.phase),
            *_below(roofs(tables, group.hardware, precision)),
        ]
        rows = _longest_of_each([point for point in points if point.precision == precision])
        caption = f"Attention below the roofs, {precision}, {group.place}: each at its longest length with a result."
        name, means = f"roofline-attention-{group.hardware}-{precision}", table.PLAIN_MEANINGS
        about = {"hardware": group.hardware, "precision": precision}
        shown = {"folded": True, "grouped": True, "about": about}
        made.append(table.build(name, caption, columns, rows, [_NOTE], meanings=means, **shown))
    return made


def _longest_of_each(points: list[RoofPoint]) -> list[RoofPoint]:
    """Of each implementation, d and direction the point with the longest length that has a rate, else the longest."""
    found: dict[tuple, RoofPoint] = {}
    for point in points:
        key = (implementation_rank(point.series), point.d_head, DIRECTIONS.index(point.phase))
        if key not in found or _rank(point) > _rank(found[key]):
            found[key] = point
    return [found[key] for key in sorted(found)]


def _rank(point: RoofPoint) -> tuple[bool, int]:
    return (point.tflops is not None, point.tokens)
