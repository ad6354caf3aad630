"""Peak rates of GPUs by their data sheets: dense products (no sparsity) that accumulate in fp32,
and memory bandwidth.

A GPU is a row of data_sheets.csv: its name by the driver without the brands in front, TFLOP/s in
fp32, tf32, bf16, fp16 and fp8 (empty where it has no arithmetic of that format), GB/s (1e9), and
where these numbers are from, in NVIDIA's names for its documents. Data sheets that give only the
rate with 2:4 sparsity are halved, as they say themselves. fp32 is the rate of the plain FP32 units,
without tensor cores.
"""

import math
from pathlib import Path

import pandas as pd

from stepscope.model.formats import FORMATS, PRECISIONS

PEAKS = pd.read_csv(Path(__file__).with_name("data_sheets.csv"), index_col="gpu")
_BY_NAME = {str(name).casefold(): row for name, row in PEAKS.iterrows()}
_BRANDS = ("nvidia", "tesla", "geforce")


def peak_of(gpu_name: object) -> pd.Series | None:
    """The row of the GPU that the driver calls so; None for any other: a variant or a MIG slice has
    other rates."""
    words = [word for word in str(gpu_name).casefold().split() if word not in _BRANDS]
    return _BY_NAME.get(" ".join(words))


def peak_for_mfu(gpu_name: object, precision: str) -> float:
    """FLOP/s that model FLOP utilisation is a share of: the dense peak in the precision of the
    products. Of fp8, in which a part of them alone are, that of the others: comparable with the
    same step in bf16. NaN where it is unknown."""
    said = FORMATS.get(precision)
    return rate(gpu_name, "matmul", said.outside or precision if said else precision)


def rate(gpu_name: object, operation: str, precision: str) -> float:
    """FLOP/s of products (`matmul`) in a precision, or B/s of memory (`copy`); NaN where it is
    unknown."""
    peak = peak_of(gpu_name)
    if peak is None:
        return math.nan
    if operation == "copy":
        return peak["bandwidth"] * 1e9
    said = PRECISIONS.get(precision)
    return peak[said.data_sheet] * 1e12 if said else math.nan
