"""Made-up snapshots, and running the program."""

import pytest
from common import SCRIPTS
from in_process import run_program
from snapshot_simulator import at_peak, written
from stepscope.snapshot import analysis

PROGRAM = SCRIPTS / "analyze_snapshot.py"


@pytest.fixture
def analyse(tmp_path):
    """Writes a simulator's or any other snapshot and analyses it; tables by name."""
    return lambda content: analysis.analyse_file(written(content, tmp_path / "snapshot.pickle"))


@pytest.fixture
def held(analyse):
    """Bytes of some categories at a snapshot's peak."""
    return lambda content, *categories: at_peak(analyse(content))[[*categories]].tolist()


@pytest.fixture
def run_analyze(monkeypatch, capsys):
    """Runs analyze_snapshot.py with these words in this process."""
    return lambda *words: run_program(PROGRAM, words, monkeypatch, capsys)
