"""The workflow does what one expects of a workflow: with the real snakemake, on a tiny grid."""

import pandas as pd


def test_the_first_run_makes_all_and_the_second_does_nothing(project):
    printed = (project.folder / "run.txt").read_text()
    cells = list((project.folder / "results").glob("*/*/**/record.json"))
    assert len(cells) == 3 + 1 + 1 + 2 + 1 + 1 + 1
    # analyses; plan … report
    assert f"{10 + 2 + 5} of 17 steps (100%) done" in printed
    assert not (project.folder / "results/.measured").exists()
    before = project.tree()
    again = project.run("-n")
    assert again.code == 0 and "Nothing to be done" in again.text
    assert project.tree() == before


def test_a_dry_run_writes_nothing(bare_project):
    before = bare_project.tree()
    planned = bare_project.run("-n", "report", "archive", "site")
    assert planned.code == 0, planned.text
    assert planned.counts["time_step"] == 3
    assert bare_project.tree() == before


def test_it_can_be_a_module_of_another_workflow(bare_project, tmp_path):
    snakefile = (
        'module stepscope:\n    snakefile: "../project/Snakefile"\n\nuse rule * from stepscope as'
        " ss_*\n"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other/Snakefile").write_text(snakefile)
    planned = bare_project.run("-n", "-p", "ss_report", cwd=tmp_path / "other")
    assert planned.code == 0, planned.text
    assert planned.counts["ss_time_step"] == 3


def test_an_edit_makes_stale_what_runs_it_and_touch_accepts_it(project):
    model, torch = "scripts/stepscope/model", "import torch\n"
    project.edit(f"{model}/transformer.py", torch, "import torch  # as before\n")
    program = '"$STEPSCOPE"/run_cell.py'
    project.edit("rules/measure.smk", program, f" {program}")
    assert "Nothing to be done" in project.run("-n").text
    project.edit(f"{model}/attention/sdpa.py", torch, f"import math\n\n{torch}")
    assert project.run("-n").counts["time_step"] == 1
    accepted = project.run("--cores", 1, "--touch")
    assert accepted.code == 0, accepted.text
    assert "Nothing to be done" in project.run("-n").text


def test_a_report_of_what_is_there_names_what_is_missing(project):
    (lost,) = project.folder.glob("results/*/timing/beta/ctx8/fp32")
    (lost / "record.json").unlink()
    partial = project.run("--cores", 1, "--config", "measure=false")
    assert partial.code == 0, partial.text
    cells = pd.read_csv(project.folder / "results/tables/cells.csv").query("status != 'ok'")["cell"]
    assert [cell.partition("/")[2] for cell in cells] == ["timing/beta/ctx8/fp32"]
