"""The optimisation ladder's cells: at each place the rungs, every one a change of the one before, then the asides."""

from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, stopping_rule
from stepscope.plan.training import training_cells

PROGRAM = "time_ladder.py"
AXES = ("size", "context", "precision", "batch", "attention", "optimizer", "compile", "checkpoint")
START = {"precision": "fp32"}


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the ladder for a device: place by place the rungs in their order, then the asides.

    Raises ConfigError for a place that has no size, an aside without its rung, or a rung that is there twice.
    """
    study = config["ladder"]
    settings = {"warmup": study["warmup"][device], **stopping_rule(study["steps"][device])}
    rungs = climbed(study["rungs"][device])
    entries = []
    for place in study["places"][device]:
        if place["size"] not in config["sizes"]:
            known = ", ".join(config["sizes"])
            raise ConfigError(
                f"config key ladder.places.{device}: there is no size {place['size']!r}; "
                f"add it under sizes or choose from {known}"
            )
        ways = rungs + _asides(study["asides"][device], rungs, place["size"], f"ladder.asides.{device}")
        for way in ways:
            entry = {key: [value] for key, value in {**place, **way}.items()}
            if entry in entries:
                raise ConfigError(
                    f"config key ladder.rungs.{device}, or its asides or places: {_words(place | way)} is there twice; "
                    "remove one"
                )
            entries.append(entry)
    if not entries:
        raise ConfigError(f"config key ladder.places.{device}: the list is empty; give at least one size and context")
    laid_out = config | {"ladder": study | {"grid": {device: entries}}}
    return training_cells("ladder", PROGRAM, laid_out, device, hardware, threads, settings, AXES)


def climbed(changes: list[dict]) -> list[dict]:
    """Every rung's options, from what each changes of the one before."""
    rungs, options = [], START
    for change in changes:
        options = options | change
        rungs.append(options)
    return rungs


def _words(options: dict) -> str:
    return ", ".join(f"{key} {value}" for key, value in options.items())


def _asides(asides: list[dict], rungs: list[dict], size: str, key: str) -> list[dict]:
    """The options of the asides at a size: a rung's with one changed, for each value of the list."""
    found = []
    for aside in asides:
        if aside["rung"] >= len(rungs):
            raise ConfigError(
                f"config key {key}: there is no rung {aside['rung']}; the rungs are 0 to {len(rungs) - 1}"
            )
        if size in aside.get("size", [size]):
            options = {axis: values for axis, values in aside.items() if axis not in ("rung", "size")}
            found += [rungs[aside["rung"]] | {axis: value} for axis, values in options.items() for value in values]
    return found
