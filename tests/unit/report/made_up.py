"""Tables of made-up machines in round numbers, from which every fact of the report can be worked
out by hand.

The GPU: products at 50 (fp32), 250 (tf32) and 500 TFLOP/s (bf16), copies at 4 TB/s. Size `big`: 1e9
parameters, 8 blocks, 16 heads; at context 1,024 and batch 4 its step has 50 TFLOP. `little` is a
tenth of it in both. The processor: 100 GFLOP/s, 10 GB/s, size `nano`: 1e6 parameters, 1 GFLOP a
step.
"""

from types import SimpleNamespace

import pandas as pd
from stepscope.report.kit.data import Data
from stepscope.results import alone, variants
from stepscope.results.schema import TABLES
from stepscope.results.writing import write

GPU, CPU = "gpu-a", "cpu-b"
LADDER = {  # variant: (what it changes, after, seconds, verdict over the one before)
    "fp32": ({"precision": "fp32"}, "", 2.0, ""),
    "tf32": ({"precision": "tf32"}, "fp32", 0.8, "faster"),
    "bf16": ({"precision": "bf16"}, "tf32", 0.5, "faster"),
    "sdpa": ({"attention": "sdpa"}, "bf16", 0.4, "faster"),
    "block": ({"compile": "block"}, "sdpa", 0.32, "faster"),
    "graphs": ({"compile": "graphs"}, "block", 0.3, "same"),
    "fused": ({"optimizer": "fused"}, "graphs", 0.25, "faster"),
    "checkpoint": ({"checkpoint": 2}, "bf16", 0.6, "slower"),
}
CPU_LADDER = {
    "fp32": ({"precision": "fp32"}, "", 0.02, ""),
    "sdpa": ({"attention": "sdpa"}, "fp32", 0.018, "faster"),
    "fused": ({"optimizer": "fused"}, "sdpa", 0.018, "unclear"),
}
PEAKS = {
    "graphs": (40e9, 60e9),
    "fused": (40e9, 60e9),
    "block": (45e9, 50e9),
    "checkpoint": (30e9, 33e9),
}
SHAPE = {"d_model": 1024, "d_ff": 4096, "num_layers": 8, "num_heads": 16, "vocab_size": 10_000}


def write_tables(folder, gpu=True, cpu=False):
    """Write all tables of the machines that are wanted; returns the folder."""
    machines = [made for made, is_wanted in ((_gpu(), gpu), (_cpu(), cpu)) if is_wanted]
    merged = _joined(*machines)
    merged["series"] += _alone(merged["series"], merged["variants"])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, {name: pd.DataFrame(rows) for name, rows in merged.items()})
    return folder


def planted(data, **instead):
    """A machine's tables with others in the place of some."""
    less = Data(data.folder, data.machine)
    less._read = {name: data[name] for name in TABLES} | instead
    return less


def _joined(*tables):
    made = {}
    for each in tables:
        for name, own in each.items():
            made.setdefault(name, []).extend(own)
    return made


def _alone(series, of_ladders):
    """What follows of host-free and busy times, as aggregate makes it."""
    asides = {(row["cell"], row["variant"]) for row in of_ladders if row["is_aside"]}
    missing = dict.fromkeys(alone.STEP, "")
    return alone.times(pd.DataFrame([missing | row for row in series]), asides).to_dict("records")


def series(cell, quantity, median, unit="s", spread=0.01, **more):
    """A row of series.csv; times have an interval of ± `spread`."""
    machine, study, *_ = cell.split("/")
    ends = (
        {"low": median * (1 - spread), "high": median * (1 + spread)}
        if quantity == "time" and spread
        else {}
    )
    row = {
        "machine": machine,
        "study": study,
        "cell": cell,
        "variant": "step",
        "options": "",
        "mode": "step",
        "phase": "step",
        "quantity": quantity,
        "unit": unit,
        "median": median,
        "mean": median,
        "processes": 3,
        "samples": 30,
        "status": "ok",
    }
    return row | ends | more


