"""Made-up tables of the profile study with round numbers, so that a test can work out by hand what must be shown.

Every cell has one shape and one point (batch 4, context 128) and these times of a step, in ms: forward 4 (matmul 3,
rest elementwise), of it loss 0.5; backward 6 (matmul 5, copy 1); optimizer 2; busy as given. 2 layers, 5 steps.
"""

from pathlib import Path

import pandas as pd

SHAPE = {"d_model": 64, "d_ff": 256, "num_layers": 2, "num_heads": 2, "vocab_size": 1000, "parameters": 257_344}
# By hand, for SHAPE, batch 4 and context 128: 2 m n k of each product, and the elements of its three matrices.
FORWARD_FLOPS = 233_308_160
ELEMENTS_MOVED = 2_902_528
STEPS = 5
# phase: (host ms, GPU ms, its exclusive GPU ms, kernels, kernels by thread, [(category, ms, kernels)])
PHASES = {
    "step": (22.0, 12.0, 0.0, 1000, 600, [("matmul", 8.0, 100), ("elementwise", 3.0, 1000), ("copy/cast", 1.0, 100)]),
    "forward": (8.0, 4.0, 3.5, 300, 300, [("matmul", 3.0, 40), ("elementwise", 1.0, 260)]),
    "loss": (0.6, 0.5, 0.5, 9, 9, [("elementwise", 0.5, 9)]),
    "backward": (10.0, 6.0, 6.0, 400, 1, [("matmul", 5.0, 60), ("copy/cast", 1.0, 340)]),
    "optimizer": (3.0, 2.0, 2.0, 300, 300, [("elementwise", 2.0, 300)]),
}
FIRST = {"name": "gemm a", "full_name": "void gemm_a<float, 1>(T1)", "instances_per_step": 5.0, "per_layer": 2.0,
         "remainder": 1.0, "layer_modules": "2 FFN", "remainder_modules": "1 LM head"}  # fmt: skip


def cell(precision="fp32", busy=12.0, hardware="gpu", mode="step", **more) -> dict:
    """A cell that was profiled; `busy` in ms a step."""
    option = f"/mode={mode}" if mode != "step" else ""
    name = f"{hardware}/profile/s/ctx128/{precision}{option}"
    point = {"cell": name, "hardware": hardware, "size": "s", "context": 128, "precision": precision, "repeat": 1}
    row = {**point, "batch": 4, "mode": mode, "attention": "naive", "compile": "none", "optimizer": "own"}
    row |= {"checkpoint": 0, **SHAPE, "status": "ok", "reason": "", "profiler": "nsys", "steps": STEPS, "warmup": 5}
    row |= {"profiler_version": "NVIDIA Nsight Systems version 2025.3", "profiler_options": "--trace=cuda,nvtx"}
    row |= {"trace": f"results/{name}/trace/trace.sqlite", "device": "cuda", "code": "c0de" * 16, "seed": 0}
    row |= {"command": f"python scripts/profile_step.py --precision {precision}", "log": f"results/{name}/measure.log"}
    for phase, (host, *_) in PHASES.items():
        if phase not in ("step", "loss"):
            row |= {f"{phase}_median_ms": host * 0.9, f"{phase}_mean_ms": host * 0.99}
    return row | more | {"busy": busy}


def timing(row: dict, step: float, **more) -> dict:
    """The timing study's row of a cell's point: `step` ms without a profiler, and phases half as long as profiled."""
    name = row["cell"].replace("/profile/", "/timing/")
    kept = ("hardware", "size", "context", "precision", "repeat", "batch", "attention", "compile", "optimizer", *SHAPE)
    plain = {"cell": name, **{key: row[key] for key in kept}, "checkpoint": 0, "mode": "step", "status": "ok"}
    plain |= {
        "reason": "",
        "step_median_ms": step,
        "step_ci_low_ms": step,
        "step_ci_high_ms": step,
        "step_status": "ok",
    }
    phases = {f"{phase}_median_ms": row[f"{phase}_median_ms"] / 2 for phase in ("forward", "backward", "optimizer")}
    times = {"step_median_ms": step, **phases, "inference_median_ms": step / 4}
    means = {name.replace("median", "mean"): value for name, value in times.items()}
    statuses = {name.replace("median_ms", "status"): "ok" for name in times}
    return {**plain, **times, **means, **statuses, "step_noisy": False, **more}


def ceilings(hardware="gpu", tflops=0.175, gb_per_s=10.0, precision="fp32") -> list[dict]:
    """A matmul and a copy rate: 0.175 TFLOP/s over 10 GB/s is a ridge of 17.5 operations a byte."""
    shared = {
        "hardware": hardware,
        "precision": precision,
        "status": "ok",
        "reason": "",
        "noisy": False,
        "code": "c0de",
    }
    shared |= {"median_ms": 1.0, "ci_low_ms": 1.0, "ci_high_ms": 1.0, "n": None, "bytes_moved": None}
    product = {"cell": f"{hardware}/ceilings/matmul/{precision}", "operation": "matmul", "tflops": tflops}
    copy = {"cell": f"{hardware}/ceilings/copy/fp32", "operation": "copy", "gb_per_s": gb_per_s}
    return [{**shared, **product}, {**shared, **copy}]


