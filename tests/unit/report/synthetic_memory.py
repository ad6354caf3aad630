"""Made-up tables of the memory study with round numbers, so that a test can work out by hand what must be shown.

A cell holds, in MiB at its peak, what HELD says: 1,000 in fp32, 800 in bf16; the allocator counts 2.4 % more, and
reserves 1,250. A step allocates three times its peak. Predicted are 10 MiB of activations less than measured: −1 %.
One block saves 200 MiB: 96 of them in tensors of context × context, 168 in its five largest.
"""

from pathlib import Path

import pandas as pd

MIB, GIB = 2**20, 2**30
SHAPE = {"d_model": 64, "d_ff": 256, "num_layers": 2, "num_heads": 2, "vocab_size": 1000, "parameters": 257_344}
HELD = {
    "fp32": {"parameters": 100, "optimizer state": 200, "activations": 600, "buffers": 4, "workspace": 96},
    "bf16": {"parameters": 100, "optimizer state": 200, "activations": 350, "cast weights": 50, "workspace": 100},
}
CATEGORIES = ("parameters", "gradients", "optimizer state", "activations", "cast weights", "buffers", "workspace",
              "unknown")  # fmt: skip
_SCORES = "batch × heads × context × context × 4 B"
# Part of the block, operator, formula, tensors, MiB of all of them.
SAVED = (
    ("attention/softmax", "sub", _SCORES, 1, 64),
    ("attention/attention × V", "mul", _SCORES, 1, 32),
    ("FFN", "mm", "batch × context × d_ff × 4 B", 2, 32),
    ("attention norm", "add", "batch × context × d_model × 4 B", 1, 20),
    ("FFN norm", "add", "batch × context × d_model × 4 B", 1, 20),
    ("FFN", "silu", "batch × context × d_ff × 4 B", 1, 16),
    ("FFN", "mul", "batch × context × d_ff × 4 B", 1, 16),
)
# Item -> (predicted, measured) MiB.
ACCOUNTS = {
    "parameters": (100, 100),
    "buffers": (4, 4),
    "gradients": (100, 100),
    "gradients of a block": (24, 24),
    "optimizer state": (200, 200),
    "saved by a block": (198, 200),
    "saved outside the blocks": (40, 40),
    "saved in all": (436, 440),
}


def cell(precision="fp32", context=128, mode="step", hardware="gpu", size="s", held=None, **more) -> dict:
    """A cell that was recorded; `held`: MiB at the peak by category."""
    option = f"/mode={mode}" if mode != "step" else ""
    repeat = f"/repeat={more['repeat']}" if "repeat" in more else ""
    name = f"{hardware}/memory/{size}/ctx{context}/{precision}{option}{repeat}"
    held = HELD.get(precision, HELD["fp32"]) if held is None else held
    whole, place = sum(held.values()) * MIB, more.get("peak_place", ("backward", "loss"))
    point = {"cell": name, "hardware": hardware, "size": size, "context": context, "precision": precision, "repeat": 1}
    row = {**point, "batch": 4, "mode": mode, "attention": "naive", "compile": "none", "optimizer": "own"}
    row |= {"checkpoint": 0, **SHAPE, "seed": 0, "status": "ok", "reason": "", "steps": 1, "warmup": 2}
    row |= {"recorder": "allocator history", "recorded": "measured steps", "device": "cuda"}
    row |= {"snapshot": f"results/{name}/snapshot/snapshot.pickle", "known": f"results/{name}/snapshot/known.json"}
    row |= {"baseline_model_bytes": 110 * MIB, "baseline_first_step_bytes": 310 * MIB}
    row |= {"baseline_start_bytes": 310 * MIB, "capacity_total_bytes": 80 * GIB, "capacity_free_bytes": 79 * GIB}
    row |= {"peak_allocated_bytes": 1.024 * whole, "peak_reserved_bytes": 1.25 * whole, "peak_resident_bytes": None}
    row |= {"predicted_peak_bytes": whole - 10 * MIB, "predicted_phase": place[0], "predicted_part": "loss"}
    row |= {"predicted_first_context_too_long": 700, "residual_stream_bytes": 4 * context * 64 * 4}
    row |= {"command": f"python scripts/snapshot_memory.py --precision {precision}", "code": "c0de" * 16}
    return row | {"log": f"results/{name}/measure.log", "held": held, "peak_place": place} | more