def cell(name, machine, **more):
    """A row of cells.csv."""
    label, study, *_ = name.split("/")
    row = {
        "machine": label,
        "study": study,
        "cell": name,
        "mode": "step",
        "options": "",
        "status": "ok",
        "command": f"python scripts/measure.py {name}",
        "code": "c0de",
        "is_current": True,
        "commit": "abc123",
        "started": "2026-11-20T10:00:00",
        "duration_s": 60.0,
        "processes": 3,
    }
    return row | machine | more


def place(size, context, precision="bf16", batch=4):
    """Columns of a place."""
    return {"size": size, "context": context, "batch": batch, "precision": precision}


def _phases(name, step, at, optimizer=None):
    """Times of a step and its phases: forward 0.3 of it, backward 0.6 and optimizer 0.1."""
    parts = {"step": step, "forward": step * 0.3, "backward": step * 0.6}
    parts["optimizer"] = step * 0.1 if optimizer is None else optimizer
    return [series(name, "time", time, **at | {"phase": phase}) for phase, time in parts.items()]


def _ladder(folder, where, rungs, limits, launches, machine):
    """Tables of a ladder's place."""
    full = {}
    for name, (what, after, *_) in rungs.items():
        full[name] = full.get(after, {}) | {"name": name, "after": after} | what
    where = {**where, "precision": ""}
    about = cell(folder, machine, **where)
    spec = {"context": where["context"], "variants": list(full.values())}
    place = {"machine": about["machine"], "study": "ladder"} | where
    key = {"machine": about["machine"], "cell": folder}
    told = {"key": key, "name": folder, "spec": spec, "place": place, "statuses": dict}
    declared = variants.rows([SimpleNamespace(built_in="", **told)])
    made, pairs = [], []
    first = next(iter(rungs))
    for name, (_, after, seconds, verdict) in rungs.items():
        own = {**where, "variant": name, "limits": limits}
        whole = own | {"phase": ""}
        allocated, reserved = PEAKS.get(name, (80e9, 90e9))
        made += [
            *_phases(folder, seconds, own, 0.01 if name == "fused" else 0.05),
            series(folder, "tokens_per_second", 4096 / seconds, "token/s", **own),
            series(folder, "launches", launches.get(name, 1000), "1", **own),
            series(folder, "peak_allocated", allocated, "B", **whole),
            series(folder, "peak_reserved", reserved, "B", **whole),
        ]
        if name in ("block", "graphs"):
            made += [
                series(folder, "compile_time", 8.0, **whole),
                series(folder, "host_free_time", 0.27, **own),
            ]
        for other in dict.fromkeys((after, first)):
            if other and other != name:
                word = verdict if other == after else "faster"
                key = _key(about) | {"mode": "step", "phase": "step", "p": 0.001, "rounds": 12}
                ratio = rungs[other][2] / seconds
                pairs.append(_compared(key, other, name, ratio, 0.02, word, limits))
    return {"cells": [about], "series": made, "comparisons": pairs, "variants": declared}


def _key(about):
    names = ("machine", "study", "cell", "size", "context", "batch", "precision")
    return {name: about[name] for name in names}


def _compared(key, a, b, ratio, spread, verdict, limits):
    """A row of comparisons.csv."""
    ends = {"ratio": ratio, "low": ratio * (1 - spread), "high": ratio * (1 + spread)}
    about = {"quantity": "time", "processes": 3, "in_turns": True, "limits": limits}
    return key | {"a": a, "b": b, "verdict": verdict} | ends | about


def _timing(label, where, step, machine, limits, refused=None, **alone):
    """A timing cell: inference 0.2 of the step; without series where it was `refused`."""
    name = f"{label}/timing/{where['size']}/ctx{where['context']}/{where['precision']}"
    if refused:
        return {"cells": [cell(name, machine, **where, **refused)]}
    at = {**where, "limits": limits}
    tokens = where["context"] * where["batch"]
    made = [
        *_phases(name, step, at),
        series(name, "time", step * 0.3, **at | {"mode": "forward", "phase": "forward"}),
        series(name, "time", step * 0.2, **at | {"mode": "inference", "phase": "inference"}),
        series(name, "tokens_per_second", tokens / step, "token/s", **at),
        series(name, "share_of_ceiling", 0.2, "1", **at),
        series(name, "peak_reserved", 90e9, "B", **at | {"phase": ""}),
    ]
    made += [
        series(name, quantity, value, "1" if quantity == "launches" else "s", **at)
        for quantity, value in alone.items()
    ]
    return {"cells": [cell(name, machine, **where)], "series": made}


