"""Floating-point operations of a step of a user's model, twice: as torch counts them, and by
formula.

The formula is 6 N a token (Kaplan et al. 2020, section 2.1), N without embeddings that are only
looked up, and 4 of frozen weights, which have no gradient of their own; and 12 batch heads length^2
d_head for each attention, in full as in stepscope.formulas.flops.
"""

import math
from typing import Any

from torch import nn

from stepscope.model.own import structure
from stepscope.model.own.probing import Probe

MOST_APART = 0.05  # of the formula, by which the counter may be lower and have seen attention
_HEADS = ("num_heads", "n_head", "n_heads", "num_attention_heads", "nhead", "heads")
_WIDTH = ("embed_dim", "n_embd", "hidden_size", "d_model", "dim", "embedding_dim")
_D_HEAD = ("head_dim", "d_head", "head_size", "attention_head_size")


def counted(own, found: Probe) -> tuple[dict, list[str]]:
    """({"counter", "formula"} for one forward and backward pass of the whole batch; "forward": of
    the counter's those of the forward pass; "uncounted": operators without a formula, if there are
    any.

    Also "from": "formula" where the counter did not see attention, which may run in a kernel that
    it does not know, so that rates are to be made of the formula. Beside it what could not be found
    out, a line each.
    """
    tokens = _tokens(own, found)
    attention = _attention(own, found, tokens)
    formula = None
    if tokens is not None:
        weights = structure.multiplied(own.module)
        a_token = sum((4 + 2 * each.requires_grad) * each.numel() for each in weights)
        formula = a_token * tokens + (attention or 0)
    told: dict[str, Any] = {"counter": found.flops, "formula": formula}
    told["forward"] = found.forward_flops
    lines = []
    if found.flops is None:
        lines.append(f"operations as torch counts them: {found.reason}")
    if found.uncounted:
        told["uncounted"] = list(found.uncounted)
        names = ", ".join(found.uncounted)
        lines.append(f"operations of {names}: no formula, so that what is counted is the least")
    if tokens is None:
        lines.append(
            "operations by formula: how many tokens a batch has, as what goes into the blocks is"
            " not known"
        )
    elif attention is None:
        lines.append(
            "attention's operations by formula: no heads found, so the formula is 6 N a token alone"
        )
    if found.flops is None or formula is None:
        return told, lines
    lacks = formula - found.flops
    # It lacks no more than what attention is by formula.
    is_attention = MOST_APART * formula < lacks <= (attention or 0) * (1 + MOST_APART)
    if is_attention and not found.calls and not structure.experts(own.module):
        told["from"] = "formula"
    return told, lines


def _tokens(own, found: Probe) -> int | None:
    """Tokens of a batch: positions that go through the blocks, (batch, length, channels); else of
    the input."""
    if found.block_input is not None and len(found.block_input) == 3:
        return math.prod(found.block_input[:-1])
    return own.batch * own.context if own.fed.vocab_size else None


def _attention(own, found: Probe, tokens: int | None) -> int | None:
    """Operations of all attention by formula: of the calls that were seen, else of modules that say
    their heads."""
    if found.calls:
        return sum(call.flops for call in found.calls)
    if tokens is None:
        return None
    flops = 0
    for path in own.attentions:
        width = _width(own.module.get_submodule(path))
        if width is None:
            return None
        flops += 12 * tokens * (tokens // own.batch) * width
    return flops


def _width(attention: nn.Module) -> int | None:
    """heads x d_head of an attention module or of what it holds, by its attributes and its
    configuration's."""
    for part in attention.modules():
        sources = (part, getattr(part, "config", None))
        heads, d_head, width = (_first(sources, names) for names in (_HEADS, _D_HEAD, _WIDTH))
        if heads and (d_head or width):
            return heads * d_head if d_head else width
    return None


def _first(sources: tuple, names: tuple[str, ...]) -> int | None:
    values = [getattr(source, name, None) for source in sources for name in names]
    return next((value for value in values if isinstance(value, int) and value > 0), None)
