"""Tables of machines whose rates have round ratios, for the section on machines side by side. Nothing was measured."""

import math
from pathlib import Path

import pandas as pd
import roofline_maker
import synthetic_attention
from stepscope.tables.reader import Tables

STUDIES = ["timing", "ceilings", "memory", "attention", "ladder"]
PHASES = ("inference", "forward", "backward", "optimizer", "step")
# Data sheets: fp32 19.5 and 91.6, bf16 312 and 362.05 TFLOP/s; 2,039 and 864 GB/s.
A100, L40S = "NVIDIA A100-SXM4-80GB", "NVIDIA L40S"
GIB = 2**30


def timing(
    hardware, precision="fp32", size="small", context=128, ms=10.0, spread=0.005, gpu="Unheard", processes=3, **over
) -> dict:
    """A cell of which every phase takes `ms`, in processes whose spread is of 60 degrees of freedom."""
    times = {f"{phase}_median_ms": ms for phase in PHASES} | {f"{phase}_mean_ms": ms for phase in PHASES}
    for phase in PHASES:
        times |= judged(f"{phase}_", ms, spread, processes)
    times |= {f"{phase}_status": "ok" for phase in PHASES}
    name = f"{hardware}/timing/{size}/ctx{context}/{precision}/{over.get('repeat', 1)}{over.get('attention', '')}"
    parameters = {"small": 1e8, "medium": 4e8, "large": 9e8}[size]
    shared = {"hardware": hardware, "context": context, "cell": name, "parameters": parameters}
    shared |= {"device_memory_bytes": 80 * GIB, "driver": "1.2", "torch": "2.8.0", "started": "2030-01-01T08:00:00Z"}
    return roofline_maker.timing(precision, size, gpu=gpu, **shared) | times | over


def judged(prefix: str, ms: float | None, spread: float = 0.005, processes: int = 3) -> dict:
    """What a verdict needs of a series; its interval is ± 2.000 × spread / √processes."""
    if not ms or processes < 2:
        return {f"{prefix}processes": processes, f"{prefix}ci_low_ms": None, f"{prefix}ci_high_ms": None}
    half = math.exp(2.000 * spread / math.sqrt(processes))
    found = {"processes": processes, "spread": spread, "spread_degrees": 60, "limited_by": "gpu"}
    found |= {"ci_low_ms": ms / half, "ci_high_ms": ms * half}
    return {f"{prefix}{name}": value for name, value in found.items()}


def lost(hardware, precision="fp32", status="oom", **place) -> dict:
    """The same without a time of any phase."""
    row = timing(hardware, precision, **place)
    row |= {name: None for name in row if name.endswith("_ms")}
    return row | {f"{phase}_status": status for phase in PHASES} | {"status": status, "reason": "why"}


def repeated(hardware, ms, factor, **place) -> list[dict]:
    """Two runs, the second of which takes `factor` times as long."""
    return [timing(hardware, ms=ms, **place), timing(hardware, ms=ms * factor, repeat=2, **place)]


def memory(hardware, peak, size="small", status="ok", predicted=2 * GIB, **over) -> dict:
    """A cell of the memory study with its peak in bytes, which is none where the status is not ok."""
    row = {"cell": f"{hardware}/memory/{size}/{over}", "hardware": hardware, "size": size, "context": 128, "batch": 4}
    row |= {"precision": "fp32", "mode": "step", "repeat": 1, "parameters": 1e8, "status": status, "reason": ""}
    row |= {"attention": "naive", "compile": "none", "optimizer": "own", "checkpoint": 0, "device_name": "Unheard"}
    row |= {"peak_allocated_bytes": peak, "peak_reserved_bytes": peak, "peak_resident_bytes": None}
    return row | {"predicted_peak_bytes": predicted, "command": "python", "log": None, "code": "c0de"} | over


def attention(hardware, factor=1.0, name="naive", **over) -> list[dict]:
    """An implementation at three lengths, `factor` times as slow as in synthetic_attention."""
    rows = synthetic_attention.cell(name, hardware=hardware)
    timed = ("median_ms", "mean_ms", "ci_low_ms", "ci_high_ms")
    return [row | {key: row[key] * factor for key in timed if row.get(key)} | over for row in rows]


def ladder(hardware, names=("fp32", "bf16"), steps=(40.0, 10.0), **over) -> list[dict]:
    """The rungs of one ladder with the times of their steps (ms, None: out of memory)."""
    rows = []
    for at, (name, step) in enumerate(zip(names, steps, strict=True)):
        row = {"cell": f"{hardware}/ladder/{name}", "hardware": hardware, "size": "small", "context": 128, "batch": 4}
        row |= {"parameters": 1e8, "rung": at, "name": name, "status": "ok" if step else "oom", "checkpoint": 0}
        row |= {"step_status": "ok" if step else "oom", "step_median_ms": step, "step_noisy": False, "repeat": 1}
        row |= judged("step_", step) | {"precision": "fp32"}
        rows.append(row | {"command": "python", "log": None, "device_name": "Unheard"} | over)
    return rows


def write(folder: Path, **tables) -> Tables:
    """Tables of rows as CSV files; those without rows are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        if rows:
            pd.DataFrame(list(rows)).to_csv(folder / f"{name}.csv", index=False)
    return Tables(folder, STUDIES)


def pages(folder: Path, tables: Tables, studies=("timing", "ceilings")) -> tuple[str, str]:
    """(Markdown, HTML) of a report with the section, the figures of other studies left empty."""
    return roofline_maker.pages(folder, tables, studies, "hardware")
