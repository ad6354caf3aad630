"""Flags of the programs that run the model: its shape, its place in the grid, its options."""

import argparse
from pathlib import Path

from stepscope.measure import arguments
from stepscope.model.chosen import names
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import MODES, NEUTRAL, PRECISIONS

GPU_ONLY = ("flex", "triton")  # attention that cannot be trained on a CPU
CONFIG = Path(__file__).resolve().parents[3] / "config.yaml"


def add_cell(flags: argparse.ArgumentParser, mode: bool = True, compiles: tuple[str, ...] = ("none",)) -> None:
    """What a cell that runs the model is: its shape, its place in the grid, its options.

    mode: whether the program can be told how far to go. compiles: the ways to compile that it knows.
    """
    add_shape(flags)
    group = flags.add_argument_group("cell")
    group.add_argument("--context", type=arguments.positive, default=128, help="sequence length in tokens")
    group.add_argument("--batch", type=arguments.positive, default=4, help="sequences")
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="fp32 has TF32 off; 16 bits: autocast")
    if mode:
        group.add_argument("--mode", choices=MODES, default="step", help="the heaviest thing to run")
    group.add_argument("--attention", choices=names("attention"), default="naive", help="implementation")
    group.add_argument(
        "--compile",
        choices=compiles,
        default="none",
        help="torch.compile of each block or of the whole model; graphs: of blocks, replayed from CUDA graphs",
    )
    group.add_argument("--optimizer", choices=names("optimizer"), default="own", help="AdamW's implementation")
    group.add_argument("--repeat", type=arguments.positive, default=1, help="number of this run of the same cell")


def cell_spec(
    study: str,
    given: argparse.Namespace,
    flags: argparse.ArgumentParser,
    settings: list[str],
    refuse: bool = True,
) -> dict:
    """The spec of a cell that runs the model, without options at their neutral value; `settings` are the study's keys.

    Ends the program with one line if no model can have the shape, or, with `refuse`, if the device cannot train with
    the attention; a program that records what is unsupported goes without.
    """
    if refuse and given.device == "cpu" and getattr(given, "attention", None) in GPU_ONLY:
        flags.error(f"--attention {given.attention} trains on a GPU only; on a CPU use naive or sdpa")
    shape = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
    keys = [*shape, "context", "batch", "precision", *settings, "seed", "threads", "device"]
    spec = {"study": study} | {key: getattr(given, key) for key in keys}
    spec |= {key: getattr(given, key) for key in NEUTRAL if getattr(given, key, NEUTRAL[key]) != NEUTRAL[key]}
    try:
        ModelShape(*(spec[key] for key in shape))
    except ValueError as error:
        flags.error(str(error))
    return spec


def add_shape(flags: argparse.ArgumentParser) -> None:
    """The model's shape: a size from config.yaml by name, or its numbers."""
    group = flags.add_argument_group("model")
    group.add_argument("--size", help="name of a size in config.yaml, instead of the four numbers below")
    group.add_argument("--d-model", type=arguments.positive, help="width of the residual stream")
    group.add_argument("--d-ff", type=arguments.positive, help="width of the feed-forward layer")
    group.add_argument("--num-layers", type=arguments.positive, help="number of blocks")
    group.add_argument("--num-heads", type=arguments.positive, help="attention heads of a block")
    group.add_argument("--vocab-size", type=arguments.positive, default=10_000, help="number of different tokens")


def resolve_shape(given: argparse.Namespace, flags: argparse.ArgumentParser) -> None:
    """Replace --size by its numbers; ends the program with one line if something is missing or unknown."""
    keys = ("d_model", "d_ff", "num_layers", "num_heads")
    numbers = [name for name in keys if getattr(given, name) is not None]
    if given.size is None:
        missing = [f"--{name.replace('_', '-')}" for name in keys if name not in numbers]
        if missing:
            flags.error(f"give --size, or also {', '.join(missing)}")
        return
    if numbers:
        flags.error(f"give --size or --{numbers[0].replace('_', '-')}, not both")
    import yaml

    sizes = yaml.safe_load(CONFIG.read_text())["sizes"]
    if given.size not in sizes:
        flags.error(f"there is no size {given.size!r} in {CONFIG.name}; choose from {', '.join(map(str, sizes))}")
    for name in keys:
        setattr(given, name, sizes[given.size][name])
