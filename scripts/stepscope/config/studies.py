"""The table of studies: a row says what a study is, and everything that lists studies reads it."""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.config import ladder_cells, model_cells, operation_cells, profilers
from stepscope.config.grid import Cell, Target


@dataclass(frozen=True, kw_only=True)
class Study:
    """One kind of measurement.

    name: its key in the configuration, and the folder of its cells.
    program: the rule that measures a cell, and its file in scripts/.
    axes: what an entry of its grid may name. A study with `size` among them runs the model.
    expand: from the configuration to its cells.
    samples_are_series: whether its samples are times, which become series, and by which two
        versions of the code can be compared; else a module of results/ makes its tables, of records
        or of analyses.
    start_seconds: what a process takes on a GPU besides its steps; a rough figure, for the plan.
    variant_seconds: the same, of each variant and length.
    analysis: the rule and the program that take a cell's raw output apart, where it has any.
    tools: the programs that a cell uses on a device. It is stale when one appears or changes.
    """

    name: str
    program: str
    axes: tuple[str, ...]
    expand: Callable[[Target], list[Cell]]
    samples_are_series: bool = False
    start_seconds: float
    variant_seconds: float = 0
    analysis: str | None = None
    tools: Callable[[str], tuple[str, ...]] = lambda device: ()

    @property
    def file(self) -> str:
        """The name of its program's file."""
        return f"{self.program}.py"

    def cells(
        self, config: dict, device: str, hardware: str, threads: int, gpus: int | None = None
    ) -> list[Cell]:
        """The cells for a machine, in the configuration's order. Raises ConfigError for a grid that
        is wrong."""
        target = Target(
            study=self.name,
            program=self.file,
            axes=self.axes,
            config=config,
            device=device,
            hardware=hardware,
            threads=threads,
            gpus=gpus,
        )
        return self.expand(target)


TIMING = Study(
    name="timing",
    program="time_step",
    axes=model_cells.AXES,
    expand=model_cells.timing_cells,
    samples_are_series=True,
    start_seconds=3,
)
LADDER = Study(
    name="ladder",
    program="time_ladder",
    axes=("size", "context", "batch"),
    expand=ladder_cells.ladder_cells,
    samples_are_series=True,
    start_seconds=4,
    variant_seconds=2.5,
)
ATTENTION = Study(
    name="attention",
    program="time_attention",
    axes=operation_cells.ATTENTION_AXES,
    expand=operation_cells.attention_cells,
    samples_are_series=True,
    start_seconds=4,
    variant_seconds=0.5,
)
CEILINGS = Study(
    name="ceilings",
    program="measure_ceilings",
    axes=("precision",),
    expand=operation_cells.ceilings_cells,
    samples_are_series=True,
    start_seconds=1.5,
)
PROFILE = Study(
    name="profile",
    program="profile_step",
    axes=(*model_cells.AXES, "detail", "start"),
    expand=model_cells.profile_cells,
    start_seconds=10,
    analysis="analyze_profile",
    tools=profilers.tools,
)
MEMORY = Study(
    name="memory",
    program="snapshot_memory",
    axes=(*model_cells.AXES, "start"),
    expand=model_cells.memory_cells,
    start_seconds=4.5,
    analysis="analyze_memory",
)
PRECISION = Study(
    name="precision",
    program="probe_precision",
    axes=("probe",),
    expand=operation_cells.precision_cells,
    start_seconds=2,
)
LEARNING = Study(
    name="learning",
    program="train_variants",
    axes=model_cells.AXES,
    expand=model_cells.learning_cells,
    start_seconds=4,
    variant_seconds=5,
)
PARALLEL = Study(
    name="parallel",
    program="time_parallel",
    axes=(*model_cells.AXES, "devices"),
    expand=model_cells.parallel_cells,
    samples_are_series=True,
    start_seconds=15,
    variant_seconds=12,
)

STUDIES = (
    TIMING,
    LADDER,
    PARALLEL,
    ATTENTION,
    CEILINGS,
    PROFILE,
    MEMORY,
    PRECISION,
    LEARNING,
)
BY_NAME = {study.name: study for study in STUDIES}
OF_MODEL = tuple(study.name for study in STUDIES if "size" in study.axes)  # that run the model
