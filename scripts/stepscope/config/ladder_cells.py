"""The optimisation ladder's cells: one at each place, whose variants are the rungs, every one a
change of the one before, and the asides."""

from stepscope.axes import PLAIN_STEP

from . import ConfigError, own_models
from .grid import Cell, Target, changed, check_known, check_names, each_once
from .model_cells import batch_path, models_of, timed_steps

LONGEST_NAME = 200  # a folder's has 255 at most


def ladder_cells(target: Target) -> list[Cell]:
    """The cells of the ladder, in the order of the places.

    Raises ConfigError for a place without its size, or an aside without its rung.
    """
    models = models_of(target.config)
    cells = []
    for place in target.settings["places"][target.device]:
        size = place["size"]
        check_known(size, models, f"config key ladder.places.{target.device}")
        spec = {
            **models[size],
            "context": place["context"],
            "batch": place.get("batch", target.config["model"]["batch"]),
            "variants": _variants_at(place, target, models),
            **timed_steps(target),
        }
        folder = f"{size}/ctx{place['context']}{batch_path(spec, target)}"
        cells.append(target.cell(folder, spec, size))
    return each_once(cells) + comparison_cells(target)


def comparison_cells(target: Target) -> list[Cell]:
    """A cell for each comparison of steps of one's own, all with the first.

    Raises ConfigError for a step that is not there or takes another context or batch.
    """
    steps = own_models.steps(target.config)
    cells = []
    for place, names in enumerate(target.config["compare"]):
        key = f"config key compare.{place}"
        for name in names:
            check_known(name, steps, key, "step")
        check_names(names, key)
        first = names[0]
        shared = {name: steps[first][name] for name in own_models.GIVEN}
        variants = []
        for name in names:
            if not shared.items() <= steps[name].items():
                raise ConfigError(
                    f"{key}: {name} has another context or batch than {first}; give both the same"
                )
            own = {key: value for key, value in steps[name].items() if key not in shared}
            after = {} if name == first else {"after": first}
            variants.append({"name": name, **own, **after})
        whole = "+".join(names)[:LONGEST_NAME]
        folder = f"{whole}/ctx{shared['context']}{batch_path(shared, target)}"
        spec = {**shared, "variants": variants, **timed_steps(target)}
        cells.append(target.cell(folder, spec, whole))
    return each_once(cells)


def _variants_at(place: dict, target: Target, models: dict[str, dict]) -> list[dict]:
    """The variants of a place: all, or the rungs from the one on that it names, without asides, or
    its own rungs and asides."""
    given = {name: target.settings[name][target.device] for name in ("rungs", "asides")}
    if "rungs" in place:
        given = {"asides": []} | place
    key = f"config key ladder: {place['size']}"
    rungs = rungs_of(given["rungs"], f"{key}: rungs")
    if "start" not in place:
        return rungs + _asides(given["asides"], f"{key}: asides", place["size"], rungs, models)
    names = [rung["name"] for rung in rungs]
    check_known(place["start"], names, f"{key}: start", "rung")
    first, *rest = rungs[names.index(place["start"]) :]
    first.pop("after", None)
    return [first, *rest]


def rungs_of(changes: list[dict], key: str) -> list[dict]:
    """The rungs, each with its name, all that differs from the plain step, and `after`: the one
    before, which it is compared with.

    changes: what each changes of the one before. Raises ConfigError for two of one name.
    """
    rungs: list[dict] = []
    options = {"precision": PLAIN_STEP["precision"]}
    for change in changes:
        options = options | change
        after = rungs[-1]["name"] if rungs else None
        rungs.append(_variant(_name(change), options, after))
    check_names([rung["name"] for rung in rungs], key)
    return rungs


def _asides(
    asides: list[dict], key: str, size: str, rungs: list[dict], models: dict[str, dict]
) -> list[dict]:
    """Those of the asides that are at a size, each a rung with other values of some options.

    Raises ConfigError for an aside that leaves from no rung, or is for no size.
    """
    of_rung = {rung["name"]: rung for rung in rungs}
    found: dict[str, dict] = {}
    for aside in asides:
        after, change = aside["after"], aside["together"]
        check_known(after, of_rung, key, "rung")
        for other in aside.get("size", []):
            check_known(other, models, key)
        if size in aside.get("size", [size]):
            name = _name(change)
            if name in of_rung or name in found:
                name = f"{after}+{name}"
            found[name] = _variant(name, of_rung[after] | change, after)
    return list(found.values())


def _variant(name: str, options: dict, after: str | None) -> dict:
    """A variant as its program takes it, without what is neutral."""
    own = {option: options.get(option) for option in PLAIN_STEP}
    return {"name": name} | changed(own | {"after": after})


def _name(change: dict) -> str:
    """What a change is called: `bf16`, `sdpa`, `checkpoint=2`, `loss=torch`."""
    return "+".join(
        f"{key}={value}" if key in ("checkpoint", "loss") else str(value)
        for key, value in change.items()
    )
