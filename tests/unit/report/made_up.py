"""Tables of made-up machines in round numbers, from which every fact of the report can be worked
out by hand.

The GPU: products at 50 (fp32), 250 (tf32) and 500 TFLOP/s (bf16), copies at 4 TB/s. Size `big`: 1e9
parameters, 8 blocks, 16 heads; at context 1,024 and batch 4 its step has 50 TFLOP. `little` is a
tenth of it in both. The processor: 100 GFLOP/s, 10 GB/s, size `nano`: 1e6 parameters, 1 GFLOP a
step.
"""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
from stepscope.results import alone, variants
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


def write_tables(folder: Path, gpu: bool = True, cpu: bool = False) -> Path:
    """Write all tables of the machines that are wanted; returns the folder."""
    machines = [made for made, is_wanted in ((_gpu(), gpu), (_cpu(), cpu)) if is_wanted]
    merged: dict[str, list[dict]] = {}
    for tables in machines:
        for name, rows in tables.items():
            merged.setdefault(name, []).extend(rows)
    merged["series"] += _alone(merged["series"], merged["variants"])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, merged)
    return folder


def _alone(series: list[dict], of_ladders: list[dict]) -> list[dict]:
    """What follows of host-free and busy times, as aggregate makes it."""
    asides = {(row["cell"], row["variant"]) for row in of_ladders if row["is_aside"]}
    missing = dict.fromkeys(alone.STEP, "")
    return alone.times(pd.DataFrame([missing | row for row in series]), asides).to_dict("records")


def series(
    cell: str, quantity: str, median: float, unit: str = "s", spread: float = 0.01, **more: object
) -> dict:
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


def cell(name: str, machine: dict, **more: object) -> dict:
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


def place(size: str, context: int, precision: str = "bf16", batch: int = 4) -> dict:
    """Columns of a place."""
    return {"size": size, "context": context, "batch": batch, "precision": precision}


def ladder(
    folder: str, where: dict, rungs: dict, limits: str, launches: dict, machine: dict
) -> tuple[dict, list, list, list]:
    """(row of cells, rows of series, rows of comparisons, rows of variants) of a ladder's place."""
    full: dict[str, dict] = {}
    for name, (what, after, *_) in rungs.items():
        full[name] = full.get(after, {}) | {"name": name, "after": after} | what
    where = {**where, "precision": ""}
    about = cell(folder, machine, **where)
    spec = {"context": where["context"], "variants": list(full.values())}
    machine_ = {"machine": about["machine"]}
    declared = variants.rows(
        [SimpleNamespace(name=folder, spec=spec, place=machine_ | where | {"study": "ladder"})]
    )
    rows, pairs = [], []
    first = next(iter(rungs))
    for name, (_, after, seconds, verdict) in rungs.items():
        own = {**where, "variant": name, "limits": limits}
        allocated, reserved = PEAKS.get(name, (80e9, 90e9))
        optimizer = 0.01 if name == "fused" else 0.05
        rows += [
            series(folder, "time", seconds, **own),
            series(folder, "time", seconds * 0.3, **own | {"phase": "forward"}),
            series(folder, "time", seconds * 0.6, **own | {"phase": "backward"}),
            series(folder, "time", optimizer, **own | {"phase": "optimizer"}),
            series(folder, "tokens_per_second", 4096 / seconds, "token/s", **own),
            series(folder, "launches", launches.get(name, 1000), "1", **own),
            series(folder, "peak_allocated", allocated, "B", **own | {"phase": ""}),
            series(folder, "peak_reserved", reserved, "B", **own | {"phase": ""}),
        ]
        if name in ("block", "graphs"):
            rows += [
                series(folder, "compile_time", 8.0, **own | {"phase": ""}),
                series(folder, "host_free_time", 0.27, **own),
            ]
        for other in dict.fromkeys((after, first)):
            if other and other != name:
                ratio = rungs[other][2] / seconds
                word = verdict if other == after else "faster"
                pairs.append(
                    {
                        **_key(about),
                        "mode": "step",
                        "phase": "step",
                        "quantity": "time",
                        "a": other,
                        "b": name,
                        "ratio": ratio,
                        "low": ratio * 0.98,
                        "high": ratio * 1.02,
                        "verdict": word,
                        "p": 0.001,
                        "processes": 3,
                        "rounds": 12,
                        "in_turns": True,
                        "limits": limits,
                    }
                )
    return about, rows, pairs, declared


