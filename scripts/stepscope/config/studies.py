"""The table of studies: what measures the cells of each, and what is made of them.

The report has its sections in this order.
"""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.config import ladder, operations, profilers, training
from stepscope.config.grid import Cell, Target


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the report with its figures: that of a study, or one that compares the tables of several.

    The figures are made of the tables of the studies in `reads`, and of a study's own.
    """

    name: str
    figures: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Study(Section):
    """One kind of measurement.

    `program` names the rule that measures a cell, and its file in scripts/. `expand` gives the cells. `analysis` names
    the rule and the program that take a cell's raw output apart, where it has any. `tools(device)` are the programs
    that a cell uses: it goes stale when one appears or changes. With `uses_control` the intervals of its table hold
    what the timing study's cells differ by that were measured twice.
    """

    program: str
    expand: Callable[[Target], list[Cell]]
    analysis: str | None = None
    tools: Callable[[str], tuple[str, ...]] = lambda device: ()
    uses_control: bool = False

    def cells(self, config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
        """The cells for a machine, in the configuration's order. Raises ConfigError for a grid that is wrong."""
        return self.expand(Target(self.name, f"{self.program}.py", config, device, hardware, threads))


TIMING = Study(
    name="timing",
    program="time_step",
    expand=training.timing_cells,
    figures=("timing_by_size", "timing_by_context", "timing_phases", "timing_samples", "timing_distribution"),
)
CEILINGS = Study(
    name="ceilings",
    program="measure_ceilings",
    expand=operations.ceilings_cells,
    uses_control=True,
    figures=("ceilings",),
)
PROFILE = Study(
    name="profile",
    program="profile_step",
    expand=training.profile_cells,
    analysis="analyze_profile",
    tools=profilers.tools,
    figures=("profile_matmul_share", "profile_launches", "profile_bound", "profile_categories"),
    reads=("timing",),
)
MEMORY = Study(
    name="memory",
    program="snapshot_memory",
    expand=training.memory_cells,
    analysis="analyze_memory",
    figures=("memory_peaks", "memory_peak_categories", "memory_predicted"),
    reads=("timing",),
)
ATTENTION = Study(
    name="attention",
    program="time_attention",
    expand=operations.attention_cells,
    uses_control=True,
    figures=("attention_time", "attention_memory", "attention_rates", "attention_head_dimension"),
    reads=("ceilings",),
)
PRECISION = Study(
    name="precision",
    program="probe_precision",
    expand=operations.precision_cells,
    figures=("precision_accumulation", "precision_forced", "precision_speedup"),
    reads=("timing",),
)
WARMUP = Study(
    name="warmup",
    program="time_warmup",
    expand=training.warmup_cells,
    uses_control=True,
    figures=("warmup_steps", "warmup_means", "warmup_first_step"),
)
LADDER = Study(
    name="ladder",
    program="time_ladder",
    expand=ladder.ladder_cells,
    uses_control=True,
    figures=("ladder_steps", "ladder_rates", "ladder_checkpoint"),
)
PAGE_ONE = Section(name="page_one", figures=("page_one",), reads=("profile", "timing"))
ROOFLINE = Section(
    name="roofline", figures=("roofline", "roofline_attention"), reads=("timing", "ceilings", "attention")
)
HARDWARE = Section(name="hardware", figures=("hardware_speedup",), reads=("timing", "ceilings"))
MODELS = Section(name="models")
PUBLISHED = Section(name="published")

STUDIES = (TIMING, CEILINGS, PROFILE, MEMORY, ATTENTION, PRECISION, WARMUP, LADDER)
COMPARISONS = (PAGE_ONE, MODELS, ROOFLINE, HARDWARE, PUBLISHED)  # the first opens the report
DRAWN = tuple(section for section in (*STUDIES, *COMPARISONS) if section.figures)  # those with figures
# The report's chapters, each a module in stepscope/report/chapters/.
CHAPTERS = (
    *("setup", "time", "kernels", "memory", "attention", "precision", "changes", "warmup", "published", "machines"),
)
