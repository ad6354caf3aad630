"""The table of studies: what measures the cells of each, and what takes their raw output apart."""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.config import ladder_cells, model_cells, operation_cells, profilers
from stepscope.config.grid import Cell, Target


@dataclass(frozen=True, kw_only=True)
class Study:
    """One kind of measurement.

    `program` names the rule that measures a cell, and its file in scripts/. `expand` gives the
    cells. `analysis` names the rule and the program that take a cell's raw output apart, where it
    has any. `tools(device)` are the programs that a cell uses: it goes stale when one appears or
    changes.
    """

    name: str
    program: str
    expand: Callable[[Target], list[Cell]]
    analysis: str | None = None
    tools: Callable[[str], tuple[str, ...]] = lambda device: ()

    def cells(self, config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
        """The cells for a machine, in the configuration's order. Raises ConfigError for a grid that
        is wrong."""
        return self.expand(
            Target(self.name, f"{self.program}.py", config, device, hardware, threads)
        )


TIMING = Study(name="timing", program="time_step", expand=model_cells.timing_cells)
LADDER = Study(name="ladder", program="time_ladder", expand=ladder_cells.ladder_cells)
ATTENTION = Study(
    name="attention", program="time_attention", expand=operation_cells.attention_cells
)
CEILINGS = Study(name="ceilings", program="measure_ceilings", expand=operation_cells.ceilings_cells)
PROFILE = Study(
    name="profile",
    program="profile_step",
    expand=model_cells.profile_cells,
    analysis="analyze_profile",
    tools=profilers.tools,
)
MEMORY = Study(
    name="memory",
    program="snapshot_memory",
    expand=model_cells.memory_cells,
    analysis="analyze_memory",
)
PRECISION = Study(
    name="precision", program="probe_precision", expand=operation_cells.precision_cells
)

STUDIES = (TIMING, LADDER, ATTENTION, CEILINGS, PROFILE, MEMORY, PRECISION)
