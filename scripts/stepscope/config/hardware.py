"""The machines of a configuration: where each label's cells are measured, if at all, and what their
jobs ask for."""

import json
import os
import re
from pathlib import Path

from stepscope.archive import OTHER_FILES, OTHER_FOLDERS
from stepscope.config import ConfigError
from stepscope.machine import gpus, identity
from stepscope.machine.labels import Hardware, is_expected

# What Slurm is asked for by a key of its own, and what as a flag of sbatch. A label that has one of
# them is measured by jobs, on other machines.
SLURM_KEYS = ("gpu_model", "slurm_partition", "slurm_account", "constraint", "qos")
SLURM = (*SLURM_KEYS, "exclusive", "slurm_extra")
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
        device = identity.choose_device(config["device"])
        entries = {identity.hardware_label(device): {}}
    for label in entries:
        if label in OTHER_FOLDERS or label.endswith(OTHER_FILES):
            raise ConfigError(
                f"config key hardware: {label!r} is not a usable name; use none of"
                f" {', '.join(OTHER_FOLDERS)}, and none that ends with {' or '.join(OTHER_FILES)}"
            )
    found = [_hardware(label, entry, config, results) for label, entry in entries.items()]
    at_hand = [one.label for one in found if one.here]
    if len(at_hand) > 1:
        raise ConfigError(
            f"config key hardware: {' and '.join(at_hand)} would both be the machine at hand; give"
            f" one of them measure: false, or say how Slurm finds it ({', '.join(SLURM[:4])})"
        )
    by_jobs = [one.label for one in found if one.by_jobs]
    if at_hand and by_jobs:
        raise ConfigError(
            f"config key hardware: {at_hand[0]} is the machine at hand and {by_jobs[0]} is measured"
            f" by Slurm's jobs, but a run does one of the two; measure {at_hand[0]} by itself, then"
            " give it measure: false here"
        )
    baseline = config["baseline"]
    if baseline and baseline not in entries and not is_of_results(baseline):
        raise ConfigError(
            f"config key baseline: there is no hardware {baseline!r}; choose from"
            f" {', '.join(entries)}, or, for snakemake compare, give a results folder that is there"
        )
    return sorted(found, key=lambda one: one.label != baseline) if baseline else found


def is_of_results(baseline: str) -> bool:
    """Whether a baseline is the path of results, to be compared with, and not the label of a
    machine."""
    return "/" in baseline or Path(baseline).exists()


def wrong_baseline(config: dict, compares: bool, reports: bool) -> str | None:
    """One line where the baseline is not of the kind that a run's targets take; else None."""
    baseline = config["baseline"]
    if compares and not (baseline and is_of_results(baseline)):
        return (
            f"config key baseline: compare needs a results folder, not {baseline!r};"
            " give --config baseline=PATH"
        )
    if reports and baseline and baseline not in config["hardware"] and is_of_results(baseline):
        return (
            f"config key baseline: {baseline!r} is a path, which only snakemake compare takes; name"
            " a machine of hardware, or leave it out"
        )
    return None


def _hardware(label: str, entry: dict, config: dict, results: Path) -> Hardware:
    asked = {key: entry[key] for key in SLURM if key in entry}
    measured = entry.get("measure", True)
    here = measured and not asked
    wanted = entry.get("device", config["device"])
    threads = entry.get("threads", config["threads"])
    if here:
        if "python" in entry:
            raise ConfigError(
                f"config key hardware.{label}.python: {label} is the machine at hand, where the"
                " Python that runs snakemake measures; remove the key"
            )
        device = identity.choose_device(wanted)
        key = f"hardware.{label}.threads" if "threads" in entry else "threads"
        threads = _threads_here(threads, device, key)
        _check_expected(label, entry.get("expect"), device)
    else:
        device = (_device_of_records(label, results) or "cuda") if wanted == "auto" else wanted
        threads = _threads_elsewhere(threads, device, label, measured)
    return Hardware(
        label=label,
        device=device,
        threads=threads,
        here=here,
        measured=measured,
        expect=entry.get("expect"),
        asked=asked,
        python=entry.get("python"),
        gpus=_gpus(entry, here) if device == "cuda" else 1,
    )


