"""Made-up tables of the attention study with round numbers, so that a test can work out by hand what must be shown.

A forward pass takes TIMES ms at length 1,024 and d = 16 in bf16, and grows with the length squared; naive and compiled
do not mind d, the others take as many times as long as d is larger. Backward takes twice as long. fp32 takes four times
as long, tf32 three times. Three processes measured each; spread 0.5 % of 60 degrees of freedom. Before
backward naive holds 96 MiB at length 1,024, compiled half of it, both with the length squared; the others 1 MiB
× d / 16, in proportion to the length. In the papers' shapes d = 64 counts as 16 above; rates are RATES, half of it
in backward. The first pass takes 1 ms longer, 2 s if compiled.
"""

import math
from pathlib import Path

import pandas as pd

MIB, GIB = 2**20, 2**30
LENGTHS = (1024, 4096, 16384)
TIMES = {"naive": 1.0, "compiled": 0.5, "sdpa-flash": 0.05, "sdpa-cudnn": 0.08, "flex": 0.04, "triton": 0.04}
RATES = {"naive": 20.0, "compiled": 40.0, "sdpa-flash": 320.0, "sdpa-cudnn": 200.0, "flex": 400.0, "triton": 400.0}
SLOWER = {"bf16": 1, "tf32": 3, "fp32": 4}
WITH_SCORES = ("naive", "compiled")
PAPERS = {"tokens": 16384, "width": 2048, "causal": "yes"}


def cell(implementation="naive", d_head=16, precision="bf16", lengths=LENGTHS, hardware="gpu", **more) -> list[dict]:
    """The rows of a cell; tokens, width and causal are those of the papers' shapes, other columns are set as given."""
    tokens, width, causal = more.pop("tokens", None), more.pop("width", 0), more.pop("causal", "no")
    end = f"/tokens={tokens}" if tokens else ""
    name = f"{hardware}/attention/{implementation}/d{d_head}/{precision}{end}"
    rows = []
    for length in lengths:
        for direction in ("forward", "backward"):
            row = {"cell": name, "hardware": hardware, "implementation": implementation, "d_head": d_head}
            row |= {"precision": precision, "heads": width // d_head, "causal": causal, "tokens": tokens}
            row |= {"batch": tokens // length if tokens else 8, "length": length, "direction": direction, "seed": 0}
            row |= {"warmup": 5, "passes": 100, "noise_mark": 0.05, "status": "ok", "reason": "", "samples": 100}
            row |= {"outliers": 0, "noisy": False, "throttle": "", "other_processes": 0, "code": "c0de" * 16}
            row |= {"device": "cuda", "device_name": "GPU", "device_memory_bytes": 80 * GIB}
            row |= {"command": f"python scripts/time_attention.py --implementation {implementation}"}
            rows.append(row | _measured(row) | {"log": f"results/{name}/measure.log"} | more)
    return rows


def _measured(row: dict) -> dict:
    """Times (ms), rate (TFLOP/s) and memory (bytes) by the rules above."""
    name, backward, scale = row["implementation"], row["direction"] == "backward", row["length"] / 1024
    wide = row["d_head"] / (64 if row["tokens"] else 16)
    keeps = name in WITH_SCORES
    time = TIMES[name] * scale**2 * (1 + backward) * SLOWER[row["precision"]] * (1 if keeps else wide)
    held = {"naive": 96, "compiled": 48}[name] * scale**2 if keeps else scale * wide
    return {
        **timed(time),
        "operations": 1e9,
        "tflops": RATES[name] / (1 + backward),
        "first_pass_ms": time + (2000 if name == "compiled" else 1),
        "before_backward_bytes": held * MIB if backward else None,
        "peak_bytes": held * MIB * (2 + backward),
    }


def timed(time: float, spread=0.005, processes=3) -> dict:
    """A median of so many ms; its interval is ± 2.000 × spread / √processes."""
    found = {"mean_ms": time, "std_ms": time / 100, "median_ms": time, "iqr_ms": time / 100, "processes": processes}
    if processes == 1:
        return found | dict.fromkeys(("ci_low_ms", "ci_high_ms", "spread", "spread_degrees"))
    half = math.exp(2.000 * spread / math.sqrt(processes))
    found |= {"limited_by": "gpu", "spread": spread, "spread_degrees": 60}
    return found | {"ci_low_ms": time / half, "ci_high_ms": time * half}


def without_result(rows: list[dict], status: str, reason: str, lengths=LENGTHS, directions=("forward", "backward")):
    """The same rows, of which some have no result."""
    names = ("mean_ms", "std_ms", "median_ms", "iqr_ms", "ci_low_ms", "ci_high_ms", "tflops", "samples", "outliers",
             "first_pass_ms", "before_backward_bytes", "noisy")  # fmt: skip
    names = names if status == "oom" else (*names, "peak_bytes")
    gone = dict.fromkeys(names) | {"status": status, "reason": reason}
    return [row | (gone if row["length"] in lengths and row["direction"] in directions else {}) for row in rows]


def cpu(rows: list[dict]) -> list[dict]:
    """The same rows of a CPU, where no memory is known."""
    lost = dict.fromkeys(("before_backward_bytes", "peak_bytes"))
    return [row | lost | {"device": "cpu", "device_name": "CPU"} for row in rows]


def grid(hardware="gpu", sizes=(16, 64, 128), names=tuple(TIMES)) -> list[dict]:
    """A small grid like the one of a GPU: every implementation in bf16, three in fp32, two in tf32; papers' shapes."""
    of = {"bf16": names, "fp32": ("naive", "compiled", "triton"), "tf32": ("naive", "compiled")}
    rows = [
        row
        for precision, own in of.items()
        for d_head in sizes
        for name in own
        for row in cell(name, d_head, precision, hardware=hardware)
    ]
    return rows + [row for d in (64, 128) for name in names for row in cell(name, d, hardware=hardware, **PAPERS)]


def ceilings(hardware="gpu", rate=800.0) -> list[dict]:
    """The measured matrix product in bf16."""
    row = {"cell": f"{hardware}/ceilings/matmul/bf16", "hardware": hardware, "operation": "matmul", "n": 8192}
    row |= {"precision": "bf16", "bytes_moved": None, "status": "ok", "reason": "", "noisy": False, "tflops": rate}
    row |= {"gb_per_s": None, "throttle": "", "other_processes": 0, "command": "python", "code": "c0de", "log": None}
    return [row | timed(1.5)]


def write(folder: Path, rows: list[dict], limits=()) -> Path:
    """The tables as CSV files; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("attention", rows), ("ceilings", limits)):
        if table:
            pd.DataFrame(list(table)).to_csv(folder / f"{name}.csv", index=False)
    return folder
