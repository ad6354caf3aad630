"""Attention as its formula reads, in float64: what implementations are compared with."""

import math

import torch


def visible(queries, keys, window=None, lower_right=False, device="cpu"):
    """As PyTorch's causal_upper_left and causal_lower_right say, and as many keys as the window,
    the latest."""
    query, key = torch.arange(queries, device=device)[:, None], torch.arange(keys, device=device)
    last = query + (keys - queries if lower_right else 0)
    return (key <= last) & (key > last - (window or math.inf))


def attention(q, k, v, is_causal, window=None, lower_right=False):
    """(output, log-sum-exp) of q (..., heads, queries, d_head), whose heads may share those of k
    and v; the output of a query that sees nothing is 0, whatever it would have been."""
    if q.ndim > 2:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
    if is_causal:
        seen = visible(*seen.shape, window, lower_right, scores.device)
    lse = torch.logsumexp(scores.masked_fill(~seen, -math.inf), -1)
    some = seen.any(-1)[:, None]
    weights = torch.softmax(scores.masked_fill(~seen & some, -math.inf), -1)
    return (weights * some) @ v, lse