def rows(key, names, *values):
    """A row for each tuple of values, which the names are of; all with the key."""
    return [key | dict(zip(names.split(), each, strict=True)) for each in values]


def _ceilings(machine, label, rates, copy):
    """A burst at each rate, nine tenths of it sustained."""
    cells, made = [], []
    products = [("matmul", precision, rate, "FLOP/s") for precision, rate in rates.items()]
    for operation, precision, rate, unit in [*products, ("copy", "fp32", copy, "B/s")]:
        name = f"{label}/ceilings/{operation}/{precision}"
        at = {"size": operation, "precision": precision, "mode": ""}
        cells.append(cell(name, machine, **at))
        made += [
            series(name, "rate", rate * part, unit, variant=kind, phase="", **at)
            for kind, part in (("burst", 1), ("sustained", 0.9))
        ]
    return {"cells": cells, "series": made}


KINDS = ("matmul", "elementwise", "copy/cast", "reduction", "optimizer")


def _profile(label, where, machine, seconds, launches, options=""):
    """Tables of a profiled step. seconds: kind → time; `optimizer` is elementwise time of that
    phase."""
    name = f"{label}/profile/{where['size']}/ctx{where['context']}/{where['precision']}"
    about = cell(name + "/top" * bool(options), machine, **where, options=options)
    key = {"machine": label, "cell": about["cell"]}
    whole = {kind: time for kind, time in seconds.items() if kind != "optimizer"}
    whole["elementwise"] += seconds["optimizer"]
    total = sum(whole.values())
    step = key | {"phase": "step"}
    kinds = [
        step | {"category": kind, "calls": 100, "time": time, "share": time / total}
        for kind, time in whole.items()
    ]
    optimizer = {"phase": "optimizer", "calls": 90, "time": seconds["optimizer"], "share": 1.0}
    kernels = [
        row | {"name": f"{row['category']} kernel <x>|y", "median": row["time"] / 100}
        for row in kinds
    ]
    forward = key | {"phase": "forward", "host_time": 0.16, "gpu_time": 0.16, "clock": 0.158}
    part = key | {"kind": "module", "calls": 8, "kernels": 16, "parent": "attention"}
    part |= {"top_kernel": "exp", "top_share": 0.5, "top_calls": 16, "host_time": 0.004}
    whole_attention = part | {"attention": True, "module": "attention", "parent": "forward"}
    return {
        "cells": [about | {"profiler": "nsys", "profiler_version": "2025.3"}],
        "categories": [*kinds, key | {"category": "elementwise"} | optimizer],
        "kernels": kernels,
        "warnings": [key | {"about": "profiler", "text": "events were lost"}],
        "modules": [
            whole_attention | {"gpu_time": 0.08, "gpu_min": 0.009, "gpu_max": 0.012},
            part | {"module": "attention scores", "gpu_time": 0.01, "flop": 32e9, "bytes": 16e9},
            part | {"module": "softmax", "gpu_time": 0.04, "flop": 8e9, "bytes": 80e9},
        ],
        "phases": [
            step | {"host_time": 0.3, "gpu_time": total, "kernels": launches, "memory_time": 0.004},
            forward | {"clock_std": 0.002, "overhead": 1.05},
        ],
        "gaps": [step | {"wall": total * 2, "busy": total, "idle": total}],
    }


SQUARED = "batch × heads × context × context × 4 B"


