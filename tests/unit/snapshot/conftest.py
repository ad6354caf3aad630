"""Made-up snapshots, and running the program."""

import pytest
from common import SCRIPTS
from in_process import run_program
from snapshot_simulator import written
from stepscope.snapshot import analysis

PROGRAM = SCRIPTS / "analyze_snapshot.py"


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
