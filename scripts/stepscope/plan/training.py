"""Cells that run the model: one for each point of size x context x precision and the options."""

from stepscope.axes import NEUTRAL
from stepscope.model.chosen import chosen_of
from stepscope.model.shape import ModelShape
from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, options_path, points, without_duplicates

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


def training_cells(
    study: str,
    program: str,
    config: dict,
    device: str,
    hardware: str,
    threads: int,
    settings: dict,
    axes: tuple[str, ...] = AXES,
) -> list[Cell]:
    """The cells of the study's grid for a device, in the configuration's order.

    settings: what the study adds to each spec, such as how many steps. axes: those that its entries may name.
    Raises ConfigError for a grid that is wrong.
    """
    sizes = shapes(config)
    result = []
    for point in points(study, config[study]["grid"][device], axes):
        missing = [axis for axis in ("size", "context", "precision") if axis not in point]
        if missing:
            raise ConfigError(f"config key {study}.grid.{device}: an entry has no {missing[0]}; add it")
        size, context, precision = (point.pop(axis) for axis in ("size", "context", "precision"))
        if size not in sizes:
            raise ConfigError(
                f"config key {study}.grid.{device}: there is no size {size!r}; add it under sizes or choose from "
                + ", ".join(sizes)
            )
        neutral = {**NEUTRAL, "batch": config["model"]["batch"]}
        options = {key: value for key, value in point.items() if value != neutral[key]}
        spec = {
            "study": study,
            **{name: config["sizes"][size][name] for name in SHAPE},
            "vocab_size": config["model"]["vocab_size"],
            "context": context,
            "batch": config["model"]["batch"],
            "precision": precision,
            **settings,
            "seed": config["model"]["seed"],
            "threads": threads,
            "device": device,
            **options,
        }
        name = f"{hardware}/{study}/{size}/ctx{context}/{precision}{options_path(options)}"
        result.append(Cell(name=name, study=study, size=size, program=program, spec=spec, chosen=chosen_of(spec)))
    return without_duplicates(study, result)


def figure_name(cell: str) -> str:
    """Name of a cell's figure: `profile_cell_gpu_small_ctx256_bf16_mode-x` for `gpu/profile/small/ctx256/bf16/mode=x`.

    It names a file and a rule's output, so it holds neither `/` nor `=`.
    """
    hardware, study, *place = cell.split("/")
    return "_".join([f"{study}_cell", hardware, *place]).replace("=", "-")