def _key(about: dict) -> dict:
    return {
        name: about[name]
        for name in ("machine", "study", "cell", "size", "context", "batch", "precision")
    }


def _timing(
    name: str, where: dict, step: float, machine: dict, limits: str, **alone: float
) -> tuple[dict, list]:
    """A timing cell: inference 0.2, forward 0.3, backward 0.6 and optimizer 0.1 of the step."""
    at = {**where, "limits": limits}
    rows = [
        series(name, "time", step, **at),
        series(name, "time", step * 0.3, **at | {"phase": "forward"}),
        series(name, "time", step * 0.6, **at | {"phase": "backward"}),
        series(name, "time", step * 0.1, **at | {"phase": "optimizer"}),
        series(name, "time", step * 0.3, **at | {"mode": "forward", "phase": "forward"}),
        series(name, "time", step * 0.2, **at | {"mode": "inference", "phase": "inference"}),
        series(
            name, "tokens_per_second", where["context"] * where["batch"] / step, "token/s", **at
        ),
        series(name, "share_of_ceiling", 0.2, "1", **at),
        series(name, "peak_reserved", 90e9, "B", **at | {"phase": ""}),
    ]
    rows += [
        series(name, quantity, value, "1" if quantity == "launches" else "s", **at)
        for quantity, value in alone.items()
    ]
    return cell(name, machine, **where), rows


def _ceilings(machine: dict, label: str, rates: dict[str, float], copy: float) -> tuple[list, list]:
    """A burst at each rate, nine tenths of it sustained."""
    cells, rows = [], []
    what = [("matmul", precision, rate, "FLOP/s") for precision, rate in rates.items()] + [
        ("copy", "fp32", copy, "B/s")
    ]
    for operation, precision, rate, unit in what:
        name = f"{label}/ceilings/{operation}/{precision}"
        at = {"size": operation, "precision": precision, "mode": "", "phase": ""}
        cells.append(cell(name, machine, size=operation, precision=precision, mode=""))
        rows += [
            series(name, "rate", rate * part, unit, variant=kind, **at)
            for kind, part in (("burst", 1), ("sustained", 0.9))
        ]
    return cells, rows


def _profile(
    name: str,
    where: dict,
    machine: dict,
    seconds: dict[str, float],
    launches: int,
    options: str = "",
) -> dict:
    """Tables of a profiled step. seconds: kind → time; `optimizer` is elementwise time of that
    phase."""
    about = cell(name, machine, **where, options=options)
    key = {"machine": about["machine"], "cell": name}
    optimizer = seconds.pop("optimizer")
    whole = seconds | {"elementwise": seconds["elementwise"] + optimizer}
    total = sum(whole.values())
    rows = [
        {
            **key,
            "phase": "step",
            "category": kind,
            "calls": 100,
            "time": time,
            "share": time / total,
        }
        for kind, time in whole.items()
    ]
    rows.append(
        {
            **key,
            "phase": "optimizer",
            "category": "elementwise",
            "calls": 90,
            "time": optimizer,
            "share": 1.0,
        }
    )
    kernels = [
        {
            **key,
            "phase": "step",
            "name": f"{kind} kernel <x>|y",
            "category": kind,
            "calls": 100,
            "time": time,
            "share": time / total,
            "median": time / 100,
        }
        for kind, time in whole.items()
    ]
    return {
        "cells": [about],
        "categories": rows,
        "kernels": kernels,
        "phases": [
            {**key, "phase": "step", "host_time": 0.3, "gpu_time": total, "kernels": launches}
        ],
        "gaps": [{**key, "phase": "step", "wall": total * 2, "busy": total, "idle": total}],
    }


