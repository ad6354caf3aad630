"""The machines of a configuration: where each label's cells are measured, if at all, and what their
jobs ask for."""

import json
from pathlib import Path

from stepscope.machine import gpus, identity
from stepscope.machine.labels import Hardware

from . import ConfigError

# What Slurm is asked for by a key of its own. A label that has one of them, or a flag of sbatch or
# an interpreter of its own, is measured by jobs, on other machines.
SLURM_KEYS = ("gpu_model", "slurm_partition", "slurm_account", "constraint", "qos")
OF_JOBS = (*SLURM_KEYS, "exclusive", "slurm_extra", "python")
# Of a job before its program counts its own time: a node's first look at a shared file system.
START_MINUTES = 5
DEFAULT_LIMITS = {"memory": 16, "cpus": 4}


def hardware_of(config: dict, results: Path = Path("results")) -> list[Hardware]:
    """The configuration's machines, the baseline first, then in its order; the machine at hand if
    it names none.

    Raises ConfigError or MachineError, with one line, for an entry that cannot be.
    """
    entries = config["hardware"]
    if not entries:
        entries = {identity.hardware_label(identity.choose_device(config["device"])): {}}
    found = [_hardware(label, entry, config, results) for label, entry in entries.items()]
    measured = [one.label for one in found if one.measured]
    at_hand = [one.label for one in found if one.here]
    if at_hand and len(measured) > 1:
        raise ConfigError(
            f"config key hardware: {at_hand[0]} is the machine at hand, and a run measures nothing"
            f" beside it, but {', '.join(measured)} are to be measured; do it one after another"
            " with measure: false for the others, or say how Slurm finds all of them"
            f" ({', '.join(SLURM_KEYS)})"
        )
    baseline = config["baseline"]
    if baseline and baseline not in entries and not Path(baseline).exists():
        raise ConfigError(
            f"config key baseline: there is no hardware {baseline!r}; choose from"
            f" {', '.join(entries)}, or, for snakemake compare, give a results folder that is there"
        )
    return sorted(found, key=lambda one: one.label != baseline) if baseline else found


def _hardware(label: str, entry: dict, config: dict, results: Path) -> Hardware:
    measured = entry.get("measure", True)
    here = measured and not any(key in entry for key in OF_JOBS)
    device = entry.get("device", config["device"])
    if here:
        device = identity.choose_device(device)
    elif device == "auto":
        device = _device_of_records(results / label)
    threads = entry.get("threads", config["threads"])
    if threads == "auto":
        if device == "cpu" and measured and not here:
            raise ConfigError(
                f"config key hardware.{label}: threads: auto means all cores of a CPU but one, and"
                " those of another machine are not known here; give this entry threads"
            )
        threads = identity.usual_threads(device) if here else 1
    number = entry.get("gpus", 1)
    if here and device == "cuda":
        number = len(gpus.alike(gpus.visible_gpus()))
    asked = {key: entry[key] for key in SLURM_KEYS if key in entry}
    flags = [entry.get("slurm_extra"), "--exclusive" if entry.get("exclusive") else None]
    if any(flags):
        asked["slurm_extra"] = " ".join(filter(None, flags))
    found = Hardware(
        label=label,
        device=device,
        threads=threads,
        here=here,
        measured=measured,
        expect=entry.get("expect", ""),
        asked=asked,
        python=entry.get("python", "python3"),
        gpus=number,
    )
    if here:
        found.check_type()
    return found


def _device_of_records(folder: Path) -> str:
    """The device that a label's results were measured on, by the first record that says so; a GPU
    where none does."""
    for path in sorted(folder.rglob("record.json")):
        try:
            return json.loads(path.read_bytes())["machine"]["device"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return "cuda"


def limits(config: dict, study: str, size: str | None) -> dict:
    """`minutes`, `memory` (GiB) and `cpus` of a cell's job: each of the last line of the
    configuration's `limits` that fits and has it, else the usual one."""
    found = DEFAULT_LIMITS | {"minutes": config[study]["time_limit"]}
    for line in config["limits"]:
        if study in line.get("study", [study]) and size in line.get("size", [size]):
            found |= line
    return found


def job_resources(
    hardware: Hardware, config: dict, study: str, size: str | None, devices: int = 1
) -> dict:
    """What the job of a cell on so many devices asks for.

    `gpu` counts GPUs, None of a CPU. `minutes` are the program's own limit, `runtime` is the job's,
    in minutes, and `mem_mb` the host's memory in MB.
    """
    own = limits(config, study, size)
    found = {
        "gpu": devices if hardware.device == "cuda" else None,
        "minutes": own["minutes"],
        "runtime": own["minutes"] + START_MINUTES,
    }
    if hardware.by_jobs:
        found |= {"mem_mb": round(own["memory"] * 1024)} | hardware.asked
    return found


def job_cpus(hardware: Hardware, config: dict, study: str, size: str | None) -> int:
    """Processor cores of a cell's job. At hand a CPU cell takes all, so that nothing runs beside
    it."""
    if hardware.here:
        return 1 if hardware.device == "cuda" else identity.usable_cores()
    return max(int(limits(config, study, size)["cpus"]), hardware.threads)
