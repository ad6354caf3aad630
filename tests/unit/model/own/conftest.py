"""Models as users write them, in files of their own, and ranges that are kept instead of shown."""

import sys
from textwrap import dedent

import pytest

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a user's file; returns its reference. What imports torch needs no import of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text, name="mine.py", head=HEAD):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + dedent(text))
        return f"{path}:build"

    return write
