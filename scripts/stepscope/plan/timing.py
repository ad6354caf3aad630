"""The timing study's cells."""

from stepscope.plan.grid import Cell, stopping_rule
from stepscope.plan.training import training_cells

PROGRAM = "time_step.py"


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the timing grid for a device, in the configuration's order."""
    study = config["timing"]
    settings = {"warmup": study["warmup"][device], **stopping_rule(study["steps"][device])}
    return training_cells("timing", PROGRAM, config, device, hardware, threads, settings)
