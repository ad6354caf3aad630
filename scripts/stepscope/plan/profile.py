"""The profile study's cells."""

from stepscope.plan.grid import Cell
from stepscope.plan.profilers import NSYS_NEUTRAL
from stepscope.plan.training import training_cells

PROGRAM = "profile_step.py"


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the profile grid for a device, in the configuration's order."""
    study = config["profile"]
    settings = {
        "warmup": study["warmup"][device],
        "steps": study["steps"][device],
        "profiler": study["profiler"],
        **nsys_options(study["nsys"]),
    }
    return training_cells("profile", PROGRAM, config, device, hardware, threads, settings)


def nsys_options(chosen: dict) -> dict:
    """The configuration's choices for nsys as parts of a spec, without those that are at their neutral value."""
    changed = {key: value for key, value in chosen.items() if value != NSYS_NEUTRAL[key]}
    spec = {f"nsys_{key}": value for key, value in changed.items()}
    if "nsys_trace" in spec:
        spec["nsys_trace"] = ",".join(spec["nsys_trace"])
    if "nsys_cuda_memory_usage" in spec:
        spec["nsys_cuda_memory_usage"] = "true"
    return spec
