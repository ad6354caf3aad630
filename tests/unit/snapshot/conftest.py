"""Made-up snapshots, and running the program."""

from functools import partial

import pytest


@pytest.fixture
def run_analyze(run_script, tmp_path):
    """Runs analyze_snapshot.py with these words in this process, into out/."""
    return partial(run_script, "analyze_snapshot.py", "--out", tmp_path / "out")
