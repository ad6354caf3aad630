"""The profile study's whole section, as it was last looked at."""

import golden
import pandas as pd
import synthetic_profile as made
from stepscope.tables.reader import Tables


def cells() -> list[dict]:
    """Two machines; on the GPU cells that were shared, that ran out of memory, that were not possible, that failed."""
    slow = made.cell(throttle="power")
    fast = made.cell("bf16", busy=9.5, checkpoint=1, other_processes=1)
    inference = made.cell("tf32", mode="inference", busy=4.0)
    oom = made.cell(context=512, status="oom", reason="CUDA out of memory", peak_allocated_bytes=79 * 2**30)
    lost = [made.cell("fp16", status="unsupported", reason="no kernels were recorded."), made.cell(repeat=2)]
    lost[1] |= {"status": "failed", "reason": "exit code 3"}
    host = made.cell(hardware="host", profiler="torch", profiler_version="2.8.0", device="cpu")
    cells = [slow, fast, inference, oom, *lost, host]
    for row in cells[3:6]:
        row["cell"] += f"/{row['status']}"
    return cells


def changed(frames: dict[str, pd.DataFrame]) -> None:
    """The host's operators, phases that do not add up, and the tables that not every trace has."""
    first, second, _, host = frames["profile_phases"]["cell"].unique()
    checks = frames["profile_checks"]
    checks["value"] = checks["value"].astype(object)
    checks.loc[(checks["cell"] == host) & (checks["quantity"] == "device_is_host"), "value"] = "True"
    checks.loc[(checks["cell"] == second) & (checks["quantity"] == "gpu_ms_in_phases"), "value"] = 59.0
    checks.loc[(checks["cell"] == second) & (checks["quantity"] == "operations_outside_every_phase"), "value"] = 3
    for name in ("api_gaps", "api_calls"):
        frames[f"profile_{name}"] = frames[f"profile_{name}"].query("cell != @host")
    second_device = frames["profile_busy"].query("cell == @second").assign(device=1, busy_ms_per_step=2.0)
    frames["profile_busy"] = pd.concat([frames["profile_busy"], second_device])
    key = {"cell": first, "hardware": "gpu", "size": "s", "context": 128, "precision": "fp32", "repeat": 1}
    times = {"ms_per_step": 1.25, "mean_us": 50.0, "median_us": 40.0, "max_us": 900.0}
    module = {"module": "blocks.0.attn", "kernels_per_step": 3, "gpu_ms_per_step": 1.0}
    module |= {"elementwise_per_step": 2, "elementwise_ms_per_step": 0.25}
    moved = [("forward", "copy", "Host-to-Device", 0.5), ("backward", "fill", "fill fp32", 0.125)]
    moves = [dict(zip(("phase", "kind", "name", "ms_per_step"), each, strict=True)) for each in moved]
    line = {"file": "model.py", "operations_per_step": 3.5, "gpu_ms_per_step": 1.0, "share_of_gpu_time": 0.5}
    calls = [{"name": f"call {at}", "calls_per_step": at, "share_of_os_call_time": 0.0625} | times for at in range(14)]
    frames |= {
        "profile_modules": pd.DataFrame([key | module | {"share_of_backward_gpu_time": 0.0004}]),
        "profile_memory_operations": pd.DataFrame(
            [key | each | {"instances_per_step": 4, "share_of_phase_gpu_time": 0.0625} for each in moves]
        ),
        "profile_lines": pd.DataFrame([key | line | {"line": 12}, key | line | {"line": None}]),
        "profile_os_calls": pd.DataFrame([key | call for call in calls]),
    }


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    rows = cells()
    timings = [made.timing(rows[0], 20.0, step_noisy=True), made.timing(rows[1], 10.0) | {"checkpoint": 1}]
    timings += [made.timing(rows[2], 10.0), made.timing(rows[6], 19.0, step_status="failed", step_median_ms=None)]
    folder = made.write(tmp_path, rows, timings, made.ceilings(), changed)
    golden.check("profile", Tables(folder, ["timing", "ceilings", "profile"]))
