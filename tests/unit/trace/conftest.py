"""Synthetic exports of Nsight Systems, and running the program."""

import os

import pytest
from nsys_exports import Export


@pytest.fixture
def export():
    """An empty export in the layout of today."""
    return Export()


@pytest.fixture
def run_analyze(monkeypatch, run_script, tmp_path):
    """Runs analyze_nsys.py with these words in this process, into out/; `path` is its PATH."""

    def run(*words, path=os.environ["PATH"]):
        monkeypatch.setenv("PATH", path)
        return run_script("analyze_nsys.py", "--out", tmp_path / "out", *words)

    return run
