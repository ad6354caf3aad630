"""Recorded runs of a GPU, of a CPU and of a model of one's own: the tables say what the samples
say, worked out here by the standard library."""

import csv
import io
import statistics
import zipfile
from pathlib import Path

import pytest
from stepscope.results import cells as reading
from stepscope.results import comparisons, series

RUNS = Path(__file__).resolve().parents[2] / "data"
STEP = "{}/timing/{}/samples.csv"


@pytest.fixture(scope="module", params=["h100_smoke", "cpu_default", "cpu_own"])
def run(request, tmp_path_factory):
    """(folder of a run's cells, its cells, series and comparisons)."""
    folder = tmp_path_factory.mktemp(request.param)
    with zipfile.ZipFile(RUNS / f"{request.param}.zip") as archive:
        archive.extractall(folder)
    cells, samples, _ = reading.read(folder / "plan.json", folder)
    found = series.of(cells, samples)
    return folder, cells, found, comparisons.of(cells, samples, found)


def medians(path, kind):
    """Of each process the median of a cell's measured whole steps, in seconds."""
    processes = {}
    for row in csv.DictReader(io.StringIO(path.read_text())):
        if row["kind"] == kind and row["mode"] == "step" and row["warmup"] == "False":
            processes.setdefault(row["process"], []).append(float(row["seconds"]))
    return [statistics.median(each) for each in processes.values()]


@pytest.mark.parametrize("kind, quantity", [("free", "time"), ("host-free", "host_free_time")])
def test_a_step_is_the_geometric_mean_of_its_processes(run, kind, quantity):
    folder, cells, found, _ = run
    checked = 0
    for cell in cells:
        own = found[
            (found["cell"] == cell.name)
            & (found["quantity"] == quantity)
            & (found["phase"] == "step")
        ]
        expected = medians(folder / cell.name / "samples.csv", kind)
        if cell.place["study"] == "timing" and expected:
            assert own["median"].item() == pytest.approx(
                statistics.geometric_mean(expected), rel=1e-9
            )
            checked += 1
    steps = {"h100_smoke": 3, "cpu_default": 4, "cpu_own": 2}[folder.name.rstrip("0123456789")]
    assert checked == (0 if kind == "host-free" and "cpu" in folder.name else steps)


def test_every_rung_without_the_host_has_a_verdict(run):
    folder, _, _, pairs = run
    alone = pairs[pairs["quantity"] == "host_free_time"]
    assert len(alone) == (0 if "cpu" in folder.name else 11)
    assert "unclear" not in set(alone["verdict"])