def analysis(row: dict) -> dict[str, list[dict]]:
    """The rows of a cell's other tables."""
    key = {name: row[name] for name in ("cell", "hardware", "size", "context", "precision", "repeat")}
    made: dict[str, list[dict]] = {name: [] for name in ("phases", "categories", "kernels", "busy", "api_gaps")}
    everything = [("all", PHASES["step"]), *PHASES.items()]
    for phase, (host, gpu, alone, kernels, by_thread, categories) in everything:
        if phase != "all":
            each = {"host_ms": host, "host_exclusive_ms": host, "gpu_ms": gpu, "gpu_exclusive_ms": alone}
            each |= {"kernels": kernels, "kernels_exclusive": kernels, "kernels_by_thread_rule": by_thread}
            each |= {"memory_operations": 0}
            totals = {f"{name}_total": STEPS * value for name, value in each.items()}
            made["phases"].append({"phase": phase, "count": STEPS, "steps": STEPS, "cut_off": 0} | totals)
            made["phases"][-1] |= {f"{name}_per_step": value for name, value in each.items()}
        made["busy"].append(
            {"phase": phase, "device": 0, "device_name": "GPU", "wall_ms_per_step": host, "idle_ms_per_step": 1.0}
            | {"busy_ms_per_step": row["busy"] if phase in ("all", "step") else gpu, "busy_share_of_wall": 0.5}
            | {"compute_ms_per_step": gpu, "memory_ms_per_step": 0.0, "compute_share_of_operations_time": 1.0}
            | {"gaps_per_step": 7, "gap_ms_per_step": 1.0, "gap_median_us": 3.0, "gap_mean_us": 4.0, "gap_max_us": 5.0}
            | {"queue_delay_median_us": 6.0, "queue_delay_mean_us": 8.0, "queue_delay_max_us": 9.0}
        )
        for category, ms, count in categories:
            line = {"phase": phase, "category": category, "total_ms": STEPS * ms, "ms_per_step": ms}
            line |= {"share_of_phase_gpu_time": ms / gpu, "instances": STEPS * count, "instances_per_step": count}
            made["categories"].append(line)
        top = {"phase": phase, "category": "matmul", "total_ms": 15.0, "instances": 25, "layers": 2.0, "std_us": 1.0}
        top |= {"share_of_phase_gpu_time": 15 / (STEPS * gpu), "tile": "64x64x8", "data_type": "fp32", "unit": "SIMT"}
        top |= {"mean_us": 600.0, "median_us": 600.0, "min_us": 500.0, "max_us": 700.0, **FIRST}
        if phase == "backward":
            top |= {"name": "gemm b", "full_name": "void gemm_b<float, 1>(T1)", "total_ms": 25.0, "tile": "128x64x8"}
            top |= {"share_of_phase_gpu_time": 25 / 30, "unit": "tensor core", "layer_modules": ""}
            top |= {"remainder_modules": ""}
        made["kernels"].append(top)
        other = top | {"name": "mul", "full_name": "void mul<float>(T1)", "category": "elementwise", "tile": None}
        other |= {"total_ms": 5.0, "share_of_phase_gpu_time": 5 / (STEPS * gpu), "instances": 1500, "unit": None}
        other |= {"instances_per_step": 300.0, "per_layer": None, "remainder": None, "layers": None}
        made["kernels"].append(other)
        made["api_gaps"].append({"phase": phase, "calls_per_step": 2000, "gaps_per_step": 1999, "gap_ms_per_step": 5.0}
                                | {"gap_median_us": 2.0, "gap_mean_us": 2.5, "gap_max_us": 90.0})  # fmt: skip
    parts = {"QKV projection": 0.5, "attention scores": 0.4, "softmax": 0.75, "attention × V": 0.1}
    made["attention"] = [{"part": "attention", "kind": "whole", "host_ms_per_step": 4.0, "gpu_ms_per_step": 2.0}]
    made["attention"] += [
        {"part": name, "kind": "part", "host_ms_per_step": 1.0, "gpu_ms_per_step": ms, "kernels_per_step": 8}
        | {"share_of_attention_gpu_time": ms / 2, "share_of_forward_gpu_time": ms / 4, "top_kernel": "gemm a"}
        | {"gpu_matmul_ms_per_step": {"attention scores": 0.25, "attention × V": 0.05}.get(name, 0.0)}
        | {"gpu_mean_us": 1e3 * ms / 2, "gpu_std_us": 1.0, "top_kernel_share_of_range_gpu_time": 0.9}
        for name, ms in parts.items()
    ]
    made["api_calls"] = [{"name": "cudaLaunchKernel", "calls_per_step": 1000, "total_ms": 25.0, "ms_per_step": 5.0}
                         | {"share_of_api_time": 0.8, "mean_us": 5.0, "median_us": 4.0, "max_us": 80.0}]  # fmt: skip
    checked = {"tool": "nsys", "device_is_host": "False", "steps": STEPS, "layers": 2, "kernels": 5000}
    checked |= {"memory_operations": 0, "kernels_not_linked_to_a_launch": 0, "operations_outside_every_phase": 0}
    checked |= {"gpu_ms_total": 60.0, "gpu_ms_in_phases": 60.0, "ranges_cut_off_by_the_end": 0}
    made["checks"] = [{"quantity": name, "value": value} for name, value in checked.items()]
    return {name: [{**key, **line} for line in rows] for name, rows in made.items()}


def write(folder: Path, cells: list[dict], timings=(), rates=(), change=None) -> Path:
    """The tables of these cells as CSV files; `change(frames)` may alter them first. Returns the folder."""
    frames = {"profile": pd.DataFrame([{k: v for k, v in row.items() if k != "busy"} for row in cells])}
    for row in cells:
        for name, rows in analysis(row).items() if row["status"] == "ok" else ():
            frames[f"profile_{name}"] = pd.concat([frames.get(f"profile_{name}"), pd.DataFrame(rows)])
    frames |= {"timing": pd.DataFrame(list(timings)), "ceilings": pd.DataFrame(list(rates))}
    if change:
        change(frames)
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        if len(frame.columns):
            frame.to_csv(folder / f"{name}.csv", index=False)
    return folder
