"""The options of a cell for a user's model: attention, compile, checkpoint; and why one cannot be
had.

Neutral means as the model is written. Attention is replaced where the model calls torch's
scaled_dot_product_attention, as those of transformers do once they are told to use "sdpa".
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from stepscope.axes import PLAIN_STEP, option
from stepscope.model.attention import unsupported
from stepscope.model.chosen import load
from stepscope.model.own import probing
from stepscope.model.own.assembled import OwnModel
from stepscope.model.own.reference import Unsupported
from stepscope.model.own.sdpa import InPlaceOfSdpa


def adapt(own: OwnModel, spec: dict) -> None:
    """Make the model run as the spec's attention, checkpoint and compile say; once, before its
    first step.

    Raises Unsupported, with the reason in one line, for what cannot be had with this model.
    """
    if own.refused:
        raise Unsupported(own.refused)
    attention = option(spec, "attention")
    every = option(spec, "checkpoint")
    compiled = option(spec, "compile")
    compilation = load("compile", compiled).COMPILATION
    if attention != PLAIN_STEP["attention"]:
        _use_attention(own, attention)
    if compilation.parts:
        own.without_hooks()
    if compilation.parts == "blocks":
        for block in _blocks(own, f"compile: {compiled}"):
            _replace_forward(block, torch.compile(block.forward))
    if every:
        _recompute(own, every)
    if compilation.parts == "model":
        own.module.compile()


def _blocks(own: OwnModel, wanted: str) -> list[nn.Module]:
    if not own.blocks:
        raise Unsupported(
            f"{wanted} needs blocks; no list of modules of one class holds most of the parameters"
        )
    return own.blocks


def _use_attention(own: OwnModel, name: str) -> None:
    """Let every call of attention run in the implementation `name`."""
    _use_sdpa(own.module)
    found = probing.forward(own)
    if not found.attention:
        raise Unsupported(
            "the model neither calls torch's scaled_dot_product_attention nor has the attention"
            " interface of transformers"
        )
    if name == "sdpa":
        return
    implementation = load("attention", name)
    if reason := unsupported(name, own.device):
        raise Unsupported(reason)
    for call in found.attention:
        _check(implementation, name, call)
    own.attention = InPlaceOfSdpa(own.module, _with_signature(implementation.attention, name))


def _use_sdpa(module: nn.Module) -> None:
    """Tell a model of transformers to call torch's attention.

    Raises Unsupported for an architecture that cannot. Any other module is left as it is.
    """
    configuration = getattr(module, "config", None)
    before = getattr(configuration, "_attn_implementation", None)
    choose = getattr(module, "set_attn_implementation", None)
    if configuration is None or before in (None, "sdpa") or not callable(choose):
        return
    try:
        choose("sdpa")
    except (ValueError, ImportError) as error:
        raise Unsupported(
            f"{type(module).__name__} has no sdpa: {str(error).splitlines()[0]}"
        ) from None
    if configuration._attn_implementation != "sdpa":
        raise Unsupported(f"{type(module).__name__} has no attention interface: it stays {before}")


def _check(implementation: ModuleType, name: str, call: probing.Call) -> None:
    """Raise Unsupported where the implementation cannot run a call of the model."""
    _check_options(name, call.has_mask, call.dropout, call.scale, call.q[-1])
    if not hasattr(implementation, "check"):
        return
    heads = call.q[:-2]
    shapes = (call.q, heads + call.k[-2:], heads + call.v[-2:])
    try:
        implementation.check(*[torch.empty(shape, device="meta") for shape in shapes])
    except ValueError as error:
        raise Unsupported(str(error)) from None


def _check_options(
    name: str, has_mask: bool, dropout: float, scale: float | None, d_head: int
) -> None:
    if has_mask:
        raise Unsupported(
            f"the model's attention has a mask; {name} has only the causal one, by is_causal=True"
        )
    if dropout:
        raise Unsupported(
            f"the model's attention has dropout {dropout:g}, which {name} lacks; set it to 0"
        )
    if scale is not None and not math.isclose(scale, d_head**-0.5, rel_tol=1e-6):
        raise Unsupported(
            f"the model scales its scores by {scale:g}; {name} by 1/sqrt(d_head) = {d_head**-0.5:g}"
        )


def _with_signature(attend: Callable, name: str) -> Callable:
    """`attend` with the parameters of torch's scaled_dot_product_attention."""

    def attention(
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ) -> Tensor:
        _check_options(name, attn_mask is not None, dropout_p, scale, query.shape[-1])
        # heads of K and V, each for several of Q: copied
        if enable_gqa and key.shape[-3] != query.shape[-3]:
            groups = query.shape[-3] // key.shape[-3]
            key, value = (x.repeat_interleave(groups, dim=-3) for x in (key, value))
        return attend(query, key, value, is_causal)

    return attention


def _recompute(own: OwnModel, every: int) -> None:
    """Keep the input of every `every` blocks only, and run them again in the backward pass (Chen et
    al. 2016)."""
    blocks = _blocks(own, f"checkpoint: {every}")
    if every == 1:
        for block in blocks:
            _replace_forward(block, _recomputed(own, block.forward))
        return
    found = own.found_blocks
    assert found, "what has blocks has found them"
    container = found.container
    if not isinstance(container, nn.Sequential) or not probing.forward(own).container:
        raise Unsupported(
            f"checkpoint: {every} needs blocks in an nn.Sequential that is called as a whole;"
            f" {found.path} is called block by block: use checkpoint: 1"
        )
    starts = range(0, len(blocks), every)
    groups = [_recomputed(own, nn.Sequential(*blocks[i : i + every])) for i in starts]

    def in_groups(x):
        for group in groups:
            x = group(x)
        return x

    _replace_forward(container, in_groups)


def _replace_forward(module: nn.Module, forward: Callable) -> None:
    """Have the module run `forward` when it is called, hooks around it as before."""
    module.forward = forward  # type: ignore[method-assign]  # a module may have its own


def _recomputed(own: OwnModel, forward: Callable) -> Callable:
    """`forward`, of which only the arguments are kept for the backward pass, that runs it again."""
    # What drops has to drop the same again; without dropout there is no state to keep.
    kept: dict[str, Any] = {
        "use_reentrant": False,
        "preserve_rng_state": bool(own.description["dropout"]),
    }
    attention = own.attention
    if isinstance(attention, InPlaceOfSdpa):
        kept["context_fn"] = lambda: (nullcontext(), attention)

    def recomputed(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, **kept, **kwargs)

    return recomputed