def _memory(
    label: str, size: str, machine: dict, precision: str, contexts: dict[int, float]
) -> dict:
    """Recorded peaks by context, all of them as predicted; 40 % activations, half of these context
    × context."""
    made: dict[str, list] = {
        "cells": [],
        "series": [],
        "memory_peak": [],
        "memory_saved": [],
        "memory_largest": [],
    }
    for context, peak in contexts.items():
        for mode, part in (("step", 1.0), ("inference", 0.25)):
            name = f"{label}/memory/{size}/ctx{context}/{precision}" + f"/mode={mode}" * (
                mode != "step"
            )
            where = {**place(size, context, precision), "mode": mode}
            key = {"machine": label, "cell": name}
            made["cells"].append(cell(name, machine, **where))
            made["series"] += [
                series(name, "peak_asked", peak * part, "B", **where | {"phase": "backward"}),
                series(name, "peak_predicted", peak * part, "B", **where | {"phase": "backward"}),
                series(name, "peak_allocated", peak * part * 1.001, "B", **where | {"phase": ""}),
                series(name, "peak_reserved", peak * part * 1.1, "B", **where | {"phase": ""}),
            ]
            if mode == "step":
                parts = {
                    "parameters": 0.1,
                    "optimizer state": 0.2,
                    "activations": 0.4,
                    "cast weights": 0.3,
                }
                made["memory_peak"] += [
                    {
                        **key,
                        "category": kind,
                        "bytes": peak * of,
                        "blocks": 9,
                        "predicted": peak * of,
                    }
                    for kind, of in parts.items()
                ]
                made["memory_saved"] += [
                    {
                        **key,
                        "part": "block",
                        "category": "activations",
                        "tensors": 1,
                        "bytes": peak * 0.02,
                        "formula": formula,
                    }
                    for formula in (
                        "batch × context × d_model × 4 B",
                        "batch × heads × context × context × 4 B",
                    )
                ]
                made["memory_largest"].append(
                    {
                        **key,
                        "bytes": peak * 0.03,
                        "count": 8,
                        "alive": 7,
                        "category": "activations",
                        "formula": "batch × heads × context × context × 4 B",
                    }
                )
    return made


def _models(
    label: str, sizes: dict[str, tuple[float, float]], contexts: tuple[int, ...]
) -> list[dict]:
    """FLOP grow with the context: `sizes` has those at context 1,024 (64 on the processor)."""
    return [
        {
            "machine": label,
            "size": size,
            "context": context,
            "batch": 4,
            **SHAPE,
            "parameters": parameters,
            "flop": flop * context / contexts[-1],
            "flop_from": "formula",
        }
        for size, (parameters, flop) in sizes.items()
        for context in contexts
    ]


def _attention(label: str, machine: dict, naive: bool = True) -> dict:
    """d64 at lengths 1,024 and 2,048: naive takes 4 and 16 ms forward, cuDNN 0.1 and 0.4, Triton
    0.2 and 0.5."""
    name = f"{label}/attention/d64/bf16"
    where = {"size": "d64", "precision": "bf16", "batch": 8, "mode": ""}
    times = {"naive": (4e-3, 16e-3), "sdpa-cudnn": (1e-4, 4e-4), "triton": (2e-4, 5e-4)}
    rows, pairs = [], []
    for variant, both in times.items():
        for length, seconds in zip((1024, 2048), both, strict=True):
            for direction, factor in (("forward", 1), ("backward", 2)):
                at = {
                    **where,
                    "variant": variant,
                    "length": length,
                    "direction": direction,
                    "phase": direction,
                    "limits": "gpu",
                }
                rows += [
                    series(name, "time", seconds * factor, **at),
                    series(name, "rate", 4 * 8 * length**2 * 64 / seconds, "FLOP/s", **at),
                    series(
                        name,
                        "before_backward",
                        (6 * 8 * length**2 if variant == "naive" else 1e6),
                        "B",
                        **at,
                    ),
                    series(name, "host_time", 3e-4, **at),
                ]
    about = cell(name, machine, **where)
    for direction in ("forward", "backward"):
        for a, b in (("naive", "sdpa-cudnn"), ("naive", "triton"), ("triton", "sdpa-cudnn")):
            ratio = times[a][1] / times[b][1]
            pairs.append(
                {
                    **_key({"context": "", **about}),
                    "mode": "",
                    "phase": direction,
                    "length": 2048,
                    "direction": direction,
                    "quantity": "time",
                    "a": a,
                    "b": b,
                    "ratio": ratio,
                    "low": ratio * 0.99,
                    "high": ratio * 1.01,
                    "verdict": "faster",
                    "processes": 3,
                    "in_turns": True,
                    "limits": "gpu",
                }
            )
    oom = series(
        name,
        "time",
        float("nan"),
        spread=0,
        **where,
        variant="naive",
        length=4096,
        direction="forward",
    )
    causal = f"{label}/attention/d128/bf16/mask=causal"
    more = {"size": "d128", "precision": "bf16", "batch": 4, "mode": "", "options": "mask=causal"}
    rows += [
        oom | {"status": "oom"},
        series(causal, "time", 1e-3, **more, variant="triton", length=2048, direction="forward"),
    ]
    return {"cells": [about, cell(causal, machine, **more)], "series": rows, "comparisons": pairs}


