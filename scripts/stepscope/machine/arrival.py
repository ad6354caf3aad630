"""What a job finds where it starts, against what the run that submitted it knows. Standard library
only."""

import json
from dataclasses import asdict
from pathlib import Path

from stepscope.files import write_whole
from stepscope.machine import identity
from stepscope.machine.labels import Hardware, is_expected

WRITTEN = Path(".snakemake/stepscope-machines.json")
BY_JOBS = (
    "its cells are measured by Slurm's jobs; run with --workflow-profile profiles/slurm, or give it"
    " measure: false to use the results that are there"
)


def write(machines: list[Hardware], path: Path = WRITTEN) -> None:
    """Write down what is known of each label, for the jobs to read; whole or not at all."""
    content = {one.label: asdict(one) for one in machines if one.measured}
    write_whole({path: [json.dumps(content, indent=1, sort_keys=True) + "\n"]})


def read(label: str, path: Path = WRITTEN) -> Hardware:
    """What is known of a label. Raises ValueError, with one line, if that cannot be read."""
    try:
        return Hardware(**json.loads(path.read_text())[label])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(
            f"{path.absolute()} says nothing of {label}; start the run again where it began"
        ) from None


def check_type(expected: Hardware, gpu: str | None, in_job: bool = True) -> None:
    """Raise ValueError, with one line, if this is not where the label's cells are measured.

    gpu: the first one's name. in_job: whether a job of Slurm asks.
    """
    label = expected.label
    if expected.by_jobs and not in_job:
        raise ValueError(f"config key hardware.{label}: {BY_JOBS}")
    if expected.device == "cuda" and gpu is None:
        raise ValueError(
            f"this job of hardware.{label} sees no NVIDIA GPU; check what the entry asks Slurm for,"
            " and the node"
        )
    name = identity.cpu_name() if gpu is None else gpu
    if expected.expect and not is_expected(name, expected.expect):
        raise ValueError(
            f"this job of hardware.{label} runs on {name}, but the entry expects"
            f" {expected.expect!r}; correct what it asks Slurm for (gpu_model, slurm_partition,"
            " constraint), or expect"
        )
