"""What other software, or a tool that appears, makes stale."""

import pytest


@pytest.fixture
def fake_torch(tmp_path):
    """Make a torch of some version that cannot be imported; gives the environment in which it is found."""

    def make(version):
        (tmp_path / "fake/torch").mkdir(parents=True)
        (tmp_path / "fake/torch/__init__.py").write_text("raise ImportError('planning imports no torch')\n")
        (tmp_path / "fake/torch/version.py").write_text(f"__version__ = '{version}'\ncuda = None\n")
        return {"PYTHONPATH": tmp_path / "fake"}

    return make


@pytest.fixture
def fake_tool(tmp_path):
    """Make a program that prints its version; gives the environment in which it is found."""

    def make(name, version):
        (tmp_path / "tools").mkdir(exist_ok=True)
        (tmp_path / "tools" / name).write_text(f"#!/bin/sh\necho '{name} {version}'\n")
        (tmp_path / "tools" / name).chmod(0o755)
        return {"PATH": f"{tmp_path / 'tools'}:/usr/bin:/bin"}

    return make


def test_another_torch_measures_everything_again(project, fake_torch):
    plan = project.planned(environment=fake_torch("9.9.9"))
    assert plan.cells == project.RUN_THE_MODEL | project.CEILINGS | project.ATTENTIONS | project.PROBES
    assert plan.others == project.REPORTING


def test_the_same_torch_elsewhere_measures_nothing(project, fake_torch):
    record = (project.result(project.COPY) / "record.json").read_text()
    version = record.split('"torch": "')[1].split('"')[0]
    assert project.planned(environment=fake_torch(version)).cells == set()


def test_a_tool_that_appears_measures_the_studies_that_use_it(project, fake_tool):
    without = {"PATH": "/usr/bin:/bin"}
    expand = "    expand=operations.ceilings_cells,\n"
    project.edit("scripts/stepscope/config/studies.py", expand, f'{expand}    tools=lambda device: ["tracer"],\n')
    project.edit("scripts/measure_ceilings.py", "settings, chosen={})", 'settings, chosen={}, tools=("tracer",))')
    declared = project.run("--cores", 1, "report", *project.UNTIL_TABLES, environment=without)
    assert declared.code == 0, declared.text
    assert project.planned(environment=without).cells == set()
    assert project.planned(environment=fake_tool("tracer", "1.0")).cells == project.CEILINGS


def test_a_tool_that_no_study_uses_does_nothing(project, fake_tool):
    plan = project.planned(environment=fake_tool("tracer", "1.0"))
    assert (plan.cells, plan.others) == (set(), set())


def test_nsys_that_appears_measures_no_profile_of_a_processor(project, fake_tool):
    """It records the work of a GPU, so that a CPU's cells do not depend on it."""
    assert project.planned(environment=fake_tool("nsys", "2025.3")).cells == set()
