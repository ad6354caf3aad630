"""Cells as jobs of a real Slurm: cells, staleness, every way in which a job ends badly, a killed
run, wrong names."""

import os
import re
import signal

import pytest

NODES = {
    "h100": {"slurm_partition": "h100", "exclusive": True},
    "t4": {"slurm_partition": "t4", "exclusive": True},
}
# What the cells of some contexts do instead of measuring.
FAIL, FILL_MEMORY, HANG, BE_CANCELLED = 21, 22, 23, 24
BAD_CELLS = f"""
        import os, subprocess, threading
        context = 0 if os.path.exists("well") else running.spec["context"]
        if context == {FAIL}:
            raise RuntimeError("broken on purpose")
        if context == {FILL_MEMORY}:
            filled = b"x" * 2**31
        if context == {BE_CANCELLED}:
            subprocess.run(["scancel", os.environ["SLURM_JOB_ID"]], check=True)
        if context in ({FILL_MEMORY}, {HANG}, {BE_CANCELLED}):
            threading.Event().wait()
"""
PROGRAM, MAIN, RUNNING = "scripts/time_step.py", "def main() -> None:\n", " as running:\n"


def cell(hardware, context):
    return f"results/{hardware}/timing/alpha/ctx{context}/fp32"


def submitted(run):
    """Cells for which a job was submitted, by their folders."""
    logs = re.findall(
        r"has been submitted with SLURM jobid \d+ \(log: .*/(\w+)_alpha_(\d+)_fp32_/", run.text
    )
    return sorted(cell(hardware, context) for hardware, context in logs)


def jobs(project, state):
    """How many jobs are in a state."""
    return project.shell(f"squeue --noheader --states={state}").count("\n")


def test_a_run_on_two_machines_is_killed_and_goes_on_and_then_has_one_context_more(lab, project_in):
    """A node that is ours alone runs one job at a time."""
    project = project_in(lab, NODES, [8, 16])
    project.pause_after(PROGRAM, MAIN)
    process = project.start(*project.submitting())
    project.wait_until(
        lambda: jobs(project, "R") == 2 and jobs(project, "PD") == 2, "two jobs run and two wait"
    )
    folders = set(project.folder.glob("results/slurm/*/*"))  # slurmd needs those of jobs that wait
    assert "is at work in" in project.submit().text
    assert set(project.folder.glob("results/slurm/*/*")) == folders
    os.kill(project.snakemake_of(process), signal.SIGKILL)
    process.wait()

    refused = project.submit()
    assert refused.code != 0
    (line,) = [
        line
        for line in refused.text.splitlines()
        if line.startswith("jobs of a run that was killed")
    ]
    command = line.partition("start again: ")[2]
    assert re.fullmatch(r"scancel( \d+){4}", command)
    project.shell(command)
    (project.folder / "hold").unlink()

    project.configure(lambda config: config["timing"]["grid"]["cpu"][0].update(context=[8]))
    again = project.submit()
    assert again.code == 0, again.text
    assert submitted(again) == [cell(hardware, 8) for hardware in NODES]
    before = {path: path.stat().st_mtime_ns for path in project.records()}
    project.configure(lambda config: config["timing"]["grid"]["cpu"][0]["context"].append(4))
    more = project.submit()
    assert more.code == 0, more.text
    assert submitted(more) == [cell(hardware, 4) for hardware in NODES]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_job_whose_node_vanishes_is_queued_again_by_slurm_and_measures_its_cell(lab, project_in):
    project = project_in(lab, NODES, [8])
    project.pause_after(PROGRAM, MAIN)
    process = project.start(*project.submitting())
    project.wait_until(lambda: jobs(project, "R") == 2, "two jobs run")
    project.shell("scontrol update nodename=n2 state=down reason=gone")
    project.wait_until(lambda: jobs(project, "PD") == 1, "one of them waits again")
    assert project.records() == []
    (project.folder / "hold").unlink()
    project.shell("scontrol update nodename=n2 state=resume")
    waiting = project.shell("squeue --noheader --states=PD --format=%i")
    # Not after two minutes, nor at once: a node refuses what it has just ended.
    project.shell(f"scontrol update jobid={waiting.strip()} starttime=now+5")
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    folders = [path.parent for path in project.records()]
    assert folders == [project.folder / cell(hardware, 8) for hardware in NODES]
    again = project.submit()
    assert again.code == 0 and submitted(again) == []


def test_each_bad_end_names_the_cell_and_its_log_and_the_others_go_on(lab, project_in):
    project = project_in(
        lab,
        {"node": {"slurm_partition": "gpu"}},
        [8, FAIL, FILL_MEMORY, HANG, BE_CANCELLED],
        limits=[{"memory": 1.5, "cpus": 8, "minutes": 1}],
    )
    project.edit(PROGRAM, RUNNING, RUNNING + BAD_CELLS)
    project.edit(
        "scripts/stepscope/machine/process.py", "minutes * 60", "minutes * 30"
    )  # the least limit is 1 minute
    run = project.submit()
    assert run.code != 0
    assert [path.parent for path in project.records()] == [project.folder / cell("node", 8)]
    end = run.text[run.text.index(" cells are without a result:") :]
    for context in (FAIL, FILL_MEMORY, HANG, BE_CANCELLED):
        assert f"  {cell('node', context)}  (log: {cell('node', context)}/measure.log)" in end
    assert "RuntimeError: broken on purpose" in run.text
    assert "gave up after the time limit of 1 minutes" in run.text
    assert "exceeded memory limit" in run.text
    assert set(re.findall(r"SLURM status is: '(\w+)'", run.text)) == {"CANCELLED", "FAILED"}
    (project.folder / "well").touch()
    again = project.submit()
    bad = (FAIL, FILL_MEMORY, HANG, BE_CANCELLED)
    assert again.code == 0 and submitted(again) == [cell("node", context) for context in bad]


@pytest.mark.parametrize(
    "entry, complaint",
    [
        (
            {"slurm_partition": "gpus"},
            "slurm_partition: Slurm has no 'gpus'; choose from gpu, h100, t4",
        ),
        (
            {"gpu_model": "a100", "device": "cuda"},
            "gpu_model: Slurm has no 'a100'; choose from h100, t4",
        ),
    ],
)
def test_a_wrong_name_is_one_line_before_anything_is_submitted(lab, project_in, entry, complaint):
    run = project_in(lab, {"node": entry}, [8]).submit()
    assert run.code != 0 and "has been submitted" not in run.text
    assert [line for line in run.text.splitlines() if line.startswith("config key")] == [
        f"config key hardware.node.{complaint}"
    ]


def test_a_job_that_comes_to_another_machine_fails_with_one_line(lab, project_in):
    hardware = {
        "t4": {"gpu_model": "t4", "device": "cuda", "expect": "T4"},
        "other": {"slurm_partition": "h100", "expect": "a CPU that nobody makes"},
    }
    project = project_in(lab, hardware, [8])
    run = project.submit()
    assert run.code != 0
    assert "hardware.t4: this machine is without a GPU, not the expected T4" in run.text
    assert re.search(
        "hardware.other: this machine is .*, not the expected a CPU that nobody", run.text
    )
    (log,) = project.folder.glob("results/slurm/rule_time_step/t4_*/*.log")
    assert re.findall(r"^ *Host: (\w+)$", log.read_text(), re.MULTILINE) == [
        "n2",
        "n2",
    ]  # where the T4 is
