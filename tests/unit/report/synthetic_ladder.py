"""Made-up records of the ladder study, put into tables by the study's own table maker. No number here was measured.

A rung of STEPS takes so many ms in a step: forward a quarter of the step without the optimizer, backward three
quarters; the phased phases together take 5 % longer than the free step, forward and backward together as long as the
step less the optimizer. Three processes take exp(-scatter), 1 and exp(scatter) of that: their spread is the scatter.
"""

import math
from pathlib import Path

from stepscope.tables import ladder
from stepscope.tables.cells import CellResult

GIB = 2**30
SHAPES = {
    "nano": (128, 512, 4, 4),
    "small": (768, 3072, 12, 12),
    "medium": (1024, 4096, 24, 16),
    "2.7B": (2560, 10240, 32, 32),
}
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads")
SDPA, TRITON = {"attention": "sdpa"}, {"attention": "triton"}
BLOCK, GRAPHS = TRITON | {"compile": "block"}, TRITON | {"compile": "graphs"}
# precision and options of each rung -> (ms of a step, ms of the optimizer, kernels, launches, compile seconds)
STEPS = [
    ("fp32", {}, 40.0, 4.0, 3000, 3000, None),
    ("tf32", {}, 25.0, 4.0, 3000, 3000, None),
    ("bf16", {}, 20.0, 4.0, 3600, 3600, None),
    ("bf16", SDPA, 16.0, 4.0, 3200, 3200, None),
    ("bf16", TRITON, 15.0, 4.0, 3100, 3100, None),
    ("bf16", BLOCK, 10.0, 4.0, 1800, 1800, 21.5),
    ("bf16", GRAPHS, 5.0, 4.0, 1800, 1200, 23.0),
    ("bf16", GRAPHS | {"optimizer": "fused"}, 4.0, 1.0, 620, 14, 23.0),
]
GRADIENTS = [0.5, -0.25, 1.0, 2.0]
OFF = {"fp32": 0.0, "tf32": 1e-3, "bf16": 1e-2}  # relative difference of gradients from fp32
GPU = {"device": "cuda", "cpu": "AMD EPYC", "host_memory_bytes": 512 * GIB, "gpu": "NVIDIA H100 80GB HBM3"}
GPU |= {"gpu_memory_bytes": 80 * GIB, "gpu_uuid": "GPU-1", "driver": "580.65.06", "power_limit_w": 700.0}
CPU = {"device": "cpu", "cpu": "AMD EPYC", "host_memory_bytes": 16 * GIB}


def cell(size, context, precision, options=None, step=40.0, optimizer=4.0, hardware="gpu", peak=None, **more):
    """A measured cell. more: kernels, launches, operators, compile_seconds, off (relative difference of gradients),
    loss, scatter (of processes), processes, launch (its share), backward (its share of forward and backward),
    throttle, clock (MHz)."""
    options = options or {}
    is_gpu = not hardware.startswith("cpu")
    entry = _entry(hardware, size, context, precision, options, is_gpu)
    both = step - optimizer
    share, shifts = more.get("backward", 0.75), _shifts(more.get("scatter", 0.005), more.get("processes", 3))
    series = {
        ("forward-backward", "free", "forward+backward"): both,
        ("step", "phased", "forward"): 1.05 * (1 - share) * both,
        ("step", "phased", "backward"): 1.05 * share * both,
        ("step", "phased", "optimizer"): 1.05 * optimizer,
        ("step", "free", "step"): step,
    }
    peaks = {"peak_allocated_bytes": peak, "peak_reserved_bytes": peak and 1.1 * peak} if is_gpu else {}
    peaks = peaks or {"peak_resident_bytes": peak}
    mode = {"status": "ok", "reason": "", "first_step": step / 100, **peaks}
    off = more.get("off", OFF[precision])
    about = {"compile_seconds": more.get("compile_seconds"), "kernels": more.get("kernels"), "counted": "step"}
    about |= {"launches": more.get("launches"), "operators": more.get("operators"), "loss": more.get("loss", 9.25)}
    about |= {"gradient_norm": 2.3 * (1 + off), "gradient_sample": [(1 + off) * value for value in GRADIENTS]}
    summary = {
        "modes": {"forward-backward": mode, "step": mode},
        "phases": [_series(key, ms / 1000, shifts, more.get("launch", 0.5)) for key, ms in series.items()],
        "ladder": about,
    }
    hardware_of = GPU if is_gpu else CPU
    provenance = {"command": entry["command"], "git_commit": "0123abcd", "started": "2025-03-01T10:00:00+00:00"}
    provenance |= {"duration_s": 30.0, "hardware": hardware_of, "settings": {"threads": 1}}
    provenance |= {"versions": {"python": "3.12.1", "torch": "2.9.0", "cuda": "13.0", "triton": "3.5.0"}}
    readings = dict.fromkeys(("sm_clock_min_mhz", "sm_clock_median_mhz", "power_max_w", "temperature_max_c"))
    readings |= {"throttle": more.get("throttle", []), "other_processes": 0, "sm_clock_median_mhz": more.get("clock")}
    record = {"code": "c0de" * 4, "summary": summary, "provenance": provenance, "telemetry": readings}
    return CellResult(entry, "measured", record, ("mode,step", "step,0"), noisy=0.02)


