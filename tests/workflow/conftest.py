"""Projects for the tests of the workflow."""

import shutil

import pytest
from projects import Project, copy_of_code


@pytest.fixture(scope="module")
def measured_once(tmp_path_factory):
    """A project whose report was made by a real run, whose output is in run.txt."""
    folder = tmp_path_factory.mktemp("measured") / "project"
    copy_of_code(folder)
    run = Project(folder, folder.parent / "locks").run("--cores", 1, "report")
    assert run.code == 0, run.text
    (folder / "run.txt").write_text(run.text)
    return folder


@pytest.fixture
def bare_project(tmp_path):
    """A project without results."""
    copy_of_code(tmp_path / "project")
    return Project(tmp_path / "project", tmp_path / "locks")


@pytest.fixture
def project(tmp_path, measured_once):
    """A project of a test's own, in which every cell has been measured and the report written."""
    shutil.copytree(measured_once, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project", tmp_path / "locks")
