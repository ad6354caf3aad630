"""Made-up records of the warm-up study, written as cells of a plan and put together by the study's own tables.

With noise 0 every number follows from STEADY and FIRST: step 0 takes FIRST more, step 1 is 1.2 times as long as a
steady step, step 2 is 1.1 times as long. A step of size s is 10 + 20 + 5 = 35 ms, its first one 1,285 ms.

python tests/unit/report/synthetic_warmup.py --out results
"""

import argparse
import hashlib
import json
import math
from pathlib import Path

from stepscope.measure.record import samples_csv
from stepscope.measure.series import TRAINING_COLUMNS
from stepscope.measure.summary import summarise
from stepscope.tables import cells, warmup
from stepscope.tables.warmup import PARTS

PHASES = ("forward", "backward", "optimizer")
STEADY = {"s": (10.0, 20.0, 5.0), "m": (40.0, 80.0, 20.0)}  # ms of each phase
FIRST = (1000.0, 200.0, 50.0)  # ms that the first step takes more, by phase
AFTER = {1: 1.2, 2: 1.1}
SHAPES = {"s": (64, 256, 2, 2), "m": (128, 512, 2, 2)}
# Seconds of both profiled steps by part; they add up to 1.400 and 0.040: an excess of 1.360, 1.250 of it set-up.
IN_FIRST = dict(zip(PARTS, (0.8, 0.2, 0.15, 0.05, 0.1, 0.02, 0.01, 0.04, 0.03), strict=True))
IN_STEADY = dict(zip(PARTS, (0.02, 0.01, 0.01, 0.0, 0.01, -0.02, 0.0, 0.005, 0.005), strict=True))
CODE, MACHINE = "c0de" * 16, {"device": "cuda", "gpu": "GPU"}


class Plan:
    """Cells on disk below a folder, and the plan that they belong to."""

    def __init__(self, folder: Path):
        self.folder, self.entries = folder, []

    def cell(self, size="s", warmup=0, hardware="gpu", profiled=False, status="ok", measure=True, noise=0.0, **more):
        """Add a cell and, if it was measured, its files; steady, first and shape of other sizes may be given."""
        steady, first = more.get("steady") or STEADY[size], more.get("first", FIRST)
        context, precision, steps = more.get("context", 128), more.get("precision", "fp32"), more.get("steps", 10)
        way = "first=profiled" if profiled else f"warmup={warmup}"
        name = f"{hardware}/warmup/{size}/ctx{context}/{precision}/{way}"
        shape = zip(("d_model", "d_ff", "num_layers", "num_heads"), more.get("shape") or SHAPES[size], strict=True)
        spec = {"study": "warmup", **dict(shape), "vocab_size": 1000, "context": context, "batch": 4}
        spec |= {"precision": precision, "warmup": warmup, "steps": steps, "seed": 0, "threads": 1, "device": "cuda"}
        spec |= {"first": "profiled"} if profiled else {}
        command = f"python scripts/time_warmup.py --size {size} --warmup {warmup}"
        self.entries.append({"cell": name, "size": size, "spec": spec, "code": CODE, "command": command})
        if not measure:
            return
        rows = _rows(spec, steady, first, noise, profiled, more.get("launched")) if status == "ok" else []
        reason = more.get("reason", "" if status == "ok" else "CUDA out of memory: tried to allocate 2.00 GiB")
        mode = {"status": status, "reason": reason, "peak_allocated_bytes": 3 * 2**30, "peak_reserved_bytes": 4 * 2**30}
        summary = {"modes": {"step": mode}, "phases": []}
        for phase in PHASES if rows else ():
            values = [row["seconds"] for row in rows if row["phase"] == phase and not row["warmup"]]
            summary["phases"].append(
                {"mode": "step", "kind": "phased", "phase": phase, "status": "ok"} | summarise(values)
            )
        if profiled and status == "ok":
            summary["first"] = _profile(*more.get("parts", (IN_FIRST, IN_STEADY)))
        _write(self.folder / name, spec, summary, rows, more.get("device_name", "GPU"), more.get("host"))

    def write(self, tables: Path, partial=True) -> Path:
        """The study's tables, made as the workflow makes them; returns their folder."""
        labels = {entry["cell"].partition("/")[0] for entry in self.entries}
        part = {"machine": dict.fromkeys(labels, MACHINE), "noisy": dict.fromkeys(labels), "cells": self.entries}
        here = {"device": MACHINE["device"], "how": "here", "expect": None}
        plan = {"machines": dict.fromkeys(labels, here), "studies": {"warmup": part}}
        warmup.write(cells.read_cells(plan, "warmup", self.folder, partial), tables)
        return tables


def _rows(spec: dict, steady, first, noise: float, profiled: bool, launched: float | None) -> list[dict]:
    rows, run = [], spec["warmup"] + 3 * profiled
    for step in range(1 if profiled else 0, spec["warmup"] + spec["steps"]):
        for at, (phase, base, more) in enumerate(zip(PHASES, steady, first, strict=True)):
            wobble = 1 + noise * (math.sin(12.9 * step + 4.1 * at + 78.2 * run + base) + math.sin(run + at))
            ms = (base * AFTER.get(step, 1.0) + (more if step == 0 else 0.0)) * wobble
            row = {
                "process": 1,
                "mode": "step",
                "kind": "phased",
                "step": step,
                "phase": phase,
                "warmup": step < spec["warmup"],
            }
            row |= {"seconds": ms / 1e3, "event_seconds": ms / 1e3, "sm_clock_mhz": 1980}
            rows.append(row | ({} if launched is None else {"launch_seconds": launched * ms / 1e3}))
    return rows


