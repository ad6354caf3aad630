"""Synthetic exports of Nsight Systems, and running the program."""

import json
import os

import pytest
from nsys_exports import LAYOUTS, Export
from stepscope.trace import analysis
from stepscope.trace.attribution import attribute


@pytest.fixture
def export():
    """An empty export in the layout of today."""
    return Export(LAYOUTS["2025.3"])


@pytest.fixture
def analyse(tmp_path):
    """Writes an export and analyses it; tables by name."""

    def run(export, phases=None, layers=None):
        return analysis.analyse(
            analysis.read(export.write(tmp_path / "trace.sqlite")), phases, layers
        )

    return run


@pytest.fixture
def analyse_json(tmp_path):
    """Writes a trace of torch.profiler, as bytes, as text or as what JSON is made of, and analyses
    it."""

    def run(content, *given):
        content = content if isinstance(content, str | bytes) else json.dumps(content)
        path = tmp_path / "trace.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return analysis.analyse(analysis.read(path), *given)

    return run


@pytest.fixture
def attributed(tmp_path):
    """Writes an export and joins it; an Attribution."""
    return lambda export: attribute(analysis.read(export.write(tmp_path / "trace.sqlite")))


@pytest.fixture
def run_analyze(monkeypatch, run_script):
    """Runs analyze_nsys.py with these words in this process; `path` is its PATH."""

    def run(*words, path=os.environ["PATH"]):
        monkeypatch.setenv("PATH", path)
        return run_script("analyze_nsys.py", *words)

    return run
