"""Tables of made-up machines in round numbers, from which every fact of the report can be worked
out by hand.

The GPU: products at 50 (fp32), 250 (tf32) and 500 TFLOP/s (bf16), copies at 4 TB/s. Size `big`: 1e9
parameters, 8 blocks, 16 heads; at context 1,024 and batch 4 its step has 50 TFLOP. `little` is a
tenth of it in both. The processor: 100 GFLOP/s, 10 GB/s, size `nano`: 1e6 parameters, 1 GFLOP a
step.
"""

import pandas as pd
from stepscope.report.kit.data import Data
from stepscope.results import alone, variants
from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import TABLES
from stepscope.results.writing import write

GPU, CPU = "gpu-a", "cpu-b"
CARD = {
    "device": "cuda",
    "gpu": "Accelerator <A>",
    "cpu": "Host CPU",
    "memory": 100e9,
    "driver": "1.0",
    "torch": "2.11",
    "power_limit_w": 700,
    "sm_clock_median_mhz": 1900,
}
PROCESSOR = {"device": "cpu", "cpu": "Processor B", "memory": 16e9, "torch": "2.13"}
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
PEAKS = {"graphs": 40e9, "fused": 40e9, "block": 45e9, "checkpoint": 30e9}  # bytes allocated
LAUNCHES = {"bf16": 3000, "sdpa": 2500, "block": 1200, "graphs": 400, "fused": 100}
REPLAYED = {"block": 0.27, "graphs": 0.27}  # variant: seconds without the host
SHAPE = {"d_model": 1024, "d_ff": 4096, "num_layers": 8, "num_heads": 16, "vocab_size": 10_000}


def write_tables(folder, *tables):
    """Write all tables of machines, `gpu()` or others; returns the folder."""
    merged = joined(*tables)
    if "series" in merged:
        merged["series"] += _alone(merged["series"])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, {name: pd.DataFrame(rows) for name, rows in merged.items()})
    return folder


def planted(data, **instead):
    """A machine's tables with others in the place of some."""
    less = Data(data.folder, data.machine)
    known = {name: data[name] for name in TABLES} | instead
    less._read = {(name, None): frame for name, frame in known.items()}
    return less


def joined(*tables):
    """Tables of which each has the rows of all, by name."""
    made = {}
    for each in tables:
        for name, own in each.items():
            made.setdefault(name, []).extend(own)
    return made


def _alone(series):
    """What follows of host-free and busy times, as aggregate makes it."""
    missing = dict.fromkeys(alone.STEP, "")
    return alone.times(pd.DataFrame([missing | row for row in series])).to_dict("records")


def rows(key, names, *values):
    """A row for each tuple of values, which the names are of; all with the key."""
    return [key | dict(zip(names.split(), each, strict=True)) for each in values]


def series(cell, quantity, median, unit="s", spread=0.01, **more):
    """A row of series.csv; times have an interval of ± `spread`."""
    machine, study, *_ = cell.split("/")
    row = {
        "machine": machine,
        "study": study,
        "cell": cell,
        "variant": "step",
        "mode": "step",
        "phase": "step",
        "quantity": quantity,
        "unit": unit,
        "median": median,
        "mean": median,
        "processes": 3,
        "status": "ok",
    }
    if quantity == "time" and median:
        row |= {"low": median * (1 - spread), "high": median * (1 + spread)}
    return row | more


def cell(name, **more):
    """A row of cells.csv."""
    label, study, *_ = name.split("/")
    row = {
        "machine": label,
        "study": study,
        "cell": name,
        "mode": "step",
        "status": "ok",
        "command": f"python scripts/measure.py {name}",
        "code": "c0de",
        "is_current": True,
        "started": "2026-11-20T10:00:00",
        "duration_s": 60.0,
        "processes": 3,
    }
    return row | (PROCESSOR if label == CPU else CARD) | more


def place(size, context, precision="bf16", batch=4):
    """Columns of a place."""
    return {"size": size, "context": context, "batch": batch, "precision": precision}


def of(cell, **more):
    """A row of a table of a cell."""
    return {"machine": cell.partition("/")[0], "cell": cell} | more


def _phases(name, step, at, optimizer):
    """Times of a step and its phases: forward 0.3 of it, backward 0.6."""
    parts = {"step": step, "forward": step * 0.3, "backward": step * 0.6, "optimizer": optimizer}
    return [series(name, "time", time, **at | {"phase": phase}) for phase, time in parts.items()]