def _memory(label, size, machine, precision, contexts):
    """Recorded peaks by context, all of them as predicted; 40 % activations, half of these context
    × context."""
    made = []
    parts = {"parameters": 0.1, "optimizer state": 0.2, "activations": 0.4, "cast weights": 0.3}
    for context, peak in contexts.items():
        for mode, part in (("step", peak), ("inference", peak * 0.25)):
            name = f"{label}/memory/{size}/ctx{context}/{precision}"
            name += f"/mode={mode}" * (mode != "step")
            where = {**place(size, context, precision), "mode": mode}
            backward = where | {"phase": "backward"}
            sizes = [
                series(name, "peak_asked", part, "B", **backward),
                series(name, "peak_predicted", part, "B", **backward),
                series(name, "peak_allocated", part * 1.001, "B", **where | {"phase": ""}),
                series(name, "peak_reserved", part * 1.1, "B", **where | {"phase": ""}),
            ]
            made.append({"cells": [cell(name, machine, **where)], "series": sizes})
        key = {"machine": label, "cell": f"{label}/memory/{size}/ctx{context}/{precision}"}
        kept = key | {"category": "activations"}
        saved = kept | {"part": "block", "tensors": 1, "bytes": peak * 0.02}
        made.append(
            {
                "memory_peak": [
                    key
                    | {"category": kind, "bytes": peak * of, "predicted": peak * of, "blocks": 9}
                    for kind, of in parts.items()
                ],
                "memory_saved": rows(
                    saved, "formula", ("batch × context × d_model × 4 B",), (SQUARED,)
                ),
                "memory_largest": [
                    kept | {"bytes": peak * 0.03, "count": 8, "alive": 7, "formula": SQUARED}
                ],
            }
        )
    return _joined(*made)


def _models(label, sizes, contexts):
    """FLOP grow with the context: `sizes` has those at context 1,024 (64 on the processor)."""
    about = {"machine": label, "batch": 4, **SHAPE, "flop_from": "formula"}
    return [
        about
        | {"size": size, "context": at, "parameters": number, "flop": flop * at / contexts[-1]}
        for size, (number, flop) in sizes.items()
        for at in contexts
    ]


def _attention(label, machine):
    """d64 at lengths 1,024 and 2,048: naive takes 4 and 16 ms forward, cuDNN 0.1 and 0.4, Triton
    0.2 and 0.5."""
    name = f"{label}/attention/d64/bf16"
    where = {"size": "d64", "precision": "bf16", "batch": 8, "mode": ""}
    times = {"naive": (4e-3, 16e-3), "sdpa-cudnn": (1e-4, 4e-4), "triton": (2e-4, 5e-4)}
    both = {"forward": 1, "backward": 2}
    about = cell(name, machine, **where)
    made, pairs = [], []
    for variant, of_lengths in times.items():
        for length, seconds in zip((1024, 2048), of_lengths, strict=True):
            kept = 6 * 8 * length**2 if variant == "naive" else 1e6
            for direction, factor in both.items():
                at = where | {"variant": variant, "length": length, "limits": "gpu"}
                at |= {"direction": direction, "phase": direction}
                made += [
                    series(name, "time", seconds * factor, **at),
                    series(name, "rate", 4 * 8 * length**2 * 64 / seconds, "FLOP/s", **at),
                    series(name, "before_backward", kept, "B", **at),
                ]
    for direction in both:
        key = _key({"context": "", **about}) | {"mode": "", "length": 2048}
        key |= {"direction": direction, "phase": direction}
        for a, b in (("naive", "sdpa-cudnn"), ("naive", "triton"), ("triton", "sdpa-cudnn")):
            pairs.append(_compared(key, a, b, times[a][1] / times[b][1], 0.01, "faster", "gpu"))
    oom = {"variant": "naive", "length": 4096, "direction": "forward", "status": "oom"}
    causal = f"{label}/attention/d128/bf16/mask=causal"
    more = where | {"size": "d128", "batch": 4, "options": "mask=causal"}
    long = more | {"variant": "triton", "length": 2048, "direction": "forward"}
    made += [
        series(name, "time", float("nan"), spread=0, **where, **oom),
        series(causal, "time", 1e-3, **long),
    ]
    return {"cells": [about, cell(causal, machine, **more)], "series": made, "comparisons": pairs}


