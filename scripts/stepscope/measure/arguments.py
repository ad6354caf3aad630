"""Flags that the measuring programs share, and the way from flags to a spec."""

import argparse
import json
import re
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


def json_list(text: str) -> list:
    """A list in JSON, or numbers that commas separate."""
    try:
        found = json.loads(text if text.lstrip().startswith("[") else f"[{text}]")
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list in JSON, as [256, 1024]") from None
    return found


def lengths(text: str) -> list[int]:
    """A list of whole numbers of at least 1."""
    return [positive(str(one)) for one in json_list(text)]


def variants(text: str) -> list[dict]:
    """A list of mappings, each with a `name` of its own that can stand in a path and a table."""
    found = json_list(text)
    if not found or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in found):
        raise argparse.ArgumentTypeError('give a list such as [{"name": "naive"}], each with a name')
    names = [one["name"] for one in found]
    for name in names:
        if not re.fullmatch(r"[\w.+=-]+", name):
            raise argparse.ArgumentTypeError(f"variant {name!r}: use letters, digits and . _ = + - in a name")
        if names.count(name) > 1:
            raise argparse.ArgumentTypeError(f"variant {name!r} is there twice; remove one")
    return found


def add_running(
    flags: argparse.ArgumentParser,
    budget: tuple[int, int, float] | None = None,
    steps: int | None = None,
    warmup: int = 2,
    processes: bool = True,
) -> None:
    """How to run: device, threads, processes, steps, limits, output.

    budget: defaults of the least and the most steps and of the seconds of a series; or `steps`: a fixed number.
    """
    group = flags.add_argument_group("measuring")
    group.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto", help="what to measure on")
    group.add_argument(
        "--threads", type=positive, default=None, help="processor threads (1 on a GPU, else all usable cores but one)"
    )
    if processes:
        group.add_argument("--processes", type=positive, default=3, help="fresh processes, one after the other")
    if budget or steps:
        group.add_argument("--warmup", type=not_negative, default=warmup, help="steps before the measured ones")
    if steps:
        group.add_argument("--steps", type=positive, default=steps, help="measured steps")
    elif budget:
        least, most, seconds = budget
        group.add_argument("--steps", type=positive, default=least, help="fewest measured steps of a series")
        group.add_argument("--max-steps", type=positive, default=most, help="most measured steps of a series")
        group.add_argument(
            "--max-seconds", type=duration, default=seconds, help="seconds after which a series of --steps ends"
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
        arguments.device = identity.choose_device(arguments.device)
    except identity.MachineError as error:
        flags.error(str(error))
    if arguments.threads is None:
        arguments.threads = 1 if arguments.device == "cuda" else max(1, identity.usable_cores() - 1)


def running_keys(given: argparse.Namespace) -> dict:
    """The parts of a spec that say how to run, of those that the program has."""
    keys = ("processes", "warmup", "steps", "max_steps", "max_seconds", "seed", "threads", "device")
    return {key: getattr(given, key) for key in keys if hasattr(given, key)}


def settings(given: argparse.Namespace) -> Settings:
    """What was given that does not belong to the spec."""
    return Settings(out=given.out, time_limit=given.time_limit)
