"""Machines as an axis: results that were copied from elsewhere, side by side with others, and refused if mixed."""

import json
import os
import shutil

import pytest

OTHER = {"measure": False}


def label_of(project):
    return next(project.folder.glob("results/*/timing")).parent.name


def forget_the_reporting(project):
    """Leave what a person copies: the cells."""
    for made in ("tables", "figures", "report", "plan"):
        shutil.rmtree(project.folder / "results" / made)
    shutil.rmtree(project.folder / ".snakemake")


@pytest.fixture
def moved(project):
    """A project with nothing but the cells of another machine, called `box`."""
    forget_the_reporting(project)
    (project.folder / "results" / label_of(project)).rename(project.folder / "results/box")
    project.configure(hardware={"box": OTHER})
    return project


def test_a_report_of_copied_results_measures_nothing_and_needs_no_torch(moved, tmp_path):
    (tmp_path / "broken/torch").mkdir(parents=True)
    (tmp_path / "broken/torch/__init__.py").write_text("raise SystemExit('torch is not to be imported here')\n")
    (moved.folder / "scripts/stepscope/model/loss.py").open("a").write("\nAN_EDIT = 1\n")
    without_torch = {"PYTHONPATH": tmp_path / "broken"}
    assert moved.planned(environment=without_torch).cells == set()
    before = moved.state_of_cells()
    run = moved.run("--cores", 1, "report", environment=without_torch)
    assert run.code == 0, run.text
    assert moved.state_of_cells() == before
    assert "box" in (moved.folder / "results/report/report.md").read_text()
    assert "Nothing to be done" in moved.run("-n", "report").text


def test_copied_results_stand_beside_those_of_the_machine_at_hand(project):
    label = label_of(project)
    shutil.copytree(project.folder / "results" / label, project.folder / "results/box")
    shutil.rmtree(project.folder / "results/box" / project.BETA)
    project.configure(hardware={label: {}, "box": OTHER}, baseline="box")
    plan = project.planned()
    assert plan.cells == set() and plan.others >= project.AGGREGATING
    assert project.run("--cores", 1, "report").code == 0
    table = (project.folder / "results/tables/timing.csv").read_text()
    assert [line.partition("/")[0] for line in table.splitlines()[1:]] == ["box"] * 2 + [label] * 3


def test_another_threads_setting_is_no_other_spec_of_what_is_only_used(moved):
    moved.configure(threads=2)
    assert moved.run("--cores", 1, "report", *moved.UNTIL_TABLES).code == 0


def test_cells_that_are_not_there_are_not_missed_but_a_label_without_any_is(moved):
    shutil.rmtree(moved.folder / "results/box" / moved.BETA)
    assert moved.run("--cores", 1, "report", *moved.UNTIL_TABLES).code == 0
    assert moved.planned().cells == set()
    moved.configure(hardware={"elsewhere": OTHER})
    assert moved.run("-n", "report").complaint.startswith(
        "config key hardware.elsewhere: measure: false, but results/elsewhere holds no cell of the grids; copy"
    )


def test_copies_without_a_study_are_one_line(moved):
    shutil.rmtree(moved.folder / "results/box/attention")
    assert moved.run("-n", "report").complaint.startswith(
        "no machine under hardware has results of the study attention, and none is to be measured; copy"
    )


def test_a_copy_that_is_replaced_by_an_older_one_is_read(moved):
    assert moved.run("--cores", 1, "report", "--until", "aggregate_timing").code == 0
    record = moved.folder / "results/box" / moved.BETA / "record.json"
    moved.edit_json(record, lambda content: content.update(code="0123456789abcdef"))
    os.utime(record, (1, 1))
    assert moved.run("--cores", 1, "report", "--until", "aggregate_timing").code == 0
    assert "0123456789abcdef" in (moved.folder / "results/tables/timing.csv").read_text()


def test_results_of_two_machines_under_one_label_are_refused_by_name(moved):
    record = moved.folder / "results/box" / moved.BETA / "record.json"

    def on_another(content):
        content["machine"]["torch"] = "1.0"
        content["provenance"]["started"] = "2000-01-01T00:00:00+00:00"

    moved.edit_json(record, on_another)
    run = moved.run("--cores", 1, "report")
    assert run.code != 0
    torch = json.loads((moved.folder / "results/box" / moved.ALPHA / "record.json").read_text())["machine"]["torch"]
    assert (
        f"results/box/{moved.BETA}: measured on another machine than the newest of box: torch is '1.0' there, "
        f"'{torch}' on the newest"
    ) in run.text
    assert "Nothing is measured for box here: copy results of one machine" in run.text


def test_results_of_an_unexpected_machine_are_refused(moved):
    moved.configure(hardware={"box": OTHER | {"expect": "H100"}})
    run = moved.run("--cores", 1, "report")
    assert run.code != 0 and "but the configuration expects 'H100'" in run.text


JOBS = {"h100": {"gpu_model": "h100", "expect": "H100"}, "t4": {"constraint": "t4"}}


def test_cells_for_jobs_are_planned_without_a_gpu_and_measured_by_jobs_alone(bare_project):
    bare_project.configure(hardware=JOBS, device="auto")
    with_gpu_grids(bare_project)
    shown = bare_project.run("-n", "report")
    assert shown.code == 0 and "results/h100/timing/alpha/ctx8/fp32/record.json" in shown.text
    assert "Timing alpha, context 8, fp32 on h100" in shown.text
    assert "Timing alpha, context 8, fp32 on t4" in shown.text
    complaint = bare_project.run("--cores", 1, "report").text
    assert "config key hardware.h100: its cells are measured by Slurm's jobs; run with --workflow-profile" in complaint
    assert not list(bare_project.folder.glob("results/*/*/*/record.json"))


def with_gpu_grids(project):
    """Let every study have for a GPU what it has for a CPU."""

    def change(value):
        for item in value.values() if isinstance(value, dict) else ():
            change(item)
        if isinstance(value, dict) and "cpu" in value:
            value.setdefault("cuda", value["cpu"])

    project.configure(change)


def test_a_cell_that_differs_from_the_newest_of_its_label_is_measured_again_and_no_other(project):
    label = label_of(project)
    (project.folder / "results" / label).rename(project.folder / "results/node")
    entry = {"slurm_partition": "cpu", "device": "cpu", "threads": 1}
    project.configure(hardware={"node": entry})
    assert project.run("--touch", "report").code == 0
    assert project.planned().cells == set()
    older = {"provenance": {"started": "2000-01-01T00:00:00+00:00"}, "machine": {"torch": "1.0"}}
    project.edit_json(
        project.folder / "results/node" / project.BETA / "record.json",
        lambda content: [content[part].update(change) for part, change in older.items()],
    )
    plan = project.planned()
    assert plan.cells == {project.BETA}
    assert "node: 1 cell was measured on another machine than the newest (torch is '1.0'" in project.run("-n").text
