"""benchmarks/several_gpus.py: what it says of made-up records of two runs."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import several_gpus

PROVENANCE = {
    "started": "2025-03-01T10:00:00+00:00",
    "duration_s": 30.0,
    "hardware": {"device": "cuda", "cpu": "CPU", "host_memory_bytes": 1, "gpu": "GPU", "gpu_memory_bytes": 1},
    "settings": {"threads": 1},
    "versions": {},
}


def write(folder, cell, medians, series="phases"):
    """A cell's record with one series; medians: of its processes, in seconds."""
    parts = [
        {"count": 5, "mean": own, "std": 0.0, "median": own, "iqr": 0.0, "outliers": 0, "launch": own / 2}
        for own in medians
    ]
    entry = {"mode": "step", "kind": "free", "phase": "step", "status": "ok", "processes": parts}
    summary = {"modes": {}, "phases": [entry, {"mode": "step", "phase": "forward", "status": "oom"}]}
    record = {"code": "c0de", "summary": summary if series == "phases" else entry, "telemetry": {}}
    (folder / cell).mkdir(parents=True)
    (folder / cell / "record.json").write_text(json.dumps(record | {"provenance": PROVENANCE}))


@pytest.fixture
def runs(tmp_path):
    def make(**cells):
        """Two runs: of each cell the processes' medians in both."""
        for cell, both in cells.items():
            for run, medians in zip(("alone", "other"), both, strict=True):
                write(tmp_path / run, f"gpu/timing/{cell}", medians)
        return several_gpus.series(tmp_path / "alone"), several_gpus.series(tmp_path / "other")

    return make


def test_a_series_value_is_the_geometric_mean_of_its_processes(tmp_path):
    write(tmp_path, "gpu/timing/a", (0.010, 0.040))
    write(tmp_path, "gpu/ceilings/b", (0.003,), series="summary")
    found = {str(key[0]): timed for key, timed in several_gpus.series(tmp_path).items()}
    assert {cell: timed.median for cell, timed in found.items()} == {
        "gpu/timing/a": pytest.approx(20.0),  # ms: the root of 10 times 40
        "gpu/ceilings/b": pytest.approx(3.0),
    }
    assert found["gpu/timing/a"].processes == 2 and not found["gpu/ceilings/b"].has_interval


def test_what_moved_beyond_what_processes_differ_by_is_counted(runs):
    steady = (0.010, 0.01001), (0.01001, 0.010)
    alone, other = runs(a=steady, b=steady, c=((0.010, 0.01001), (0.015, 0.015015)), d=((0.010,), (0.030,)))
    # Ratios 1, 1, 1.5 and 3: the last has one process in each run, and so no interval.
    assert several_gpus.compared(alone, other) == (
        "median ratio 1.2500 (nine tenths 1.000 to 3.000); 1 of 3 with an interval called faster or slower"
    )
    assert several_gpus.compared(alone, {}) == "none"


def test_steady_series_are_those_within_one_per_cent(runs):
    alone, again = runs(a=((0.1000,), (0.1009,)), b=((0.1000,), (0.1011,)), c=((0.1000,), (0.0991,)))
    assert [str(key[0]) for key in several_gpus.steady(alone, again)] == ["gpu/timing/a", "gpu/timing/c"]
