"""The timing study's cells."""

from stepscope.model.chosen import CHOSEN_BY_NAME
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import NEUTRAL
from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, options_path, points, stopping_rule, without_duplicates

PROGRAM = "time_step.py"
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads")  # in this order in a command, whatever the configuration's
AXES = ("size", "context", "precision", "batch", "mode", "attention", "optimizer", "repeat")


def shapes(config: dict) -> dict[str, ModelShape]:
    """The configuration's sizes by name. Raises ConfigError for a shape that no model can have."""
    result = {}
    for name, shape in config["sizes"].items():
        try:
            result[name] = ModelShape(**shape, vocab_size=config["model"]["vocab_size"])
        except ValueError as error:
            raise ConfigError(f"config key sizes.{name}: {error}") from None
    return result


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the timing grid for a device, in the configuration's order."""
    study, sizes = config["timing"], shapes(config)
    stopping = stopping_rule(study["steps"][device])
    result = []
    for point in points("timing", study["grid"][device], AXES):
        missing = [axis for axis in ("size", "context", "precision") if axis not in point]
        if missing:
            raise ConfigError(f"config key timing.grid.{device}: an entry has no {missing[0]}; add it")
        size, context, precision = (point.pop(axis) for axis in ("size", "context", "precision"))
        if size not in sizes:
            raise ConfigError(
                f"config key timing.grid.{device}: there is no size {size!r}; add it under sizes or choose from "
                + ", ".join(sizes)
            )
        neutral = {**NEUTRAL, "batch": config["model"]["batch"]}
        options = {key: value for key, value in point.items() if value != neutral[key]}
        spec = {
            "study": "timing",
            **{name: config["sizes"][size][name] for name in SHAPE},
            "vocab_size": config["model"]["vocab_size"],
            "context": context,
            "batch": config["model"]["batch"],
            "precision": precision,
            "warmup": study["warmup"][device],
            **stopping,
            "seed": config["model"]["seed"],
            "threads": threads,
            "device": device,
            **options,
        }
        name = f"{hardware}/timing/{size}/ctx{context}/{precision}{options_path(options)}"
        chosen = {option: spec.get(option, NEUTRAL[option]) for option in CHOSEN_BY_NAME}
        result.append(Cell(name=name, study="timing", size=size, program=PROGRAM, spec=spec, chosen=chosen))
    return without_duplicates("timing", result)
