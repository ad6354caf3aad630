"""The chapter's tables: the kernels that take most, and what launches cost each step."""

from stepscope.report.chapters.kernels.launching import every_launches
from stepscope.report.chapters.kernels.profiler import profiled_over_plain
from stepscope.report.chapters.kernels.words import place
from stepscope.report.data.bound import GPU_BOUND, LAUNCH_BOUND, products
from stepscope.report.data.kernels import Launches, at_place_of, whole_steps
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.formatting import count, mean_count, percent, percentage
from stepscope.report.kit.order import precision_rank
from stepscope.report.studies.page_one.tables import time_cell

_PHASES = ("forward", "backward", "optimizer", "step")
_MOST_NAME = 48
_PROFILED = "with the profiler"


def kernels_table(machine: Machine, own: dict) -> Table | None:
    """The kernel that takes most of each phase, in each precision at the chapter's place."""
    there = at_place_of(whole_steps(machine.profile, machine.hardware), own)
    rows = [
        {**kernel, "precision": precision}
        for precision in sorted(there, key=precision_rank)
        for phase in _PHASES
        if (kernel := machine.profile.top_kernel(there[precision]["cell"], phase))
    ]
    words = machine.profile.words(own)
    columns = [
        Column("precision", number=False, value="precision"),
        Column("phase", number=False, value="phase"),
        Column(words.operation, number=False, wrap=True, value=lambda row: table.named(row["name"], _MOST_NAME)),
        Column("kind", number=False, value="category"),
        Column("tile", number=False, value="tile", optional=True),
        Column("runs on", number=False, value="unit", optional=True),
        Column("launches" if machine.reference else "calls", "a step", value="instances_per_step", show=mean_count),
        Column("a block", value="per_layer", show=mean_count, optional=True),
        Column("mean", "µs", value="mean_us"),
        Column(f"of the phase's {words.time}", "%", value="share_of_phase_gpu_time", show=percentage),
    ]
    caption = (
        f"The {words.operation} that takes most of each phase: {place(own)}, batch {own['batch']:,.0f}; "
        f"{machine.hardware}."
    )
    return table.build("chapter-kernels", caption, columns, rows[:MOST_ROWS])


def launches_table(machine: Machine) -> Table | None:
    """What each step launches, and what limits it; the smallest steps first."""
    if not machine.reference:
        return None
    precision = machine.reference.precision
    found = every_launches(machine, precision)
    found.sort(key=lambda each: (each.row["context"], work(each.row.get("parameters"), 1.0)))

    def of(name: str):
        return lambda each: each.row[name]

    columns = [
        Column("size", number=False, value=of("size")),
        Column("context", "tokens", value=of("context"), show=count),
        Column("kernels", "a step", value=lambda each: each.kernels, show=mean_count),
        Column("a kernel runs", "µs", value=lambda each: each.kernel_us),
        Column("step", "ms", value=lambda each: time_cell(machine.profile.unprofiled(each.row))),
        Column("step by kernels", "µs", value=lambda each: each.step_us),
        Column("GPU busy", "% of the step", value=lambda each: each.occupation.share, show=percentage),
        Column("limited by", number=False, value=_limit),
        Column("products", "TFLOP/s", value=lambda each: products(machine.profile, each.row, "step").get("tflops")),
        Column("step", "×", group=_PROFILED, value=lambda each: profiled_over_plain(machine, each.row)),
        Column("forward", "ms", group=_PROFILED, value=lambda each: _mean(each.row)),
        Column(
            "forward without", "ms", group=_PROFILED, value=lambda each: _mean(machine.profile.unprofiled(each.row))
        ),
    ]
    more = len(found) - MOST_ROWS
    caption = (
        f"Launches limit a step of which the GPU is busy for less than {percent(LAUNCH_BOUND)}, the GPU one of "
        f"{percent(GPU_BOUND)} or more. Forward: mean ± standard deviation between steps. All in "
        f"{precision}, batch {machine.reference.row['batch']:,.0f}; {machine.hardware}."
    )
    notes = [f"{more:,} more stand in the data."] if more > 0 else []
    return table.build("chapter-launches", caption, columns, found[:MOST_ROWS], notes)


def _mean(row: dict) -> TableCell:
    """Mean of the forward pass, and below it the standard deviation between steps."""
    spread = row.get("forward_std_ms")
    below = f"± {formatting.significant(spread, 2)}" if formatting.known(spread) else ""
    return table.number(row.get("forward_mean_ms"), below=below)


def _limit(each: Launches) -> str:
    return {"launch-bound": "launches", "GPU-bound": "the GPU"}.get(each.occupation.verdict, "both")
