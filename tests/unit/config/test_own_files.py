"""Which files a model of one's own comes from."""

import json
import sys
from pathlib import Path

import pytest
from stepscope.config.own_models import _files, packages_of
from stepscope.model.own.reference import ModelError


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file of Python as it is given; returns the reference of its function `build`."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(code, name="mine.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        return f"{path}:build"

    return write


def test_files_are_those_that_are_imported_from_the_folder(write, tmp_path):
    reference = write("import parts\nfrom net import layers\nimport json, absent")
    write("from deeper.more import value", "parts.py")
    write("value = 1", "deeper/more.py")
    write("", "deeper/__init__.py")
    write("from . import rotary\nfrom .. import no_package", "net/layers.py")
    write("", "net/__init__.py")
    write("import parts", "net/rotary.py")
    write("value = 2", "unrelated.py")
    write("value = 3", "net/unrelated.py")
    names = [
        "deeper/__init__.py",
        "deeper/more.py",
        "mine.py",
        "net/__init__.py",
        "net/layers.py",
        "net/rotary.py",
    ]
    assert list(_files(reference)) == [tmp_path / name for name in [*names, "parts.py"]]
    assert packages_of({"model": reference}) == ("python:absent",)


def test_files_are_named_as_the_reference_names_them(write, tmp_path, monkeypatch):
    write("from parts import value", "models/named.py")
    write("value = (", "models/parts.py")  # as the cell will say
    monkeypatch.chdir(tmp_path)
    assert list(_files("models/named.py:build")) == [
        Path("models/named.py"),
        Path("models/parts.py"),
    ]


def test_an_architectures_configuration(tmp_path, project_root):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    built_by = project_root / "models/hf.py"
    assert set(_files(f"hf:{tmp_path}")) == {built_by, tmp_path / "config.json"}
    assert list(_files("hf:llama")) == [built_by]
    with pytest.raises(ModelError, match="no/such-repository is not in Hugging Face's cache"):
        _files("hf:no/such-repository")
