"""The attention study's cells: one implementation, head dimension and precision, over its lengths."""

from stepscope.axes import IMPLEMENTATIONS
from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, options_path, points, without_duplicates

PROGRAM = "time_attention.py"
AXES = ("implementation", "d_head", "precision", "batch", "causal")
BATCH = 8  # goes without saying


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """The cells of the attention grid for a device, in the configuration's order.

    Raises ConfigError for a grid that is wrong.
    """
    study = config["attention"]
    result = []
    for entry in study["grid"][device]:
        for point in points("attention", [entry], AXES):
            shape = _shape(entry, point, device)
            spec = {
                "study": "attention",
                "implementation": point["implementation"],
                "d_head": point["d_head"],
                "precision": point["precision"],
                **shape,
                "lengths": ",".join(map(str, sorted(entry["lengths"]))),
                "warmup": study["warmup"][device],
                "steps": study["passes"][device],
                "max_seconds": study["seconds"][device],
                "seed": config["model"]["seed"],
                "threads": threads,
                "device": device,
            }
            options = {key: value for key, value in shape.items() if (key, value) != ("batch", BATCH)}
            place = f"{point['implementation']}/d{point['d_head']}/{point['precision']}"
            name = f"{hardware}/attention/{place}{options_path(options)}"
            chosen = {"attention": IMPLEMENTATIONS[point["implementation"]].module}
            result.append(Cell(name, "attention", None, PROGRAM, spec, chosen))
    if not result:
        raise ConfigError(
            f"config key attention.grid.{device}: the grid is empty; give at least one entry with its axes"
        )
    return without_duplicates("attention", result)


def _shape(entry: dict, point: dict, device: str) -> dict:
    """Batch or tokens, heads, and whether it is causal, as parts of a spec."""
    key = f"config key attention.grid.{device}"
    if ("tokens" in entry) == ("batch" in entry):
        raise ConfigError(f"{key}: an entry has batch, or tokens (batch × length); give one of them")
    many = {"tokens": entry["tokens"]} if "tokens" in entry else {"batch": point["batch"]}
    if "width" in entry:
        if entry["width"] % point["d_head"]:
            raise ConfigError(f"{key}: width {entry['width']} is no multiple of d_head {point['d_head']}; change one")
        many["heads"] = entry["width"] // point["d_head"]
    return many | ({"causal": "yes"} if point.get("causal") else {})
