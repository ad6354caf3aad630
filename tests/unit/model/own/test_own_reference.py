"""How models are named."""

from pathlib import Path

import pytest
from common import one_line
from stepscope.model.own import ModelError, parse


def test_a_file_and_its_function():
    parsed = parse("models/mine.py:build")
    assert (parsed.file, parsed.function, parsed.name) == (Path("models/mine.py"), "build", "")


def test_an_architecture():
    parsed = parse("hf:Qwen/Qwen3-0.6B")
    assert (parsed.file, parsed.name, parsed.folder) == (None, "Qwen/Qwen3-0.6B", None)


@pytest.mark.parametrize(
    "text", ["", "mine.py", "mine:build", "mine.py:", "mine.py:1x", "hf:", "hf: llama"]
)
def test_anything_else_is_one_line(text):
    assert repr(text) in one_line(ModelError, parse, text)
