"""The table of studies: a row says what a study is, and everything that lists studies reads it."""

from . import ladder_cells, model_cells, operation_cells, profilers
from .grid import Study

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
