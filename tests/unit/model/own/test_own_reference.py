"""How models are named."""

import pytest
from common import one_line
from stepscope.model.own.reference import ModelError, parse


@pytest.mark.parametrize(
    "text", ["", "mine.py", "mine:build", "mine.py:", "mine.py:1x", "hf:", "hf: llama"]
)
def test_anything_else_is_one_line(text):
    assert repr(text) in one_line(ModelError, parse, text)
