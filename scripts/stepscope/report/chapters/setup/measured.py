"""How it is measured: cells, processes, the floor; and the rates of the machine that all is held against."""

import math
from collections import Counter

from stepscope.report.chapters.parts import count_range, percent_range
from stepscope.report.data.control import MANY_PAIRS, control_pairs, floors
from stepscope.report.data.machines import bandwidth, rate
from stepscope.report.data.own_models import is_own
from stepscope.report.data.roofline import ROOFS
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import TimingGrid, cells_of
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import LEAST_MARGIN
from stepscope.report.kit.finding import Finding, Number, key_of
from stepscope.report.kit.formatting import known

_PROCESSES = ("step_processes", "forward_backward_processes", "forward_processes", "inference_processes")


def cells_and_processes(grid: TimingGrid) -> Finding | None:
    """What a cell and a process are, in numbers of this run."""
    counts = {row["cell"]: next((row[name] for name in _PROCESSES if known(row.get(name))), None) for row in grid.rows}
    counts = {cell: count for cell, count in counts.items() if count}
    warmups = [row["warmup"] for row in grid.rows if known(row.get("warmup"))]
    if not counts:
        return None
    numbers = {"processes": Number(list(counts.values()), tuple(counts), count_range)}
    fresh = "one fresh process" if max(counts.values()) == 1 else "{processes} fresh processes, one after another"
    left_out = ""
    if warmups:
        left_out = f", after {{warmup}} step{'s' * (max(warmups) != 1)} of warm-up"
        numbers["warmup"] = Number(warmups, cells_of(grid.rows), count_range)
    size = "size or model" if any(map(is_own, grid.rows)) else "size"
    answer = (
        f"A cell of the timing study is one {size}, context, precision and set of options, measured by {fresh}. A "
        f"process is one run of the program; it gives the median of its steps{left_out}."
    )
    return Finding("what are a cell and a process", answer, numbers, grid.rows[0]["hardware"])


def floor(machine: Machine) -> Finding:
    """What unchanged cells differ by."""
    classes = floors(machine.tables["timing"]).by_class
    found = [math.expm1(own) for (hardware, _), own in classes.items() if hardware == machine.hardware]
    pairs = [pair for pair in control_pairs(machine.tables["timing"]) if pair.hardware == machine.hardware]
    cells = tuple(dict.fromkeys(cell for pair in pairs for cell in pair.cells))
    question, least = "what is the floor", math.expm1(LEAST_MARGIN)
    if not found:
        numbers = {"least": Number(least, (), formatting.percent)}
        answer = (
            "The floor is what unchanged cells differ by. Here no cell ran twice: no difference below {least} counts."
        )
        return Finding(question, answer, numbers, machine.hardware)
    numbers = {"floor": Number(found, cells, percent_range)}
    by_class = ", by what limits a cell" if len(found) > 1 else ""
    counts = Counter(pair.limited_by for pair in pairs)
    some = "19 in 20 of their times" if max(counts.values()) >= MANY_PAIRS else "their times"
    small = ""
    if min(found) < least:
        small, numbers["least"] = ", and none below {least}", Number(least, (), formatting.percent)
    answer = (
        f"When unchanged cells run again, {some} differ by at most {{floor}}{by_class}. This is the floor: no smaller "
        f"difference counts{small}."
    )
    return Finding(question, answer, numbers, machine.hardware)


def rates(machine: Machine, grid: TimingGrid) -> Finding | None:
    """The measured rates, beside those of the data sheet."""
    numbers, sentences = {}, []
    products = {name: [rate(machine.tables, machine.hardware, name, source) for source in ROOFS] for name in grid.shown}
    told = [
        f"{_beside(numbers, name, 'TFLOP/s', *both, _cells(machine, 'matmul', name))} in {name}"
        for name, both in products.items()
        if both[0]
    ]
    if told:
        sentences.append(f"A large matrix product reaches {formatting.listing(told)}.")
    both = [bandwidth(machine.tables, machine.hardware, source) for source in ROOFS]
    if both[0]:
        sentences.append(f"A large copy moves {_beside(numbers, 'copy', 'GB/s', *both, _cells(machine, 'copy'))}.")
    if not sentences:
        return None
    return Finding("what can the machine do", " ".join(sentences), numbers, machine.hardware)


def _cells(machine: Machine, operation: str, precision: str | None = None) -> tuple[str, ...]:
    """The names of the machine's ceilings cells of an operation (and precision)."""
    rows = machine.tables["ceilings"].to_dict("records")
    own = [row for row in rows if (row["hardware"], row["operation"]) == (machine.hardware, operation)]
    return cells_of(row for row in own if precision in (None, row["precision"]))


def _beside(
    numbers: dict[str, Number], name: str, unit: str, measured: float, told: float | None, cells: tuple[str, ...]
) -> str:
    """`{fp32} TFLOP/s ({fp32_share} of the data sheet)`, whose numbers are added; what the share is of is said once."""
    key, of = key_of(name), "" if any(each.endswith("_share") for each in numbers) else " of the data sheet's"
    numbers[key] = Number(measured, cells)
    if not told:
        return f"{{{key}}} {unit}"
    numbers[f"{key}_share"] = Number(measured / told, cells, formatting.percent)
    return f"{{{key}}} {unit} ({{{key}_share}}{of})"