def ladder(name, where, rungs, limits="gpu", peaks=PEAKS, replayed=REPLAYED):
    """Tables of a ladder's place."""
    where = where | {"precision": ""}
    about = cell(name, **where)
    full = {}
    for variant, (what, after, *_) in rungs.items():
        full[variant] = full.get(after, {}) | {"name": variant, "after": after} | what
    spec = {"context": where["context"], "variants": list(full.values())}
    made, pairs = [], []
    first = next(iter(rungs))
    for variant, (_, after, seconds, verdict) in rungs.items():
        own = where | {"variant": variant, "limits": limits}
        own["precision"] = full[variant]["precision"]
        both = own | {"mode": "forward-backward", "phase": "forward+backward"}
        allocated = peaks.get(variant, 80e9)
        made += [
            *_phases(name, seconds, own, 0.01 if variant == "fused" else 0.05),
            series(name, "tokens_per_second", 4096 / seconds, "token/s", **own),
            series(name, "launches", LAUNCHES.get(variant, 1000), "1", **own),
            series(name, "peak_allocated", allocated, "B", **own),
            series(name, "peak_reserved", allocated + 10e9, "B", **own),
        ]
        if variant in replayed:
            made += [
                series(name, "compile_time", 8.0, **both),
                series(name, "host_free_time", replayed[variant], **own),
            ]
        key = _key(about) | {"mode": "step", "phase": "step", "p": 0.001, "rounds": 12}
        for other in dict.fromkeys((after, first)):
            if other and other != variant:
                word = verdict if other == after else "faster"
                ratio = rungs[other][2] / seconds
                pairs.append(_compared(key, other, variant, ratio, 0.02, word, limits))
    declared = variants.rows([MeasuredCell(name, spec, "", "")])
    return {"cells": [about], "series": made, "comparisons": pairs, "variants": declared}


def _key(about):
    names = ("machine", "study", "cell", "size", "context", "batch", "precision")
    return {name: about.get(name, "") for name in names}


def _compared(key, a, b, ratio, spread, verdict, limits):
    """A row of comparisons.csv."""
    ends = {"ratio": ratio, "low": ratio * (1 - spread), "high": ratio * (1 + spread)}
    about = {"quantity": "time", "processes": 3, "in_turns": True, "limits": limits}
    return key | {"a": a, "b": b, "verdict": verdict} | ends | about


def timing(label, where, step, limits="gpu", reserved=90e9, **alone):
    """A timing cell: inference 0.2 of the step, the optimizer 0.1."""
    name = f"{label}/timing/{where['size']}/ctx{where['context']}/{where['precision']}"
    at = where | {"limits": limits}
    tokens = where["context"] * where["batch"]
    made = [
        *_phases(name, step, at, step * 0.1),
        series(name, "time", step * 0.3, **at | {"mode": "forward", "phase": "forward"}),
        series(name, "time", step * 0.2, **at | {"mode": "inference", "phase": "inference"}),
        series(name, "tokens_per_second", tokens / step, "token/s", **at),
        series(name, "share_of_ceiling", 0.2, "1", **at),
        series(name, "peak_reserved", reserved, "B", **at),
    ]
    made += [
        series(name, quantity, value, "1" if quantity == "launches" else "s", **at)
        for quantity, value in alone.items()
    ]
    return {"cells": [cell(name, **where)], "series": made}


def ceilings(label, rates, copy):
    """A burst at each rate, nine tenths of it sustained."""
    cells, made = [], []
    products = [("matmul", precision, rate, "FLOP/s") for precision, rate in rates.items()]
    for operation, precision, rate, unit in [*products, ("copy", "fp32", copy, "B/s")]:
        name = f"{label}/ceilings/{operation}/{precision}"
        at = {"size": operation, "precision": precision, "mode": ""}
        cells.append(cell(name, **at))
        for kind, part in (("burst", 1), ("sustained", 0.9)):
            made.append(series(name, "rate", rate * part, unit, variant=kind, phase="", **at))
    return {"cells": cells, "series": made}


KINDS = ("matmul", "elementwise", "copy/cast", "reduction", "optimizer")


def _profile(label, where, seconds, launches, options=""):
    """Tables of a profiled step. seconds: kind → time; `optimizer` is elementwise time of that
    phase."""
    name = f"{label}/profile/{where['size']}/ctx{where['context']}/{where['precision']}"
    about = cell(name + "/top" * bool(options), **where, options=options)
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