def cpu(row: dict) -> dict:
    """The same cell on a CPU: no allocator, so no counters, nothing reserved and no baselines."""
    lost = ("peak_allocated_bytes", "baseline_model_bytes", "baseline_first_step_bytes", "baseline_start_bytes")
    none = dict.fromkeys((*lost, "capacity_total_bytes", "capacity_free_bytes", "predicted_first_context_too_long"))
    more = {"device": "cpu", "recorder": "torch.profiler", "peak_reserved_bytes": 0}
    return row | none | more | {"peak_resident_bytes": 2 * GIB}


def out_of_memory(row: dict, recorded="warm-up") -> dict:
    """The same cell, which wanted 158 MiB more when 48 were free."""
    lost = {"status": "oom", "reason": "CUDA out of memory.", "recorded": recorded, "baseline_first_step_bytes": None}
    return row | lost | {"peak_place": ("forward", "final norm")}


def timing(row: dict, step_ms=50.0, **more) -> dict:
    """The timing study's row at a cell's point: `step_ms`, and inference in a fifth of it."""
    kept = ("hardware", "size", "context", "precision", "repeat", "batch", "attention", "compile", "optimizer", *SHAPE)
    found = {"cell": row["cell"].replace("/memory/", "/timing/"), **{key: row[key] for key in kept}}
    found |= {"checkpoint": 0, "mode": "step", "status": "ok", "reason": "", "step_noisy": False}
    for name, time in (("step", step_ms), ("inference", step_ms / 5)):
        found |= {f"{name}_{key}_ms": time for key in ("median", "ci_low", "ci_high")} | {f"{name}_status": "ok"}
        found |= {f"{name}_mean_ms": time + 1, f"{name}_std_ms": 0.5, f"{name}_tokens_per_s": 4e3 * 128 / time}
    return found | more


def _summary(row: dict, whole: int) -> dict:
    on_gpu, (phase, module) = row["device"] == "cuda", row["peak_place"]
    found = {"device": 0, "events": 3000, "time_recorded_ms": 90.0, "cut": False, "base_bytes": 310 * MIB}
    found |= {"peak_bytes": whole, "peak_event": 1500, "peak_step": 2, "peak_phase": phase, "peak_module": module}
    found |= {"reserved_at_peak_bytes": 1.25 * whole * on_gpu, "unused_at_peak_bytes": 0.25 * whole if on_gpu else None}
    found |= {"allocations": 1500, "allocated_bytes": 3 * whole, "unknown_share_at_peak": 0.0, "ooms": 0}
    if row["status"] == "oom":
        found |= {"ooms": 1, "oom_requested_bytes": 158 * MIB, "oom_free_bytes": 48 * MIB, "oom_phase": "forward"}
        found |= {"oom_module": "", "oom_frame": "scripts/stepscope/model/transformer.py:225 forward"}
    return found


def _phases(whole: int, mode: str) -> list[dict]:
    ends = {"inference": (100, 100)} if mode == "inference" else {"forward": (310, 900), "backward": (900, 410),
                                                                  "optimizer": (410, 310)}  # fmt: skip
    shared = {"device": 0, "step": 2, "allocations": 500, "frees": 400, "freed_bytes": 7 * MIB}
    return [
        {**shared, "phase": phase, "start_bytes": start * MIB, "end_bytes": end * MIB, "peak_bytes": whole}
        | {"allocated_bytes": whole}
        for phase, (start, end) in ends.items()
    ]


