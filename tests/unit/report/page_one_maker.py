"""Tables for page one with round numbers: a size `s` that was profiled, timed and climbed.

By synthetic_profile, ms of a step of any cell: matrix products 8, optimizer 2, attention beside its products 0.95
(scores 0.4 - 0.25, softmax 0.75, x V 0.1 - 0.05), busy as given; so 1.05 others where it is busy for 12.
"""

from pathlib import Path

import pandas as pd
import synthetic_ladder
import synthetic_profile
from stepscope.tables.reader import Tables

STUDIES = ["timing", "ceilings", "profile", "memory", "attention", "precision", "warmup", "ladder"]
GIB = 2**30
SPREAD = 0.003  # of the logarithm of a process


def timed(cell: dict, step: float, processes: int = 1, /, **more) -> dict:
    """The timing study's row of a profiled cell. Of three processes the interval is ± 0.343 %, by Student's t."""
    row = synthetic_profile.timing(cell, step, step_limited_by="gpu", mode="step", throttle="", device_name="GPU A")
    row |= {"step_processes": processes, "step_ci_low_ms": None, "step_ci_high_ms": None}
    if processes > 1:
        half = step * SPREAD * 1.98 / processes**0.5
        row |= {"step_ci_low_ms": step - half, "step_ci_high_ms": step + half}
        row |= {"step_spread": SPREAD, "step_spread_degrees": 120}
    row |= {"step_peak_allocated_bytes": 60 * GIB, "device_memory_bytes": 80 * GIB, "device": "cuda"}
    return row | more


def lost(cell: dict, context: int) -> dict:
    """The timing study's row of a longer context that ran out of memory."""
    row = timed(cell, 1.0) | {
        "context": context,
        "status": "oom",
        "step_status": "oom",
        "step_peak_allocated_bytes": None,
    }
    nothing = {name: None for name in row if name.endswith(("_ms", "_processes"))}
    return row | nothing | {"cell": row["cell"].replace("ctx128", f"ctx{context}")}


def both(fp32: float = 30.0, bf16: float = 20.0, processes: int = 1) -> tuple[list[dict], list[dict]]:
    """(profiled cells, timing rows) in fp32 and bf16 at one place."""
    cells = [synthetic_profile.cell(), synthetic_profile.cell("bf16")]
    return cells, [timed(cell, step, processes) for cell, step in zip(cells, (fp32, bf16), strict=True)]


def write(folder: Path, cells=(), timing=(), ceilings=(), rungs=(), change=None) -> Tables:
    """The tables as CSV files; those without rows are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    if cells:
        synthetic_profile.write(folder, list(cells), change=change)
    for name, rows in (("timing", timing), ("ceilings", ceilings)):
        if rows:
            pd.DataFrame(list(rows)).to_csv(folder / f"{name}.csv", index=False)
    synthetic_ladder.write(folder, list(rungs))
    return Tables(folder, STUDIES)


def everything(folder: Path) -> Tables:
    """All parts of the page, with intervals: s at 128, and a ladder of small at 128."""
    cells, timing = both(processes=3)
    timing.append(lost(cells[1], 256))
    rates = synthetic_profile.ceilings(tflops=100.0, gb_per_s=10.0) + synthetic_profile.ceilings(
        tflops=800.0, precision="bf16"
    )
    return write(folder, cells, timing, rates, [*synthetic_ladder.chain(), *synthetic_ladder.checkpoints()])
