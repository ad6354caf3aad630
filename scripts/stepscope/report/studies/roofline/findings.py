"""What the report says of MFU, and of how far below their roof the phases of a training step lie."""

import pandas as pd

from stepscope.report.data.roofline import (
    PHASES,
    ROOFS,
    Roof,
    RoofPoint,
    device_name,
    measured_roof,
    model_points,
    roofs,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import column, label, machine_labels, main_grid, ordered, precision_rank
from stepscope.tables.peaks import peak_of
from stepscope.tables.reader import Tables

_BY_IMPORTANCE = ("step", "forward_backward", "forward", "inference")
_PEAK = "which share of the peak is used"


def findings(tables: Tables) -> list[Finding]:
    """MFU, what has none and why, and the phases below the roofs, machine by machine."""
    grid = main_grid(tables["timing"])
    if grid.empty:
        return []
    points = model_points(tables["timing"])
    found = []
    for hardware in machine_labels(grid["hardware"]):
        own = grid[grid["hardware"] == hardware]
        found += [_mfu(own, hardware), _unlisted(tables, own, hardware)]
        found += _phases(tables, [point for point in points if point.hardware == hardware], hardware)
    return [each for each in found if each]


def _mfu(own: pd.DataFrame, hardware: str) -> Finding | None:
    """The lowest and the highest MFU of each precision, of the most complete mode that has any."""
    mode = next((name for name in _BY_IMPORTANCE if column(own, f"{name}_mfu").notna().any()), None)
    if mode is None:
        return None
    known, parts, numbers = own.dropna(subset=[f"{mode}_mfu"]), [], {}
    for precision in ordered(known["precision"], key=precision_rank):
        cells = known[known["precision"] == precision].sort_values(f"{mode}_mfu", kind="stable").to_dict("records")
        ends = {f"{precision}_least": cells[0], f"{precision}_most": cells[-1]}
        numbers |= {name: Number(row[f"{mode}_mfu"], (row["cell"],), formatting.percent) for name, row in ends.items()}
        low, high = (f"{{{name}}} ({row['size']}, context {row['context']:,.0f})" for name, row in ends.items())
        of = formatting.of_cells(len(cells), int((own["precision"] == precision).sum()))
        parts.append(
            f"{low} in {precision} ({of})" if len(cells) == 1 else f"from {low} to {high} in {precision} ({of})"
        )
    what = "a training step" if mode == "step" else label(mode)
    without = [each for each in ordered(own["precision"], key=precision_rank) if each not in set(known["precision"])]
    more = f"; none in {formatting.listing(without)}" if without else ""
    answer = f"MFU, the share of the data sheet's peak rate, of {what}: {'; '.join(parts)}{more}."
    return Finding(_PEAK, answer, numbers, hardware)


def _unlisted(tables: Tables, own: pd.DataFrame, hardware: str) -> Finding | None:
    """Why there is no MFU: the GPU, or its rate in a precision, is in no data sheet of ours."""
    gpu = device_name(tables, hardware)
    if gpu is None:
        return None
    instead = "rates are compared with the measured ceilings alone"
    if _lacks_measured_roof(tables, own):
        instead = "where no ceiling was measured either, rates are compared with nothing"
    if peak_of(gpu) is None:
        answer = f"No data sheet of {gpu} is in the list of peaks: there is no MFU, and {instead}."
        return Finding(_PEAK, answer, hardware=hardware)
    lost = [each for each in ordered(own["precision"], key=precision_rank) if getattr(peak_of(gpu), each, None) is None]
    if not lost:
        return None
    answer = f"The data sheet of {gpu} has no rate in {formatting.listing(lost)}: there is no MFU in it, and {instead}."
    return Finding(_PEAK, answer, hardware=hardware)


def _lacks_measured_roof(tables: Tables, own: pd.DataFrame) -> bool:
    """Whether any precision of these cells lacks a measured matrix product or a measured copy."""
    places = own[["hardware", "precision"]].drop_duplicates().itertuples(index=False)
    return any(measured_roof(tables["ceilings"], *place) is None for place in places)


def _phases(tables: Tables, points: list[RoofPoint], hardware: str) -> list[Finding]:
    """A finding a phase: which share of the roof above it is reached, and which roof that is. Measured ones if any."""
    both = {point.precision: roofs(tables, point.hardware, point.precision) for point in points}
    name = next((name for name in ROOFS if any(pair[name] for pair in both.values())), None)
    of = "the measured roof" if name == "measured" else "the data sheet's roof"
    found = []
    for phase in PHASES if name else ():
        parts, numbers = [], {}
        for precision in sorted(both, key=precision_rank):
            roof = both[precision][name]
            every = [p for p in points if (p.phase, p.precision) == (phase, precision)]
            own = [p for p in every if p.share(roof)]
            if own:
                shares = [100 * point.share(roof) for point in own]
                numbers[precision] = Number(shares, tuple(point.cell for point in own), _percent_range)
                lost = f"; {len(every) - len(own):,} without a time" if len(own) < len(every) else ""
                parts.append(f"{{{precision}}} in {precision} ({limits(own, roof)}{lost})")
        above = ""
        if any(max(number.value) > 100 for number in numbers.values()):
            above = " Above 100 % data stayed in the caches, or the large product or copy was no ceiling."
        what = "The optimizer" if phase == "optimizer" else phase.capitalize()
        if parts:
            answer = f"{what} reaches this share of {of} above it: {'; '.join(parts)}.{above}"
            found.append(Finding(f"what limits {phase}", answer, numbers, hardware))
    return found


def _percent_range(values: list[float]) -> str:
    return formatting.value_range(values, 2, " %")


def limits(points: list[RoofPoint], roof: Roof) -> str:
    """`memory in 16 of 20 cells, arithmetic in 4`: which roof is above how many."""
    under = [roof.limit(point.intensity) for point in points]
    counts = {kind: under.count(kind) for kind in ("memory", "arithmetic") if kind in under}
    if len(counts) == 1:
        many = {1: "the only cell", 2: "both cells"}.get(len(points), f"all {len(points):,} cells")
        return f"{under[0]} in {many}"
    (first, some), (second, others) = counts.items()
    return f"{first} in {some:,} of {len(points):,} cells, {second} in {others:,}"
