"""`snakemake compare`: this folder's results beside another's, by the exit codes of the program beneath it."""

import json
import shutil

import pytest


def compare(project, *words, **options):
    return project.run("--cores", 1, "compare", "--config", *words, **options)


@pytest.fixture
def baseline(project, tmp_path):
    """The project's results once more."""
    shutil.copytree(project.folder / "results", tmp_path / "before/results")
    return tmp_path / "before"


def slowed(project, factor):
    """Two processes in each timing cell, as quick as each other; those of ALPHA took so many times as long."""
    for cell in sorted(project.TIMING):
        for path in project.folder.glob(f"results/*/{cell}/record.json"):

            def change(record, factor=factor if cell == project.ALPHA else 1.0):
                record["host"] = {"python": [0.002], "launches": []}
                for series in record["summary"]["phases"]:
                    first = series["processes"][0]
                    median = 0.01 * factor
                    series["processes"] = [first | {"median": median * share} for share in (1.0, 1.0001)]

            project.edit_json(path, change)


def test_the_exit_code_of_a_comparison_is_that_of_the_run(project, tmp_path):
    slowed(project, 1.0)
    shutil.copytree(project.folder / "results", tmp_path / "before/results")
    where = f"baseline={tmp_path / 'before'}"
    same = compare(project, where)
    assert same.code == 0, same.text
    assert f"The comparison: {project.folder}/results/compare/index.html" in same.text

    slowed(project, 2.0)
    slower = compare(project, where)
    assert slower.code == 1, slower.text
    page = (project.folder / "results/compare/compare.md").read_text()
    assert project.ALPHA in page and "slower" in page
    assert "snakemake --cores 1 compare --config baseline=" in page

    single = next(project.folder.glob(f"results/*/{project.BETA}/record.json"))
    slowed(project, 1.0)
    project.edit_json(single, lambda record: [each["processes"].pop() for each in record["summary"]["phases"]])
    assert compare(project, where).code == 0
    assert compare(project, where, "strict=true").code == 3


def test_bad_input_is_one_line_and_code_2(project, baseline):
    shutil.rmtree(next(baseline.glob("results/*/timing")).parent)
    run = compare(project, f"baseline={baseline}")
    assert run.code == 2, run.text
    assert f"error: {baseline}: there are no results; give a folder" in run.text
    run = project.run("--cores", 1, "compare")
    assert run.code == 2, run.text
    assert "config key baseline: compare needs a results folder or an archive" in run.text


def test_each_target_refuses_the_others_baseline(project, baseline):
    label = next(baseline.glob("results/*/timing")).parent.name
    (project.result(project.COPY) / "record.json").unlink()
    run = project.run("--cores", 1, "report", "--config", f"baseline={baseline}")
    assert run.code != 0 and f"config key baseline: '{baseline}' is a path, which only snakemake compare" in run.text
    assert not (project.result(project.COPY) / "record.json").exists()
    run = compare(project, f"baseline={label}")
    assert run.code == 2 and f"config key baseline: '{label}' is a machine, but compare needs" in run.text


def test_comparing_makes_no_cell_stale_and_measures_none(project, baseline):
    before = project.state_of_cells()
    assert compare(project, f"baseline={baseline}").code == 0
    assert project.state_of_cells() == before
    assert project.planned().cells == set()
    json.loads((project.folder / "results/compare/exit_code").read_text())
