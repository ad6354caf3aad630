"""Each recipe of docs/extending.md, performed in a copy of the project, is found where it says."""

import csv
import json
import shutil
import sys

import pytest
import yaml
from common import picked
from projects import ROOT, SNAKEMAKE, TINY, Project, copy_of_code
from recipes import perform, recipe

RECIPES = ("A study", "A chapter", "A value of an option", "A precision", "A column", "A GPU")


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A project in which all recipes were performed and the report was made, and the commands
    that each types."""
    folder = tmp_path_factory.mktemp("recipes") / "project"
    copy_of_code(folder)
    (folder / "docs").mkdir()
    shutil.copy2(ROOT / "config.yaml", folder / "config.yaml")
    commands = {heading: perform(recipe(heading), folder) for heading in RECIPES}
    added = yaml.safe_load((folder / "config.yaml").read_text())
    tiny = TINY | {"softmax": added["softmax"]}
    tiny["sizes"] = TINY["sizes"] | {"nano": added["sizes"]["nano"]}
    optimizer, precision = {"optimizer": "muon"}, {"precision": "bf16x1"}
    rungs = [*TINY["ladder"]["rungs"]["cpu"], optimizer, precision]
    tiny["ladder"] = TINY["ladder"] | {"rungs": {"cpu": rungs}}
    (folder / "config.yaml").write_text(yaml.safe_dump(tiny, sort_keys=False))
    project = Project(folder, folder.parent / "locks")
    run = project.run("--cores", 1, "report")
    assert run.code == 0, run.text
    return project, commands


def rows(project, table):
    with open(project.folder / "results/tables" / f"{table}.csv", newline="") as file:
        return list(csv.DictReader(file))


def typed(project, command):
    """What a command of the page prints, typed in the project with this environment's programs."""
    program, *words = command.split()
    programs = {"python": sys.executable, "snakemake": SNAKEMAKE}
    return project.run(*words, program=programs[program])


def test_a_study_is_in_the_plan_the_tables_and_the_explorer(extended):
    project, commands = extended
    by_hand, dry, real = commands["A study"]
    said = typed(project, by_hand)
    assert said.code == 0 and "softmax free" in said.text, said.text
    assert typed(project, dry).code == 0
    again = typed(project, real)
    assert again.code == 0 and "time_softmax" not in again.text, again.text
    cells = [row["cell"].partition("/")[2] for row in rows(project, "cells")]
    assert {"softmax/side64", "softmax/side128"} <= set(cells)
    times = picked(rows(project, "series"), study="softmax")
    assert picked(times, "size", quantity="time") == ["side64", "side128"]
    assert all(0 < float(row["median"]) < 1 for row in times)
    plan = project.run("scripts/plan.py", program=sys.executable)
    assert plan.code == 0 and "softmax" in plan.text, plan.text


def test_a_chapter_is_on_the_page_and_its_numbers_are_in_the_facts(extended):
    project, _ = extended
    page = (project.folder / "results/report/report.md").read_text()
    assert "# Softmax by itself" in page and "times as long as the smallest" in page
    facts = json.loads((project.folder / "results/report/facts.json").read_text())
    (own,) = facts["machines"].values()
    found = picked(rows(project, "series"), "size", "median", study="softmax", quantity="time")
    times = {size: float(median) for size, median in found}
    assert own["softmax"]["growth"]["value"] == pytest.approx(times["side128"] / times["side64"])


def test_values_of_options_and_a_precision_are_rungs_of_the_ladder(extended):
    project, commands = extended
    for heading in ("A value of an option", "A precision"):
        for command in commands[heading]:
            said = typed(project, command)
            assert said.code == 0, said.text
    of_step = {"study": "ladder", "quantity": "time", "phase": "step"}
    ran = dict(picked(rows(project, "series"), "variant", "status", **of_step))
    assert ran["muon"] == ran["bf16x1"] == "ok"
    page = (project.folder / "results/report/report.md").read_text()
    assert "Muon" in page and "fp32 in bf16 products" in page


def test_a_column_is_filled_and_described(extended):
    project, commands = extended
    assert set(picked(rows(project, "cells"), "seed")) == {"0"}
    (command,) = commands["A column"]
    words = command.partition(" > ")[0].split()[1:]
    assert "- `seed`/1: of the weights" in project.run(*words, program=sys.executable).text


def test_a_gpu_has_the_rates_of_its_data_sheet(extended):
    project, _ = extended
    asked = "from stepscope.results.data_sheets import peak_of"
    code, scripts = f"{asked}; print(peak_of('GeForce RTX 3080').bf16)", project.folder / "scripts"
    assert float(project.run("-c", code, program=sys.executable, cwd=scripts).text) == 59.5
