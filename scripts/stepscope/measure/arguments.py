"""Flags that the measuring programs share, and the way from flags to a spec."""

import argparse
from pathlib import Path

from stepscope.model.chosen import names
from stepscope.model.shape import ModelShape
from stepscope.plan import machine
from stepscope.plan.axes import MODES, NEUTRAL, PRECISIONS

CONFIG = Path(__file__).resolve().parents[3] / "config.yaml"


def positive(text: str) -> int:
    """A whole number of at least 1."""
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is too small; use at least 1")
    return value


def not_negative(text: str) -> int:
    """A whole number of at least 0."""
    value = _whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative; use 0 or more")
    return value


def duration(text: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is out of range; use a number of at least 0")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def parser(description: str) -> argparse.ArgumentParser:
    """A parser that shows defaults in its help."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
    )


def add_cell(flags: argparse.ArgumentParser) -> None:
    """What a cell that runs the model is: its shape, its place in the grid, its options."""
    add_shape(flags)
    group = flags.add_argument_group("cell")
    group.add_argument("--context", type=positive, default=128, help="sequence length in tokens")
    group.add_argument("--batch", type=positive, default=4, help="sequences")
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="fp32 has TF32 off; 16 bits: autocast")
    group.add_argument("--mode", choices=MODES, default="step", help="the heaviest thing to run")
    group.add_argument("--attention", choices=names("attention"), default="naive", help="implementation")
    group.add_argument("--compile", choices=["none"], default="none", help="torch.compile")
    group.add_argument("--optimizer", choices=names("optimizer"), default="own", help="AdamW's implementation")
    group.add_argument("--repeat", type=positive, default=1, help="number of this run of the same cell")


def cell_spec(study: str, given: argparse.Namespace, flags: argparse.ArgumentParser, settings: list[str]) -> dict:
    """The spec of a cell that runs the model, without options at their neutral value; `settings` are the study's keys.

    Ends the program with one line if no model can have the shape.
    """
    shape = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
    keys = [*shape, "context", "batch", "precision", *settings, "seed", "threads", "device"]
    spec = {"study": study} | {key: getattr(given, key) for key in keys}
    spec |= {key: getattr(given, key) for key in NEUTRAL if getattr(given, key, NEUTRAL[key]) != NEUTRAL[key]}
    try:
        ModelShape(*(spec[key] for key in shape))
    except ValueError as error:
        flags.error(str(error))
    return spec


def add_running(flags: argparse.ArgumentParser, fixed_steps: bool = False) -> None:
    """How to run: device, threads, series (of a fixed number of steps, or until it is precise), limits, output."""
    group = flags.add_argument_group("measuring")
    group.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto", help="what to measure on")
    group.add_argument(
        "--threads", type=positive, default=None, help="processor threads (1 on a GPU, else all usable cores)"
    )
    group.add_argument("--warmup", type=not_negative, default=5, help="steps before a measured series")
    if fixed_steps:
        group.add_argument("--steps", type=positive, default=5, help="measured steps")
    else:
        group.add_argument("--steps", type=positive, default=10, help="fewest measured steps of a series")
        group.add_argument(
            "--max-steps", type=positive, default=None, help="most measured steps of a series (as many as --steps)"
        )
        group.add_argument(
            "--max-seconds", type=duration, default=4.0, help="seconds after which a series of at least --steps ends"
        )
    group.add_argument("--seed", type=not_negative, default=0, help="seed of weights and random inputs")
    group.add_argument("--time-limit", type=duration, default=60.0, help="minutes after which to give up")
    group.add_argument(
        "--out",
        type=Path,
        default=None,
        metavar="DIR",
        help="write record.json and samples.csv there (else only print)",
    )


def resolve_running(arguments: argparse.Namespace, flags: argparse.ArgumentParser) -> None:
    """Fill in what depends on the machine; ends the program with one line if the device is not to be had."""
    try:
        arguments.device = machine.choose_device(arguments.device)
    except machine.MachineError as error:
        flags.error(str(error))
    if arguments.threads is None:
        arguments.threads = 1 if arguments.device == "cuda" else machine.usable_cores()
    if not hasattr(arguments, "max_steps"):
        return
    if arguments.max_steps is None:
        arguments.max_steps = arguments.steps
    if arguments.max_steps < arguments.steps:
        flags.error(f"--max-steps {arguments.max_steps} is less than --steps {arguments.steps}")


def add_shape(flags: argparse.ArgumentParser) -> None:
    """The model's shape: a size from config.yaml by name, or its numbers."""
    group = flags.add_argument_group("model")
    group.add_argument("--size", help="name of a size in config.yaml, instead of the four numbers below")
    group.add_argument("--d-model", type=positive, help="width of the residual stream")
    group.add_argument("--d-ff", type=positive, help="width of the feed-forward layer")
    group.add_argument("--num-layers", type=positive, help="number of blocks")
    group.add_argument("--num-heads", type=positive, help="attention heads of a block")
    group.add_argument("--vocab-size", type=positive, default=10_000, help="number of different tokens")


def resolve_shape(arguments: argparse.Namespace, flags: argparse.ArgumentParser) -> None:
    """Replace --size by its numbers; ends the program with one line if something is missing or unknown."""
    names = ("d_model", "d_ff", "num_layers", "num_heads")
    given = [name for name in names if getattr(arguments, name) is not None]
    if arguments.size is None:
        missing = [f"--{name.replace('_', '-')}" for name in names if name not in given]
        if missing:
            flags.error(f"give --size, or also {', '.join(missing)}")
        return
    if given:
        flags.error(f"give --size or --{given[0].replace('_', '-')}, not both")
    import yaml

    sizes = yaml.safe_load(CONFIG.read_text())["sizes"]
    if arguments.size not in sizes:
        flags.error(f"there is no size {arguments.size!r} in {CONFIG.name}; choose from {', '.join(map(str, sizes))}")
    for name in names:
        setattr(arguments, name, sizes[arguments.size][name])
