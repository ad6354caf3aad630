"""Sentences on MFU, and on how far below their roof the phases of a training step lie."""

import pandas as pd

from stepscope.report.data.roofline import PHASES, ROOFS, Point, Roof, device_name, measured_roof, model_points, roofs
from stepscope.report.kit import formatting
from stepscope.report.kit.order import column, label, machine_labels, main_grid, ordered, precision_rank
from stepscope.tables.peaks import peak_of
from stepscope.tables.reader import Tables

_BY_IMPORTANCE = ("step", "forward_backward", "forward", "inference")


def findings(tables: Tables) -> list[str]:
    """MFU, what has none and why, and the phases below the roofs, hardware by hardware."""
    grid = main_grid(tables["timing"])
    if grid.empty:
        return []
    points = model_points(tables["timing"])
    several = grid["hardware"].nunique() > 1
    sentences = []
    for hardware in machine_labels(grid["hardware"]):
        own = grid[grid["hardware"] == hardware]
        found = [mfu(own), unlisted(tables, own), *phases(tables, [p for p in points if p.hardware == hardware])]
        place = f"On {hardware}: " if several else ""
        sentences += [place + sentence for sentence in found if sentence]
    return sentences


def mfu(own: pd.DataFrame) -> str:
    """The lowest and the highest MFU of each precision, of the most complete mode that has any."""
    mode = next((name for name in _BY_IMPORTANCE if column(own, f"{name}_mfu").notna().any()), None)
    if mode is None:
        return ""
    known, parts = own.dropna(subset=[f"{mode}_mfu"]), []
    for precision in ordered(known["precision"], key=precision_rank):
        cells = known[known["precision"] == precision].sort_values(f"{mode}_mfu", kind="stable")
        ends = [(formatting.percent(row[f"{mode}_mfu"]), _cell(row)) for row in cells.to_dict("records")]
        low, high = (f"{share} ({where})" for share, where in (ends[0], ends[-1]))
        parts.append(f"{low} in {precision}" if len(ends) == 1 else f"from {low} to {high} in {precision}")
    what = "a training step" if mode == "step" else label(mode)
    return f"MFU, the share of the data sheet's peak rate, of {what}: {'; '.join(parts)}."


def _cell(row: dict) -> str:
    return f"{row['size']}, context {row['context']:,.0f}"


def unlisted(tables: Tables, own: pd.DataFrame) -> str:
    """Why there is no MFU: the GPU, or its rate in a precision, is in no data sheet of ours."""
    hardware = own["hardware"].iloc[0]
    gpu = device_name(tables, hardware)
    if gpu is None:
        return ""
    instead = "rates are compared with the measured ceilings alone"
    if measured_roof_is_missing(tables, own):
        instead = "where no ceiling was measured either, rates are compared with nothing"
    if peak_of(gpu) is None:
        return f"No data sheet of {gpu} is in the list of peaks: there is no MFU, and {instead}."
    lost = [each for each in ordered(own["precision"], key=precision_rank) if getattr(peak_of(gpu), each, None) is None]
    if not lost:
        return ""
    return f"The data sheet of {gpu} has no rate in {formatting.listing(lost)}: there is no MFU in it, and {instead}."


def measured_roof_is_missing(tables: Tables, own: pd.DataFrame) -> bool:
    """Does any precision of these cells lack a measured matrix product or a measured copy?"""
    places = own[["hardware", "precision"]].drop_duplicates().itertuples(index=False)
    return any(measured_roof(tables["ceilings"], *place) is None for place in places)


def phases(tables: Tables, points: list[Point]) -> list[str]:
    """A sentence a phase: which share of the roof above it is reached, and which roof that is. Measured ones if any."""
    both = {point.precision: roofs(tables, point.hardware, point.precision) for point in points}
    name = next((name for name in ROOFS if any(pair[name] for pair in both.values())), None)
    sentences = []
    for phase in PHASES if name else ():
        parts, exceeded = [], False
        for precision in sorted(both, key=precision_rank):
            roof = both[precision][name]
            own = [p for p in points if (p.phase, p.precision) == (phase, precision) and p.share(roof)]
            parts += [_reached(precision, own, roof)] if own else []
            exceeded = exceeded or any(point.share(roof) > 1 for point in own)
        above = (
            " Above 100 % data stayed in the caches, or the large product or copy was no ceiling." if exceeded else ""
        )
        of = "the measured roof" if name == "measured" else "the data sheet's roof"
        what = "The optimizer" if phase == "optimizer" else phase.capitalize()
        sentences += [f"{what} reaches this share of {of} above it: {'; '.join(parts)}.{above}"] if parts else []
    return sentences


def _reached(precision: str, points: list[Point], roof: Roof) -> str:
    """`3.1 % to 26 % in bf16 (memory in 16 of 20 cells, arithmetic in 4)`."""
    share = formatting.value_range([100 * point.share(roof) for point in points], 2, " %")
    under = [roof.limit(point.intensity) for point in points]
    counts = {kind: under.count(kind) for kind in ("memory", "arithmetic") if kind in under}
    if len(counts) == 1:
        many = {1: "the only cell", 2: "both cells"}.get(len(points), f"all {len(points):,} cells")
        return f"{share} in {precision} ({under[0]} in {many})"
    (first, some), (second, others) = counts.items()
    return f"{share} in {precision} ({first} in {some:,} of {len(points):,} cells, {second} in {others:,})"
