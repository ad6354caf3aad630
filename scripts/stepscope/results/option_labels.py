"""What options of a step are set to, as people call it: in figures and on pages."""

from stepscope.axes import PRECISIONS

LABELS = {name: name for name in PRECISIONS} | {
    "tf32": "TF32",
    **{"sdpa": "fused attention (SDPA)", "flex": "FlexAttention", "triton": "own Triton attention"},
    **{"block": "blocks compiled", "model": "whole model compiled", "graphs": "CUDA graphs"},
    **{"torch": "PyTorch's default AdamW", "fused": "fused AdamW"},
}
