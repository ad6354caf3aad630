"""What a run asks Slurm before it submits anything. Each answer is None, or one line that says what
is wrong."""

import re
from collections.abc import Iterable
from pathlib import Path

from . import answered
from .labels import Hardware

JOB_PREFIX = "stepscope_"  # of the names of its jobs: slurm-jobname-prefix in profiles/slurm
LONGEST_PAUSE = 180  # seconds from one look of Snakemake's plugin at the queue to the next, at most


def complaint(machines: list[Hardware], folder: Path, settings) -> str | None:
    """What keeps a run in a folder from submitting the jobs of these machines; `settings` are the
    plugin's."""
    asking = [one for one in machines if one.by_jobs]
    # without settings of Slurm's plugin this run submits nothing
    if not hasattr(settings, "status_command"):
        return (
            f"config key hardware.{asking[0].label}: its cells are measured by Slurm's jobs; run"
            " with --workflow-profile profiles/slurm, or give it measure: false to use the results"
            " that are there"
        )
    there = answered("sinfo", "--all", "--noheader", "--format=%R %G")
    if there is None:
        return (
            "Slurm does not answer here (sinfo fails); run where it does, on a login node of the"
            " cluster"
        )
    partitions = re.findall(r"^\S+", there, re.MULTILINE)
    models = re.findall(r"gpu:([A-Za-z][^:,(\s]*)", there)  # none where GPUs have no type
    return (
        unknown(asking, "slurm_partition", partitions)
        or unknown(asking, "gpu_model", models)
        or unseen_end(settings.status_command)
        or left_over(folder)
    )


def unknown(machines: list[Hardware], key: str, known: Iterable[str]) -> str | None:
    """The first machine whose key names none of what is known, in any case; None where nothing is
    known."""
    there = {name.lower(): name for name in known}
    for one in machines:
        for name in re.findall(r"[^,\s]+", one.asked.get(key, "")):
            if there and name.lower() not in there:
                return (
                    f"config key hardware.{one.label}.{key}: Slurm has no {name!r}; choose from"
                    f" {', '.join(sorted(there.values()))}"
                )
    return None


def unseen_end(status_command: str) -> str | None:
    """Whether the end of a job might never be seen: a run would then wait for ever and say nothing.

    squeue shows an ended job for MinJobAge seconds.
    """
    if status_command == "sacct":
        if answered("sacct", "-X", "--noheader") is not None:
            return None
        return (
            "sacct does not answer here; leave slurm-status-command as it is, and ask the site to"
            " set MinJobAge to 300 if Slurm forgets jobs sooner"
        )
    settings_there = answered("scontrol", "show", "config") or ""
    shown = re.search(r"^MinJobAge\s*=\s*(\d+)", settings_there, re.MULTILINE)
    if shown is None or int(shown[1]) >= LONGEST_PAUSE:
        return None
    return (
        f"Slurm forgets a job {shown[1]} s after its end here (MinJobAge); add"
        " --slurm-status-command sacct"
    )


def left_over(folder: Path) -> str | None:
    """Jobs that this user still has in Slurm for a folder in which no run is at work: a run was
    killed."""
    listed = answered("squeue", "--me", "--noheader", "--states=PD,CF,R,S", "--format=%i|%j|%Z")
    jobs = re.findall(rf"^([^|]+)\|{JOB_PREFIX}[^|]*\|(.+)$", listed or "", re.MULTILINE)
    ours = [job for job, place in jobs if Path(place) == folder]
    if not ours:
        return None
    return (
        "jobs of a run that was killed, or that goes on at another login node, are still in Slurm"
        f" for {folder}; end them, then start again: scancel {' '.join(ours)}"
    )
