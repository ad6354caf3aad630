"""fp32, of which matrix products round their operands to TF32 on NVIDIA's tensor cores."""

from stepscope.model.about import Precision

from . import Format

ABOUT = Precision(
    label="TF32",
    title="TF32",
    mechanism="Tensor cores multiply, with inputs rounded to 11 bits.",
    recipe='`torch.set_float32_matmul_precision("high")`',
    colour="purple",
    data_sheet="tf32",
    tolerance=0.0078125,  # 16 × 2^-11
)
FORMAT = Format(dtype="float32", bytes=4, of_fp32="high", capability=(8, 0), cpu_flags=())
