"""PyTorch's flex_attention with FlashAttention-4's kernels behind it, where flash-attn-4 is
installed."""

from functools import partial

from stepscope.model.about import Attention

from . import fa4, flex

ABOUT = Attention(
    label="FlexAttention by FlashAttention-4",
    title="FlexAttention by FlashAttention-4",
    recipe='`flex_attention(q, k, v, kernel_options={"BACKEND": "FLASH"})` under `torch.compile`',
    package="flash-attn-4",
)

check, unsupported = fa4.check, fa4.unsupported
attention = partial(flex.attention, backend="FLASH")
