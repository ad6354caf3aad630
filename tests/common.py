"""What tests of all folders share: places of the checkout, and what is said of bad input."""

import subprocess
import sys
import zipfile
from operator import itemgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts"
STRANGERS = ROOT / "tests/data/strangers"
TRACES, SNAPSHOTS = (ROOT / f"tests/unit/{name}/recordings" for name in ("trace", "snapshot"))

# Of a step's spec: where and how often it runs; and that of one of ours that takes milliseconds.
QUICK = {
    "context": 6,
    "batch": 2,
    "warmup": 1,
    "steps": 2,
    "max_steps": 3,
    "max_seconds": 0.0,
    "processes": 1,
    "seed": 0,
    "threads": 1,
    "device": "cpu",
}
SHAPE = {"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "vocab_size": 11}
TINY = SHAPE | QUICK | {"precision": "fp32"}
TINY_TIMING = TINY | {"study": "timing"}


def one_line(error, call, *given, **named):
    """What a call says as it raises the error: one line."""
    with pytest.raises(error) as raised:
        call(*given, **named)
    said = str(raised.value)
    assert "\n" not in said
    return said


def picked(rows, *names, **where):
    """Of the rows that have these values, the value of one name or a tuple of several; without
    names the rows."""
    found = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return list(map(itemgetter(*names), found)) if names else found


def aggregated(folder):
    """The tables of the records of the committed example, made in a folder."""
    with zipfile.ZipFile(ROOT / "report/example/h200/cells.zip") as archive:
        archive.extractall(folder)
    program = [sys.executable, SCRIPTS / "aggregate.py", "--plan", folder / "plan.json"]
    where = ["--results", folder, "--out", folder / "tables"]
    subprocess.run([*program, *where], check=True, capture_output=True, timeout=300)
    return folder / "tables"