def _gpus(entry: dict, here: bool) -> int:
    """How many GPUs of one type a machine has; a job is given one, unless its entry says more."""
    if not here:
        return entry.get("gpus", 1)
    return len(gpus.alike(gpus.visible_gpus()))


def _device_of_records(label: str, results: Path) -> str | None:
    """The device that a label's results were measured on, by the first record that says so."""
    for path in sorted((results / label).rglob("record.json")):
        try:
            return json.loads(path.read_bytes())["machine"]["device"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _threads_here(wanted: int | str, device: str, key: str) -> int:
    """wanted: a number, or `auto`."""
    if isinstance(wanted, str):
        return identity.usual_threads(device)
    processors = os.cpu_count() or 1
    if wanted > processors:
        raise ConfigError(
            f"config key {key}: {wanted} is more than the processors of this machine; use at"
            f" most {processors}"
        )
    return wanted


def _threads_elsewhere(wanted: int | str, device: str, label: str, measured: bool) -> int:
    """Threads are part of a cell's spec, so a CPU that is not at hand has to be told how many."""
    if not isinstance(wanted, str):
        return wanted
    if device == "cpu" and measured:
        raise ConfigError(
            f"config key hardware.{label}: threads: auto means all cores of a CPU but one, and"
            " those of another machine are not known here; give this entry threads"
        )
    return 1


def _check_expected(label: str, expect: str | None, device: str) -> None:
    name = gpus.visible_gpus()[0].name if device == "cuda" else identity.cpu_name()
    if expect and not is_expected(name, expect):
        raise ConfigError(
            f"config key hardware.{label}: this machine is {name}, not the expected {expect!r};"
            " give the entry measure: false to use results that are there, or correct expect"
        )


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
    """What the job of a cell on so many devices asks for; None where it asks for nothing.

    `gpu` counts GPUs. `minutes` are the program's own limit, `runtime` is the job's, in minutes,
    and `mem_mb` the host's memory in MB.
    """
    own = limits(config, study, size)
    gpus_asked = devices if hardware.device == "cuda" else 0
    asked = hardware.asked
    flags = [asked.get("slurm_extra"), "--exclusive" if asked.get("exclusive") else None]
    return {
        **{key: asked.get(key) for key in SLURM_KEYS},
        "slurm_extra": " ".join(filter(None, flags)) or None,
        "gpu": (gpus_asked or None) if hardware.by_jobs else gpus_asked,
        "minutes": own["minutes"],
        "runtime": own["minutes"] + (START_MINUTES if hardware.by_jobs else 0),
        "mem_mb": round(own["memory"] * 1024) if hardware.by_jobs else 0,
    }


def job_cpus(hardware: Hardware, config: dict, study: str, size: str | None) -> int:
    """Processor cores of a cell's job. At hand a CPU cell takes all, so that nothing runs beside
    it."""
    if hardware.here:
        return 1 if hardware.device == "cuda" else identity.usable_cores()
    return max(int(limits(config, study, size)["cpus"]), hardware.threads)


def asked_of_any(machines: list[Hardware]) -> list[str]:
    """Resources that a rule names: a key that no machine has would hide what the user's own profile
    sets for it."""
    asked: set[str] = set().union(*(one.asked for one in machines if one.by_jobs))
    if not asked:  # what is measured by jobs asks for something
        return ["gpu", "minutes", "runtime"]
    names = [key for key in SLURM_KEYS if key in asked]
    if asked & {"exclusive", "slurm_extra"}:
        names.append("slurm_extra")
    return ["gpu", "minutes", "runtime", "mem_mb", *names]


def measured_pattern(machines: list[Hardware]) -> str:
    """Wildcard constraint for a label whose cells are measured, unlike those whose results are only
    used."""
    name = r"[A-Za-z0-9][A-Za-z0-9._-]*"
    used = "|".join(re.escape(one.label) for one in machines if not one.measured)
    return f"(?!(?:{used})/){name}" if used else name
