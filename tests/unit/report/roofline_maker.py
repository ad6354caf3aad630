"""Tables of a machine whose roofs are round numbers, and one model of which everything can be counted by hand."""

from pathlib import Path

import pandas as pd
import synthetic_attention
from pages import data_pages
from stepscope.figures import figures_of, theme
from stepscope.report.page import Request
from stepscope.tables.reader import Tables

ROOT = Path(__file__).resolve().parents[3]
STUDIES = ["timing", "ceilings", "attention"]
H100 = "NVIDIA H100 80GB HBM3"  # 66.9 TFLOP/s in fp32, 989.4 in bf16, 3,350 GB/s
PARAMETERS = 1496  # of the shape below: 11 x 8 twice, two layers of 4 x 64, 3 x 8 x 16 and 2 x 8, and 8
# Operations of a forward pass: two for each of 18 tokens and each weight of a matrix, and in each layer the scores of
# 6 x 6 pairs and their product with V in 3 sequences.
FORWARD = 2 * 18 * (2 * (4 * 64 + 3 * 128) + 88) + 2 * 3 * 2 * 2 * 36 * 8
FORWARD_BYTES = {"fp32": 33_064, "bf16": 26_764}  # counted by hand in test_model_traffic.py


def timing(precision="fp32", size="nano", hardware="gpu", gpu=H100, **over) -> dict:
    """A cell of which forward takes 1 ms, backward 2 ms and the optimizer 0.5 ms. No number here was measured."""
    name = f"{hardware}/timing/{size}/ctx6/{precision}"
    row = {"cell": name, "hardware": hardware, "size": size, "context": 6, "batch": 3, "precision": precision}
    row |= {"mode": "step", "attention": "naive", "compile": "none", "optimizer": "own", "checkpoint": 0, "repeat": 1}
    row |= {"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "vocab_size": 11, "parameters": PARAMETERS}
    row |= {"seed": 0, "warmup": 5, "noise_mark": 0.02, "status": "ok", "reason": "", "throttle": ""}
    row |= {"other_processes": 0, "device_name": gpu, "command": "python", "log": None, "code": "c0de"}
    times = {"forward": 1.0, "backward": 2.0, "optimizer": 0.5, "step": 3.5}
    for phase, time in times.items():
        row |= {f"{phase}_status": "ok", f"{phase}_median_ms": time, f"{phase}_mean_ms": time, f"{phase}_std_ms": 0.01}
        row |= {f"{phase}_ci_low_ms": time, f"{phase}_ci_high_ms": time, f"{phase}_noisy": False}
    rates = {"step_tokens_per_s": 18 / 3.5e-3, "step_tflops": 3 * FORWARD / 3.5e-3 / 1e12}
    return row | rates | {"peak_tflops": None, "step_mfu": None} | over


def ceilings(hardware="gpu", gpu=H100, copy=1000.0, **rates) -> list[dict]:
    """The matrix product in each precision (TFLOP/s) and the copy (GB/s)."""
    rows = [("matmul", name, rate, None) for name, rate in rates.items()]
    rows += [("copy", "fp32", None, copy)] if copy else []
    shared = {"hardware": hardware, "device_name": gpu, "status": "ok", "reason": "", "noisy": False, "throttle": ""}
    shared |= {"median_ms": 1.0, "ci_low_ms": 1.0, "ci_high_ms": 1.0, "command": "python", "log": None, "n": 8}
    names = ("operation", "precision", "tflops", "gb_per_s")
    return [shared | dict(zip(names, row, strict=True)) | {"cell": f"{hardware}/{row[0]}/{row[1]}"} for row in rows]


def attention(hardware="gpu", **over) -> list[dict]:
    """Two implementations in bf16 at d = 16, batch 8, without heads: see synthetic_attention."""
    rows = synthetic_attention.cell("naive", hardware=hardware) + synthetic_attention.cell("flex", hardware=hardware)
    return [row | over for row in rows]


def write(folder: Path, rows=(), limits=(), passes=()) -> Tables:
    """The tables as CSV files; those without rows are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("timing", rows), ("ceilings", limits), ("attention", passes)):
        if table:
            pd.DataFrame(list(table)).to_csv(folder / f"{name}.csv", index=False)
    return Tables(folder, STUDIES)


def pages(folder: Path, tables: Tables, studies=("ceilings",), section="roofline") -> tuple[str, str]:
    """(Markdown, HTML) of a report with a section that compares studies, the figures of other studies left empty."""
    for study in (*studies, section):
        for name, draw in figures_of(study).items():
            picture = draw if study == section else lambda _tables: theme.empty("not drawn in this test")
            theme.write(picture, tables, folder / "figures", name)
    places = tables.folder, folder / "figures", ROOT / "report", folder / "report"
    return data_pages(Request(list(studies), *places, "Title", "snakemake", False, (section,)))
