"""Made-up tables in the form of results/tables, for tests and for looking at the report. No number here was measured.

python tests/unit/report/synthetic.py --variant h100 --out tables
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

GPU_SIZES = {
    "small": (768, 3072, 12, 12),
    "medium": (1024, 4096, 24, 16),
    "large": (1280, 5120, 36, 20),
    "xl": (1600, 6400, 48, 25),
    "2.7B": (2560, 10240, 32, 32),
}
CPU_SIZES = {"nano": (64, 256, 2, 2), "tiny": (256, 1024, 4, 4)}
H100 = {"name": "NVIDIA H100 80GB HBM3 (synthetic)", "memory": 80 * 2**30, "power": 700.0, "floor_ms": 6.0,
        "rate": {"fp32": 48e12, "tf32": 250e12, "bf16": 420e12, "fp16": 430e12}}  # fmt: skip
CPU = {"name": "Synthetic CPU, 4 cores", "memory": 16 * 2**30, "power": None, "floor_ms": 1.5,
       "rate": {"fp32": 60e9, "tf32": 60e9, "bf16": 35e9, "fp16": 30e9}}  # fmt: skip
# Standard deviation of a process's logarithm by what limits it; three processes a cell, pooled over many cells.
SPREADS = {"launches": 0.018, "gpu": 0.002, "processor": 0.02}
DEGREES, T_QUANTILE = 120, 1.980  # Student's t: 1.980 of 120 degrees of freedom, by any printed table
PHASES = ("inference", "free_forward", "forward", "backward", "optimizer", "forward_backward", "step")
VOCAB, BATCH = 10_000, 4


def parameter_count(d_model: int, d_ff: int, layers: int) -> int:
    return 2 * VOCAB * d_model + layers * (4 * d_model**2 + 3 * d_model * d_ff + 2 * d_model) + d_model


def phase_times(machine: dict, shape: tuple, context: int, precision: str) -> tuple[dict, float]:
    """Milliseconds of each phase, and the FLOP of a forward pass."""
    d_model, d_ff, layers, _ = shape
    tokens = BATCH * context
    flop = 2.0 * parameter_count(d_model, d_ff, layers) * tokens + 4.0 * layers * tokens * context * d_model
    bytes_moved = layers * BATCH * context * (context * 12 * 6 + d_model * 40.0)
    bandwidth = 2.5e12 if machine["power"] else 2e10
    forward = max(
        1e3 * (flop / machine["rate"][precision] + bytes_moved / bandwidth), machine["floor_ms"] * layers / 12
    )
    optimizer = 1e3 * parameter_count(d_model, d_ff, layers) * 28 / bandwidth + 0.05 * layers
    times = {
        "inference": 0.97 * forward,
        "free_forward": forward,
        "forward": forward,
        "backward": 1.97 * forward,
        "optimizer": optimizer,
    }
    times["forward_backward"] = 2.93 * forward
    times["step"] = 2.93 * forward + optimizer + 0.2
    return times, flop


def peak_bytes(shape: tuple, context: int, precision: str) -> dict[str, float]:
    d_model, d_ff, layers, heads = shape
    weights = 4.0 * parameter_count(d_model, d_ff, layers)
    scale = 1.0 if precision in ("fp32", "tf32") else 0.72
    saved = scale * 4.0 * layers * BATCH * context * (18 * d_model + 3 * d_ff + 3 * heads * context)
    return {"inference": weights * 1.05 + saved / layers, "forward": weights * 1.05 + saved,
            "forward_backward": 2.1 * weights + saved, "step": 4.1 * weights + saved}  # fmt: skip


def _row(hardware, machine, size, shape, context, precision, repeat, noise, rng, samples):
    """One cell: its row of the table, its samples appended."""
    suffix = f"/repeat={repeat}" if repeat > 1 else ""
    cell = f"{hardware}/timing/{size}/ctx{context}/{precision}{suffix}"
    cuda = machine["power"] is not None
    times, flop = phase_times(machine, shape, context, precision)
    peaks = peak_bytes(shape, context, precision)
    parameters = parameter_count(*shape[:3])
    row = {"cell": cell, "hardware": hardware, "size": size, "context": context, "batch": BATCH, "precision": precision,
           "mode": "step", "attention": "naive", "compile": "none", "optimizer": "own", "checkpoint": 0,
           "repeat": repeat, "d_model": shape[0], "d_ff": shape[1], "num_layers": shape[2], "num_heads": shape[3],
           "vocab_size": VOCAB, "seed": 0, "warmup": 5, "parameters": parameters,
           "status": "ok", "reason": ""}  # fmt: skip
    needs = {
        "inference": "inference",
        "free_forward": "forward",
        "forward": "forward",
        "backward": "forward_backward",
        "optimizer": "step",
        "forward_backward": "forward_backward",
        "step": "step",
    }
    drift = 1 + 0.006 * rng.standard_normal()
    count = samples["count"]
    for phase in PHASES:
        if peaks[needs[phase]] > machine["memory"]:
            row[f"{phase}_status"] = row["status"] = "oom"
            row["reason"] = "CUDA out of memory. Tried to allocate 1.22 GiB"
            continue
        spread = noise * (1 + 9 * (rng.random() < 0.02))
        milliseconds = times[phase] * drift * np.exp(spread * rng.standard_normal(count + 5))
        milliseconds[5:] += times[phase] * (rng.random(count) < 0.02) * 0.05
        milliseconds[0] *= 9
        milliseconds[1:5] *= np.linspace(1.4, 1.02, 4)
        measured = milliseconds[5:]
        median, quartiles = np.median(measured), np.percentile(measured, [25, 75])
        limited_by = _limited_by(machine, shape, times["forward"])
        half = median * np.expm1(T_QUANTILE * SPREADS[limited_by] / np.sqrt(3))
        row.update({f"{phase}_status": "ok", f"{phase}_samples": count, f"{phase}_mean_ms": measured.mean(),
                    f"{phase}_std_ms": measured.std(ddof=1), f"{phase}_median_ms": median,
                    f"{phase}_iqr_ms": quartiles[1] - quartiles[0], f"{phase}_ci_low_ms": median - half,
                    f"{phase}_ci_high_ms": median + half,
                    f"{phase}_outliers": int((abs(measured - median) > 4 * spread * median).sum()),
                    f"{phase}_noisy": bool(half / median > (0.02 if cuda else 0.1)),
                    f"{phase}_processes": 3, f"{phase}_limited_by": limited_by,
                    f"{phase}_launch_share": {"launches": 0.97, "gpu": 0.3}.get(limited_by),
                    f"{phase}_spread": SPREADS[limited_by], f"{phase}_spread_degrees": DEGREES,
                    f"{phase}_first_ms": milliseconds[0]})  # fmt: skip
        samples["blocks"].append((cell, hardware, size, context, precision, repeat, phase, milliseconds))
    if row.get("forward_backward_status") == "ok":
        row["forward_backward_over_forward"] = row["forward_backward_median_ms"] / row["forward_median_ms"]
        row["backward_over_forward"] = row["backward_median_ms"] / row["forward_median_ms"]
    if row.get("step_status") == "ok":
        phases = sum(row[f"{phase}_median_ms"] for phase in ("forward", "backward", "optimizer"))
        row["phases_minus_step_ms"] = phases - row["step_median_ms"]
    for mode, factor in (("inference", 1), ("forward", 1), ("forward_backward", 3), ("step", 3)):
        if row[f"{mode}_status"] == "ok":
            seconds = row[f"{mode}_median_ms"] / 1e3
            row[f"{mode}_tokens_per_s"] = BATCH * context / seconds
            row[f"{mode}_tflops"] = factor * flop / seconds / 1e12
        peak = min(peaks[mode], machine["memory"] * 0.985)
        if cuda:
            row[f"{mode}_peak_allocated_bytes"] = peak
            row[f"{mode}_peak_reserved_bytes"] = min(peak * 1.07, machine["memory"] * 0.99)
        else:
            row[f"{mode}_peak_resident_bytes"] = peak + 3e8
    row.update(_provenance(cell, hardware, machine, rng))
    row["command"] = (f"python scripts/measure_timing.py --size {size} --context {context} --batch {BATCH} "
                      f"--precision {precision} --mode step --warmup 5 --steps 10" +
                      (f" --repeat {repeat}" if repeat > 1 else ""))  # fmt: skip
    return row


def _limited_by(machine: dict, shape: tuple, forward: float) -> str:
    """Launches, where the forward pass takes the least that its blocks can."""
    if machine["power"] is None:
        return "processor"
    return "launches" if forward <= machine["floor_ms"] * shape[2] / 12 else "gpu"


def _provenance(cell, hardware, machine, rng) -> dict:
    cuda = machine["power"] is not None
    state = {"sm_clock_min_mhz": 1755, "sm_clock_median_mhz": 1980, "power_max_w": 480 + 200 * rng.random(),
             "temperature_max_c": int(45 + 20 * rng.random()), "other_processes": 0,
             "host_launches_ms": 4.0}  # fmt: skip
    software = {"cuda": "12.8", "triton": "3.4.0", "driver": "570.86.15", "power_limit_w": machine["power"],
                "device_uuid": f"GPU-0000-{int(rng.integers(2))}"}  # fmt: skip
    started = pd.Timestamp("2030-01-01T08:00:00") + pd.Timedelta(seconds=float(rng.integers(20_000)))
    return {**(state if cuda else {}), "throttle": "", "host_python_ms": 2.0, **(software if cuda else {}),
            "code": "c0de" * 16, "git_commit": "abcdef0123456789abcdef0123456789abcdef01",
            "started": started.isoformat() + "Z", "duration_s": 20 + 30 * rng.random(),
            "device": "cuda" if cuda else "cpu", "device_name": machine["name"],
            "device_memory_bytes": machine["memory"], "threads": 4, "python": "3.11.9", "torch": "2.8.0",
            "log": f"{cell}/log.txt"}  # fmt: skip


def _sample_table(blocks: list) -> pd.DataFrame:
    """The raw samples: phased steps hold forward, backward and optimizer, free ones the rest."""
    lengths = [len(block[-1]) for block in blocks]
    names = ("cell", "hardware", "size", "context", "precision", "repeat")
    frame = pd.DataFrame({name: np.repeat([block[i] for block in blocks], lengths) for i, name in enumerate(names)})
    phases = np.repeat([block[6] for block in blocks], lengths)
    phased = np.isin(phases, ["forward", "backward", "optimizer"])
    frame["mode"] = np.where(phased, "step", np.char.replace(phases, "forward_backward", "forward-backward"))
    frame["kind"] = np.where(phased, "phased", "free")
    frame["step"] = np.concatenate([np.arange(length) for length in lengths])
    frame["phase"] = np.char.replace(phases, "forward_backward", "forward+backward")
    frame["warmup"] = frame["step"] < 5
    frame["seconds"] = np.concatenate([block[-1] for block in blocks]) / 1e3
    for name in ("event_seconds", "sm_clock_mhz", "power_w", "temperature_c"):
        frame[name] = np.nan
    return frame


def timing(hardware, machine, sizes, contexts, precisions, repeats=(), count=20, noise=0.004, seed=0):
    """The timing table and its samples. `repeats`: (size, context, precision) cells that are measured three times."""
    rng = np.random.default_rng(seed)
    samples = {"count": count, "blocks": []}
    rows = [
        _row(hardware, machine, size, shape, context, precision, repeat, noise, rng, samples)
        for size, shape in sizes.items()
        for context in contexts
        for precision in precisions
        for repeat in ((1, 2, 3) if (size, context, precision) in repeats else (1,))
    ]
    return pd.DataFrame(rows), _sample_table(samples["blocks"])


def ceilings(hardware, machine, precisions, seed=0):
    """The ceilings table and its samples."""
    rng = np.random.default_rng(seed)
    cuda = machine["power"] is not None
    peak = {"fp32": 52.3, "tf32": 420.0, "bf16": 712.0, "fp16": 718.0} if cuda else dict.fromkeys(machine["rate"], 0.21)
    rows, blocks = [], []
    for operation, precision in [("matmul", name) for name in precisions] + [("copy", "fp32")]:
        cell = f"{hardware}/ceilings/{operation}/{precision}"
        rate = peak[precision] * 1e12 if operation == "matmul" else (3.05e12 if cuda else 1.9e10)
        n = 8192 if cuda else 1024
        amount = 2.0 * n**3 if operation == "matmul" else 8.0 * 2**30
        milliseconds = 1e3 * amount / rate * (1 + 0.004 * rng.standard_normal(35))
        milliseconds[:5] *= [6, 1.3, 1.1, 1.02, 1.01]
        measured, median = milliseconds[5:], np.median(milliseconds[5:])
        row = {"cell": cell, "hardware": hardware, "operation": operation, "precision": precision, "status": "ok",
               "reason": "", "n": n if operation == "matmul" else None,
               "bytes_moved": amount if operation == "copy" else None, "samples": 30, "mean_ms": measured.mean(),
               "std_ms": measured.std(ddof=1), "median_ms": median, "iqr_ms": 0.01 * median,
               "ci_low_ms": median * 0.998, "ci_high_ms": median * 1.002, "outliers": 0, "noisy": False,
               "first_ms": milliseconds[0], "tflops": amount / median / 1e9 if operation == "matmul" else None,
               "gb_per_s": amount / median / 1e6 if operation == "copy" else None}  # fmt: skip
        row.update(_provenance(cell, hardware, machine, rng))
        row["command"] = f"python scripts/measure_ceilings.py --operation {operation} --precision {precision}"
        rows.append(row)
        blocks.append(pd.DataFrame({"cell": cell, "hardware": hardware, "operation": operation, "precision": precision,
                                    "step": np.arange(35), "warmup": np.arange(35) < 5,
                                    "seconds": milliseconds / 1e3}))  # fmt: skip
    return pd.DataFrame(rows), pd.concat(blocks)


def _gpu(label="nvidia-h100-80gb-hbm3", machine=H100, seed=0):
    repeated = {(size, 512, precision) for size in ("small", "medium", "large") for precision in ("fp32", "bf16")}
    made = timing(label, machine, GPU_SIZES, (128, 256, 512, 1024), ("fp32", "bf16", "fp16"), repeated, seed=seed)
    made[0].loc[made[0].index[7], "throttle"] = "sw_power_cap"
    made[0].loc[made[0].index[9], "other_processes"] = 1
    return [*made, *ceilings(label, machine, ("fp32", "tf32", "bf16", "fp16"))]


def _cpu():
    repeated = {("nano", 64, "fp32"), ("nano", 64, "bf16")}
    made = timing("cpu", CPU, CPU_SIZES, (64, 128), ("fp32", "bf16"), repeated, noise=0.05)
    return [*made, *ceilings("cpu", CPU, ("fp32", "bf16"))]


def _two():
    slower = {**H100, "name": "NVIDIA A100-SXM4-40GB (synthetic)", "memory": 40 * 2**30, "power": 400.0,
              "rate": {"fp32": 17e12, "tf32": 110e12, "bf16": 190e12, "fp16": 190e12}}  # fmt: skip
    pairs = zip(_gpu(), _gpu("nvidia-a100-sxm4-40gb", slower, seed=1), strict=True)
    return [pd.concat(pair, ignore_index=True) for pair in pairs]


def _scale(count=100):
    """4,000 cells: 5 machines x 20 sizes x 10 contexts x 4 precisions."""
    sizes = {f"size{i:02d}": (64 * (i + 4), 256 * (i + 4), 6 + i, 8) for i in range(20)}
    contexts = [64 * (i + 1) for i in range(10)]
    parts = []
    for i in range(5):
        made = timing(f"machine-{i}", H100, sizes, contexts, ("fp32", "tf32", "bf16", "fp16"), count=count, seed=i)
        parts.append([*made, *ceilings(f"machine-{i}", H100, ("fp32", "tf32", "bf16", "fp16"))])
    return [pd.concat(part, ignore_index=True) for part in zip(*parts, strict=True)]


VARIANTS = {"h100": _gpu, "cpu": _cpu, "two": _two, "scale": _scale}
NAMES = ("timing", "timing_samples", "ceilings", "ceilings_samples")


def write(variant: str, folder: Path, change=None) -> Path:
    """The variant's tables as CSV files; `change(frames)` may alter them first. Returns the folder."""
    frames = dict(zip(NAMES, VARIANTS[variant](), strict=True))
    if change:
        change(frames)
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=VARIANTS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    write(arguments.variant, arguments.out)
