"""Cells made by hand, in a results folder of a test's own."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

CODE = "0123456789abcdef"
MACHINE = {"device": "cpu", "cpu": "AMD EPYC", "python": "3.12", "torch": "2.13.0+cpu"}
TIMING = {
    **{"study": "timing", "d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "vocab_size": 11, "context": 6},
    **{"batch": 3, "precision": "fp32", "warmup": 1, "steps": 2, "max_steps": 3, "max_seconds": 1, "seed": 5},
    **{"threads": 1, "device": "cpu"},
}
PROVENANCE = {
    "command": "python scripts/time_step.py …",
    "git_commit": "abc-dirty",
    "started": "2025-01-02T03:04:05+00:00",
    "duration_s": 12.5,
    "hardware": {"device": "cpu", "cpu": "AMD EPYC", "host_memory_bytes": 1000},
    "versions": {"python": "3.12.1", "torch": "2.13.0+cpu", "cuda": None, "triton": None, "einops": "0.8.2"},
    "settings": {"threads": 1},
}
TELEMETRY = {
    **{"sm_clock_min_mhz": None, "sm_clock_median_mhz": None, "power_max_w": None, "temperature_max_c": None},
    **{"throttle": [], "other_processes": None},
}
SAMPLES = "mode,step,seconds\nstep,0,0.25\nstep,1,0.5\n"


class Results:
    """A results folder and the plan that goes with it."""

    def __init__(self, folder):
        self.folder = folder
        self.entries = []
        self.machine, self.how, self.expected = dict(MACHINE), "here", None

    def expect(self, name, spec, size="nano"):
        """Add a cell to the plan."""
        command = f"python scripts/time_step.py --of {name}"
        entry = {"cell": name, "size": size, "spec": spec, "code": CODE, "command": command}
        self.entries.append(entry)
        return entry

    def measure(self, name, spec, summary, samples=SAMPLES, **over):
        """Write a cell's files as a measuring program does; `over` replaces parts of the record."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "samples.csv").write_text(samples)
        record = {"schema_version": 1, "study": spec["study"], "spec": spec, "code": CODE, "machine": MACHINE}
        record |= {"summary": summary, "provenance": PROVENANCE, "telemetry": TELEMETRY}
        record |= {"samples_sha256": hashlib.sha256(samples.encode()).hexdigest()} | over
        (folder / "record.json").write_text(json.dumps(record))
        return folder

    def plan(self, study="timing", noisy=0.02):
        """The plan as the workflow writes it."""
        return {
            "machines": {"machine": {"device": "cuda", "how": self.how, "expect": self.expected}},
            "studies": {
                study: {"machine": {"machine": self.machine}, "noisy": {"machine": noisy}, "cells": self.entries}
            },
        }


@pytest.fixture
def results(tmp_path):
    """An empty results folder."""
    return Results(tmp_path / "results")


@pytest.fixture
def timing_spec():
    """Spec of a timing cell."""
    return dict(TIMING)
