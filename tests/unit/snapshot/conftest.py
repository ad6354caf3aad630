"""Made-up snapshots, and running the program."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "recordings"))

from in_process import run_program
from snapshot_simulator import written
from stepscope.snapshot import analysis

PROGRAM = Path(__file__).resolve().parents[3] / "scripts" / "analyze_snapshot.py"


@pytest.fixture
def analyse(tmp_path):
    """Writes a snapshot and analyses it; tables by name."""

    def run(content, protocol=4):
        return analysis.analyse_file(written(content, tmp_path / "snapshot.pickle", protocol))

    return run


@pytest.fixture
def run_analyze(monkeypatch, capsys):
    """Runs analyze_snapshot.py with these words in this process."""
    return lambda *words: run_program(PROGRAM, words, monkeypatch, capsys)
