"""Attention implementations, one module each, loaded by name (see `stepscope.model.chosen`).

Each has `attention(q, k, v, is_causal, window=None)`: softmax(Q K^T / sqrt(d_head)) V (Vaswani et
al. 2017, equation 1). q: (..., heads, queries, d_head); k: (..., key heads, keys, d_head); v: (...,
key heads, keys, d_value), where the number of key heads divides that of heads. Returns (..., heads,
queries, d_value). With `is_causal`, query i sees keys 0 to i; with a `window`, for which there are
as many keys as queries, the last so many of these.

One that does not run everywhere also has `unsupported(device, d_head)`; one that does not take all
operands `check(q, k, v)`, which raises ValueError.
"""

from stepscope.model.chosen import load


def unsupported(name: str, device, d_head: int | None = None) -> str | None:
    """Why a device (a torch.device) cannot run an implementation, with heads of a dimension where
    that is known, in one line; None if it can."""
    ask = getattr(load("attention", name), "unsupported", None)
    return ask(device, d_head) if ask else None
