"""Cells that measure operations by themselves: attention, the machine's best rates, and sums in 16-bit formats."""

from stepscope.axes import CAUSAL, FULL, IMPLEMENTATIONS
from stepscope.config import ConfigError
from stepscope.config.grid import Cell, Target, each_once, options_path, points, stopping_rule

ATTENTION_AXES = (
    *("implementation", "d_head", "precision", "batch", "causal"),
    *("mask", "key_value_heads", "keys", "window"),
)
ATTENTION_BATCH = 8  # the default, which no path names
PROBES = ("accumulation", "autocast", "normalisation")


def attention_cells(target: Target) -> list[Cell]:
    """One implementation, head dimension and precision, over its lengths; in the configuration's order.

    Raises ConfigError for a grid that is wrong.
    """
    study, device = target.settings, target.device
    result = []
    for entry in study["grid"][device]:
        for point in points("attention", [entry], ATTENTION_AXES):
            shape = _attention_shape(entry, point, device)
            axes = {key: point[key] for key in ("implementation", "d_head", "precision")}
            spec = {
                **axes,
                **shape,
                "lengths": ",".join(map(str, sorted(entry["lengths"]))),
                "processes": study["processes"][device],
                "warmup": study["warmup"][device],
                "steps": study["passes"][device],
                "max_seconds": study["seconds"][device],
                **target.common,
            }
            options = {key: value for key, value in shape.items() if (key, value) != ("batch", ATTENTION_BATCH)}
            place = f"{axes['implementation']}/d{axes['d_head']}/{axes['precision']}{options_path(options)}"
            result.append(
                target.cell(place, spec, chosen={"attention": IMPLEMENTATIONS[axes["implementation"]].module})
            )
    if not result:
        raise ConfigError(
            f"config key attention.grid.{device}: the grid is empty; give at least one entry with its axes"
        )
    return each_once(result)


def _attention_shape(entry: dict, point: dict, device: str) -> dict:
    """Batch or tokens, heads, keys and which of them are seen, as parts of a spec without those that are neutral."""
    key = f"config key attention.grid.{device}"
    if ("tokens" in entry) == ("batch" in entry):
        raise ConfigError(f"{key}: an entry has batch, or tokens (batch × length); give one of them")
    many = {"tokens": entry["tokens"]} if "tokens" in entry else {"batch": point["batch"]}
    if "width" in entry:
        if entry["width"] % point["d_head"]:
            raise ConfigError(f"{key}: width {entry['width']} is no multiple of d_head {point['d_head']}; change one")
        many["heads"] = entry["width"] // point["d_head"]
    return many | _mask(entry, point, key) | _keys(point, many.get("heads"), key)


def _mask(entry: dict, point: dict, key: str) -> dict:
    """`causal: [true]` and `mask: [causal]` are the same. A window ends at a query's own position: it has a mask."""
    if "mask" in entry and "causal" in entry:
        raise ConfigError(f"{key}: an entry has mask, or causal (true is mask causal); remove one of them")
    mask = point.get("mask", CAUSAL if point.get("causal") else FULL)
    window = {"window": point["window"]} if point.get("window") else {}
    if window and mask == FULL:
        raise ConfigError(
            f"{key}: window {point['window']} needs a causal mask; add mask: [{CAUSAL}], or remove window"
        )
    return {FULL: {}, CAUSAL: {"causal": "yes"}}.get(mask, {"mask": mask}) | window


def _keys(point: dict, heads: int | None, key: str) -> dict:
    """Heads of K and V where they are fewer than Q's, and the length of K and V where it is not the queries'."""
    groups, found = point.get("key_value_heads") or heads, {}
    if groups and heads is None:
        raise ConfigError(f"{key}: key_value_heads {groups} needs a dimension of heads; add width (heads x d_head)")
    if heads and heads % groups:
        raise ConfigError(
            f"{key}: key_value_heads {groups} does not divide {heads} heads (width / d_head); use a divisor"
        )
    if groups != heads:
        found["key_value_heads"] = groups
    return found | ({"keys": point["keys"]} if point.get("keys") else {})


def ceilings_cells(target: Target) -> list[Cell]:
    """A large matrix product for each precision of the configuration, and a large copy."""
    study, settings = target.settings, target.settings[target.device]
    matmul = {"operation": "matmul", "order": settings["matmul_order"]}
    copy = {"operation": "copy", "mebibytes": settings["copy_mebibytes"]}
    parts = [{**matmul, "precision": precision} for precision in settings["precision"]]
    parts.append({**copy, "precision": "fp32"})
    until = {
        "processes": study["processes"][target.device],
        "warmup": study["warmup"][target.device],
        **stopping_rule(settings["steps"]),
    }
    result = [
        target.cell(f"{part['operation']}/{part['precision']}", {**part, **until, **target.common}) for part in parts
    ]
    return each_once(result)


def precision_cells(target: Target) -> list[Cell]:
    """One cell a probe; that of autocast runs the model of the configured size.

    Raises ConfigError for a size that the configuration does not have.
    """
    study, config = target.settings, target.config
    if study["size"] not in config["sizes"]:
        raise ConfigError(
            f"config key precision.size: there is no size {study['size']!r}; "
            f"choose from {', '.join(map(str, config['sizes']))}"
        )
    model = {
        **config["sizes"][study["size"]],
        "vocab_size": config["model"]["vocab_size"],
        "context": study["context"],
        "batch": study["batch"],
    }
    common = {"precision": "fp32", **target.common}
    result = []
    for probe in study["probes"]:
        if probe == "autocast":
            spec = {"probe": probe, **model, **common}
            result.append(target.cell(probe, spec, study["size"], {"attention": "naive"}))
        else:
            result.append(target.cell(probe, {"probe": probe, **common}))
    return result
