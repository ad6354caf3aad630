"""The optimisation ladder's cells: one at each place, whose variants are the rungs, every one a
change of the one before, and the asides."""

from stepscope.axes import NEUTRAL, PLAIN_STEP
from stepscope.config import ConfigError
from stepscope.config.grid import Cell, Target, each_once, options_path
from stepscope.config.model_cells import check_size, models_of, timed_steps

VARIED = ("compile", "checkpoint")  # what an aside may vary


def ladder_cells(target: Target) -> list[Cell]:
    """The cells of the ladder, in the order of the places.

    Raises ConfigError for a place without its size, or an aside without its rung.
    """
    config, study, device = target.config, target.settings, target.device
    cells, models = [], models_of(config)
    for place in study["places"][device]:
        check_size(place["size"], config, f"config key ladder.places.{device}")
        batch = place.get("batch", config["model"]["batch"])
        spec = {
            **models[place["size"]],
            "context": place["context"],
            "batch": batch,
            "variants": _variants_at(place, config, device),
            **timed_steps(target),
            **target.common,
        }
        options = {"batch": batch} if batch != config["model"]["batch"] else {}
        folder = f"{place['size']}/ctx{place['context']}{options_path(options)}"
        cells.append(target.cell(folder, spec, place["size"]))
    return each_once(cells)


def _variants_at(place: dict, config: dict, device: str) -> list[dict]:
    """The variants of a place: all, or the rungs from the one on that it names, without asides."""
    study, start = config["ladder"], place.get("start")
    found = variants(
        study["rungs"][device],
        [] if start else study["asides"][device],
        place["size"],
        config,
        device,
    )
    if not start:
        return found
    names = [rung["name"] for rung in found]
    if start not in names:
        key = f"config key ladder.places.{device}"
        raise ConfigError(
            f"{key}: start: there is no rung {start!r}; the rungs are {', '.join(names)}"
        )
    first, *rest = found[names.index(start) :]
    return [{key: value for key, value in first.items() if key != "after"}, *rest]


def variants(
    changes: list[dict], asides: list[dict], size: str, config: dict, device: str
) -> list[dict]:
    """The rungs and the asides at a size, each with its name, what differs from the plain step, and
    `after`.

    Raises ConfigError for an aside that leaves from no rung, varies nothing, or has more blocks
    than the size.
    """
    key = f"config key ladder.asides.{device}"
    found: dict[str, dict] = {}
    after, options = None, {"precision": PLAIN_STEP["precision"]}
    for change in changes:
        options = options | change
        name = _name(change)
        if name in found:
            raise ConfigError(
                f"config key ladder.rungs.{device}: there are two rungs {name}; remove one"
            )
        found[name] = _variant(name, options, after)
        after = name
    rungs = dict(found)
    for aside in asides:
        if aside["after"] not in rungs:
            raise ConfigError(
                f"{key}: there is no rung {aside['after']!r}; the rungs are {', '.join(rungs)}"
            )
        if not set(VARIED) & set(aside):
            raise ConfigError(
                f"{key}: the aside of {aside['after']} varies nothing; give it compile or"
                " checkpoint"
            )
        for other in aside.get("size", []):
            check_size(other, config, key)
        for change in _varied(aside, size):
            _check_blocks(change, size, config["sizes"], key)
            name = (
                _name(change) if _name(change) not in found else f"{aside['after']}+{_name(change)}"
            )
            found[name] = _variant(name, rungs[aside["after"]] | change, aside["after"])
    return list(found.values())


def _varied(aside: dict, size: str) -> list[dict]:
    """The changes of an aside at a size: one option, for each value of its list."""
    if size not in aside.get("size", [size]):
        return []
    return [{option: value} for option in VARIED for value in aside.get(option, [])]


def _variant(name: str, options: dict, after: str | None) -> dict:
    """A variant as its program takes it, without what is neutral."""
    changed = {
        key: options[key]
        for key in PLAIN_STEP
        if key in options and options[key] != NEUTRAL.get(key)
    }
    return {"name": name, **changed} | ({"after": after} if after else {})


def _name(change: dict) -> str:
    """What a change is called: `bf16`, `sdpa`, `checkpoint=2`, `loss=torch`."""
    return "+".join(
        f"{key}={value}" if key in ("checkpoint", "loss") else str(value)
        for key, value in change.items()
    )


def _check_blocks(change: dict, size: str, sizes: dict, key: str) -> None:
    if size not in sizes:  # how many blocks a model of one's own has is seen when it is built
        return
    every, blocks = change.get("checkpoint", 0), sizes[size]["num_layers"]
    if every > blocks:
        raise ConfigError(
            f"{key}: checkpoint {every} is more than the blocks of size {size} ({blocks}); use"
            " fewer, or give the aside the sizes that have as many"
        )
