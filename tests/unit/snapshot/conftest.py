"""Made-up snapshots, and running the program."""

from functools import partial

import pytest
from snapshot_simulator import at_peak, written
from stepscope.snapshot import analysis


@pytest.fixture
def analyse(tmp_path):
    """Writes a simulator's or any other snapshot and analyses it; tables by name."""
    return lambda content: analysis.analyse_file(written(content, tmp_path / "snapshot.pickle"))


@pytest.fixture
def held(analyse):
    """Bytes of some categories at a snapshot's peak."""
    return lambda content, *categories: at_peak(analyse(content))[[*categories]].tolist()


@pytest.fixture
def run_analyze(run_script):
    """Runs analyze_snapshot.py with these words in this process."""
    return partial(run_script, "analyze_snapshot.py")
