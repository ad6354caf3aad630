"""The profile study's tables across cells."""

import re

import pandas as pd

from stepscope.report.data.occupation import (
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
    roof,
    unprofiled_step,
)
from stepscope.report.data.profile import (
    GPU,
    PHASES,
    Profile,
    count,
    lead,
    leading,
    number,
    share,
    share_text,
    shortened,
    title,
)
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table, badge
from stepscope.report.kit.table import badge_legend

_MOST_OPEN = 40
_NO_PRODUCTS = (*PRODUCTS, "communication", "other")


def table(name: str, caption: str, columns: list[Column], rows: list[list[Cell]], notes: list[str]) -> Table | None:
    """A table whose badges are explained, folded if it is long; None without rows."""
    if not rows:
        return None
    return Table(name, caption, columns, rows, [*notes, *badge_legend(rows)], folded=len(rows) > _MOST_OPEN)


def kernel_mean(profile: Profile, cell: str, phase: str) -> float | None:
    """Mean length of the kernels of a phase, microseconds; memory operations are none."""
    rows = profile.rows("kernels", cell)
    own = rows[rows["phase"] == phase] if len(rows) else rows
    instances = own["instances"].sum() if len(own) else 0
    return float(1e3 * own["total_ms"].sum() / instances) if instances else None


def verdicts_table(profile: Profile) -> Table | None:
    """Is a cell bound by its kernels or by launching them: every cell, the lost ones with their marks."""
    whole, words = profile.cells, profile.words_of_all()
    on_gpu = words is GPU
    if whole.empty:
        return None
    timed = ["busy", "idle"] if on_gpu else ["with profiler", "in operators"]
    columns = [*leading(whole), *(Column(name, "ms", group="one step") for name in ("without profiler", *timed))]
    columns += [Column("share busy" if on_gpu else "share in operators", "%", group="one step")]
    columns += [Column("in a step", group=words.operations), Column("mean length", "µs", group=words.operations)]
    if on_gpu:
        columns += [Column("step / launches", "µs", group=words.operations), Column("verdict", number=False)]
    rows = []
    for row in whole.to_dict("records"):
        cell = row["cell"]
        launched = profile.row("phases", cell, phase="step").get("kernels_per_step")
        step, noisy = unprofiled_step(profile, row)
        found = occupation(profile, row)
        line = [*lead(row, whole), number(step, badges=("noisy",) if noisy else ())]
        if on_gpu:
            line.append(number(busy_time(profile, cell)))
            line += [number(found.idle), share(found.share)] if found else [Cell("–")] * 2
        else:  # the profiler slows the operators too: only the profiled step holds them
            own = profile.row("busy", cell, phase="step")
            line += [number(own.get("wall_ms_per_step")), number(own.get("busy_ms_per_step"))]
            line.append(share(own.get("busy_share_of_wall")))
        line += [count(launched), number(kernel_mean(profile, cell, "step"))]
        if on_gpu:
            each = 1e3 * step / launched if formatting.known(step) and launched else None
            long = "busy longer than the step" if found and found.share > 1 else ""
            line += [number(each), Cell(found.verdict, long) if found else Cell("–")]
        rows.append(line)
    caption = "Launch-bound or GPU-bound: the GPU's busy time against the step without a profiler."
    if not on_gpu:
        caption = "The step without and with the profiler, and how much of the profiled one an operator runs."
    return table("verdicts", caption, columns, rows, _verdict_notes(profile, on_gpu) + reasons(whole))


def _verdict_notes(profile: Profile, on_gpu: bool) -> list[str]:
    known = [unprofiled_step(profile, row)[0] for row in profile.profiled()]
    missing = sum(not formatting.known(step) for step in known)
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


def reasons(whole: pd.DataFrame) -> list[str]:
    """Why cells were not profiled, each reason once, and how much memory was reached where it did not suffice."""
    lost = whole[whole["status"] != "ok"]
    told = [lost["status"], lost["reason"].where(lost["reason"].notna(), "no reason was recorded")]
    notes = []
    for (status, reason), cells in lost.groupby(told, sort=True):
        names = [title(row, whole) + _peak(row) for row in cells.to_dict("records")]
        notes.append(f"{badge(status)[0]}: {formatting.listing(names, 4, '; ')}. {str(reason).rstrip('.')}.")
    return notes[:8]


def _peak(row: dict) -> str:
    """` (peak 79.1 GiB)` of a cell that ran out of memory."""
    peaks = [row.get(f"peak_{kind}_bytes") for kind in ("allocated", "resident")]
    known = [peak for peak in peaks if formatting.known(peak)]
    return f" (peak {formatting.gib(known[0])} GiB)" if known and row["status"] == "oom" else ""


