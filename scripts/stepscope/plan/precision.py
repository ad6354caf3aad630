"""The precision study's cells: what 16-bit formats do to sums, under autocast, and inside normalisations."""

from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell

PROGRAM = "probe_precision.py"
PROBES = ("accumulation", "autocast", "normalisation")


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """One cell a probe; that of autocast runs the model of the configured size.

    Raises ConfigError for a size that the configuration does not have.
    """
    study = config["precision"]
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
    common = {"precision": "fp32", "seed": config["model"]["seed"], "threads": threads, "device": device}
    return [
        Cell(
            name=f"{hardware}/precision/{probe}",
            study="precision",
            size=study["size"] if probe == "autocast" else None,
            program=PROGRAM,
            spec={"study": "precision", "probe": probe, **(model if probe == "autocast" else {}), **common},
            chosen={"attention": "naive"} if probe == "autocast" else {},
        )
        for probe in study["probes"]
    ]
