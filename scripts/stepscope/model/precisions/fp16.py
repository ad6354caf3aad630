"""float16 under autocast, with fp32 master weights and without loss scaling."""

from stepscope.model.about import Precision

from . import Format

ABOUT = Precision(
    label="fp16",
    title="fp16 autocast",
    mechanism="Tensor cores multiply 16-bit numbers.",
    recipe='`with torch.autocast("cuda", torch.float16):` around the forward pass, and'
    " `torch.amp.GradScaler`",
    colour="green",
    data_sheet="fp16",
    tolerance=0.0625,  # as bf16's
)
FORMAT = Format(
    dtype="float16",
    bytes=2,
    is_autocast=True,
    cpu_flags=("avx512_fp16", "amx_fp16", "asimdhp"),
)