def rows(key: dict, names: str, *values: tuple) -> list[dict]:
    """A row for each tuple of values, which the names are of; all with the key."""
    return [key | dict(zip(names.split(), each, strict=True)) for each in values]


def _formats(label: str, machine: dict) -> dict:
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
        )
        + rows(
            run | {"quantity": "layer", "way": "all in the format"},
            "operation format value error",
            ("output of a linear layer", "bf16", 1.0, 0.003),
            ("output of a linear layer", "bf16", 2.0, 0.004),
            ("output of a linear layer", "fp8", 1.0, 0.05),
        ),
        "dtypes": rows(
            key | {"model": "toy", "autocast": "bf16", "part": "layer_norm"},
            "operator parameter input output parameter_gradient",
            ("LayerNorm", "fp32", "bf16", "fp32", "fp32"),
        ),
    }


def _cold(label: str, size: str, context: int, timing: str, machine: dict) -> dict:
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


def _joined(*tables: dict) -> dict:
    made: dict[str, list] = {}
    for each in tables:
        for name, rows in each.items():
            made.setdefault(name, []).extend(rows)
    return made


def _gpu() -> dict:
    machine = {
        **{
            "device": "cuda",
            "gpu": "Accelerator <A>",
            "cpu": "Host CPU",
            "memory": 100e9,
            "threads": 1,
        },
        **{"driver": "1.0", "torch": "2.11", "triton": "3.6", "python": "3.12"},
        **{
            "power_limit_w": 700,
            "power_max_w": 690,
            "sm_clock_median_mhz": 1900,
            "temperature_max_c": 60,
        },
    }
    cells, ceilings = _ceilings(machine, GPU, {"fp32": 50e12, "tf32": 250e12, "bf16": 500e12}, 4e12)
    top = "attention=sdpa compile=graphs optimizer=fused"
    launches = {"bf16": 3000, "sdpa": 2500, "block": 1200, "graphs": 400, "fused": 100}
    big = ladder(f"{GPU}/ladder/big/ctx1024", place("big", 1024), LADDER, "gpu", launches, machine)
    little = ladder(
        f"{GPU}/ladder/little/ctx256", place("little", 256), LADDER, "launches", launches, machine
    )
    big[0]["throttle"] = "power cap"
    starved = {"host_free_time": 0.015, "busy_time": 0.01, "launches": 3000}
    timed = [
        _timing(f"{GPU}/timing/big/ctx1024/bf16", place("big", 1024), 0.5, machine, "gpu"),
        _timing(f"{GPU}/timing/big/ctx1024/fp32", place("big", 1024, "fp32"), 2.0, machine, "gpu"),
        _timing(f"{GPU}/timing/big/ctx256/bf16", place("big", 256), 0.2, machine, "gpu"),
        _timing(f"{GPU}/timing/big/ctx256/fp32", place("big", 256, "fp32"), 0.5, machine, "gpu"),
        _timing(
            f"{GPU}/timing/little/ctx256/bf16",
            place("little", 256),
            0.06,
            machine,
            "launches",
            **starved,
        ),
        _timing(
            f"{GPU}/timing/little/ctx256/fp32",
            place("little", 256, "fp32"),
            0.06,
            machine,
            "launches",
        ),
    ]
    missing = cell(
        f"{GPU}/timing/huge/ctx1024/bf16",
        machine,
        **place("huge", 1024),
        status="missing",
        started="",
        duration_s=float("nan"),
    )
    older = cell(f"{GPU}/memory/old", machine, is_current=False)
    figure = {
        **{
            "source": "Somebody",
            "gpu": "Accelerator <A>",
            "study": "timing",
            "size": "big",
            "context": 1024,
        },
        **{
            "precision": "bf16",
            "mode": "step",
            "phase": "step",
            "quantity": "time",
            "statistic": "mean",
            "unit": "s",
        },
        **{"machine": GPU, "cell": f"{GPU}/timing/big/ctx1024/bf16", "measured": 0.5},
    }
    doubtful = (9.0, "headed by another unit", 18.0)
    published = rows(figure, "value doubt ratio", (0.6, "", 1.2), (1.0, "", 2.0), doubtful)
    kinds = {
        "matmul": 0.11,
        "elementwise": 0.15,
        "copy/cast": 0.06,
        "reduction": 0.02,
        "optimizer": 0.02,
    }
    halves = {key: value / 2 for key, value in kinds.items()}
    small = {
        "matmul": 0.002,
        "elementwise": 0.005,
        "copy/cast": 0.001,
        "reduction": 0.001,
        "optimizer": 0.001,
    }
    fp32 = {
        "matmul": 1.2,
        "elementwise": 0.2,
        "copy/cast": 0.01,
        "reduction": 0.02,
        "optimizer": 0.02,
    }
    return _joined(
        {"cells": [*cells, big[0], little[0], missing, older, *(about for about, _ in timed)]},
        {"series": [*ceilings, *big[1], *little[1], *(row for _, rows in timed for row in rows)]},
        {"comparisons": [*big[2], *little[2]], "published": published},
        {"variants": [*big[3], *little[3]]},
        {"models": _models(GPU, {"little": (1e8, 5e12), "big": (1e9, 50e12)}, (256, 1024))},
        _profile(f"{GPU}/profile/big/ctx1024/bf16", place("big", 1024), machine, dict(kinds), 3000),
        _profile(
            f"{GPU}/profile/big/ctx1024/fp32", place("big", 1024, "fp32"), machine, fp32, 2500
        ),
        _profile(
            f"{GPU}/profile/big/ctx1024/bf16/top",
            place("big", 1024),
            machine,
            {"matmul": 0.11, "fused attention": 0.02, "elementwise": 0.04, "optimizer": 0.01},
            100,
            top,
        ),
        _profile(f"{GPU}/profile/big/ctx256/bf16", place("big", 256), machine, halves, 3000),
        _profile(f"{GPU}/profile/little/ctx256/bf16", place("little", 256), machine, small, 3000),
        _memory(GPU, "big", machine, "bf16", {256: 20e9, 1024: 50e9}),
        _memory(GPU, "big", machine, "fp32", {1024: 60e9}),
        _attention(GPU, machine),
        _formats(GPU, machine),
        _cold(GPU, "big", 256, f"{GPU}/timing/big/ctx256/fp32", machine),
    )


