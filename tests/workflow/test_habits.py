"""What users of Snakemake expect: it works from anywhere, says how far it is, and tidies up after itself."""

import json
import re
import shutil
import zipfile

import pytest

BARE_PATH = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": ""}


@pytest.fixture
def poisoned(tmp_path, project):
    """An environment in which torch and pandas are found, torch in the right version, but cannot be imported."""
    record = json.loads((project.result(project.COPY) / "record.json").read_text())
    for package in ("torch", "pandas"):
        (tmp_path / "poison" / package).mkdir(parents=True)
        (tmp_path / "poison" / package / "__init__.py").write_text(f"raise ImportError('no {package} in planning')\n")
    (tmp_path / "poison/torch/version.py").write_text(f"__version__ = '{record['machine']['torch']}'\ncuda = None\n")
    return {"PYTHONPATH": tmp_path / "poison"}


# The plugin for Slurm imports pandas as Snakemake starts, whatever is run: it is left out here.
NO_SLURM = """
import pkgutil
every = pkgutil.iter_modules
pkgutil.iter_modules = lambda *words: (one for one in every(*words) if "plugin_slurm" not in one.name)
"""


def test_reading_the_rules_imports_neither_torch_nor_pandas(project, poisoned):
    (poisoned["PYTHONPATH"] / "sitecustomize.py").write_text(NO_SLURM)
    assert project.run("-c", "import pandas", program="python3", environment=poisoned).code != 0
    shown = project.run("--list-rules", environment=poisoned)
    assert shown.code == 0, shown.text
    assert {"time_step", "measure_ceilings", "report"} <= set(shown.text.split())


def test_planning_imports_no_torch(project, poisoned):
    shutil.rmtree(poisoned["PYTHONPATH"] / "pandas")  # Snakemake itself imports pandas to compare params
    assert project.planned(environment=poisoned).cells == set()
    project.configure(lambda config: config["ceilings"]["cpu"].update(matmul_order=48))
    assert project.planned(environment=poisoned).cells == {project.MATMUL}


def test_without_activation_and_from_another_folder(project, tmp_path):
    elsewhere = ["--directory", project.folder, "--snakefile", project.folder / "Snakefile"]
    (project.result(project.WARMUP) / "record.json").unlink()
    run = project.run("--cores", 1, "report", *elsewhere, cwd=tmp_path, environment=BARE_PATH)
    assert run.code == 0, run.text
    assert project.WARMUP in project.state_of_cells()
    assert {path.name for path in tmp_path.iterdir()} <= {"project", "locks"}
    assert project.planned().cells == set()
    plan = project.planned(*elsewhere, cwd=tmp_path, environment=BARE_PATH)
    assert (plan.cells, plan.others) == (set(), set())


def test_another_working_folder_has_its_own_results(project, tmp_path):
    (tmp_path / "work").mkdir()
    record = (project.result(project.COPY) / "record.json").relative_to(project.folder)
    before = project.state_of_cells()
    words = ["--directory", tmp_path / "work", "--snakefile", project.folder / "Snakefile"]
    run = project.run("--cores", 1, record, *words, cwd="/", environment=BARE_PATH)
    assert run.code == 0, run.text
    assert (tmp_path / "work" / record).is_file()
    assert project.state_of_cells() == before
    assert "1 of 11 cells" in run.text


def test_a_run_counts_its_cells_and_ends_with_the_reports_address(measured_once):
    lines = (measured_once / "run.txt").read_text().splitlines()
    counts = [line.partition(",")[0] for line in lines if re.match(r"\d+ of 11 cells", line)]
    assert counts == [f"{i} of 11 cells" for i in range(1, 12)]
    (address,) = [line for line in lines if line.startswith("The report: ")]
    assert address.endswith("/results/report/index.html")
    assert lines.index(address) > max(i for i, line in enumerate(lines) if "Finished jobid" in line)


def outside_of_results(folder):
    """All files and folders of a project but results, Snakemake's own and what Python compiled."""
    own = (path.relative_to(folder) for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path for path in own if path.parts[0] not in ("results", ".snakemake")}


def test_a_run_that_goes_on_counts_from_what_is_there_and_writes_results_only(project):
    (project.result(project.WARMUP) / "record.json").unlink()
    before = outside_of_results(project.folder)
    run = project.run("--cores", 1, "report")
    assert outside_of_results(project.folder) == before
    assert [line for line in run.text.splitlines() if line.endswith(" cells") and " of " in line] == ["11 of 11 cells"]
    assert f"The report: {project.folder}/results/report/index.html" in run.text


def test_snakemakes_own_report_holds_the_figures(project):
    run = project.run("report", "--report", "report.zip")
    assert run.code == 0, run.text
    with zipfile.ZipFile(project.folder / "report.zip") as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    figures = {path.name for path in project.folder.glob("results/figures/*.svg")}
    assert len(figures) >= 6
    assert figures | {"timing.csv", "ceilings.csv", "index.html", "data.html"} <= names
