"""FlashAttention-3, of the package flash-attn-3 where it is installed: from Hopper GPUs on."""

from stepscope.model.about import Attention
from stepscope.model.rivals import Rival

ABOUT = Attention(
    label="FlashAttention-3",
    title="FlashAttention-3",
    recipe="`from flash_attn_interface import flash_attn_func`",
    package="flash-attn-3",
)
RIVAL = Rival("flash_attn_interface", ABOUT.package)

attention, check, unsupported = RIVAL.attention, RIVAL.check, RIVAL.unsupported
