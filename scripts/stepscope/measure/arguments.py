"""Flags that the measuring programs share, and the way from flags to a spec."""

import argparse
from pathlib import Path

from stepscope.machine import identity
from stepscope.measure.cell import Settings


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


def add_running(
    flags: argparse.ArgumentParser, fixed_steps: bool = False, steps: bool = True, processes: bool = False
) -> None:
    """How to run: device, threads, series (of a fixed number of steps, or until it is precise), limits, output.

    steps: whether there are series at all. processes: whether several processes measure.
    """
    group = flags.add_argument_group("measuring")
    group.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto", help="what to measure on")
    group.add_argument(
        "--threads", type=positive, default=None, help="processor threads (1 on a GPU, else all usable cores)"
    )
    if processes:
        group.add_argument(
            "--processes", type=positive, default=None, help="fresh processes that measure (3 on a GPU, else 2)"
        )
    if steps:
        _add_series(group, fixed_steps)
    group.add_argument("--seed", type=not_negative, default=0, help="seed of weights and random inputs")
    group.add_argument("--time-limit", type=duration, default=60.0, help="minutes after which to give up")
    group.add_argument(
        "--out",
        type=Path,
        default=None,
        metavar="DIR",
        help="write record.json and samples.csv there (else only print)",
    )


def _add_series(group, fixed_steps: bool) -> None:
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


def resolve_running(arguments: argparse.Namespace, flags: argparse.ArgumentParser) -> None:
    """Fill in what depends on the machine; ends the program with one line if the device is not to be had."""
    try:
        arguments.device = identity.choose_device(arguments.device)
    except identity.MachineError as error:
        flags.error(str(error))
    if arguments.threads is None:
        arguments.threads = 1 if arguments.device == "cuda" else identity.usable_cores()
    if getattr(arguments, "processes", 0) is None:
        arguments.processes = 3 if arguments.device == "cuda" else 2
    if not hasattr(arguments, "max_steps"):
        return
    if arguments.max_steps is None:
        arguments.max_steps = arguments.steps
    if arguments.max_steps < arguments.steps:
        flags.error(f"--max-steps {arguments.max_steps} is less than --steps {arguments.steps}")


def settings(given: argparse.Namespace) -> Settings:
    """What was given that does not belong to the spec."""
    return Settings(out=given.out, time_limit=given.time_limit)
