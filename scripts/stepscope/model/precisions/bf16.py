"""bfloat16 under autocast, with fp32 master weights."""

from stepscope.model.about import Precision

from . import Format

ABOUT = Precision(
    label="bf16",
    title="bf16 autocast",
    mechanism="Tensor cores multiply 16-bit numbers.",
    recipe='`with torch.autocast("cuda", torch.bfloat16):` around the forward pass',
    colour="vermillion",
    data_sheet="bf16",
    tolerance=0.0625,  # 16 × 2^-8
)
FORMAT = Format(
    dtype="bfloat16",
    bytes=2,
    is_autocast=True,
    capability=(8, 0),
    cpu_flags=("avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"),
)
