"""What a run would cost: cells by study, minutes, the largest predicted peak of memory, and what will not fit.

Minutes are those of all cells, measured anew: the start of each process, and its steps by their floating-point
operations at a rate that an H100, or one core of a server, reaches; elsewhere half or twice as many.
"""

import argparse
import functools
import sys
from pathlib import Path

from stepscope.axes import modes_up_to, option
from stepscope.config import ConfigError, hardware
from stepscope.config.config import merged, read_yaml, validated
from stepscope.config.grid import Cell
from stepscope.config.studies import STUDIES
from stepscope.machine.identity import MachineError
from stepscope.machine.memory import capacity
from stepscope.model import flops, footprint_peak
from stepscope.model.footprint import Setup
from stepscope.model.shape import ModelShape

ROOT = Path(__file__).resolve().parents[1]
# Operations a second of a naive training step, and seconds of a step for each block where launches limit it.
OF_GPU, OF_CORE = {"fp32": 40e12, "tf32": 100e12, "bf16": 160e12, "fp16": 160e12}, {"fp32": 30e9, "tf32": 30e9}
LAUNCHES = {"cuda": 2.7e-3, "cpu": 1e-3}
# Seconds of a process besides its steps, by study.
START = {"timing": 1.6, "ceilings": 1.0, "profile": 11, "memory": 7, "attention": 5.5, "precision": 3.7, "ladder": 4.5}


def main() -> None:
    try:
        config = configuration(arguments())
        machines = hardware.hardware_of(config)
        for one in (one for one in machines if one.measured):
            cells = [cell for study in STUDIES for cell in study.cells(config, one.device, one.label, one.threads)]
            print(*lines(one.label, cells, capacity(one.device) if one.here else None), sep="\n")
    except (ConfigError, MachineError, OSError) as error:
        sys.exit(str(error))


def arguments() -> argparse.Namespace:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--preset", default="default", help="a file's name in rules/presets (default)")
    flags.add_argument("--configfile", type=Path, action="append", default=[], help="as Snakemake takes it; repeat it")
    flags.add_argument("--device", choices=["auto", "cuda", "cpu"], help="instead of the configuration's")
    return flags.parse_args()


def configuration(given: argparse.Namespace) -> dict:
    """config.yaml with the preset and the files laid over it, checked. Raises ConfigError or OSError."""
    presets = [] if given.preset == "default" else [ROOT / f"rules/presets/{given.preset}.yaml"]
    config = functools.reduce(merged, map(read_yaml, [ROOT / "config.yaml", *presets, *given.configfile]))
    device = {"device": given.device} if given.device else {}
    return validated(config | device, ROOT / "rules/config.schema.yaml")


def lines(label: str, cells: list[Cell], memory: int | None) -> list[str]:
    """What is printed of a machine; `memory` are the bytes of its GPU, or of the host, None if unknown."""
    studies = {study.name: [cell for cell in cells if cell.study == study.name] for study in STUDIES} | {"all": cells}
    said = [f"{label}\n{'study':<10} {'cells':>6} {'minutes':>8} {'peak GiB':>9}"]
    for name, own in studies.items():
        most = max((peak_bytes(cell.spec) for cell in own), default=0) / 2**30
        said.append(f"{name:<10} {len(own):>6} {sum(map(seconds, own)) / 60:>8.1f} {most:>9.1f}")
    large = [cell.name for cell in cells if memory and peak_bytes(cell.spec) > memory]
    return said + [f"will not fit, which is a result (oom): {name}" for name in large]


def seconds(cell: Cell) -> float:
    """How long a cell takes, all its processes and variants one after another."""
    variants = [cell.spec | variant for variant in cell.spec.get("variants", [{}])]
    start = START.get(cell.study, 2.0) * (1 + (len(variants) - 1) / 4)
    return cell.spec.get("processes", 1) * (start + sum(map(steps_seconds, variants)))


def steps_seconds(spec: dict) -> float:
    """The steps of a process: each its operations at the rate, at least the launches of each block."""
    if "d_model" not in spec or "steps" not in spec:
        return 0.0
    modes = len(modes_up_to(option(spec, "mode"))) if spec["study"] == "timing" else 1
    shape, device = ModelShape.of(spec), spec["device"]
    rate = OF_GPU[spec["precision"]] if device == "cuda" else OF_CORE.get(spec["precision"], 15e9) * spec["threads"]
    step = max(flops.step_flops(shape, spec["batch"], spec["context"]) / rate, LAUNCHES[device] * shape.num_layers)
    return (spec["warmup"] + spec["steps"]) * modes * step


def peak_bytes(spec: dict) -> int:
    """The closed form's peak of a cell that runs the model, the largest of its variants; 0 where there is none."""
    runs_model = "d_model" in spec and "steps" in spec
    return max(peak_of(spec | variant) for variant in spec.get("variants", [{}])) if runs_model else 0


def peak_of(spec: dict) -> int:
    options = {name: option(spec, name) for name in ("attention", "optimizer")}
    setup = Setup(ModelShape.of(spec), spec["batch"], spec["context"], spec["precision"], **options)
    return footprint_peak.peak(setup, option(spec, "mode")).bytes


if __name__ == "__main__":
    main()
