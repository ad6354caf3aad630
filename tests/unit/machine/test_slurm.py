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


def plugin(status_command="squeue"):
    """What Snakemake's plugin was told."""
    return SimpleNamespace(status_command=status_command, init_seconds_before_status_checks=20)


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


def test_a_partition_is_right_if_each_of_its_names_is_known(programs):
    programs(sinfo="gpu\nGPU-long\n")
    known = by_jobs("a", slurm_partition="gpu,gpu-long")
    assert slurm.wrong_partition([known, by_jobs("b", qos="x")]) is None
    said = slurm.wrong_partition([known, by_jobs("b", slurm_partition="gpu,cpu")])
    key = "config key hardware.b.slurm_partition"
    assert said == f"{key}: there is no partition 'cpu'; choose from GPU-long, gpu"
    # machines that are not measured are not asked for
    used = replace(by_jobs("old", slurm_partition="gone"), measured=False)
    assert slurm.wrong_partition([used]) is None


def test_types_of_gpu_are_those_that_nodes_have(programs):
    asking = [by_jobs("t4", gpu_model="t4")]
    programs(sinfo="(null)\ngpu:a100:4(S:0-1),shard:8\ngpu:h100:8\n")
    assert slurm.wrong_gpu_model([by_jobs("a", gpu_model="a100")]) is None
    key = "config key hardware.t4.gpu_model"
    said = f"{key}: there is no type of GPU 't4'; choose from a100, h100"
    assert slurm.wrong_gpu_model(asking) == said
    programs(sinfo="gpu:4\n")
    assert slurm.wrong_gpu_model(asking) is None


def test_accounts_are_asked_of_sacctmgr_and_else_of_sshare(programs, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    asking = [by_jobs("a", slurm_account="Physics")]
    programs(sacctmgr="   physics\n", sshare=1)
    assert slurm.wrong_account(asking) is None
    programs(sacctmgr=1, sshare="chemistry\nmaths\n")
    key = "hardware.a.slurm_account"
    said = f"config key {key}: there is no account of ada 'Physics'; choose from chemistry, maths"
    assert slurm.wrong_account(asking) == said
    programs(sshare=1)
    said = f"{key}: neither sacctmgr nor sshare names accounts of ada"
    assert said in slurm.wrong_account(asking)
    assert slurm.wrong_account([by_jobs("a")]) is None


def test_a_run_that_cannot_submit_is_refused_at_once(programs, tmp_path):
    asking = [by_jobs("a", slurm_partition="gpu", gpu_model="a100")]
    said = slurm.complaint(asking, tmp_path, object())
    assert "hardware.a: its cells are measured by Slurm's jobs" in said
    said = slurm.complaint(asking, tmp_path, plugin())
    assert said.startswith("Slurm does not answer here")
    programs(sinfo="")
    assert slurm.complaint(asking, tmp_path, plugin()) is None


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
        (59, "squeue", True, None),
        (59, "squeue", False, "Slurm forgets a job 59 s after its end (MinJobAge)"),
    ],
)
def test_the_end_of_a_job_must_be_seen(programs, age, command, accounting, complaint):
    programs(
        scontrol=f"Configuration\nMinJobAge               = {age} sec\n",
        sacct="" if accounting else 1,
    )
    shown = slurm.unseen_end(plugin(command))
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
