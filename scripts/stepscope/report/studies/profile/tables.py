"""The profile study's tables across cells."""

import re
from functools import partial

import pandas as pd

from stepscope.report.data.bound import (
    GPU_BOUND,
    LATENCY_US,
    LAUNCH_BOUND,
    PRODUCTS,
    bound_of_others,
    bound_of_products,
    busy_time,
    intensity,
    occupation,
    products,
    unprofiled_step,
)
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.profile import GPU, PHASES, Profile
from stepscope.report.data.roofline import measured_roof
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.formatting import known, mean_count, percentage, rounded

# Categories that the table of bounds judges elsewhere, or cannot judge.
_NOT_JUDGED = (*PRODUCTS, "communication", "other")
FOUR_DIGITS = partial(rounded, digits=4)


def leading(profile: Profile) -> list[Column]:
    """The columns that name a cell: size, context and precision, and what varies among all cells."""
    size = Column("size", number=False, value=_size)
    return [size, *table.point("context", "precision", *profile.varying())]


def _size(row: dict) -> TableCell:
    return TableCell(str(row["size"] or "?"), badges=table.lost(row) + table.disturbed(row))


def built(name: str, caption: str, columns: list[Column], rows: list[dict], notes: list[str]) -> Table | None:
    """A table across the study's cells, folded where it is long."""
    return table.build(name, caption, columns, rows, notes, folded=len(rows) > table.LONG)


def verdicts_table(profile: Profile) -> Table | None:
    """Is a cell bound by its kernels or by launching them: every cell, the lost ones with their marks."""
    words = profile.words_of(profile.profiled())
    on_gpu, operations = words is GPU, words.operations
    columns = [
        *leading(profile),
        Column("without profiler", "ms", "one step", value=_unprofiled),
        *(_BUSY if on_gpu else _IN_OPERATORS),
        Column("in a step", group=operations, value="launched", show=mean_count),
        Column("mean length", "µs", operations, value="kernel_us", show=rounded),
    ]
    if on_gpu:
        columns += [
            Column("step / launches", "µs", operations, value="us_per_launch", show=rounded),
            Column("verdict", number=False, value=_verdict),
        ]
    rows = [row | _one_step(profile, row) for row in profile.cells.to_dict("records")]
    caption = "Launch-bound or GPU-bound: the GPU's busy time against the step without a profiler."
    if not on_gpu:
        caption = "The step without and with the profiler, and how much of the profiled one an operator runs."
    return built("verdicts", caption, columns, rows, [*_verdict_notes(profile, on_gpu), *_reasons(profile, rows)])


_BUSY = (
    Column("busy", "ms", "one step", value="busy_ms", show=rounded),
    Column("idle", "ms", "one step", value=lambda row: row["found"] and row["found"].idle, show=rounded),
    Column("share busy", "%", "one step", value=lambda row: row["found"] and row["found"].share, show=percentage),
)
# The profiler slows the operators too: only the profiled step holds them.
_IN_OPERATORS = (
    Column("with profiler", "ms", "one step", value="wall_ms_per_step", show=rounded),
    Column("in operators", "ms", "one step", value="busy_ms_per_step", show=rounded),
    Column("share in operators", "%", "one step", value="busy_share_of_wall", show=percentage),
)


def _one_step(profile: Profile, row: dict) -> dict:
    """What the table of verdicts shows of a cell's step; `found`: its Occupation."""
    cell = row["cell"]
    step, noisy = unprofiled_step(profile, row)
    launched = profile.row("phases", cell, phase="step").get("kernels_per_step")
    busy = profile.row("busy", cell, phase="step")
    return {
        **{name: busy.get(name) for name in ("wall_ms_per_step", "busy_ms_per_step", "busy_share_of_wall")},
        "step_ms": step,
        "step_noisy": noisy,
        "busy_ms": busy_time(profile, cell),
        "found": occupation(profile, row),
        "launched": launched,
        "kernel_us": profile.kernel_mean(cell, "step"),
        "us_per_launch": 1e3 * step / launched if known(step) and launched else None,
    }


def _unprofiled(row: dict) -> TableCell:
    badges = ["noisy"] if row["step_noisy"] and known(row["step_ms"]) else []
    return table.number(row["step_ms"], rounded, badges=badges)


def _verdict(row: dict) -> TableCell | None:
    found = row["found"]
    return found and TableCell(found.verdict, "busy longer than the step" if found.share > 1 else "")