def products_table(profile: Profile) -> Table | None:
    """The share of matrix products in the GPU time of each phase, and their rate."""
    whole, words = profile.cells, profile.words_of_all()
    rows_of = profile.profiled()
    phases = _phases_of(profile, rows_of, ("inference", "forward", "backward", "step"))
    rated = [phase for phase in phases if phase != "step"]
    columns = [*leading(whole), *(Column(phase, group=f"share of the phase's {words.time} (%)") for phase in phases)]
    columns += [Column(phase, group="TFLOP/s" if words is GPU else "GFLOP/s") for phase in rated]
    rows = []
    for row in rows_of:
        shares = [_product_share(profile, row, phase) for phase in phases]
        rows.append([*lead(row, whole), *shares, *(_rate(profile, row, phase, words is GPU) for phase in rated)])
    caption = f"Matrix products: their share of the {words.time}, from the forward pass to the whole step."
    notes = [
        "Below each share: ms a step. Rate: floating-point operations of the phase's matrix products, in closed form, "
        f"over their {words.time}; below it the share of the measured ceiling of the same precision."
    ]
    categories = [profile.rows("categories", row["cell"]) for row in rows_of]
    if any((own["category"] == "fused attention").any() for own in categories if len(own)):
        notes.append(
            "A fused attention is not in the share, since its kernels do more than products; the rate counts its "
            "products and its time."
        )
    if rows and whole["options"].str.contains("checkpoint=").any():
        notes.append("The operations that checkpointing runs again are not counted in the rate.")
    return table("products", caption, columns, rows, notes)


def _phases_of(profile: Profile, rows: list[dict], wanted: tuple[str, ...]) -> list[str]:
    """The wanted phases that any cell has."""
    there: set = set()
    for row in rows:
        there |= set(profile.rows("phases", row["cell"])["phase"])
    return [phase for phase in wanted if phase in there]


def _product_share(profile: Profile, row: dict, phase: str) -> Cell:
    if phase == "step" and mode(row) != "step":
        return Cell("–")
    if not profile.row("phases", row["cell"], phase=phase):
        return Cell("–")
    found = profile.row("categories", row["cell"], phase=phase, category="matmul")
    below = formatting.significant(found.get("ms_per_step"), 3)
    return share(found.get("share_of_phase_gpu_time", 0.0), below and f"{below} ms")


def _rate(profile: Profile, row: dict, phase: str, tera: bool) -> Cell:
    rate = products(profile, row, phase).get("tflops")
    if not formatting.known(rate):
        return Cell("–")
    ceiling = roof(profile, row).rate
    return number(rate if tera else 1e3 * rate, 3, f"{share_text(rate / ceiling)} %" if ceiling else "")


def launches_table(profile: Profile) -> Table | None:
    """Kernels by phase, how long they are, and what a count by thread would find."""
    whole, words = profile.cells, profile.words_of_all()
    rows_of = profile.profiled()
    phases = _phases_of(profile, rows_of, PHASES)
    by_thread = [phase for phase in ("backward", "step") if phase in phases and words is GPU]
    columns = [
        *leading(whole),
        *(Column(phase, group=words.operations) for phase in phases),
    ]
    columns += [Column(phase, group="found by thread") for phase in by_thread]
    rows = []
    for row in rows_of:
        line = lead(row, whole)
        for phase in phases:
            below = formatting.significant(kernel_mean(profile, row["cell"], phase), 3)
            line.append(count(profile.row("phases", row["cell"], phase=phase).get("kernels_per_step"), below))
        line += [_by_thread(profile.row("phases", row["cell"], phase=phase)) for phase in by_thread]
        rows.append(line)
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
    return table("launches", caption, columns, rows, notes)


def _by_thread(phase: dict) -> Cell:
    found, every = phase.get("kernels_by_thread_rule_per_step"), phase.get("kernels_per_step")
    if not (formatting.known(found) and formatting.known(every)):
        return Cell("–")
    return count(found, f"{share_text(found / every)} %" if every else "")


def tiles_table(profile: Profile) -> Table | None:
    """Tensor cores' share of the matmul time and the tile sizes; None on a CPU."""
    whole = profile.cells
    rows_of = [row for row in profile.profiled() if profile.words(row) is GPU]
    phases = _phases_of(profile, rows_of, ("inference", "forward", "backward"))
    columns = leading(whole)
    for phase in phases:
        columns += [
            Column("tensor cores", "%", group=phase),
            Column("tiles (% of matmul time)", group=phase, number=False, wrap=True),
        ]
    rows = []
    for row in rows_of:
        line = lead(row, whole)
        for phase in phases:
            line += _tiles(profile, row, phase)
        rows.append(line)
    caption = "Matrix products: tensor cores' share of their GPU time, and the tile sizes that take most of it."
    notes = [
        "A tile m×n×k, from the kernel's name: m×n values of the result are made together, k products at a time. "
        "fp32 with TF32 off runs without tensor cores (SIMT)."
    ]
    return table("tiles", caption, columns, rows, notes)