def _largest(row: dict) -> list[dict]:
    first = {"device": 0, "rank": 1, "bytes": 64 * MIB, "count": 2, "alive_at_peak": 1, "category": "activations"}
    first |= {"step_phase": "forward", "module": "blocks.*/attention/softmax", "op": "sub", "dtype": "float32"}
    first |= {"frame": "scripts/stepscope/model/softmax.py:17 softmax", "shape": f"4×2×{row['context']}×64"}
    first |= {"name": "", "lifetime_ms": 0.25, "formula": _SCORES}
    weight = first | {"rank": 2, "bytes": 16 * MIB, "count": 3, "alive_at_peak": 3, "category": "parameters"}
    weight |= {"step_phase": "", "module": "", "op": "", "name": "blocks.*.up.weight", "lifetime_ms": None}
    return [first, weight | {"frame": "scripts/stepscope/model/transformer.py:247 truncated_normal", "formula": ""}]


def analysis(row: dict) -> dict[str, list[dict]]:
    """The rows of a cell's other tables."""
    key = {name: row[name] for name in ("cell", "hardware", "size", "context", "precision", "repeat")}
    held, steps = row["held"], row["mode"] != "inference"
    whole = sum(held.values()) * MIB
    made: dict[str, list[dict]] = {"summary": [_summary(row, whole)], "phases": _phases(whole, row["mode"])}
    made["peak"] = [
        {"device": 0, "category": name, "bytes": held.get(name, 0) * MIB, "blocks": 1, "share": 0}
        for name in CATEGORIES
    ]
    made["largest"] = _largest(row)
    line = {"device": 0, "category": "activations", "module": "blocks.*/FFN", "bytes": whole / 4, "blocks": 12}
    line |= {"frame": "scripts/stepscope/model/transformer.py:160 forward", "share": 0.25}
    made["peak_lines"] = [line, line | {"category": "workspace", "module": "", "frame": "", "bytes": whole * 0.75}]
    made["churn"] = [{"device": 0, "phase": "backward", "module": "blocks.*/FFN", "frame": "", "allocations": 336}
                     | {"bytes": 1.5 * whole}]  # fmt: skip
    rows = [(*entry, "block", "activations") for entry in SAVED]
    rows += [("FFN", "_to_copy", "d_ff × d_model × 2 B", 1, 12, "block", "cast weights")]
    rows += [("LM head", "mm", "batch × context × vocabulary × 4 B", 1, 40, "outside", "activations")]
    made["saved"] = [
        {"part": where, "module": f"blocks.*/{part}", "op": op, "shape": f"4×{row['context']}", "dtype": "float32"}
        | {"category": category, "tensors": tensors, "bytes": size * MIB, "formula": formula}
        for part, op, formula, tensors, size, where, category in rows * steps
    ]
    accounts = {name: value for name, value in ACCOUNTS.items() if steps or name in ("parameters", "buffers")}
    accounts |= {"cast weights": (50, 40)} if row["precision"] == "bf16" else {}
    made["accounting"] = [
        {"item": name, "predicted_bytes": predicted * MIB, "measured_bytes": measured * MIB, "formula": "n × 4 B"}
        for name, (predicted, measured) in accounts.items()
    ]
    made["predicted"] = [
        {"category": name, "module": "", "name": name, "count": 1, "bytes": (size - 10 * (name == "activations")) * MIB}
        for name, size in held.items()
    ]
    return {name: [{**key, **line} for line in rows] for name, rows in made.items()}


def write(folder: Path, cells: list[dict], timings=(), change=None) -> Path:
    """The tables of these cells as CSV files; `change(frames)` may alter them first. Returns the folder."""
    hidden = ("held", "peak_place")
    frames = {"memory": pd.DataFrame([{k: v for k, v in row.items() if k not in hidden} for row in cells])}
    for row in cells:
        for name, rows in analysis(row).items() if row["status"] in ("ok", "oom") else ():
            frames[f"memory_{name}"] = pd.concat([frames.get(f"memory_{name}"), pd.DataFrame(rows)])
    frames["timing"] = pd.DataFrame(list(timings))
    if change:
        change(frames)
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        if len(frame.columns):
            frame.to_csv(folder / f"{name}.csv", index=False)
    return folder