def _verdict_notes(profile: Profile, on_gpu: bool) -> list[str]:
    missing = sum(not known(unprofiled_step(profile, row)[0]) for row in profile.profiled())
    notes = []
    if on_gpu:
        notes.append(
            "Without profiler: median of the timing study's free steps at the same point (of inference, where that is "
            "what a cell runs). Busy: at least one kernel or copy runs, from the trace. Idle: the difference. Verdict: "
            f"GPU-bound if busy for {100 * GPU_BOUND:.0f} % of the step or more, launch-bound below "
            f"{100 * LAUNCH_BOUND:.0f} %, mixed between. Step / launches: the time that the step has for each kernel; "
            "the longer it is than a kernel's mean length, the more the GPU waits."
        )
    else:
        notes.append(
            "On a CPU the operators run on the host itself: nothing is launched, and there is no verdict. The profiler "
            "slows them, so that their time is compared with the profiled step."
        )
    if on_gpu and any(profile.words(row) is not GPU for row in profile.profiled()):
        notes.append(
            "In rows of a CPU, kernels are operators, slowed by the profiler; nothing is launched: no verdict."
        )
    if missing:
        notes.append(f"The timing study did not measure {missing:,} of these points without a profiler.")
    return notes


def _reasons(profile: Profile, rows: list[dict]) -> list[str]:
    """Why cells were not profiled, each reason once, and how much memory was reached where it did not suffice."""
    pattern = "{badge}: {names}. {reason}."
    return table.reasons(rows, lambda row: profile.title(row) + _peak(row), pattern, statuses=table.LOST, between="; ")


def _peak(row: dict) -> str:
    """` (peak 79.1 GiB)` of a cell that ran out of memory."""
    peaks = [row.get(f"peak_{kind}_bytes") for kind in ("allocated", "resident")]
    reached = [peak for peak in peaks if known(peak)]
    return f" (peak {formatting.gib(reached[0])} GiB)" if reached and row["status"] == "oom" else ""


def products_table(profile: Profile) -> Table | None:
    """The share of matrix products in the GPU time of each phase, and their rate."""
    rows = profile.profiled()
    words = profile.words_of(rows)
    phases = _phases_of(profile, rows, ("inference", "forward", "backward", "step"))
    share, rate = f"share of the phase's {words.time} (%)", "TFLOP/s" if words is GPU else "GFLOP/s"
    columns = [
        *leading(profile),
        *(Column(phase, group=share, value=partial(_product_share, profile, phase)) for phase in phases),
        *(
            Column(phase, group=rate, value=partial(_product_rate, profile, phase, words is GPU))
            for phase in phases
            if phase != "step"
        ),
    ]
    caption = f"Matrix products: their share of the {words.time}, from the forward pass to the whole step."
    notes = [
        "Below each share: ms a step. Rate: floating-point operations of the phase's matrix products, in closed form, "
        f"over their {words.time}; below it the share of the measured ceiling of the same precision."
    ]
    categories = [profile.rows("categories", row["cell"]) for row in rows]
    if any((own["category"] == "fused attention").any() for own in categories if len(own)):
        notes.append(
            "A fused attention is not in the share, since its kernels do more than products; the rate counts its "
            "products and its time."
        )
    if rows and profile.cells["options"].str.contains("checkpoint=").any():
        notes.append("The operations that checkpointing runs again are not counted in the rate.")
    return built("products", caption, columns, rows, notes)


def _phases_of(profile: Profile, rows: list[dict], wanted: tuple[str, ...]) -> list[str]:
    """The wanted phases that any cell has."""
    there: set = set()
    for row in rows:
        there |= set(profile.rows("phases", row["cell"])["phase"])
    return [phase for phase in wanted if phase in there]


def _product_share(profile: Profile, phase: str, row: dict) -> TableCell | None:
    is_part_of_step = phase == "step" and mode(row) != "step"
    if is_part_of_step or not profile.row("phases", row["cell"], phase=phase):
        return None
    found = profile.row("categories", row["cell"], phase=phase, category="matmul")
    below = formatting.significant(found.get("ms_per_step"))
    return table.number(found.get("share_of_phase_gpu_time", 0.0), percentage, below and f"{below} ms")