def _entry(hardware, size, context, precision, options, is_gpu) -> dict:
    spec = {"study": "ladder", **dict(zip(SHAPE, SHAPES[size], strict=True)), "vocab_size": 10_000, "context": context}
    spec |= {"batch": 4, "precision": precision, "warmup": 5, "steps": 10, "max_steps": 60, "max_seconds": 4, "seed": 0}
    spec |= {"threads": 1, "device": "cuda" if is_gpu else "cpu", **options}
    end = "".join(f"/{name}={value}" for name, value in options.items())
    name = f"{hardware}/ladder/{size}/ctx{context}/{precision}{end}"
    return {"cell": name, "size": size, "spec": spec, "code": "c0de" * 4, "command": f"python time_ladder.py {name}"}


def _shifts(scatter: float, processes: int) -> list[float]:
    """Of the logarithm of each process."""
    return [0.0] if processes == 1 else [-scatter, 0.0, scatter]


def _series(key, seconds, shifts, launch) -> dict:
    mode, kind, phase = key
    processes = [
        {
            "count": 20,
            "outliers": 0,
            "mean": own,
            "std": own / 100,
            "median": own,
            "iqr": own / 100,
            "launch": launch * own,
        }
        for own in (seconds * math.exp(shift) for shift in shifts)
    ]
    return {"mode": mode, "kind": kind, "phase": phase, "status": "ok", "processes": processes}


def without_step(made: CellResult, status="oom", reason="CUDA out of memory", both=False) -> CellResult:
    """The same cell, whose step, or both of whose modes, have this status."""
    summary = made.record["summary"]
    lost = summary["modes"] if both else ("step",)
    for mode in lost:
        summary["modes"][mode] = summary["modes"][mode] | {"status": status, "reason": reason}
    for entry in summary["phases"]:
        if entry["mode"] in lost:
            entry["status"] = status
            entry.pop("processes")
    if both:
        summary["ladder"] = dict.fromkeys(summary["ladder"]) | {"gradient_sample": []}
    else:
        summary["ladder"]["counted"] = "forward-backward"
    return made


def unmeasured(made: CellResult, status="missing", reason="not measured yet") -> CellResult:
    """The same cell without a record."""
    return CellResult(made.entry, status, reason=reason, noisy=0.02)


def chain(size="small", context=128, scale=1.0, hardware="gpu", peak=4 * GIB, steps=STEPS) -> list[CellResult]:
    """A ladder whose times are `scale` times those of STEPS and whose peak falls by a tenth from rung to rung."""
    return [
        cell(size, context, precision, options, scale * step, scale * optimizer, hardware, peak * 0.9**at,
             kernels=kernels, launches=launches, compile_seconds=seconds)
        for at, (precision, options, step, optimizer, kernels, launches, seconds) in enumerate(steps)
    ]  # fmt: skip


def checkpoints(size="small", context=128, scale=1.0, hardware="gpu", peak=3 * GIB, every=(1, 2, 4)):
    """Checkpoints over the rung with SDPA: a quarter longer, and a tenth of the peak more for each block in a group."""
    return [
        cell(size, context, "bf16", SDPA | {"checkpoint": k}, scale * 20.0, scale * 4.0, hardware,
             peak * (0.4 + 0.1 * k), kernels=4100, launches=4100)
        for k in every
    ]  # fmt: skip


def whole(size="small", context=128, scale=1.0, hardware="gpu") -> CellResult:
    """The whole model compiled, in the place of its blocks: a tenth faster, for 60 s."""
    options = TRITON | {"compile": "model"}
    return cell(size, context, "bf16", options, scale * 9.0, scale * 4.0, hardware, 2.2 * GIB, compile_seconds=60.0,
                kernels=1700, launches=1700)  # fmt: skip


def write(folder: Path, cells: list[CellResult]) -> Path:
    """The tables as the workflow writes them, none without cells; returns the folder."""
    if cells:
        ladder.write(cells, folder)
    return folder
