"""What a run asks Slurm before it submits anything: answers of programs that stand in for
Slurm's."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from common import ROOT
from stepscope.machine import slurm
from stepscope.machine.labels import Hardware

RUN = "stepscope_36f59663-63e7-46a6-9b3b-c03a23476e6d"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts programs on the PATH, the only ones there, by name and what they print or by their exit
    code."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(**shown):
        for name, what in shown.items():
            does = f"exit {what}" if isinstance(what, int) else f"printf '%s' '{what}'"
            (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
            (tmp_path / name).chmod(0o755)

    return put


def by_jobs(label, **asked):
    """A machine whose cells are measured by jobs that ask for this."""
    return Hardware(label, "cuda", 1, here=False, asked=asked)


def plugin():
    """What Snakemake's plugin was told."""
    return SimpleNamespace(status_command="squeue")


def test_only_our_jobs_of_this_folder_are_left_over(programs, tmp_path):
    odd = tmp_path / "a|b"
    listed = f"11|{RUN}|{tmp_path}\n12|other|{tmp_path}\n13|{RUN}|/elsewhere\n"
    programs(squeue=f"{listed}15_2|{RUN}|{tmp_path}\n7|{RUN}|{odd}\n")
    shown = slurm.left_over(tmp_path)
    assert shown.startswith("jobs of a run that was killed")
    assert shown.endswith(
        f"still in Slurm for {tmp_path}; end them, then start again: scancel 11 15_2"
    )
    assert slurm.left_over(odd).endswith("scancel 7")


@pytest.mark.parametrize("answer", ["", "slurm_load_jobs error\n", 1])
def test_nothing_is_left_over_where_nothing_is_listed(programs, tmp_path, answer):
    programs(squeue=answer)
    assert slurm.left_over(tmp_path) is None


def test_each_name_of_a_partition_is_known_in_any_case():
    known = by_jobs("a", slurm_partition="gpu,gpu-long")
    names = ["gpu", "GPU-long"]
    assert slurm.unknown([known, by_jobs("b", qos="x")], "slurm_partition", names) is None
    asking = [known, by_jobs("b", slurm_partition="gpu,cpu")]
    key = "config key hardware.b.slurm_partition"
    said = slurm.unknown(asking, "slurm_partition", names)
    assert said == f"{key}: Slurm has no 'cpu'; choose from GPU-long, gpu"
    assert slurm.unknown(asking, "slurm_partition", []) is None


def test_a_run_that_cannot_submit_is_refused_at_once(programs, tmp_path):
    asking = [by_jobs("a", slurm_partition="gpu", gpu_model="a100")]
    said = slurm.complaint(asking, tmp_path, object())
    assert "hardware.a: its cells are measured by Slurm's jobs" in said
    said = slurm.complaint(asking, tmp_path, plugin())
    assert said.startswith("Slurm does not answer here")
    for listed, wrong in (
        ("gpu gpu:4\n", None),  # of no type
        ("cpu (null)\ngpu gpu:a100:4(S:0-1),shard:8\n", None),
        ("gpu gpu:h100:8\ngpu gpu:t4:1\n", "gpu_model: Slurm has no 'a100'; choose from h100, t4"),
        ("cpu gpu:a100:8\n", "slurm_partition: Slurm has no 'gpu'; choose from cpu"),
    ):
        programs(sinfo=listed)
        said = slurm.complaint(asking, tmp_path, plugin())
        assert said == (wrong and f"config key hardware.a.{wrong}")
    # machines that are not measured are not asked for
    used = replace(by_jobs("old", slurm_partition="gone"), measured=False)
    assert slurm.complaint([used, by_jobs("b")], tmp_path, plugin()) is None


@pytest.mark.parametrize(
    "age, command, accounting, complaint",
    [
        (300, "squeue", False, None),
        (300, "sacct", True, None),
        (300, "sacct", False, "sacct does not answer here"),
        (
            179,
            "squeue",
            True,
            "Slurm forgets a job 179 s after its end here (MinJobAge); add --slurm-status-command",
        ),
        (179, "sacct", True, None),
    ],
)
def test_the_end_of_a_job_must_be_seen(programs, age, command, accounting, complaint):
    programs(
        scontrol=f"Configuration\nMinJobAge               = {age} sec\n",
        sacct="" if accounting else 1,
    )
    shown = slurm.unseen_end(command)
    assert shown is None if complaint is None else complaint in shown


def test_the_profile_repeats_the_default_one_which_it_replaces():
    profiles = ROOT / "profiles"
    default, on_slurm = (
        yaml.safe_load((profiles / name / "config.yaml").read_text())
        for name in ("default", "slurm")
    )
    default.pop("resources")  # one GPU of this machine
    assert {key: on_slurm.get(key) for key in default} == default
    assert on_slurm["slurm-jobname-prefix"] + "_" == slurm.JOB_PREFIX