def _product_rate(profile: Profile, phase: str, tera: bool, row: dict) -> TableCell:
    rate = products(profile, row, phase).get("tflops")
    return table.number(rate and rate * (1 if tera else 1e3), rounded, _of_ceiling(profile, row, rate))


def _of_ceiling(profile: Profile, row: dict, rate: float | None) -> str:
    """`44.4 %` of the measured ceiling of the cell's precision; empty without one of them."""
    ceiling = matmul_ceiling(profile.ceilings, row["hardware"], row["precision"])
    return f"{percentage(rate / ceiling)} %" if rate and ceiling else ""


def launches_table(profile: Profile) -> Table | None:
    """Kernels by phase, how long they are, and what a count by thread would find."""
    rows = profile.profiled()
    words = profile.words_of(rows)
    phases = _phases_of(profile, rows, PHASES)
    by_thread = [phase for phase in ("backward", "step") if phase in phases and words is GPU]
    columns = [
        *leading(profile),
        *(Column(phase, group=words.operations, value=partial(_launches, profile, phase)) for phase in phases),
        *(Column(phase, group="found by thread", value=partial(_by_thread, profile, phase)) for phase in by_thread),
    ]
    caption = (
        f"{words.operations.capitalize()} by phase: how many a step launches, and below it their mean length in µs."
    )
    notes = ["The loss is a part of forward, and every phase is a part of step."]
    if words is GPU:
        notes.append(
            "Found by thread: what is counted by a rule that takes only the launches of the thread that opened the "
            "phase, and below it the share of all; autograd launches the backward pass from a thread of its own."
        )
    else:
        caption = "Operators by phase: how many run in a step, and below it their mean length in µs."
    return built("launches", caption, columns, rows, notes)


def _launches(profile: Profile, phase: str, row: dict) -> TableCell:
    launched = profile.row("phases", row["cell"], phase=phase).get("kernels_per_step")
    mean = profile.kernel_mean(row["cell"], phase)
    return table.number(launched, mean_count, formatting.significant(mean))


def _by_thread(profile: Profile, phase: str, row: dict) -> TableCell | None:
    own = profile.row("phases", row["cell"], phase=phase)
    found, every = own.get("kernels_by_thread_rule_per_step"), own.get("kernels_per_step")
    if not (known(found) and known(every)):
        return None
    return table.number(found, mean_count, f"{percentage(found / every)} %" if every else "")


def tiles_table(profile: Profile) -> Table | None:
    """Tensor cores' share of the matmul time and the tile sizes; None on a CPU."""
    rows = [row for row in profile.profiled() if profile.words(row) is GPU]
    columns = leading(profile)
    for phase in _phases_of(profile, rows, ("inference", "forward", "backward")):
        cores, tiles = partial(_tensor_cores, profile, phase), partial(_tiles, profile, phase)
        columns += [
            Column("tensor cores", "%", phase, value=cores, show=percentage),
            Column("tiles (% of matmul time)", group=phase, number=False, wrap=True, value=tiles),
        ]
    caption = "Matrix products: tensor cores' share of their GPU time, and the tile sizes that take most of it."
    notes = [
        "A tile m×n×k, from the kernel's name: m×n values of the result are made together, k products at a time. "
        "fp32 with TF32 off runs without tensor cores (SIMT)."
    ]
    return built("tiles", caption, columns, rows, notes)


def _matmul_kernels(profile: Profile, phase: str, row: dict) -> tuple[pd.DataFrame, float]:
    """The matmul kernels of a phase, none where they took no time, and the time of all of them in ms."""
    rows = profile.rows("kernels", row["cell"])
    own = rows[(rows["phase"] == phase) & (rows["category"] == "matmul")] if len(rows) else rows
    total = own["total_ms"].sum() if len(own) else 0.0
    return (own, total) if total else (own[:0], 0.0)


def _tensor_cores(profile: Profile, phase: str, row: dict) -> float | None:
    own, total = _matmul_kernels(profile, phase, row)
    on_tensor_cores = own["unit"].fillna("").str.contains("tensor") if total else []
    return own.loc[on_tensor_cores, "total_ms"].sum() / total if total else None