def _memory(label, where, peak):
    """Recorded peaks of a step and of inference, as predicted; 40 % activations, half of these
    context × context."""
    place = f"{label}/memory/{where['size']}/ctx{where['context']}/{where['precision']}"
    cells, made = [], []
    for mode, name, part in (
        ("step", place, peak),
        ("inference", f"{place}/mode=inference", peak * 0.25),
    ):
        at = where | {"mode": mode}
        cells.append(cell(name, **at))
        made += [
            series(name, "peak_asked", part, "B", **at | {"phase": "backward"}),
            series(name, "peak_predicted", part, "B", **at | {"phase": "backward"}),
            series(name, "peak_allocated", part * 1.001, "B", **at | {"phase": ""}),
            series(name, "peak_reserved", part * 1.1, "B", **at | {"phase": ""}),
        ]
    key = {"machine": label, "cell": place}
    kept = key | {"category": "activations"}
    saved = kept | {"part": "block", "tensors": 1, "bytes": peak * 0.02}
    parts = {"parameters": 0.1, "optimizer state": 0.2, "activations": 0.4, "cast weights": 0.3}
    return {
        "cells": cells,
        "series": made,
        "memory_peak": [
            key | {"category": kind, "bytes": peak * of, "predicted": peak * of, "blocks": 9}
            for kind, of in parts.items()
        ],
        "memory_saved": rows(saved, "formula", ("batch × context × d_model × 4 B",), (SQUARED,)),
        "memory_largest": [
            kept | {"bytes": peak * 0.03, "count": 8, "alive": 7, "formula": SQUARED}
        ],
    }


def models(label, sizes, contexts):
    """FLOP grow with the context: `sizes` has those at the last (parameters, FLOP)."""
    about = {"machine": label, "batch": 4, **SHAPE, "flop_from": "formula"}
    made = []
    for size, (number, flop) in sizes.items():
        own = about | {"size": size, "parameters": number}
        made += [own | {"context": at, "flop": flop * at / contexts[-1]} for at in contexts]
    return {"models": made}


def attention(label):
    """d64 at lengths 1,024 and 2,048: naive takes 4 and 16 ms forward and runs out of memory at
    4,096, cuDNN takes 0.1 and 0.4, Triton 0.2 and 0.5; backward twice as long."""
    name, causal = f"{label}/attention/d64/bf16", f"{label}/attention/d128/bf16/mask=causal"
    where = {"size": "d64", "precision": "bf16", "batch": 8, "mode": ""}
    times = {"naive": (4e-3, 16e-3), "sdpa-cudnn": (1e-4, 4e-4), "triton": (2e-4, 5e-4)}
    about, made, pairs = cell(name, **where), [], []
    for direction, factor in (("forward", 1), ("backward", 2)):
        pass_of = {"direction": direction, "phase": direction}
        for variant, of_lengths in times.items():
            for length, seconds in zip((1024, 2048), of_lengths, strict=True):
                kept = 6 * 8 * length**2 if variant == "naive" else 1e6
                at = where | pass_of | {"variant": variant, "length": length, "limits": "gpu"}
                made += [
                    series(name, "time", seconds * factor, **at),
                    series(name, "rate", 4 * 8 * length**2 * 64 / seconds, "FLOP/s", **at),
                    series(name, "before_backward", kept, "B", **at),
                ]
        key = _key(about) | pass_of | {"mode": "", "length": 2048}
        for a, b in (("naive", "sdpa-cudnn"), ("naive", "triton"), ("triton", "sdpa-cudnn")):
            pairs.append(_compared(key, a, b, times[a][1] / times[b][1], 0.01, "faster", "gpu"))
    oom = where | {"variant": "naive", "length": 4096, "direction": "forward", "status": "oom"}
    more = where | {"size": "d128", "batch": 4, "options": "mask=causal"}
    long = more | {"variant": "triton", "length": 2048, "direction": "forward"}
    made += [series(name, "time", None, **oom), series(causal, "time", 1e-3, **long)]
    return {"cells": [about, cell(causal, **more)], "series": made, "comparisons": pairs}