def _tiles(profile: Profile, row: dict, phase: str) -> list[Cell]:
    """[tensor cores' share, the largest tile sizes] of the matmul time of a phase."""
    rows = profile.rows("kernels", row["cell"])
    own = rows[(rows["phase"] == phase) & (rows["category"] == "matmul")] if len(rows) else rows
    total = own["total_ms"].sum() if len(own) else 0
    if not total:
        return [Cell("–"), Cell("–")]
    cores = own.loc[own["unit"].fillna("").str.contains("tensor"), "total_ms"].sum() / total
    tiles = own.groupby(own["tile"].fillna("no tile in the name"))["total_ms"].sum().sort_values(ascending=False)
    shown = [f"{_tile(tile)} ({share_text(time / total)})" for tile, time in tiles.head(3).items()]
    rest = tiles.iloc[3:].sum() / total
    shown += [f"{len(tiles) - 3} more ({share_text(rest)})"] if len(tiles) > 3 else []
    return [share(cores), Cell(", ".join(shown))]


def _tile(tile: str) -> str:
    """`64×64×8` for `64x64x8`."""
    return re.sub(r"(?<=\d)x(?=\d)", "×", shortened(tile, 30))


def bounds_table(profile: Profile) -> Table | None:
    """Memory-bound or compute-bound, category by category; None on a CPU."""
    whole = profile.cells
    rows_of = [row for row in profile.profiled() if profile.words(row) is GPU]
    categories = _other_categories(profile, rows_of)
    group = "matrix products"
    columns = [*leading(whole), Column("ridge", "FLOP/byte"), Column("at most", "FLOP/byte", group=group)]
    columns += [Column("rate", "TFLOP/s", group=group), Column("bound by", group=group, number=False)]
    others = "other categories: bound by, kernels a step × mean (µs)"
    columns += [Column(name, group=others, number=False) for name in categories]
    rows = []
    for row in rows_of:
        found, most = roof(profile, row), intensity(row)
        own = products(profile, row, "step")
        mean = 1e3 * own["ms"] / own["kernels"] if own and own["kernels"] else None
        bound = bound_of_products(found, most, mean) if mean else ""
        below = f"{share_text(own['tflops'] / found.rate)} %" if own.get("tflops") and found.rate else ""
        line = [*lead(row, whole), number(found.ridge), number(most), number(own.get("tflops"), 3, below)]
        line.append(Cell(_short(bound), _how_many(own["kernels"], mean)) if bound else Cell("–"))
        rows.append(line + [_other(profile, row, name) for name in categories])
    caption = "Memory-bound or compute-bound: each category of kernels in the whole step."
    notes = [
        "Ridge: the measured matmul rate over the measured copy rate; with fewer operations for each byte the memory "
        "sets the time. At most: operations of the matrix products over their operands and results, each moved once. "
        "Bound by: which of the two limits is the lower one at that ratio, of all products together; how near they "
        "come to it is the share of the measured ceiling, below the rate. The other categories do at most a few "
        "operations for each byte, far below the ridge: bound by memory, or, where a kernel takes less than "
        f"{LATENCY_US:.0f} µs on average, by latency, the time that any kernel takes. None of these reads a counter."
    ]
    lacking = [title(row, whole) for row in rows_of if not roof(profile, row).ridge]
    if lacking:
        notes.append(
            f"Without a measured matmul and copy rate there is no ridge: {formatting.listing(lacking, 4, '; ')}."
        )
    return table("bounds", caption, columns, rows, notes)


def _other_categories(profile: Profile, rows: list[dict]) -> list[str]:
    """The categories without matrix products, by their GPU time in all cells."""
    parts = [profile.rows("categories", row["cell"]) for row in rows]
    parts = [part[part["phase"] == "step"] for part in parts if len(part)]
    if not parts:
        return []
    total = pd.concat(parts).groupby("category")["ms_per_step"].sum().sort_values(ascending=False)
    return [name for name in total.index if name not in _NO_PRODUCTS]


def _other(profile: Profile, row: dict, category: str) -> Cell:
    found = profile.row("categories", row["cell"], phase="step", category=category)
    if not found or not found["instances_per_step"]:
        return Cell("–")
    mean = 1e3 * found["ms_per_step"] / found["instances_per_step"]
    return Cell(_short(bound_of_others(mean)), _how_many(found["instances_per_step"], mean))


def _short(bound: str) -> str:
    """`memory-bound` under a heading that says `bound by`."""
    return {"memory-bound": "memory", "compute-bound": "compute", "latency-bound": "latency"}.get(bound, bound)


def _how_many(kernels: float, mean_us: float) -> str:
    return f"{formatting.count(kernels)} × {formatting.significant(mean_us, 3)}"