def _cpu() -> dict:
    machine = {
        "device": "cpu",
        "cpu": "Processor B",
        "memory": 16e9,
        "threads": 3,
        "torch": "2.13",
        "python": "3.12",
    }
    cells, ceilings = _ceilings(machine, CPU, {"fp32": 100e9}, 10e9)
    climbed = ladder(
        f"{CPU}/ladder/nano/ctx64", place("nano", 64, "fp32"), CPU_LADDER, "cpu", {}, machine
    )
    timed = [
        _timing(
            f"{CPU}/timing/nano/ctx{context}/fp32",
            place("nano", context, "fp32"),
            step,
            machine,
            "cpu",
        )
        for context, step in ((32, 0.012), (64, 0.02))
    ]
    refused = cell(
        f"{CPU}/timing/nano/ctx64/bf16",
        machine,
        **place("nano", 64),
        status="unsupported",
        reason="no bf16 instructions",
    )
    return _joined(
        {"cells": [*cells, climbed[0], refused, *(about for about, _ in timed)]},
        {
            "series": [*ceilings, *climbed[1], *(row for _, rows in timed for row in rows)],
            "comparisons": climbed[2],
            "variants": climbed[3],
        },
        {"models": _models(CPU, {"nano": (1e6, 1e9)}, (32, 64))},
        _profile(
            f"{CPU}/profile/nano/ctx64/fp32",
            place("nano", 64, "fp32"),
            machine,
            {"matmul": 0.01, "elementwise": 0.006, "reduction": 0.002, "optimizer": 0.002},
            300,
        ),
        _memory(CPU, "nano", machine, "fp32", {32: 30e6, 64: 50e6}),
        _formats(CPU, machine),
        _cold(CPU, "nano", 64, f"{CPU}/timing/nano/ctx64/fp32", machine),
    )
