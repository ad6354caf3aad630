"""Which files a model of one's own comes from."""

import json
import sys

import pytest
from common import one_line
from stepscope.config.code_digest import Sources
from stepscope.config.own_models import _made_of, packages_of, with_files
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
    names = {
        "deeper/__init__.py",
        "deeper/more.py",
        "mine.py",
        "net/__init__.py",
        "net/layers.py",
        "net/rotary.py",
        "parts.py",
    }
    files = Sources(tmp_path, package=None).modules("mine.py").values()
    assert {*files} == {tmp_path / name for name in names}
    assert packages_of({"model": reference}) == {"absent"}


def test_where_the_folder_stands_does_not_count(write, tmp_path, monkeypatch):
    write("from parts import value", "models/named.py")
    write("value = (", "models/parts.py")  # as the cell will say
    write("from parts import value", "moved/named.py")
    write("value = (  ", "moved/parts.py")
    monkeypatch.chdir(tmp_path)
    whole = f"{tmp_path}/models/named.py:build"
    specs = [{"model": name} for name in ("models/named.py:build", whole, "moved/named.py:build")]
    one, same, other = (with_files("", spec) for spec in specs)
    assert one == same != other


def test_an_architectures_configuration(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert _made_of(f"hf:{tmp_path}")[0] != _made_of("hf:llama")[0]
    assert "transformers" in _made_of("hf:llama")[1]
    assert "no/such-repository is not in Hugging Face's cache" in one_line(
        ModelError, _made_of, "hf:no/such-repository"
    )
