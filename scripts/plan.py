"""What a run would cost: cells by study, minutes, the largest predicted peak of memory, and what
will not fit.

Minutes are those of all cells, measured anew, at the rates of an H100 or a server's cores.
"""

import argparse
import math
import sys
from pathlib import Path

from snakemake.utils import update_config
from stepscope.axes import modes_up_to, option
from stepscope.config import ConfigError, hardware
from stepscope.config.config import validated
from stepscope.config.grid import Cell
from stepscope.config.studies import BY_NAME, LADDER, STUDIES, TIMING
from stepscope.formulas import flops, footprint_peak
from stepscope.formulas.footprint import Setup
from stepscope.machine.identity import MachineError
from stepscope.machine.memory import capacity
from stepscope.model.formats import FORMATS
from stepscope.model.shape import ModelShape
from stepscope.recordings.text import show
from stepscope.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parents[1]
# Operations a second of a naive training step, "" for other precisions; seconds of a block where
# launches limit it.
OF_GPU, OF_CORE = {"fp32": 40e12, "tf32": 100e12, "": 160e12}, {"fp32": 30e9, "": 15e9}
LAUNCHES = {"cuda": 2.7e-3, "cpu": 1e-3}
# Seconds of a process besides its steps: on a CPU for any study (on a GPU its row in the table says
# it), and more where something is compiled, with a cell's shared caches.
START_ON_CPU = 2.0
COMPILED, COMPILING = ("compiled", "flex", "flex-flash"), 3
SHORT = 0.25  # seconds of each series of a ladder beside its turns


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument(
        "--preset", help="a file's name in rules/presets (that of a configfile, else default)"
    )
    flags.add_argument(
        "--configfile",
        type=Path,
        action="append",
        default=[],
        help="as Snakemake takes it; repeat it",
    )
    flags.add_argument(
        "--device", choices=["auto", "cuda", "cpu"], help="instead of the configuration's"
    )
    given = flags.parse_args()
    try:
        config = read_yaml(ROOT / "config.yaml")
        laid_over = [read_yaml(path) for path in given.configfile]
        named = [layer["preset"] for layer in laid_over if layer.get("preset")]
        preset = given.preset or (named or ["default"])[-1]
        if preset != "default":
            laid_over.insert(0, read_yaml(ROOT / f"rules/presets/{preset}.yaml"))
        for layer in laid_over:
            update_config(config, layer)
        if given.device:
            config["device"] = given.device
        if given.device == "cuda":
            # Also where none is: a GPU without a name, of as much memory as is wanted.
            config["hardware"] = {"gpu": {"gpu_model": "any"}}
        config = validated(config, ROOT / "rules/config.schema.yaml")
        for one in (each for each in hardware.hardware_of(config) if each.measured):
            cells: list[Cell] = []
            for study in STUDIES:
                cells += study.cells(config, one)
            memory = capacity(one.device) if one.here else math.inf
            show("\n".join([one.label, *lines(cells, memory)]))
    except (ConfigError, MachineError, OSError) as error:
        sys.exit(str(error))


def lines(cells: list[Cell], memory: float) -> list[str]:
    """What is printed of a machine's cells; `memory` are the bytes of its GPU, or of the host."""
    said = [f"{'study':<10} {'cells':>6} {'minutes':>8} {'peak GiB':>9}"]
    for name in (*BY_NAME, "all"):
        own = [cell for cell in cells if name in (cell.study, "all")]
        minutes = sum(seconds(cell, memory) for cell in own) / 60
        most = max((max(map(peak_bytes, variants(cell))) for cell in own), default=0) / 2**30
        said.append(f"{name:<10} {len(own):>6} {minutes:>8.1f} {most:>9.1f}")
    for cell in cells:
        for spec in variants(cell):
            if peak_bytes(spec) > memory:
                what = f"{cell.name} {spec.get('name', '')}".rstrip()
                said.append(f"will not fit, which is a result (oom): {what}")
    return said


def variants(cell: Cell) -> list[dict]:
    """The spec of each variant of a cell; its own where it has none."""
    return [cell.spec | variant for variant in cell.spec.get("variants", [{}])]


def seconds(cell: Cell, memory: float) -> float:
    """How long a cell takes: all processes and variants one after another. What does not fit takes
    its start."""
    fitting = [spec for spec in variants(cell) if peak_bytes(spec) <= memory]
    compiled = sum(spec.get("name") in COMPILED or "compile" in spec for spec in fitting)
    running = COMPILING * compiled + sum(map(series_seconds, fitting))
    start = START_ON_CPU
    if cell.spec["device"] == "cuda":
        study, lengths = BY_NAME[cell.study], cell.spec.get("lengths", [None])
        start = study.start_seconds + study.variant_seconds * len(fitting) * len(lengths)
    return cell.spec.get("processes", 1) * (start + running)


def series_seconds(spec: dict) -> float:
    """The series of a process: steps until the seconds are over, at least the fewest and at most
    the most."""
    if "steps" not in spec or "d_model" not in spec:
        return max(2 * len(spec.get("lengths", [])), 1) * spec.get("max_seconds", 0)
    # A cell of the timing study has phased steps, and free ones of each mode up to its own.
    series = 1 + len(modes_of(spec)) if spec["study"] == TIMING.name else 1
    step = step_seconds(spec)
    most = min(spec.get("max_seconds", 0), spec.get("max_steps", 0) * step)
    beside = 2 * SHORT if spec["study"] == LADDER.name else 0
    return series * (spec.get("warmup", 0) * step + max(spec["steps"] * step, most)) + beside


def modes_of(spec: dict) -> list[str]:
    """The modes that a cell runs, the lightest first."""
    return modes_up_to(str(option(spec, "mode")))


def step_seconds(spec: dict) -> float:
    """A naive training step: its operations at a usual rate, or what its launches take."""
    shape, device = ModelShape.of(spec), spec["device"]
    rates, number = (OF_GPU, 1) if device == "cuda" else (OF_CORE, spec["threads"])
    rate = number * rates.get(spec["precision"], rates[""])
    computing = flops.step_flops(shape, spec["batch"], spec["context"]) / rate
    return max(computing, LAUNCHES[device] * shape.num_layers)


def peak_bytes(spec: dict) -> int:
    """The closed form's peak of what runs the model with all activations kept; 0 where there is
    none."""
    if "d_model" not in spec or "steps" not in spec or option(spec, "checkpoint"):
        return 0
    precision = FORMATS[spec["precision"]].outside or spec["precision"]  # of a closed form
    setup = Setup.of(spec | {"precision": precision})
    return footprint_peak.peak(setup, modes_of(spec)[-1]).bytes if setup.is_known else 0


if __name__ == "__main__":
    main()
