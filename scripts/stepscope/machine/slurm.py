"""What a run asks Slurm before it submits anything. Each answer is None, or one line that says what
is wrong."""

import getpass
import re
from pathlib import Path

from stepscope.machine import answered
from stepscope.machine.arrival import BY_JOBS
from stepscope.machine.labels import Hardware

JOB_PREFIX = "stepscope_"  # of the names of its jobs: slurm-jobname-prefix in profiles/slurm
LONGEST_PAUSE = 180  # seconds from one look of Snakemake's plugin at the queue to the next, at most


def complaint(machines: list[Hardware], folder: Path, settings) -> str | None:
    """What keeps a run in a folder from submitting the jobs of these machines; `settings` are the
    plugin's."""
    label = next(one.label for one in machines if one.by_jobs)
    # without settings of Slurm's plugin this run submits nothing
    if not hasattr(settings, "status_command"):
        return f"config key hardware.{label}: {BY_JOBS}"
    if answered("sinfo", "--noheader") is None:
        return (
            "Slurm does not answer here (sinfo fails); run where it does, on a login node of the"
            " cluster"
        )
    wrong = wrong_partition(machines) or wrong_gpu_model(machines) or wrong_account(machines)
    return wrong or unseen_end(settings) or left_over(folder)


def unseen_end(settings) -> str | None:
    """Whether the end of a job might never be seen: a run would then wait for ever and say nothing.

    squeue shows an ended job for MinJobAge seconds. Where those are fewer than three pauses, the
    plugin asks sacct.
    """
    settings_there = answered("scontrol", "show", "config") or ""
    shown = re.search(r"^MinJobAge\s*=\s*(\d+)", settings_there, re.MULTILINE)
    if shown is None:
        return None
    age = int(shown[1])
    pauses = 3 * settings.init_seconds_before_status_checks
    by_sacct = settings.status_command == "sacct" or age < pauses
    if by_sacct and answered("sacct", "-X", "--noheader") is None:
        return (
            f"sacct does not answer here, and Slurm forgets a job {age} s after its end"
            " (MinJobAge); leave slurm-status-command as it is, and ask the site to set MinJobAge"
            " to 300"
        )
    if not by_sacct and age < LONGEST_PAUSE:
        return (
            f"Slurm forgets a job {age} s after its end here (MinJobAge); add"
            " --slurm-status-command sacct"
        )
    return None


def left_over(folder: Path) -> str | None:
    """Jobs that this user still has in Slurm for a folder in which no run is at work: a run was
    killed."""
    listed = _lines("squeue", "--me", "--noheader", "--states=PD,CF,R,S", "--format=%i|%j|%Z")
    jobs = [line.split("|", 2) for line in listed if line.count("|") >= 2]
    ours = [
        job for job, name, place in jobs if name.startswith(JOB_PREFIX) and Path(place) == folder
    ]
    if not ours:
        return None
    return (
        "jobs of a run that was killed, or that goes on at another login node, are still in Slurm"
        f" for {folder}; end them, then start again: scancel {' '.join(ours)}"
    )


def wrong_partition(machines: list[Hardware]) -> str | None:
    """A partition that the cluster does not have."""
    known = _lines("sinfo", "--all", "--noheader", "--format=%R")
    return _wrong(machines, "slurm_partition", "partition", known)


def wrong_gpu_model(machines: list[Hardware]) -> str | None:
    """A type of GPU that no node has. Not asked where nodes have GPUs without a type."""
    listed = answered("sinfo", "--all", "--noheader", "--format=%G") or ""
    known = re.findall(r"gpu:([A-Za-z][^:,(\s]*)", listed)
    return _wrong(machines, "gpu_model", "type of GPU", known)


def wrong_account(machines: list[Hardware]) -> str | None:
    """An account that this user does not have, or that nothing here can tell of; Snakemake's plugin
    takes neither."""
    asking = [one for one in machines if one.by_jobs and one.asked.get("slurm_account")]
    if not asking:
        return None
    user = getpass.getuser()
    accounts = _lines("sacctmgr", "--noheader", "-s", "list", "user", user, "format=account%256")
    accounts = accounts or _lines("sshare", "-U", "--noheader", "--format=Account%256")
    if not accounts:
        return (
            f"config key hardware.{asking[0].label}.slurm_account: neither sacctmgr nor sshare"
            f" names accounts of {user} here; remove the key, and set SBATCH_ACCOUNT if jobs need"
            " an account all the same"
        )
    return _wrong(machines, "slurm_account", f"account of {user}", accounts)


def _wrong(machines: list[Hardware], key: str, what: str, known: list[str]) -> str | None:
    """The first machine whose key names none of what is known, in any case; None where nothing is
    known."""
    names = sorted({name.strip() for name in known})
    there = {"", *map(str.lower, names)}
    for one in machines:
        asked = one.asked.get(key) if one.by_jobs and names else None
        for name in re.split(r"[,\s]+", asked or ""):
            if name.lower() not in there:
                return (
                    f"config key hardware.{one.label}.{key}: there is no {what} {name!r}; "
                    f"choose from {', '.join(names)}"
                )
    return None


def _lines(*command: str) -> list[str]:
    """Lines that a program of Slurm prints; none if it fails or is not there, which sbatch then
    complains of."""
    return [line for line in (answered(*command) or "").splitlines() if line.strip()]
