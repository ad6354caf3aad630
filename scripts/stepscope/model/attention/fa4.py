"""FlashAttention-4, of the package flash-attn-4 where it is installed: from Hopper GPUs on."""

from stepscope.model.about import Attention
from stepscope.model.rivals import Rival

ABOUT = Attention(
    label="FlashAttention-4",
    title="FlashAttention-4",
    recipe="`from flash_attn.cute import flash_attn_func`",
    package="flash-attn-4",
)
RIVAL = Rival("flash_attn.cute", ABOUT.package)

attention, check, unsupported = RIVAL.attention, RIVAL.check, RIVAL.unsupported
