"""Every column of the timing table, from a summary with numbers that a person can check."""

import csv

import pytest
from stepscope.tables import cells, timing

NAME = "machine/timing/nano/ctx6/fp32"


def series(mode, kind, phase, median, status="ok"):
    """A series' entry in a summary, of one process; seconds."""
    entry = {"mode": mode, "kind": kind, "phase": phase, "status": status}
    if status != "ok":
        return entry | {"processes": []}
    numbers = {"count": 10, "outliers": 1, "mean": median + 1, "std": 0.5, "median": median, "iqr": 0.25}
    return entry | {"processes": [numbers]}


def mode(status="ok", reason="", first_step=None, **peaks):
    return {"status": status, "reason": reason, "first_step": first_step, **peaks}


PHASES = [
    series("inference", "free", "inference", 1.0),
    series("forward", "free", "forward", 2.0),
    series("forward-backward", "phased", "forward", 2.25),
    series("forward-backward", "phased", "backward", 4.25),
    series("forward-backward", "free", "forward+backward", 6.0),
    series("step", "phased", "forward", 2.5),
    series("step", "phased", "backward", 5.0),
    series("step", "phased", "optimizer", 0.5),
    series("step", "free", "step", 7.5),
]
MODES = {
    "inference": mode(first_step=10.0, peak_resident_bytes=100),
    "forward": mode(first_step=20.0, peak_resident_bytes=200),
    "forward-backward": mode(first_step=30.0, peak_resident_bytes=300),
    "step": mode(first_step=40.0, peak_resident_bytes=400, peak_allocated_bytes=390),
}


@pytest.fixture
def row_of(results, timing_spec):
    """The row of a cell with this summary and record."""

    def row(phases=PHASES, modes=MODES, noisy=0.02, spec=None, **over):
        spec = timing_spec | (spec or {})
        results.expect(NAME, spec)
        results.measure(NAME, spec, {"phases": phases, "modes": modes}, **over)
        (cell,) = cells.read_cells(results.plan(noisy=noisy), "timing", results.folder)
        return timing.row(cell)

    return row


