"""What the profiler costs: each phase without and with it, and its ranges against the clock."""

from functools import partial

from stepscope.report.data.profile import Profile, costs
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.order import label
from stepscope.report.studies.profile.tables import FOUR_DIGITS, built, leading


def cost_table(profile: Profile) -> Table | None:
    """Phase by phase: without and with the profiler, and the ranges against the clock of the same run."""
    clock, both = "host's clock, median", "in the profiled run, mean"
    columns = [
        *leading(profile),
        Column("phase", number=False, value="phase", show=label),
        Column("without profiler", "ms", clock, value=partial(_with_spread, "without")),
        Column("with profiler", "ms", clock, value=partial(_with_spread, "with")),
        Column("with / without", group=clock, value="ratio", show=lambda ratio: f"{ratio:.2f}"),
        Column("range", "ms", both, value="range", show=FOUR_DIGITS),
        Column("host's clock", "ms", both, value="clock", show=FOUR_DIGITS),
        Column("difference", "%", both, value="difference", show=_signed_percentage),
    ]
    caption = "What the profiler costs, phase by phase, and how well its ranges agree with the host's clock."
    notes = [
        "Without profiler: the phased steps of the timing study. ±: sample standard deviation between steps. "
        "Range: what the profiler recorded for the phase. "
        "The range and the clock measure the same steps from two sides, and should agree; their means also hold the "
        "first recorded steps, which can be slower than the median."
    ]
    return built("cost", caption, columns, costs(profile), notes)


def _with_spread(name: str, line: dict) -> TableCell:
    """A median, and below it the standard deviation between steps."""
    spread = line.get(f"{name}_std")
    below = f"± {formatting.significant(spread, 2)}" if formatting.known(spread) else ""
    return table.number(line.get(name), FOUR_DIGITS, below)


def _signed_percentage(share: float) -> str:
    sign = "+" if share > 0 else "\N{MINUS SIGN}" if share < 0 else ""
    return f"{sign}{formatting.fixed(100 * abs(share), 2)}"
