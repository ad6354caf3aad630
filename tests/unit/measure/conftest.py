"""Helpers for the tests of measuring: running a program in a process of its own, and a tiny
cell."""

import csv
import hashlib
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from common import SCRIPTS


@pytest.fixture
def one_thread():
    """Torch on one thread: small work on several takes long on a machine that is busy."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def run_program():
    """Run a program of scripts/ as a person does; gives (exit code, stdout, stderr)."""

    def run(program, words, **environment):
        command = [sys.executable, str(SCRIPTS / program), *words.split()]
        shown = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, timeout=120
        )
        return shown.returncode, shown.stdout, shown.stderr

    return run


@pytest.fixture
def measured_cell(run_program, tmp_path):
    """Run a program that has to succeed without a word of error, for a cell in a folder; gives the
    folder, the record, the rows of samples and what was printed."""

    def run(program, words, **environment):
        folder = tmp_path / "cell"
        code, out, err = run_program(program, f"{words} --out {folder}", **environment)
        assert (code, err) == (0, "")
        record = json.loads((folder / "record.json").read_text())
        samples = (folder / "samples.csv").read_bytes()
        assert record["samples_sha256"] == hashlib.sha256(samples).hexdigest()
        rows = list(csv.DictReader(samples.decode().splitlines()))
        return SimpleNamespace(folder=folder, record=record, rows=rows, out=out)

    return run
