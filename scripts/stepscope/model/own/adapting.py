"""The options of a cell for a user's model: attention, compile, checkpoint; and why one cannot be
had.

Neutral means as the model is written. Attention is replaced where the model calls torch's
scaled_dot_product_attention, as those of transformers do once they are told to use "sdpa".
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from stepscope.axes import PLAIN_STEP, option
from stepscope.model.attention import unsupported
from stepscope.model.chosen import load

from . import structure
from .assembled import OwnModel
from .reference import Unsupported
from .sdpa import SDPA, InPlaceOfSdpa


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
            # hooks stay around it
            block.forward = torch.compile(block.forward)  # type: ignore[method-assign]
    if every > 1:
        raise Unsupported(
            f"checkpoint: {every} is there for the sizes of this project alone; use checkpoint: 1"
        )
    if every:
        for block in _blocks(own, "checkpoint: 1"):
            block.forward = _recomputed(own, block.forward)  # type: ignore[method-assign]
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
    implementation = load("attention", name)
    reason = unsupported(name, own.device)
    called = []

    def looked_at(query, key, value, is_causal: bool) -> Tensor:
        """PyTorch's own, of what the implementation takes."""
        try:
            if hasattr(implementation, "check"):
                implementation.check(query, key, value)
        except ValueError as error:
            raise Unsupported(str(error)) from None
        return SDPA(query, key, value, is_causal=is_causal)

    instead = SDPA if reason or name == "sdpa" else _with_signature(looked_at, name)

    def attention(*given, **options) -> Tensor:
        called.append(name)
        return instead(*given, **options)

    # On the device: in shapes alone some models take another way, as those of transformers, which
    # then make a mask that they else do without.
    devices = [own.device] if own.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad(), InPlaceOfSdpa(own.module, attention):
        own.forward(own.make_batch())
    if not called:
        raise Unsupported(
            "the model neither calls torch's scaled_dot_product_attention nor has the attention"
            " interface of transformers"
        )
    if reason:
        raise Unsupported(reason)
    if name != "sdpa":
        chosen = _with_signature(implementation.attention, name)
        own.attention = InPlaceOfSdpa(own.module, chosen)


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


def _with_signature(attend: Callable, name: str) -> Callable:
    """`attend` with the parameters of torch's scaled_dot_product_attention. Raises Unsupported for
    those that it lacks."""

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
        usual = query.shape[-1] ** -0.5
        if attn_mask is not None:
            raise Unsupported(
                f"the model's attention has a mask; {name} has only the causal one, by"
                " is_causal=True"
            )
        if dropout_p:
            raise Unsupported(
                f"the model's attention has dropout {dropout_p:g}, which {name} lacks; set it to 0"
            )
        if scale is not None and not math.isclose(scale, usual, rel_tol=1e-6):
            raise Unsupported(
                f"the model scales its scores by {scale:g}; {name} by 1/sqrt(d_head) = {usual:g}"
            )
        # heads of K and V, each for several of Q: copied
        if enable_gqa and key.shape[-3] != query.shape[-3]:
            groups = query.shape[-3] // key.shape[-3]
            key, value = (x.repeat_interleave(groups, dim=-3) for x in (key, value))
        return attend(query, key, value, is_causal)

    return attention


def _recomputed(own: OwnModel, forward: Callable) -> Callable:
    """`forward`, of which only the arguments are kept for the backward pass, that runs it again
    (Chen et al. 2016)."""
    # What drops has to drop the same again; without dropout there is no state to keep.
    kept: dict[str, Any] = {
        "use_reentrant": False,
        "preserve_rng_state": any(map(structure.drops, own.module.modules())),
    }
    attention = own.attention
    if isinstance(attention, InPlaceOfSdpa):
        kept["context_fn"] = lambda: (nullcontext(), attention)

    def recomputed(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, **kept, **kwargs)

    return recomputed