def test_a_cells_place_and_shape(row_of):
    row = row_of(spec={"repeat": 2, "attention": "sdpa"})
    expected = {
        **{"cell": NAME, "hardware": "machine", "size": "nano", "context": 6, "batch": 3, "precision": "fp32"},
        **{"mode": "step", "attention": "sdpa", "compile": "none", "optimizer": "own", "checkpoint": 0, "repeat": 2},
        **{"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "vocab_size": 11, "seed": 5, "warmup": 1},
        # 2 x 11 x 8 embedding and head; 2 layers of 4 x 8^2, 3 x 8 x 16 and 2 x 8; 8 of the last norm.
        **{"parameters": 176 + 2 * (256 + 384 + 16) + 8, "noise_mark": 0.02, "status": "ok", "reason": ""},
        "command": f"python scripts/time_step.py --of {NAME}",
        "log": f"results/{NAME}/measure.log",
    }
    assert {key: row[key] for key in expected} == expected


def test_times_are_in_milliseconds_and_from_the_heaviest_mode(row_of):
    row = row_of()
    medians = {key.removesuffix("_median_ms"): value for key, value in row.items() if key.endswith("_median_ms")}
    assert medians == {
        **{"inference": 1000, "free_forward": 2000, "forward": 2500, "backward": 5000, "optimizer": 500},
        **{"forward_backward": 6000, "step": 7500},
    }
    assert (row["step_samples"], row["step_outliers"], row["step_mean_ms"]) == (10, 1, 8500)
    assert (row["step_std_ms"], row["step_iqr_ms"], row["step_processes"]) == (500, 250, 1)
    assert (row["step_ci_low_ms"], row["step_ci_high_ms"]) == (None, None)
    assert {value for key, value in row.items() if key.endswith("_status")} == {"ok"}


def test_ratios_and_the_sum_of_phases(row_of):
    row = row_of()
    assert row["forward_backward_over_forward"] == 6.0 / 2.0
    assert row["backward_over_forward"] == 5.0 / 2.5
    assert row["phases_minus_step_ms"] == 1000 * (2.5 + 5.0 + 0.5 - 7.5)


def test_rates_are_of_the_free_steps(row_of):
    row = row_of()
    tokens = 3 * 6
    assert row["inference_tokens_per_s"] == tokens / 1.0
    assert row["forward_tokens_per_s"] == tokens / 2.0
    assert row["forward_backward_tokens_per_s"] == tokens / 6.0
    assert row["step_tokens_per_s"] == tokens / 7.5
    # 2 operations for each token and each parameter of a matrix (those of the embedding and the norms are in none),
    # and for each layer and sequence Q K^T and its product with V: 2 x context^2 x d_model each.
    matrices = 2 * (4 * 8 * 8 + 3 * 8 * 16) + 8 * 11
    forward = 2 * tokens * matrices + 2 * 3 * (2 * 2 * 6 * 6 * 8)
    assert row["inference_tflops"] == pytest.approx(forward / 1.0 / 1e12)
    assert row["forward_tflops"] == pytest.approx(forward / 2.0 / 1e12)
    assert row["forward_backward_tflops"] == pytest.approx(3 * forward / 6.0 / 1e12)
    assert row["step_tflops"] == pytest.approx(3 * forward / 7.5 / 1e12)


def test_first_steps_and_peaks_are_of_their_mode(row_of):
    row = row_of()
    modes = ("inference", "forward", "forward_backward", "step")
    assert [row[f"{name}_first_step_ms"] for name in modes] == [10_000, 20_000, 30_000, 40_000]
    assert [row[f"{name}_peak_resident_bytes"] for name in modes] == [100, 200, 300, 400]
    assert [row[f"{name}_peak_allocated_bytes"] for name in modes] == [None, None, None, 390]


def test_a_step_out_of_memory_keeps_the_lighter_modes(row_of):
    phases = [entry for entry in PHASES if entry["mode"] != "step"]
    phases += [series("step", "phased", phase, None, status="oom") for phase in ("forward", "backward")]
    modes = MODES | {"step": mode("oom", "CUDA out of memory", first_step=40.0, peak_resident_bytes=400)}
    row = row_of(phases, modes)
    assert (row["status"], row["reason"]) == ("oom", "CUDA out of memory")
    statuses = {key.removesuffix("_status"): row[key] for key in row if key.endswith("_status")}
    assert statuses == {
        **{"inference": "ok", "free_forward": "ok", "forward": "ok", "backward": "ok", "forward_backward": "ok"},
        **{"optimizer": "oom", "step": "oom"},
    }
    # Forward and backward then come from the phased steps of the heaviest mode that ran.
    assert (row["forward_median_ms"], row["backward_median_ms"]) == (2250, 4250)
    assert (row["step_median_ms"], row["optimizer_median_ms"], row["phases_minus_step_ms"]) == (None, None, None)
    assert (row["step_tokens_per_s"], row["step_tflops"], row["step_noisy"]) == (None, None, None)
    assert row["step_peak_resident_bytes"] == 400
    assert row["forward_backward_over_forward"] == 3.0


def test_a_cell_of_a_lighter_mode_has_its_forward_from_the_free_steps(row_of):
    row = row_of(PHASES[:2], {name: MODES[name] for name in ("inference", "forward")}, spec={"mode": "forward"})
    assert (row["status"], row["mode"]) == ("ok", "forward")
    assert (row["forward_median_ms"], row["forward_status"]) == (2000, "ok")
    assert (row["step_status"], row["backward_status"], row["backward_over_forward"]) == (None, None, None)


def test_an_unsupported_cell_says_why(row_of):
    row = row_of([], {name: mode("unsupported", "no bf16 here") for name in MODES})
    assert (row["status"], row["reason"]) == ("unsupported", "no bf16 here")
    assert {value for key, value in row.items() if key.endswith("_status")} == {"unsupported"}
    assert not any(row[key] for key in row if key.endswith(("_ms", "_tflops", "_tokens_per_s")))


def test_the_machine_of_a_gpu_cell(row_of):
    gpu = {"device": "cuda", "cpu": "AMD EPYC", "host_memory_bytes": 1000, "gpu": "NVIDIA H100", "gpu_uuid": "GPU-1"}
    gpu |= {"gpu_memory_bytes": 85, "driver": "580.65.06", "power_limit_w": 700.0}
    versions = {"python": "3.12.1", "torch": "2.13.0+cu130", "cuda": "13.0", "triton": "3.5.0"}
    provenance = {
        "command": "python",
        "git_commit": None,
        "started": "2030-01-01T00:00",
        "duration_s": 2.5,
        "hardware": gpu,
        "versions": versions,
    }
    readings = {"sm_clock_min_mhz": 1200, "sm_clock_median_mhz": 1980, "power_max_w": 650.5, "temperature_max_c": 70}
    readings |= {"throttle": ["power cap", "hardware slowdown"], "other_processes": 2}
    row = row_of(provenance=provenance | {"settings": {"threads": 1}}, telemetry=readings)
    expected = {
        **{"device": "cuda", "device_name": "NVIDIA H100", "device_uuid": "GPU-1", "device_memory_bytes": 85},
        **{"driver": "580.65.06", "power_limit_w": 700.0, "throttle": "power cap; hardware slowdown", "threads": 1},
        **{"other_processes": 2, "sm_clock_min_mhz": 1200, "sm_clock_median_mhz": 1980, "power_max_w": 650.5},
        **{
            "temperature_max_c": 70,
            "started": "2030-01-01T00:00",
            "duration_s": 2.5,
            "code": "0123456789abcdef",
            **versions,
        },
    }
    assert {key: row[key] for key in expected} == expected


def test_the_machine_of_a_cpu_cell(row_of):
    row = row_of()
    assert (row["device_name"], row["device_memory_bytes"], row["device_uuid"]) == ("AMD EPYC", 1000, None)
    assert (row["throttle"], row["other_processes"], row["git_commit"]) == ("", None, "abc-dirty")


def test_a_missing_cell_has_a_row_that_says_so_and_no_samples(results, timing_spec, tmp_path):
    results.expect(NAME, timing_spec)
    results.measure(
        NAME, timing_spec, {"phases": PHASES, "modes": MODES}, samples="mode,kind,step\nstep,free,0\nstep,free,1\n"
    )
    results.expect("machine/timing/tiny/ctx6/fp32", timing_spec, size="tiny")
    found = cells.read_cells(results.plan(), "timing", results.folder, partial=True)
    timing.write(found, tmp_path / "tables")
    with open(tmp_path / "tables/timing.csv", newline="") as file:
        good, missing = csv.DictReader(file)
    assert (good["status"], good["size"], good["step_median_ms"]) == ("ok", "nano", "7500.0")
    assert (missing["status"], missing["reason"], missing["size"]) == ("missing", "not measured yet", "tiny")
    assert missing["step_median_ms"] == missing["device"] == missing["started"] == ""
    assert missing["parameters"] == good["parameters"]
    header, *lines = (tmp_path / "tables/timing_samples.csv").read_text().splitlines()
    assert header.startswith("cell,hardware,size,context,precision,repeat,process,mode,kind,step,phase,warmup,")
    assert lines == [f"{NAME},machine,nano,6,fp32,1,1,step,free,{n},,,,,,,," for n in (0, 1)]


def gpu(name):
    """Provenance of a cell on a GPU."""
    found = {"device": "cuda", "cpu": "AMD EPYC", "host_memory_bytes": 1000, "gpu": name, "gpu_memory_bytes": 85}
    versions = {"python": "3.12.1", "torch": "2.13.0+cu130"}
    return {
        "command": "python",
        "started": "2030-01-01T00:00",
        "duration_s": 1,
        "hardware": found,
        "versions": versions,
        "settings": {"threads": 1},
    }


@pytest.mark.parametrize("precision, peak", [("fp32", 66.9), ("tf32", 494.7), ("bf16", 989.4), ("fp16", 989.4)])
def test_mfu_is_the_rate_over_the_peak_of_the_precision(precision, peak, row_of):
    row = row_of(spec={"precision": precision}, provenance=gpu("NVIDIA H100 80GB HBM3"))
    assert row["peak_tflops"] == peak
    for name in ("inference", "forward", "forward_backward", "step"):
        assert row[f"{name}_mfu"] == pytest.approx(row[f"{name}_tflops"] / peak)


@pytest.mark.parametrize("name, precision", [("NVIDIA Unheard 9000", "bf16"), ("Tesla T4", "bf16")])
def test_no_mfu_without_a_peak(name, precision, row_of):
    row = row_of(spec={"precision": precision}, provenance=gpu(name))
    assert row["step_tflops"] > 0
    assert row["peak_tflops"] is None and row["step_mfu"] is None and row["inference_mfu"] is None


def test_no_mfu_of_a_phase_that_did_not_run(row_of):
    row = row_of(PHASES[:2], {"inference": MODES["inference"], "forward": MODES["forward"]},
                 spec={"mode": "forward"}, provenance=gpu("NVIDIA H200"))  # fmt: skip
    assert row["forward_mfu"] is not None
    assert row["forward_backward_mfu"] is None and row["step_mfu"] is None


def test_no_mfu_on_a_cpu_and_of_a_missing_cell(row_of, results, timing_spec):
    assert row_of()["peak_tflops"] is None
    results.expect("machine/timing/tiny/ctx6/fp32", timing_spec, size="tiny")
    found = cells.read_cells(results.plan(), "timing", results.folder, partial=True)
    assert timing.row(found[-1])["step_mfu"] is None
