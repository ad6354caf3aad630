"""The measuring programs as a person runs them."""

import csv
import json
import os
import stat
import statistics

import pytest
from common import TINY_TIMING, picked
from stepscope.measure import precision
from stepscope.measure.cell import _growing

SHAPE = "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2 --vocab-size 11 --context 6 --batch 2"
QUICK = "--device cpu --threads 1 --processes 1 --warmup 1 --steps 2 --max-steps 3 --max-seconds 0"
OPERATION = "--device cpu --threads 1 --processes 1 --warmup 1 --steps 2 --max-seconds 0"
REFUSING = [  # program, its words, statuses
    ("time_step.py", f"{SHAPE} {QUICK}", 4),
    ("measure_ceilings.py", f"--order 32 {OPERATION}", 2),
    ("snapshot_memory.py", f"{SHAPE} --device cpu --threads 1", 1),
]
# The program in the process of a test's own code; its flags are that code's first argument.
RUN = """
import runpy
sys.argv[1:] = sys.argv[1].split()
runpy.run_path(sys.path[0] + "/time_step.py", run_name="__main__")
"""


def medians(rows, *key):
    """Median of each series' measured samples."""
    series = {}
    for row in rows:
        if row["warmup"] == "False":
            series.setdefault(tuple(row[name] for name in key), []).append(float(row["seconds"]))
    return {name: statistics.median(values) for name, values in series.items()}


def test_a_timing_cells_record_agrees_with_its_samples_and_its_flags(measured_cell):
    # The environment's number of threads, as Snakemake sets it from --cores, changes nothing.
    cell = measured_cell("time_step.py", f"{SHAPE} {QUICK} --processes 2", OMP_NUM_THREADS="2")
    record = cell.record
    assert {path.name for path in cell.folder.iterdir()} == {"record.json", "samples.csv"}
    assert record["spec"] == TINY_TIMING | {"processes": 2}
    assert record["provenance"]["settings"]["threads"] == 1
    assert record["provenance"]["settings"]["cpus"] == len(os.sched_getaffinity(0))
    assert record["provenance"]["hardware"]["device"] == record["machine"]["device"] == "cpu"
    assert record["provenance"]["command"].startswith(
        "python scripts/time_step.py --d-model 8 --d-ff 16 "
    )
    shown = medians(cell.rows, "mode", "kind", "phase")
    assert len(shown) == 4 + 3
    assert record["summary"]["variants"] == {"step": {"status": "ok", "reason": ""}}
    # 2 x 11 x 8 + 2 x (4 x 64 + 3 x 8 x 16 + 2 x 8) + 8
    assert "parameters: 0.001 M" in cell.out
    for median in shown.values():
        assert f"{1000 * median:.4f}" in cell.out


def test_a_ceilings_record_agrees_with_its_samples_and_its_rate(measured_cell):
    cell = measured_cell("measure_ceilings.py", f"--order 64 {OPERATION}")
    assert set(cell.record["summary"]["variants"]) == {"burst", "sustained"}
    bursts = picked(cell.rows, kind="burst", warmup="False")
    least = min(float(row["seconds"]) for row in bursts)
    assert f"burst: {2 * 64**3 / least / 1e12:.4g} TFLOP/s" in cell.out


def test_without_a_folder_nothing_is_written(tmp_path, run_python):
    returned, out, _ = run_python(RUN, f"{SHAPE} {QUICK}", cwd=tmp_path)
    assert returned == 0
    assert "step free" in out
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_is_not_there_is_one_line(run_program):
    code, _, err = run_program("time_step.py", f"{SHAPE} --device cuda", CUDA_VISIBLE_DEVICES="")
    assert code == 2
    assert err.splitlines()[-1].endswith(
        "no NVIDIA GPU is visible here; use device: auto or device: cpu"
    )


@pytest.mark.parametrize("program, words, number", REFUSING)
def test_what_the_processor_cannot_run_is_unsupported_and_no_failure(
    program, words, number, measured_cell
):
    reason = precision.unsupported("tf32", "cpu")  # which no processor runs; bf16 some do
    cell = measured_cell(program, f"{words} --precision tf32")
    assert reason in cell.out and cell.rows == []
    found = cell.record["summary"]["statuses"]
    assert set(picked(found, "status", "reason")) == {("unsupported", reason)}
    assert len(found) == number
    assert not list(cell.folder.glob("snapshot/*"))


def test_a_folder_that_cannot_be_written_is_one_line_and_a_failure(run_program, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run_program(
        "measure_ceilings.py", f"--order 32 {OPERATION} --out {tmp_path}/file/cell"
    )
    assert code == 1
    assert err == f"error: cannot write {tmp_path}/file/cell: Not a directory\n"


def test_another_user_of_the_group_can_remove_what_a_killed_program_has_left(tmp_path):
    (left := tmp_path / "cell/.growing/scratch").mkdir(parents=True)
    usual = os.umask(0o002)
    try:
        with _growing(tmp_path / "cell") as growing:
            assert stat.S_IMODE(growing.stat().st_mode) == 0o775 and not left.exists()
    finally:
        os.umask(usual)
    assert not (tmp_path / "cell").exists()


LITTLE_MEMORY = (
    "from stepscope.machine import process\nprocess.available_memory = lambda: 500 * 2**20\n"
)


def test_a_cell_that_runs_out_of_memory_keeps_what_finished(run_python, tmp_path):
    """Really out of memory: the forward pass of 24 layers keeps more than 24 x 33 MB of attention
    scores."""
    shape = (
        "--d-model 16 --d-ff 16 --num-layers 24 --num-heads 4 --vocab-size 11 --context 512"
        " --batch 8"
    )
    flags = (
        f"{shape} --device cpu --threads 1 --processes 1 --warmup 0 --steps 1 --max-seconds 0 --out"
        f" {tmp_path}"
    )
    code, out, err = run_python(LITTLE_MEMORY + RUN, flags)
    assert (code, err) == (0, "")
    record = json.loads((tmp_path / "record.json").read_text())
    modes = {one["mode"]: one for one in record["summary"]["statuses"]}
    assert {mode: found["status"] for mode, found in modes.items()} == {
        "inference": "ok",
        "forward": "oom",
        "forward-backward": "oom",
        "step": "oom",
    }
    samples = (tmp_path / "samples.csv").read_text().splitlines()
    assert set(picked(csv.DictReader(samples), "mode")) == {"inference"}
    assert "can't allocate memory" in modes["forward"]["reason"]
    assert "forward: oom: " in out


# 4.7 TB of parameters, of which each matrix by itself would fit.
HUGE = (
    "--d-model 4096 --d-ff 4096 --num-layers 10000 --num-heads 2 --context 6 --batch 2 --device cpu"
    " --threads 1"
)


@pytest.mark.parametrize(
    "program", ["time_step.py", "profile_step.py", "snapshot_memory.py", "time_ladder.py"]
)
def test_a_model_beyond_all_memory_is_out_of_memory_without_being_tried(program, measured_cell):
    statuses = measured_cell(program, f"{HUGE} --warmup 1 --steps 2").record["summary"]["statuses"]
    found = [one for one in statuses if one["status"] != "unsupported"]  # compiling without g++
    assert set(picked(found, "status")) == {"oom"}
    # 10,000 x (4 x 4096² + 3 x 4096² + 2 x 4096) + 2 x 10,000 x 4096 + 4096 numbers of 4 bytes,
    # over 2^30
    reasons = set(picked(found, "reason"))
    assert all(
        reason.startswith("predicted, not tried: the parameters alone are 4,375.6 GiB, the memory ")
        for reason in reasons
    )
