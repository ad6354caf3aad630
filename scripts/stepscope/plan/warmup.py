"""The warm-up study's cells: the same steps after more and more warm-up, and one that looks into the first step."""

import dataclasses

from stepscope.plan import training
from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, without_duplicates

PROGRAM = "time_warmup.py"
AXES = tuple(axis for axis in training.AXES if axis != "mode")  # it is always the whole step


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the warm-up grid for a device, in the configuration's order, each point's profiled one last.

    Raises ConfigError for a grid that is wrong.
    """
    study = config["warmup"]
    if any("mode" in entry for entry in study["grid"][device]):
        raise ConfigError(f"config key warmup.grid.{device}: every cell runs whole steps; remove mode")
    ways = [{"warmup": count, "steps": study["steps"]} for count in study["warmup"][device]]
    if study["profile_first"]:
        ways.append({"warmup": max(study["warmup"][device]), "steps": study["steps"], "first": "profiled"})
    named = [
        [
            dataclasses.replace(cell, name=f"{cell.name}/{_way(settings)}")
            for cell in training.training_cells("warmup", PROGRAM, config, device, hardware, threads, settings, AXES)
        ]
        for settings in ways
    ]
    return without_duplicates("warmup", [cell for point in zip(*named, strict=True) for cell in point])


def _way(settings: dict) -> str:
    return "first=profiled" if "first" in settings else f"warmup={settings['warmup']}"
