"""Python, the rules and the workflow are as the field's own tools want them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT, PROGRAMS = Path(__file__).resolve().parents[2], Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        "ruff check --no-cache",
        "ruff format --check --no-cache",
        "snakefmt --check --format-shell Snakefile rules",
        "snakemake --lint",
    ],
)
def test_linters_and_formatters_find_nothing(command):
    program, *words = command.split()
    shown = subprocess.run([PROGRAMS / program, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stdout + shown.stderr
