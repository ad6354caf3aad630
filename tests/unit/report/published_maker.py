"""Published figures, and our tables beside them, with round numbers. Nothing was measured.

Ours is an H100 80GB HBM3: 66.9 TFLOP/s in fp32, 989.4 in fp16, 3,350 GB/s. Theirs is an A100-SXM4-80GB unless it is
said: 19.5 and 312 TFLOP/s, 2,039 GB/s. So ours multiplies 3.4308 times as fast in fp32, and moves 1.6430 times as much.
"""

import csv
from pathlib import Path

import pandas as pd
import roofline_maker
import synthetic_attention
from stepscope.tables import published
from stepscope.tables.reader import Tables

STUDIES = ["timing", "warmup", "attention", "precision"]
A100 = "A100-SXM4-80GB"
SHAPE = {"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "context": 6, "batch": 3}


def figure(value=None, **over) -> dict:
    """A published time in ms, of the cell that roofline_maker.timing() makes: there forward takes 1 ms."""
    row = {"source": "somebody", "gpu": A100, "study": "timing", "quantity": "time", "statistic": "mean", "unit": "ms"}
    row |= SHAPE | {"size": "nano", "precision": "fp32", "phase": "forward", "value": value}
    return row | {"status": "ok" if value is not None else "oom"} | over


def peak(value=None, **over) -> dict:
    """A published peak of memory in GiB; ours is 10."""
    return figure(value, quantity="peak allocated", unit="GiB", statistic="max", phase="step", **over)


def rate(value, **over) -> dict:
    """A published rate of attention in the papers' shapes; our fastest reach 400 TFLOP/s forward, 200 backward."""
    shape = dict.fromkeys((*SHAPE, "size", "phase"))
    row = {"study": "attention", "quantity": "rate", "unit": "TFLOP/s", "implementation": "theirs", "causal": "yes"}
    row |= {"d_head": 64, "heads": 32, "length": 1024, "batch": 16, "direction": "forward", "precision": "fp16"}
    return figure(value, **(shape | row | {"gpu": "H100 80GB HBM3"} | over))


def timing(**over) -> dict:
    """Our cell of the shape: forward 1 ms, backward 2, step 3.5; peak of a step 10 GiB."""
    return roofline_maker.timing(**({"step_peak_allocated_bytes": 10 * 2**30, "forward_limited_by": "gpu"} | over))


def attention() -> list[dict]:
    """Ours in the papers' shapes at d = 64, and without heads at d = 16."""
    papers = [row for name in ("sdpa-flash", "triton")
              for row in synthetic_attention.cell(name, 64, **synthetic_attention.PAPERS)]  # fmt: skip
    every = [*papers, *synthetic_attention.cell("naive", precision="fp32")]
    return [row | {"device_name": roofline_maker.H100} for row in every]


def write(folder: Path, figures=(), **tables) -> Tables:
    """Our tables as CSV files, and published.csv by way of a file of the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in ({"timing": [timing()]} | tables).items():
        pd.DataFrame(list(rows)).to_csv(folder / f"{name}.csv", index=False)
    if figures:
        given = folder / "given.csv"
        with given.open("w", encoding="utf-8", newline="") as file:
            names = list(dict.fromkeys(name for row in figures for name in row))
            writer = csv.DictWriter(file, names, restval="")
            writer.writeheader()
            writer.writerows(figures)
        published.write([given], folder)
    return Tables(folder, STUDIES)
