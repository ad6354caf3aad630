"""The table of studies: what measures the cells of each, where they stand, and what is made of them.

The workflow's rules are made from it, and the report has its sections in this order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from stepscope.axes import IMPLEMENTATIONS
from stepscope.config import ladder, operations, profilers, training
from stepscope.config.grid import Cell, Target

POINT = "{size}/ctx{context}/{precision}{options}"
AT_A_POINT = "{wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the report with its figures: that of a study, or one that compares the tables of several.

    `drawing` announces the job that draws the figures, if there are any; `category` groups them in
    `snakemake --report`. They are made of the tables of the studies in `reads`, and of a study's own.
    """

    name: str
    category: str
    drawing: str
    figures: tuple[str, ...]
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What takes a cell's raw output apart, once it is measured: a folder `analysis` beside the record.

    `program` names the rule, and its file in scripts/. `of` is the part of the cell's folder that it reads.
    """

    program: str
    of: str
    announced: str


@dataclass(frozen=True, kw_only=True)
class Study(Section):
    """One kind of measurement.

    `program` names the rule that measures a cell, and its file in scripts/. `expand` gives the cells. `place` is the
    pattern of a cell's folder below results/HARDWARE/NAME, `constraints` are of the wildcards in it that no other
    study has. `announced` is what a cell's job says. Cells of a higher `priority` are measured before the others.
    `tools(device)` are the programs that a cell uses: it goes
    stale when one appears or changes. With `uses_control` the intervals of its table hold what the timing study's cells
    differ by that were measured twice. With `draws_cells` each cell has a figure.
    """

    program: str
    expand: Callable[[Target], list[Cell]]
    place: str = POINT
    constraints: dict[str, str] = field(default_factory=dict)
    announced: str
    priority: int = 0
    analysis: Analysis | None = None
    tools: Callable[[str], tuple[str, ...]] = lambda device: ()
    uses_control: bool = False
    draws_cells: bool = False

    @property
    def folder(self) -> str:
        """Pattern of a cell's folder."""
        return f"results/{{hardware}}/{self.name}/{self.place}"

    def cells(self, config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
        """The cells for a machine, in the configuration's order. Raises ConfigError for a grid that is wrong."""
        return self.expand(Target(self.name, f"{self.program}.py", config, device, hardware, threads))


TIMING = Study(
    name="timing",
    program="time_step",
    expand=training.timing_cells,
    announced=f"Timing {AT_A_POINT}",
    priority=1,  # before the short cells, so that several GPUs end together
    category="Timing",
    drawing="Drawing the timing figures",
    figures=("timing_by_size", "timing_by_context", "timing_phases", "timing_samples", "timing_distribution"),
)

CEILINGS = Study(
    name="ceilings",
    program="measure_ceilings",
    uses_control=True,
    expand=operations.ceilings_cells,
    place="{operation}/{precision}",
    constraints={"operation": "matmul|copy"},
    announced="Measuring the ceiling of {wildcards.operation} in {wildcards.precision}",
    category="Ceilings",
    drawing="Drawing the ceilings figure",
    figures=("ceilings",),
)

PROFILE = Study(
    name="profile",
    program="profile_step",
    expand=training.profile_cells,
    announced=f"Profiling {AT_A_POINT}",
    tools=profilers.tools,
    analysis=Analysis(program="analyze_profile", of="trace", announced=f"Analysing the trace of {AT_A_POINT}"),
    category="Profile",
    drawing="Drawing the profile figures",
    figures=("profile_matmul_share", "profile_launches", "profile_bound", "profile_categories"),
    draws_cells=True,
    reads=("timing",),
)

MEMORY = Study(
    name="memory",
    program="snapshot_memory",
    expand=training.memory_cells,
    announced=f"Recording the memory of {AT_A_POINT}",
    analysis=Analysis(program="analyze_memory", of="snapshot", announced=f"Analysing the snapshot of {AT_A_POINT}"),
    category="Memory",
    drawing="Drawing the memory figures",
    figures=("memory_peaks", "memory_peak_categories", "memory_predicted"),
    draws_cells=True,
    reads=("timing",),
)

ATTENTION = Study(
    name="attention",
    program="time_attention",
    uses_control=True,
    expand=operations.attention_cells,
    place="{implementation}/d{d_head}/{precision}{options}",
    constraints={"implementation": "|".join(IMPLEMENTATIONS), "d_head": r"\d+"},
    announced=(
        "Timing attention: {wildcards.implementation}, d = {wildcards.d_head}, {wildcards.precision}{wildcards.options}"
    ),
    priority=1,
    category="Attention",
    drawing="Drawing the attention figures",
    figures=("attention_time", "attention_memory", "attention_rates", "attention_head_dimension"),
    reads=("ceilings",),
)

PRECISION = Study(
    name="precision",
    program="probe_precision",
    expand=operations.precision_cells,
    place="{probe}",
    constraints={"probe": "|".join(operations.PROBES)},
    announced="Probing precision: {wildcards.probe}",
    category="Precision",
    drawing="Drawing the precision figures",
    figures=("precision_accumulation", "precision_forced", "precision_speedup"),
    reads=("timing",),
)

WARMUP = Study(
    name="warmup",
    program="time_warmup",
    uses_control=True,
    expand=training.warmup_cells,
    announced=f"Timing the first steps of {AT_A_POINT}",
    category="Warm-up",
    drawing="Drawing the warm-up figures",
    figures=("warmup_steps", "warmup_means", "warmup_first_step"),
)

LADDER = Study(
    name="ladder",
    program="time_ladder",
    uses_control=True,
    expand=ladder.ladder_cells,
    announced=f"Timing a rung of the ladder: {AT_A_POINT}",
    priority=1,
    category="Ladder",
    drawing="Drawing the ladder figures",
    figures=("ladder_steps", "ladder_rates", "ladder_checkpoint"),
)

PAGE_ONE = Section(
    name="page_one",
    category="Page one",
    drawing="Drawing the figure of page one",
    figures=("page_one",),
    reads=("profile", "timing"),
)

ROOFLINE = Section(
    name="roofline",
    category="Roofline",
    drawing="Drawing the roofline figures",
    figures=("roofline", "roofline_attention"),
    reads=("timing", "ceilings", "attention"),
)

HARDWARE = Section(
    name="hardware",
    category="Machines",
    drawing="Drawing the figures of machines side by side",
    figures=("hardware_speedup",),
    reads=("timing", "ceilings"),
)

MODELS = Section(name="models", category="Models", drawing="", figures=())

PUBLISHED = Section(name="published", category="Published figures", drawing="", figures=())

STUDIES = (TIMING, CEILINGS, PROFILE, MEMORY, ATTENTION, PRECISION, WARMUP, LADDER)
COMPARISONS = (PAGE_ONE, MODELS, ROOFLINE, HARDWARE, PUBLISHED)  # the first opens the report
DRAWN = tuple(section for section in (*STUDIES, *COMPARISONS) if section.figures)  # those with a job that draws
# The report's chapters, each a module in stepscope/report/chapters/.
CHAPTERS = (
    "setup",
    "time",
    "kernels",
    "memory",
    "attention",
    "precision",
    "changes",
    "warmup",
    "published",
    "machines",
)