def _tiles(profile: Profile, phase: str, row: dict) -> str:
    """`128×64×8 (71.2), 64×64×8 (20.1)`: the tiles that take most of the matmul time."""
    own, total = _matmul_kernels(profile, phase, row)
    if not total:
        return ""
    tiles = own.groupby(own["tile"].fillna("no tile in the name"))["total_ms"].sum().sort_values(ascending=False)
    shown = [f"{_tile(tile)} ({percentage(time / total)})" for tile, time in tiles.head(3).items()]
    shown += [f"{len(tiles) - 3} more ({percentage(tiles.iloc[3:].sum() / total)})"] if len(tiles) > 3 else []
    return ", ".join(shown)


def _tile(tile: str) -> str:
    """`64×64×8` for `64x64x8`."""
    return re.sub(r"(?<=\d)x(?=\d)", "×", formatting.shortened(tile, 30))


def bounds_table(profile: Profile) -> Table | None:
    """Memory-bound or compute-bound, category by category; None on a CPU."""
    rows = [row | _bound(profile, row) for row in profile.profiled() if profile.words(row) is GPU]
    group, others = "matrix products", "other categories: bound by, kernels a step × mean (µs)"
    columns = [
        *leading(profile),
        Column("ridge", "FLOP/byte", value="ridge", show=rounded),
        Column("at most", "FLOP/byte", group, value="intensity", show=rounded),
        Column("rate", "TFLOP/s", group, value=partial(_rate_of_products, profile)),
        Column("bound by", group=group, number=False, value=lambda row: _bound_by(row["bound"], row["products"])),
        *(
            Column(name, group=others, number=False, value=partial(_other_category, profile, name))
            for name in _other_categories(profile, rows)
        ),
    ]
    caption = "Memory-bound or compute-bound: each category of kernels in the whole step."
    notes = [
        "Ridge: the measured matmul rate over the measured copy rate; with fewer operations for each byte the memory "
        "sets the time. At most: operations of the matrix products over their operands and results, each moved once. "
        "Bound by: which of the two limits is the lower one at that ratio, of all products together; how near they "
        "come to it is the share of the measured ceiling, below the rate. The other categories do at most a few "
        "operations for each byte, far below the ridge: bound by memory, or, where a kernel takes less than "
        f"{LATENCY_US:.0f} µs on average, by latency, the time that any kernel takes. None of these reads a counter."
    ]
    lacking = [profile.title(row) for row in rows if not row["ridge"]]
    if lacking:
        notes.append(
            f"Without a measured matmul and copy rate there is no ridge: {formatting.listing(lacking, 4, '; ')}."
        )
    return built("bounds", caption, columns, rows, notes)


def _bound(profile: Profile, row: dict) -> dict:
    """What the table of bounds shows of a cell's matrix products."""
    roof, most = measured_roof(profile.ceilings, row["hardware"], row["precision"]), intensity(row)
    own = products(profile, row, "step")
    mean = _mean_us(own["ms"], own["kernels"]) if own else None
    bound = bound_of_products(roof, most, mean) if mean else ""
    return {"ridge": roof and roof.ridge, "intensity": most, "products": own, "bound": bound}


def _mean_us(time: float, kernels: float) -> float | None:
    return 1e3 * time / kernels if kernels else None


def _rate_of_products(profile: Profile, row: dict) -> TableCell:
    rate = row["products"].get("tflops")
    return table.number(rate, rounded, _of_ceiling(profile, row, rate))


def _other_categories(profile: Profile, rows: list[dict]) -> list[str]:
    """The categories without matrix products, by their GPU time in all cells."""
    parts = [profile.rows("categories", row["cell"]) for row in rows]
    parts = [part[part["phase"] == "step"] for part in parts if len(part)]
    if not parts:
        return []
    total = pd.concat(parts).groupby("category")["ms_per_step"].sum().sort_values(ascending=False)
    return [name for name in total.index if name not in _NOT_JUDGED]


def _other_category(profile: Profile, category: str, row: dict) -> TableCell | None:
    found = profile.row("categories", row["cell"], phase="step", category=category)
    if not found or not found["instances_per_step"]:
        return None
    own = {"ms": found["ms_per_step"], "kernels": found["instances_per_step"]}
    return _bound_by(bound_of_others(_mean_us(own["ms"], own["kernels"])), own)


def _bound_by(bound: str, own: dict) -> TableCell | None:
    """`memory` under a heading that says `bound by`, over the number of kernels and their mean length."""
    if not bound:
        return None
    mean = formatting.significant(_mean_us(own["ms"], own["kernels"]))
    return TableCell(bound.removesuffix("-bound"), f"{formatting.count(own['kernels'])} × {mean}")
