"""Made-up snapshots, and running the program."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

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
def run_analyze():
    """Runs analyze_snapshot.py with these words, with at most so much address space (bytes)."""

    def run(*words, memory=None):
        def limit():
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        command = [sys.executable, str(PROGRAM), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit)

    return run
