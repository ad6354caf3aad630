"""Tables of the precision study and the timed ones beside it, made up; the tests work out each number by hand."""

import math
from pathlib import Path

import pandas as pd
from stepscope.tables.precision import FOUND
from stepscope.tables.reader import Tables

STUDIES = ["timing", "profile", "memory", "ceilings", "precision"]
PHASES = ("inference", "forward", "backward", "optimizer", "step")
PARAMETERS = {"small": 1.0e8, "medium": 4.0e8, "large": 1.0e9}
GIB = 2**30


def timing(
    size="small", context=128, precision="fp32", ms=10.0, spread=0.005, repeat=1, hardware="gpu", processes=3, **over
) -> dict:
    """A row of the timing table: every phase takes `ms` in each of three processes, whose spread is of 60 degrees of
    freedom, so that the interval is ± 2.000 × spread / √3; the peak is 4 GiB."""
    suffix = f"/repeat={repeat}" if repeat > 1 else ""
    row = {"cell": f"{hardware}/timing/{size}/ctx{context}/{precision}{suffix}", "hardware": hardware, "size": size}
    row |= {"context": context, "batch": 4, "precision": precision, "mode": "step", "attention": "naive"}
    row |= {"compile": "none", "optimizer": "own", "checkpoint": 0, "repeat": repeat, "status": "ok"}
    row |= {"parameters": PARAMETERS[size], "step_peak_allocated_bytes": 4 * GIB}
    for phase in PHASES:
        row |= {f"{phase}_status": "ok", f"{phase}_median_ms": ms, f"{phase}_processes": processes}
        if processes > 1:
            half = math.exp(2.000 * spread / math.sqrt(processes))
            row |= {f"{phase}_ci_low_ms": ms / half, f"{phase}_ci_high_ms": ms * half}
            row |= {f"{phase}_spread": spread, f"{phase}_spread_degrees": 60, f"{phase}_limited_by": "gpu"}
    return row | over


def lost(phases=PHASES, **place) -> dict:
    """A row of a cell that ran out of memory in these phases."""
    row = timing(**place) | {"status": "oom"}
    for phase in phases:
        row |= {f"{phase}_status": "oom", f"{phase}_median_ms": None, f"{phase}_ci_low_ms": None}
        row |= {f"{phase}_ci_high_ms": None}
    return row


def profile(size="small", context=256, precision="fp32", kernels=1000.0, busy=9.0, hardware="gpu") -> dict:
    """A row of the profile table with what its other tables say: kernels a step, and busy time in ms a step."""
    cell = f"{hardware}/profile/{size}/ctx{context}/{precision}"
    row = timing(size, context, precision, hardware=hardware) | {"cell": cell, "device": "cuda"}
    return row | {"_kernels": kernels, "_busy": busy}


def probe(name="accumulation", hardware="gpu", status="ok", device="cuda", **over) -> dict:
    """A row of the precision table."""
    row = {"cell": f"{hardware}/precision/{name}", "hardware": hardware, "probe": name, "precision": "fp32"}
    return row | {"status": status, "reason": None, "device": device, "seed": 0, "command": "c", "code": "0"} | over


def write(folder: Path, frames: dict[str, list[dict]]) -> Tables:
    """Tables by name, as CSV files; the profile's rows are split into those of its tables."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = dict(frames)
    for row in frames.get("profile", []):
        key = {"cell": row["cell"], "phase": "step"}
        frames.setdefault("profile_phases", []).append(key | {"kernels_per_step": row.pop("_kernels")})
        frames.setdefault("profile_busy", []).append(key | {"busy_ms_per_step": row.pop("_busy")})
    for name, table in FOUND.items() if "precision" in frames else ():
        rows = frames.get(f"precision_{name}", [])
        pd.DataFrame(rows, columns=table.columns).to_csv(folder / f"precision_{name}.csv", index=False)
        frames.pop(f"precision_{name}", None)
    for name, rows in frames.items():
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    return Tables(folder, STUDIES)


def tried(operation="RMSNorm", quantity="largest |x|", value=1.0, name="fp16", way="all in the format", **over) -> dict:
    """A row of precision_forced.csv."""
    row = {"cell": "gpu/precision/normalisation", "hardware": "gpu", "operation": operation, "way": way, "format": name}
    row |= {"quantity": quantity, "value": value}
    row |= {"elements": 8, "status": "ok", "error": 0.001, "inner": 1.0, "inner_exact": 1.0}
    return row | {"infinite": 0, "nan": 0, "zero": 0, "zero_exact": 0} | over


def dtypes(role, output, model="toy", name="bf16", hardware="gpu", **over) -> dict:
    """A row of precision_dtypes.csv."""
    row = {"cell": f"{hardware}/precision/autocast", "hardware": hardware, "model": model, "autocast": name}
    row |= {"status": "ok", "role": role, "kind": "Linear", "modules": 1, "parameter": "fp32", "input": "fp32"}
    return row | {"output": output, "output_gradient": output} | over


def summed(variant="bf16 += bf16", total=4.0, last=350, hardware="gpu") -> dict:
    """A row of precision_accumulation.csv."""
    into, of = variant.split(" += ")
    row = {"cell": f"{hardware}/precision/accumulation", "hardware": hardware, "variant": variant, "times": 1000}
    row |= {"sum_dtype": into, "addend_dtype": of.split()[0]}
    return row | {"addend": 0.01, "sum": total, "exact": 10.0, "last_change": last}
