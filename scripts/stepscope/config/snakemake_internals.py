"""All that is used of Snakemake beside what its documentation describes, in one place: a new version may change it.

`workflow` is the variable of that name that rules and handlers see. tests/workflow/test_snakemake_internals.py says
which of these functions a new version breaks.
"""

import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from stepscope.config.time_left import TimeLeft, in_words


def given_config(workflow) -> dict:
    """The configuration that this run was given on the command line: `--configfile` and `--config`, merged."""
    return workflow.config_settings.overwrite_config


def given_files(workflow) -> list[Path]:
    """The files of `--configfile`."""
    return list(workflow.config_settings.configfiles)


def given_values(workflow) -> dict:
    """The values of `--config`, by key."""
    return dict(workflow.config_settings.config)


def uses_conda(workflow) -> bool:
    """Whether jobs run in conda environments: `--software-deployment-method conda`."""
    return "conda" in {str(method).lower() for method in workflow.deployment_settings.deployment_method}


def is_main_process(workflow) -> bool:
    """Whether this is the run that a person started, and not the same Snakefile read again for one of its jobs."""
    return workflow.is_main_process


def runs_jobs_here(workflow) -> bool:
    """Whether this machine runs the jobs, and not a cluster."""
    return workflow.local_exec


def only_touches(workflow) -> bool:
    """Whether the run only takes files as up to date: `--touch`."""
    return workflow.touch


def executor_settings(workflow):
    """What the executor's plugin was told by flags or the profile, as attributes; None for an executor without."""
    return workflow.executor_settings


def measure_again(workflow, record: str) -> None:
    """Have a cell measured again, as `--forcerun` does; to be called while Snakemake asks for the cell's inputs.

    That is before it decides which jobs to run, and when it already has what it decides by.
    """
    workflow.dag.forcefiles.add(record)


def was_killed(workflow) -> bool:
    """Whether there may be something that was being made when a run was killed; cheap, and can be asked at any time."""
    notes = Path(".snakemake/incomplete")
    return workflow.workflow_settings.persistence_backend.name != "FILE" or (notes.is_dir() and any(notes.iterdir()))


def in_the_making(workflow, outputs: Iterable[str]) -> set[str]:
    """Those of the outputs that were being made when the run that made them was killed, as Snakemake has noted."""
    return workflow.persistence._filter_incomplete_keys(outputs)


def note_as_made(workflow, rule: str, outputs: Sequence[str], params: Iterable[str]) -> None:
    """Note of a job's outputs what Snakemake notes when it has ended well: with which params they were made.

    `params` are all values of the job's params; it has no inputs. To be called when measure_again() is: later,
    Snakemake has decided to make it again. Raises OSError if nothing can be noted.
    """
    from snakemake.persistence import RECORD_FORMAT_VERSION, MetadataRecord

    notes = workflow.persistence
    for output in outputs:
        made = MetadataRecord(
            rule=rule,
            input=[],
            params=sorted(map(repr, params)),
            incomplete=False,
            record_format_version=RECORD_FORMAT_VERSION,
            starttime=notes._get_recorded_starttime(output),
            endtime=os.path.getmtime(output),
        )
        notes._write_record(output, made)
    for output in outputs:
        notes._unmark_incomplete(output)
    notes.deactivate_cache()


def to_measure(workflow, rules: set[str]) -> set[str]:
    """The records that this run is about to make; `rules` are those that measure."""
    return {str(job.output.record) for job in workflow.dag.needrun_jobs() if job.rule.name in rules}


def has_rule(workflow, name: str) -> bool:
    """Whether a rule has a job in this run, be it up to date."""
    return any(job.rule.name == name for job in workflow.dag.jobs)


def is_asked_for(workflow, rule: str) -> bool:
    """Whether a person named a rule as a target; to be asked while the Snakefile is read, when no target is known yet.

    False where Snakemake was started by another program than its own command.
    """
    words = sys.argv[1:]
    if not workflow.is_main_process or rule not in words:
        return False
    from snakemake.cli import parse_args

    return rule in parse_args(words)[1].targets


def jobs_at_once(workflow, resource: str, most: int) -> int:
    """How many jobs run together that each take one of a resource and a core; at most `most`, at least one."""
    limits = [workflow.global_resources.get(name) for name in (resource, "_cores")]
    counts = [getattr(limit, "value", limit) for limit in limits]
    return max(min([most, *(count for count in counts if isinstance(count, int))]), 1)


def follow(handler: logging.Handler) -> None:
    """Let a handler see Snakemake's events."""
    from snakemake.logging import logger

    logger.addHandler(handler)


class Progress(logging.Handler):
    """Prints `17 of 60 cells, about 12 min left` when a cell's job has finished. A handler of Snakemake's own logger.

    left: what tells the time that is left; without it there is only the count. `ended` are the cells that have
    finished.
    """

    def __init__(self, rules: set[str], total: int, done: int, left: TimeLeft | None = None):
        super().__init__()
        self._rules, self._total, self._done, self._left = rules, total, done, left
        self._running: dict[int, str] = {}
        self.ended: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Follow the jobs' events: which of them are cells, and when they end."""
        job = getattr(record, "jobid", None)
        if job is None:
            job = getattr(record, "job_id", None)
        event = getattr(getattr(record, "event", None), "value", None)
        if event == "job_info" and getattr(record, "rule_name", None) in self._rules:
            self._running[job] = _cell_of(record)
            self._tell("begin", self._running[job])
        elif event in ("job_finished", "job_error") and job in self._running:
            cell = self._running[job]
            self._tell("end", cell)
            if event == "job_finished":  # what failed may be tried again
                del self._running[job]
                self._done += 1
                self.ended.append(cell)
                print(f"{self._done} of {self._total} cells{self._time_left()}", flush=True)

    def _tell(self, what: str, cell: str) -> None:
        if self._left:
            getattr(self._left, what)(cell, time.monotonic())

    def _time_left(self) -> str:
        seconds = self._left.left(time.monotonic()) if self._left else None
        return f", about {in_words(seconds)} left" if seconds else ""


def _cell_of(record: logging.LogRecord) -> str:
    """The cell of a job that measures one: the folder of its log below results/."""
    logs = list(getattr(record, "log", None) or [])
    return os.path.dirname(str(logs[0])).removeprefix("results/") if logs else ""
