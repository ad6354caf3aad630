"""Helpers for the tests of several packages: the checkout, and Python in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
SCRIPTS = str(ROOT / "scripts")


@pytest.fixture
def project_root():
    """Folder of the checkout."""
    return ROOT


@pytest.fixture
def start_python():
    """Start Python code in a process with pipes; it and what it leaves are killed when the test ends."""
    started = []

    def start(code, *arguments, **options):
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {SCRIPTS!r})\n{code}", *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, **(pipes | options))
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            pipe.close()