def formats(label):
    """A bf16 sum that stops at 4 of 10; LayerNorm that breaks down in fp16 at 256."""
    name = f"{label}/precision/all"
    key = {"machine": label, "cell": name}
    added = key | {"addend_dtype": "bf16", "times": 1000, "addend": 0.010009765625, "exact": 10.0}
    run = key | {"quantity": "largest |x|", "infinite": 0, "nan": 0}
    return {
        "cells": [cell(name, mode="")],
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


def cold(label, where):
    """A place's first step 3 s, steady 0.5 s; the means after 0, 1, 2, 5 and 10 steps."""
    place = f"{where['size']}/ctx{where['context']}/{where['precision']}"
    name = f"{label}/profile/{place}/start=cold"
    steps = {"machine": label, "cell": f"{label}/timing/{place}", "phase": "step"}
    steps |= {"std": 0.01, "first": 3.0, "steady": 0.5}
    return {
        "cells": [cell(name, **where, options="start=cold")],
        "warmup": rows(steps, "skipped mean", (0, 0.8), (1, 0.55), (2, 0.51), (5, 0.5), (10, 0.5)),
        "first_step": rows(
            {"machine": label, "cell": name, "phase": "step"},
            "part first later",
            ("module loading", 1.0, 0.0),
            ("operators", 0.5, 0.3),
        ),
    }


def gpu():
    """Tables of the GPU."""
    rates = {"fp32": 50e12, "tf32": 250e12, "bf16": 500e12}
    large, short, little = place("big", 1024), place("big", 256), place("little", 256)
    fp32 = {"precision": "fp32"}
    big = ladder(f"{GPU}/ladder/big/ctx1024", large, LADDER)
    big["cells"][0]["throttle"] = "power cap"
    starved = {"host_free_time": 0.015, "busy_time": 0.01, "launches": 3000}
    unusable = {
        1024: {"status": "missing", "reason": "not measured: no data here"},
        512: {"status": "missing", "reason": "record.json is damaged"},
        256: {"status": "failed", "reason": "loss is NaN at step 3"},
    }
    figure = {"source": "Somebody", "gpu": "Accelerator <A>", "study": "timing", "unit": "s"}
    figure |= {"mode": "step", "phase": "step", "quantity": "time", "statistic": "mean"}
    figure |= {"measured": 0.5, "machine": GPU, "cell": f"{GPU}/timing/big/ctx1024/bf16"}
    printed = (0.6, "", 1.2), (1.0, "", 2.0), (9.0, "headed by another unit", 18.0)
    seconds = dict(zip(KINDS, (0.11, 0.15, 0.06, 0.02, 0.02), strict=True))
    small = dict(zip(KINDS, (0.002, 0.005, 0.001, 0.001, 0.001), strict=True))
    slow = dict(zip(KINDS, (1.2, 0.2, 0.01, 0.02, 0.02), strict=True))
    fast = {"matmul": 0.11, "fused attention": 0.02, "elementwise": 0.04, "optimizer": 0.01}
    missing = [
        cell(f"{GPU}/timing/huge/ctx{context}/bf16", **place("huge", context) | why)
        for context, why in unusable.items()
    ]
    return joined(
        ceilings(GPU, rates, 4e12),
        big,
        ladder(f"{GPU}/ladder/little/ctx256", little, LADDER, "launches"),
        {"cells": [*missing, cell(f"{GPU}/memory/old", is_current=False)]},
        timing(GPU, large, 0.5),
        timing(GPU, large | fp32, 2.0),
        timing(GPU, short, 0.2),
        timing(GPU, short | fp32, 0.5),
        timing(GPU, little, 0.06, "launches", **starved),
        timing(GPU, little | fp32, 0.06, "launches"),
        {"published": rows(figure | large, "value doubt ratio", *printed)},
        models(GPU, {"little": (1e8, 5e12), "big": (1e9, 50e12)}, (256, 1024)),
        _profile(GPU, large, seconds, 3000),
        _profile(GPU, large | fp32, slow, 2500),
        _profile(GPU, large, fast, 100, "attention=sdpa compile=graphs optimizer=fused"),
        _profile(GPU, short, {kind: time / 2 for kind, time in seconds.items()}, 3000),
        _profile(GPU, little, small, 3000),
        _memory(GPU, short, 20e9),
        _memory(GPU, large, 50e9),
        _memory(GPU, large | fp32, 60e9),
        attention(GPU),
        formats(GPU),
        cold(GPU, short | fp32),
    )


def cpu():
    """Tables of the processor."""
    where = place("nano", 64, "fp32")
    refused = {"status": "unsupported", "reason": "no bf16 instructions"}
    seconds = {"matmul": 0.01, "elementwise": 0.006, "reduction": 0.002, "optimizer": 0.002}
    return joined(
        ceilings(CPU, {"fp32": 100e9}, 10e9),
        ladder(f"{CPU}/ladder/nano/ctx64", where, CPU_LADDER, "cpu"),
        {"cells": [cell(f"{CPU}/timing/nano/ctx64/bf16", **place("nano", 64) | refused)]},
        timing(CPU, where | {"context": 32}, 0.012, "cpu"),
        timing(CPU, where, 0.02, "cpu"),
        models(CPU, {"nano": (1e6, 1e9)}, (32, 64)),
        _profile(CPU, where, seconds, 300),
        _memory(CPU, where | {"context": 32}, 30e6),
        _memory(CPU, where, 50e6),
        formats(CPU),
        cold(CPU, where),
    )
