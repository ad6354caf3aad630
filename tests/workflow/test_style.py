"""Python, the rules and the workflow are as the field's own tools want them."""

import os
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
        "mypy --no-incremental --cache-dir=/dev/null",
    ],
)
def test_linters_and_formatters_find_nothing(command):
    program, *words = command.split()
    # snakefmt looks for the shfmt beside it.
    there = os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    asked = [PROGRAMS / program, *words]
    shown = subprocess.run(asked, cwd=ROOT, env=there, capture_output=True, text=True, timeout=300)
    assert shown.returncode == 0, shown.stdout + shown.stderr