def _formats(label, machine):
    """A bf16 sum that stops at 4 of 10; LayerNorm that breaks down in fp16 at 256."""
    name = f"{label}/precision/all"
    key = {"machine": label, "cell": name}
    added = key | {"addend_dtype": "bf16", "times": 1000, "addend": 0.010009765625, "exact": 10.0}
    run = key | {"quantity": "largest |x|", "status": "ok", "infinite": 0, "nan": 0}
    return {
        "cells": [cell(name, machine, mode="")],
        "sums": rows(
            added,
            "variant sum_dtype sum last_change",
            ("bf16 += bf16", "bf16", 4.0, 350),
            ("fp32 += bf16", "fp32", 10.009765625, 1000),
        ),
        "forced": rows(
            run,
            "operation way format value error",
            ("LayerNorm", "all in the format", "bf16", 1.0, 0.004),
            ("LayerNorm", "all in the format", "bf16", 256.0, 0.006),
            ("LayerNorm", "all in the format", "fp16", 1.0, 0.001),
            ("LayerNorm", "all in the format", "fp16", 256.0, 1.0),
            ("LayerNorm", "under autocast", "bf16", 1.0, 1e-7),
            ("softmax", "under autocast", "fp16", 1.0, 4e-4),
            ("softmax", "all in the format", "fp16", 1.0, 6e-4),
            ("softmax", "all in the format", "fp16", 512.0, 1.0),
        ),
        "dtypes": rows(
            key | {"autocast": "bf16", "role": "layer_norm"},
            "kind parameter input output parameter_gradient",
            ("LayerNorm", "fp32", "bf16", "fp32", "fp32"),
        ),
    }


def _cold(label, size, context, timing, machine):
    """First step 3 s, steady 0.5 s; the means after 0, 1, 2, 5 and 10 steps."""
    name = f"{label}/profile/{size}/ctx{context}/fp32/start=cold"
    series = {"machine": label, "cell": timing, "std": 0.01, "first": 3.0, "steady": 0.5}
    return {
        "cells": [cell(name, machine, **place(size, context, "fp32"), options="start=cold")],
        "warmup": rows(
            series | {"phase": "step"},
            "skipped mean",
            (0, 0.8),
            (1, 0.55),
            (2, 0.51),
            (5, 0.5),
            (10, 0.5),
        ),
        "first_step": rows(
            {"machine": label, "cell": name, "phase": "step"},
            "part first later",
            ("module loading", 1.0, 0.0),
            ("operators", 0.5, 0.3),
        ),
    }


