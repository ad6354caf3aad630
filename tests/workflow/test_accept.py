"""An edit that changes no number is accepted: nothing is measured again, and records say what happened."""

import json
import shutil

STEPS = "scripts/stepscope/measure/steps.py"
REASON = "a name of its own; the same operations"


def refactor(project):
    project.edit(STEPS, "def summary(", "RENAMED = True\n\n\ndef summary(")


def test_an_accepted_edit_measures_nothing_again(project):
    record = project.result(project.ALPHA) / "record.json"
    measured_by = json.loads(record.read_text())["code"]
    refactor(project)
    assert project.planned().cells == project.RUN_THE_MODEL
    before = record.read_bytes()
    tried = project.python("scripts/accept.py", "--reason", REASON, "--dry-run")
    assert (tried.code, record.read_bytes()) == (0, before), tried.text
    accepted = project.python("scripts/accept.py", "--reason", REASON)
    assert accepted.code == 0, accepted.text
    plan = project.planned()
    assert plan.cells == set()
    assert plan.others <= project.REPORTING
    now = json.loads(record.read_text())
    assert now["code"] == measured_by
    assert [one["reason"] for one in now["accepted"]] == [REASON]
    assert now["accepted"][0]["code"] not in ("", measured_by)
    written = project.run("--cores", 1, "results/tables/timing.csv")
    assert written.code == 0, written.text
    assert REASON in (project.folder / "results/tables/timing.csv").read_text()


def test_only_the_named_cells_are_accepted(project):
    refactor(project)
    named = (
        "--reason",
        REASON,
        "timing/alpha/",
        "results/" + next(project.folder.glob("results/*/ladder")).parent.name,
    )
    wrong = project.python("scripts/accept.py", *named[:3], "timing/alfa")
    assert (wrong.code, "timing/alfa is part of no cell's path" in wrong.text) == (1, True)
    assert project.python("scripts/accept.py", *named[:3], f"{named[3]}/ladder").code == 0
    assert project.planned().cells == project.RUN_THE_MODEL - {project.ALPHA} - project.LADDERS


def test_a_cell_that_differs_in_more_than_its_code_is_not_accepted(project):
    refactor(project)

    def measured_elsewhere(record):
        record["machine"]["cpu"] = "another"

    project.edit_json(project.result(project.ALPHA) / "record.json", measured_elsewhere)
    tried = project.python("scripts/accept.py", "--reason", REASON, "timing/alpha")
    assert tried.code == 1
    assert f"{project.ALPHA}: measured on another machine" in tried.text


def test_a_reason_is_needed(project):
    assert "--reason" in project.python("scripts/accept.py").text
    assert "--reason is empty" in project.python("scripts/accept.py", "--reason", " ").text
    assert "--directory" in project.python("scripts/accept.py", "--reason", REASON, "--", "--directory", "other").text


def test_an_acceptance_that_was_cut_short_is_completed(project):
    """The records were written, and Snakemake not told: as after a kill."""
    refactor(project)
    state = project.folder / ".snakemake/metadata"
    kept = project.folder / "metadata.kept"
    shutil.copytree(state, kept)
    assert project.python("scripts/accept.py", "--reason", REASON).code == 0
    shutil.rmtree(state)
    kept.rename(state)
    assert project.planned().cells == project.RUN_THE_MODEL
    again = project.python("scripts/accept.py", "--reason", REASON)
    assert f"{len(project.RUN_THE_MODEL)} were accepted before" in again.text
    assert project.planned().cells == set()
