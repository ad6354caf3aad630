"""Peak rates of GPUs by their data sheets: dense products (no sparsity) that accumulate in fp32,
and memory bandwidth.

Data sheets that give only the rate with 2:4 sparsity are halved, as they say themselves. fp32 is
the rate of the plain FP32 units, without tensor cores. NVIDIA's names for the documents are in
`source`.
"""

from dataclasses import dataclass

from stepscope.model.formats import PRECISIONS


@dataclass(frozen=True, slots=True)
class Peak:
    """Rates of one GPU model in TFLOP/s, None where it has no arithmetic of that format;
    `bandwidth` in GB/s (1e9)."""

    fp32: float
    tf32: float | None
    bf16: float | None
    fp16: float | None
    fp8: float | None
    bandwidth: float
    source: str


_P100 = (
    "NVIDIA Tesla P100 data sheet, 2016 (fp16 accumulates in fp16: the chip has no tensor cores)"
)
_V100 = "NVIDIA V100 Tensor Core GPU data sheet, 2020"
_T4 = "NVIDIA Turing GPU Architecture white paper, 2018"
_A100 = "NVIDIA A100 Tensor Core GPU data sheet, 2022"
_A100_40GB = "NVIDIA A100 Tensor Core GPU data sheet, 2020"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture white paper, 2022, and data sheet"
_H100_96 = "not published; torchtitan's page of 2024-12: the H100's rates, its own bandwidth"
_H100_NVL = "NVIDIA H100 NVL data sheet, 2024"
_H200 = "NVIDIA H200 Tensor Core GPU data sheet, 2024"
_H20 = "NVIDIA H20 GPU specification, 2023"
_L4 = "NVIDIA L4 Tensor Core GPU data sheet, 2023"
_L40S = "NVIDIA L40S GPU data sheet, 2023"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture white paper, 2021"
_ADA = "NVIDIA Ada GPU Architecture white paper, 2022"
_BLACKWELL_RTX = "NVIDIA RTX Blackwell GPU Architecture white paper, 2025"
_BLACKWELL = "NVIDIA Blackwell data sheet (HGX B200), 2025"

# A GPU is a row: its name by the driver without the brands in front, TFLOP/s in fp32, tf32, bf16,
# fp16 and fp8, GB/s, and where these numbers are from.
PEAKS = {
    "P100-PCIE-16GB": Peak(9.3, None, None, 18.7, None, 732, _P100),
    "P100-PCIE-12GB": Peak(9.3, None, None, 18.7, None, 549, _P100),
    "P100-SXM2-16GB": Peak(10.6, None, None, 21.2, None, 732, _P100),
    **dict.fromkeys(
        ("V100-PCIE-16GB", "V100-PCIE-32GB"), Peak(14.0, None, None, 112.0, None, 900, _V100)
    ),
    **dict.fromkeys(
        ("V100-SXM2-16GB", "V100-SXM2-32GB"), Peak(15.7, None, None, 125.0, None, 900, _V100)
    ),
    "V100S-PCIE-32GB": Peak(16.4, None, None, 130.0, None, 1134, _V100),
    "T4": Peak(8.1, None, None, 65.0, None, 320, _T4),
    **dict.fromkeys(
        ("A100-SXM4-40GB", "A100-PCIE-40GB"),
        Peak(19.5, 156.0, 312.0, 312.0, None, 1555, _A100_40GB),
    ),
    "A100-SXM4-80GB": Peak(19.5, 156.0, 312.0, 312.0, None, 2039, _A100),
    **dict.fromkeys(
        ("A100 80GB PCIe", "A100-PCIE-80GB"), Peak(19.5, 156.0, 312.0, 312.0, None, 1935, _A100)
    ),
    "H20": Peak(44.0, 74.0, 148.0, 148.0, 296.0, 4000, _H20),
    "H100 80GB HBM3": Peak(66.9, 494.7, 989.4, 989.4, 1978.9, 3350, _H100),
    "H100 96GB HBM2e": Peak(66.9, 494.7, 989.4, 989.4, 1978.9, 2400, _H100_96),
    "H100 PCIe": Peak(51.2, 378.0, 756.0, 756.0, 1513.0, 2000, _H100),
    "H100 NVL": Peak(60.0, 417.5, 835.5, 835.5, 1671.0, 3900, _H100_NVL),
    "H200": Peak(67.0, 494.5, 989.5, 989.5, 1979.0, 4800, _H200),
    "H200 NVL": Peak(60.0, 417.5, 835.5, 835.5, 1671.0, 4800, _H200),
    "L4": Peak(30.3, 60.0, 121.0, 121.0, 242.5, 300, _L4),
    "L40S": Peak(91.6, 183.0, 362.05, 362.05, 733.0, 864, _L40S),
    "RTX 3090": Peak(35.6, 35.6, 71.0, 71.0, None, 936, _GA102),
    "RTX 4090": Peak(82.6, 82.6, 165.2, 165.2, 330.3, 1008, _ADA),
    "RTX 5090": Peak(104.8, 104.8, 209.5, 209.5, 419.0, 1792, _BLACKWELL_RTX),
    "B200": Peak(75.0, 1100.0, 2250.0, 2250.0, 4500.0, 7700, _BLACKWELL),
}

_BRANDS = ("nvidia ", "tesla ", "geforce ")
_BY_NAME = {name.casefold(): peak for name, peak in PEAKS.items()}


def peak_of(gpu_name: object) -> Peak | None:
    """Peaks of the GPU that the driver calls so; None for any other: a variant or a MIG slice has
    other rates."""
    name = " ".join(gpu_name.split()).casefold() if isinstance(gpu_name, str) else ""
    for brand in _BRANDS:
        name = name.removeprefix(brand)
    return _BY_NAME.get(name)


def peak_for_mfu(gpu_name: object, precision: str) -> float | None:
    """FLOP/s that model FLOP utilisation is a share of: the dense peak in the precision of the
    products. Of fp8, in which a part of them alone are, bf16's: comparable with the same step in
    bf16."""
    return rate(gpu_name, "matmul", "bf16" if precision == "fp8" else precision)


def rate(gpu_name: object, operation: str, precision: str) -> float | None:
    """FLOP/s of products (`matmul`) in a precision, or B/s of memory (`copy`); None where it is
    unknown."""
    peak = peak_of(gpu_name)
    if operation == "copy":
        return peak.bandwidth * 1e9 if peak else None
    said = PRECISIONS.get(precision)
    found = getattr(peak, said.data_sheet, None) if peak and said else None
    return found * 1e12 if found else None