def _gpu():
    machine = {"device": "cuda", "gpu": "Accelerator <A>", "cpu": "Host CPU", "memory": 100e9}
    machine |= {"threads": 1, "driver": "1.0", "torch": "2.11", "triton": "3.6", "python": "3.12"}
    machine |= {"power_limit_w": 700, "power_max_w": 690}
    machine |= {"sm_clock_median_mhz": 1900, "temperature_max_c": 60}
    rates = {"fp32": 50e12, "tf32": 250e12, "bf16": 500e12}
    launches = {"bf16": 3000, "sdpa": 2500, "block": 1200, "graphs": 400, "fused": 100}
    large, short, little = place("big", 1024), place("big", 256), place("little", 256)
    fp32 = {"precision": "fp32"}
    big = _ladder(f"{GPU}/ladder/big/ctx1024", large, LADDER, "gpu", launches, machine)
    big["cells"][0]["throttle"] = "power cap"
    starved = {"host_free_time": 0.015, "busy_time": 0.01, "launches": 3000}
    missing = {"status": "missing", "started": "", "duration_s": float("nan")}
    unmeasured = missing | {"reason": "not measured: no data here"}
    damaged = missing | {"reason": "record.json is damaged"}
    failed = {"status": "failed", "reason": "loss is NaN at step 3"}
    figure = {"source": "Somebody", "gpu": "Accelerator <A>", "study": "timing", "unit": "s"}
    figure |= {"mode": "step", "phase": "step", "quantity": "time", "statistic": "mean"}
    figure |= {"size": "big", "context": 1024, "precision": "bf16", "measured": 0.5}
    figure |= {"machine": GPU, "cell": f"{GPU}/timing/big/ctx1024/bf16"}
    printed = (0.6, "", 1.2), (1.0, "", 2.0), (9.0, "headed by another unit", 18.0)
    seconds = dict(zip(KINDS, (0.11, 0.15, 0.06, 0.02, 0.02), strict=True))
    small = dict(zip(KINDS, (0.002, 0.005, 0.001, 0.001, 0.001), strict=True))
    slow = dict(zip(KINDS, (1.2, 0.2, 0.01, 0.02, 0.02), strict=True))
    fast = {"matmul": 0.11, "fused attention": 0.02, "elementwise": 0.04, "optimizer": 0.01}
    return _joined(
        _ceilings(machine, GPU, rates, 4e12),
        big,
        _ladder(f"{GPU}/ladder/little/ctx256", little, LADDER, "launches", launches, machine),
        _timing(GPU, place("huge", 1024), 0, machine, "", refused=unmeasured),
        _timing(GPU, place("huge", 512), 0, machine, "", refused=damaged),
        _timing(GPU, place("huge", 256), 0, machine, "", refused=failed),
        {"cells": [cell(f"{GPU}/memory/old", machine, is_current=False)]},
        _timing(GPU, large, 0.5, machine, "gpu"),
        _timing(GPU, large | fp32, 2.0, machine, "gpu"),
        _timing(GPU, short, 0.2, machine, "gpu"),
        _timing(GPU, short | fp32, 0.5, machine, "gpu"),
        _timing(GPU, little, 0.06, machine, "launches", **starved),
        _timing(GPU, little | fp32, 0.06, machine, "launches"),
        {"published": rows(figure, "value doubt ratio", *printed)},
        {"models": _models(GPU, {"little": (1e8, 5e12), "big": (1e9, 50e12)}, (256, 1024))},
        _profile(GPU, large, machine, seconds, 3000),
        _profile(GPU, large | fp32, machine, slow, 2500),
        _profile(GPU, large, machine, fast, 100, "attention=sdpa compile=graphs optimizer=fused"),
        _profile(GPU, short, machine, {kind: time / 2 for kind, time in seconds.items()}, 3000),
        _profile(GPU, little, machine, small, 3000),
        _memory(GPU, "big", machine, "bf16", {256: 20e9, 1024: 50e9}),
        _memory(GPU, "big", machine, "fp32", {1024: 60e9}),
        _attention(GPU, machine),
        _formats(GPU, machine),
        _cold(GPU, "big", 256, f"{GPU}/timing/big/ctx256/fp32", machine),
    )


def _cpu():
    machine = {"device": "cpu", "cpu": "Processor B", "memory": 16e9, "threads": 3}
    machine |= {"torch": "2.13", "python": "3.12"}
    where = place("nano", 64, "fp32")
    refused = {"status": "unsupported", "reason": "no bf16 instructions"}
    seconds = {"matmul": 0.01, "elementwise": 0.006, "reduction": 0.002, "optimizer": 0.002}
    return _joined(
        _ceilings(machine, CPU, {"fp32": 100e9}, 10e9),
        _ladder(f"{CPU}/ladder/nano/ctx64", where, CPU_LADDER, "cpu", {}, machine),
        _timing(CPU, place("nano", 64), 0, machine, "", refused=refused),
        _timing(CPU, where | {"context": 32}, 0.012, machine, "cpu"),
        _timing(CPU, where, 0.02, machine, "cpu"),
        {"models": _models(CPU, {"nano": (1e6, 1e9)}, (32, 64))},
        _profile(CPU, where, machine, seconds, 300),
        _memory(CPU, "nano", machine, "fp32", {32: 30e6, 64: 50e6}),
        _formats(CPU, machine),
        _cold(CPU, "nano", 64, f"{CPU}/timing/nano/ctx64/fp32", machine),
    )
