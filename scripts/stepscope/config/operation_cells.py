"""Cells that measure operations by themselves: attention, the machine's best rates, and sums in
16-bit formats."""

from stepscope.axes import FULL

from . import ConfigError
from .grid import (
    Cell,
    Target,
    changed,
    each_once,
    options_path,
    points,
)
from .model_cells import of_device, timed_steps

ATTENTION_AXES = ("d_head", "precision", "mask", "batch", "key_value_heads", "window")
ATTENTION_BATCH = 8  # the default, which no path names


def attention_cells(target: Target) -> list[Cell]:
    """One head dimension, precision and mask, over its lengths, with the implementations as
    variants.

    Raises ConfigError for a grid that is wrong.
    """
    result = []
    for entry in target.settings["grid"][target.device]:
        for point in points(entry, target.study.axes):
            shape = _shape(entry, point, f"config key attention.grid.{target.device}")
            spec = {
                "variants": [{"name": name} for name in entry["implementation"]],
                "d_head": point["d_head"],
                "lengths": sorted(entry["lengths"]),
                **shape,
                "precision": point["precision"],
                **timed_steps(target),
            }
            usual = "batch", ATTENTION_BATCH
            options = dict(option for option in changed(shape).items() if option != usual)
            place = f"d{point['d_head']}/{point['precision']}{options_path(options)}"
            result.append(target.cell(place, spec))
    return each_once(result)


def _shape(entry: dict, point: dict, key: str) -> dict:
    """Mask, batch or tokens, heads and window, as parts of a spec."""
    mask, window = point.get("mask", FULL), point.get("window")
    heads, rest = divmod(entry.get("width", 0), point["d_head"])
    if rest:
        raise ConfigError(
            f"{key}: width {entry['width']} is no multiple of d_head {point['d_head']}; change one"
        )
    groups = point.get("key_value_heads") or heads
    if heads and heads % groups:
        raise ConfigError(
            f"{key}: key_value_heads {groups} does not divide {heads} heads (width / d_head); use a"
            " divisor"
        )
    if window and mask == FULL:  # it ends at a query's own position
        raise ConfigError(
            f"{key}: window {window} needs a causal mask; add mask: [causal], or remove window"
        )
    return {
        "mask": mask,
        "tokens": entry.get("tokens"),
        "batch": point.get("batch"),
        "heads": heads,
        "key_value_heads": groups if groups != heads else None,
        "window": window,
    }


def ceilings_cells(target: Target) -> list[Cell]:
    """A large matrix product for each precision of the configuration, and a large copy."""
    settings = target.settings[target.device]
    matmul = {"operation": "matmul", "order": settings["matmul_order"]}
    copy = {"operation": "copy", "mebibytes": settings["copy_mebibytes"]}
    parts = [matmul | {"precision": precision} for precision in settings["precision"]]
    parts.append(copy | {"precision": "fp32"})
    until = {
        **of_device(target, "processes", "warmup"),
        "steps": settings["steps"],
        "max_seconds": settings["seconds"],
    }
    return each_once(
        target.cell(f"{part['operation']}/{part['precision']}", part | until) for part in parts
    )


def precision_cells(target: Target) -> list[Cell]:
    """One cell a probe."""
    return [
        target.cell(probe, {"probe": probe, "precision": "fp32"})
        for probe in target.settings["probes"]
    ]
