"""The memory study's cells."""

from stepscope.plan.grid import Cell
from stepscope.plan.training import training_cells

PROGRAM = "snapshot_memory.py"


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the memory grid for a device, in the configuration's order."""
    study = config["memory"]
    settings = {"warmup": study["warmup"][device], "steps": study["steps"][device]}
    return training_cells("memory", PROGRAM, config, device, hardware, threads, settings)