def _profile(first: dict, steady: dict) -> dict:
    parts = [
        {"part": part, "first_seconds": first[part], "steady_seconds": steady[part]}
        | {"calls_first": 900 if part != "Python and the rest" else None, "calls_steady": 800}
        for part in first
    ]
    calls = {
        "cudaLaunchKernel": ("module loading",),
        "cudaMalloc": ("memory allocation",),
        "aten::mm": ("matrix products", "compilation and autotuning"),
    }
    names = [(name, part) for name, parts in calls.items() for part in parts if part in first]
    largest = [
        {"name": name, "part": part, "first_seconds": 0.9 * first[part], "steady_seconds": steady[part]}
        | {"calls_first": 700, "calls_steady": 650}
        for name, part in names
    ]
    whole = {"first_seconds": sum(first.values()), "steady_seconds": sum(steady.values())}
    return {"profiled": whole, "parts": parts, "page_faults": {"first": 54321, "steady": 12}, "largest": largest}


def _write(folder: Path, spec: dict, summary: dict, rows: list[dict], device: str, host: dict | None) -> None:
    columns = list(dict.fromkeys([*TRAINING_COLUMNS, *(name for row in rows for name in row)]))
    samples = samples_csv(columns, rows).encode()
    hardware = {"device": "cuda", "gpu": device, "gpu_memory_bytes": 80 * 2**30}
    origin = {
        "command": "python scripts/time_warmup.py",
        "git_commit": "abc",
        "started": "2025-01-02T03:04:05+00:00",
        "duration_s": 12.5,
        "hardware": hardware,
    }
    origin |= {"versions": {"python": "3.12.1", "torch": "2.13.0"}, "settings": {"threads": 1}}
    record = {
        "schema_version": 1,
        "study": "warmup",
        "spec": spec,
        "code": CODE,
        "machine": MACHINE,
        "summary": summary,
        "provenance": origin,
        "telemetry": {},
    }
    record |= {"host": host} if host else {}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "samples.csv").write_bytes(samples)
    (folder / "measure.log").write_text("done\n")
    record["samples_sha256"] = hashlib.sha256(samples).hexdigest()
    (folder / "record.json").write_text(json.dumps(record))


def points(plan: Plan, sizes=("s", "m"), counts=(0, 1, 2, 5, 10), profiled=True, **more) -> Plan:
    """The cells of some sizes: one for each number of warm-up steps, and the profiled one."""
    for size in sizes:
        for count in counts:
            plan.cell(size, count, **more)
        if profiled:
            plan.cell(size, max(counts), profiled=True, **more)
    return plan


GPU = {
    "small": ((768, 3072, 12, 12), (16.0, 27.0, 8.0), (900.0, 260.0, 40.0)),
    "medium": ((1024, 4096, 24, 16), (48.0, 92.0, 22.0), (930.0, 240.0, 60.0)),
    "large": ((1280, 5120, 36, 20), (106.0, 205.0, 49.0), (1010.0, 255.0, 90.0)),
    "xl": ((1600, 6400, 48, 25), (186.0, 371.0, 98.0), (1050.0, 280.0, 140.0)),
    "2.7B": ((2560, 10240, 32, 32), (310.0, 575.0, 160.0), (1150.0, 330.0, 300.0)),
}


def believable(plan: Plan) -> Plan:
    """Five sizes of a GPU, the largest of which runs out of memory with the profiler and in one more cell; a CPU."""
    for size, (shape, steady, first) in GPU.items():
        own = {"shape": shape, "steady": steady, "first": first, "noise": 0.004, "hardware": "nvidia-h100-80gb-hbm3"}
        own["launched"] = 0.99 if size in ("small", "medium") else 0.6
        for count in (0, 1, 2, 5, 10):
            plan.cell(size, count, status="oom" if (size, count) == ("2.7B", 10) else "ok", **own)
        whole = sum(first) / 1000 * 1.25
        parts = [share * whole for share in (0.58, 0.12, 0.14, 0.0, 0.05, 0.004, 0.02, 0.05, 0.036)]
        later = [each * sum(steady) / 1000 for each in (0.2, 0.001, 0.04, 0.0, 0.01, 0.35, 0.0, 0.3, 0.099)]
        both = (dict(zip(PARTS, (a + b for a, b in zip(parts, later, strict=True)), strict=True)),
                dict(zip(PARTS, later, strict=True)))  # fmt: skip
        plan.cell(size, 10, profiled=True, parts=both, status="oom" if size == "2.7B" else "ok", **own)
    nano = {"shape": (128, 512, 4, 4), "steady": (7.0, 13.0, 2.5), "first": (9.0, 14.0, 1.0), "context": 64}
    nano |= {"noise": 0.03, "hardware": "amd-epyc-cpu", "device_name": "AMD EPYC"}
    zero = (0.0, 0.013, 0.021, 0.0, 0.0, 0.0, 0.0, 0.019, 0.002)
    steady = (0.0, 0.003, 0.010, 0.0, 0.0, 0.0, 0.0, 0.011, 0.003)
    both = tuple(dict(zip(PARTS, each, strict=True)) for each in (zero, steady))
    points(plan, ("nano",), (0, 2, 5), parts=both, **nano)
    return plan


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--out", type=Path, required=True)
    folder = flags.parse_args().out
    print(believable(Plan(folder)).write(folder / "tables"))
