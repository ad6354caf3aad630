"""How models are named, and which files they come from."""

import json
from pathlib import Path

import pytest
from stepscope.model.own import ModelError, files_of, parse


def test_a_file_and_its_function():
    parsed = parse("models/mine.py:build")
    assert (parsed.file, parsed.function, parsed.name) == (Path("models/mine.py"), "build", None)


def test_an_architecture():
    parsed = parse("hf:Qwen/Qwen3-0.6B")
    assert (parsed.file, parsed.name, parsed.folder) == (None, "Qwen/Qwen3-0.6B", None)


@pytest.mark.parametrize("text", ["", "mine.py", "mine:build", "mine.py:", "mine.py:1x", "hf:", "hf: llama"])
def test_anything_else_is_one_line(text):
    with pytest.raises(ModelError) as caught:
        parse(text)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_are_those_that_are_imported_from_the_folder(write, tmp_path):
    reference = write("import parts\nfrom net import layers\nimport json, absent", head="")
    write("from deeper.more import value", "parts.py", head="")
    write("value = 1", "deeper/more.py", head="")
    write("", "deeper/__init__.py", head="")
    write("from . import rotary\nfrom .. import outside", "net/layers.py", head="")
    write("", "net/__init__.py", head="")
    write("import parts", "net/rotary.py", head="")
    write("value = 2", "unrelated.py", head="")
    write("value = 3", "net/unrelated.py", head="")
    names = ["deeper/__init__.py", "deeper/more.py", "mine.py", "net/__init__.py", "net/layers.py", "net/rotary.py"]
    assert files_of(reference) == [tmp_path / name for name in [*names, "parts.py"]]


def test_files_are_named_as_the_reference_names_them(write, tmp_path, monkeypatch):
    write("from .parts import value", "models/mine.py", head="")
    write("value = 1", "models/parts.py", head="")
    monkeypatch.chdir(tmp_path)
    assert files_of("models/mine.py:build") == [Path("models/mine.py"), Path("models/parts.py")]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match=r"there is no file .*absent\.py"):
        files_of(f"{tmp_path}/absent.py:build")


def test_a_file_that_is_no_python(write):
    with pytest.raises(ModelError, match=r"mine\.py does not import: line 2: SyntaxError"):
        files_of(write("x = 1\ndef build(:", head=""))


def test_an_architectures_configuration(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert files_of(f"hf:{tmp_path}") == [tmp_path / "config.json"]
    assert files_of("hf:llama") == []
    assert files_of("hf:no/such-repository") == []


def test_the_plan_needs_no_torch(start_python):
    code = "from stepscope.model import own; own.parse('a.py:b'); print('torch' in sys.modules)"
    assert start_python(code).communicate()[0].strip() == "False"
