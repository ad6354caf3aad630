"""The optimisation ladder's cells: at each place the rungs, every one a change of the one before, then the asides."""

from stepscope.config import ConfigError
from stepscope.config.grid import Cell, Target
from stepscope.config.training import check_size, timed_steps, training_cells

AXES = ("size", "context", "precision", "batch", "attention", "optimizer", "compile", "checkpoint")
START = {"precision": "fp32"}
VARIED = ("compile", "checkpoint")  # what an aside may vary


def ladder_cells(target: Target) -> list[Cell]:
    """The cells of the ladder: place by place the rungs in their order, then the asides.

    Raises ConfigError for a place without its size, or an aside without its rung.
    """
    config, study, device = target.config, target.settings, target.device
    rungs, asides = climbed(study["rungs"][device]), study["asides"][device]
    _check(asides, rungs, config, f"config key ladder.asides.{device}")
    entries = []
    for place in study["places"][device]:
        check_size(place["size"], config, f"config key ladder.places.{device}")
        if place.get("batch") == config["model"]["batch"]:  # the default, which no path names
            place = {key: value for key, value in place.items() if key != "batch"}
        for way in rungs + varied(asides, rungs, place["size"]):
            entry = {key: [value] for key, value in {**place, **way}.items()}
            _check_blocks(way, place["size"], config["sizes"], f"config key ladder.asides.{device}")
            entries.append(entry)
    if not entries:
        raise ConfigError(f"config key ladder.places.{device}: the list is empty; give at least one size and context")
    return training_cells(target, timed_steps(target), AXES, entries)


def climbed(changes: list[dict]) -> list[dict]:
    """Every rung's options, from what each changes of the one before."""
    rungs, options = [], START
    for change in changes:
        options = options | change
        rungs.append(options)
    return rungs


def varied(asides: list[dict], rungs: list[dict], size: str) -> list[dict]:
    """The options of the asides at a size: a rung's with one changed, for each value of the list."""
    return [
        rungs[aside["rung"]] | {option: value}
        for aside in asides
        if size in aside.get("size", [size])
        for option in VARIED
        for value in aside.get(option, [])
    ]


def _check(asides: list[dict], rungs: list[dict], config: dict, key: str) -> None:
    """Raise ConfigError for an aside that leaves from no rung, varies nothing, or names a size that is not there."""
    for aside in asides:
        if aside["rung"] >= len(rungs):
            raise ConfigError(f"{key}: there is no rung {aside['rung']}; the rungs are 0 to {len(rungs) - 1}")
        if not set(VARIED) & set(aside):
            raise ConfigError(f"{key}: the aside of rung {aside['rung']} varies nothing; give it compile or checkpoint")
        for size in aside.get("size", []):
            check_size(size, config, key)


def _check_blocks(way: dict, size: str, sizes: dict, key: str) -> None:
    if size not in sizes:  # how many blocks a model of one's own has is seen when it is built
        return
    every, blocks = way.get("checkpoint", 0), sizes[size]["num_layers"]
    if every > blocks:
        raise ConfigError(
            f"{key}: checkpoint {every} is more than the blocks of size {size} ({blocks}); use fewer, or give the "
            "aside the sizes that have as many"
        )
