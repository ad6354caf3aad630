"""FlashAttention-2 (Dao 2023) tile by tile in plain PyTorch: the algorithm to read, and the reference for the kernels.

No tensor of (queries x keys) ever exists, only a tile of one, so that memory grows with the length instead of its
square. Everything inside a tile is computed in at least fp32, whatever the precision of the inputs.
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from stepscope.kernels import masks
from stepscope.kernels.masks import Mask

QUERY_TILE = 64
KEY_TILE = 64


def attention(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., heads, queries, d_head); k: (..., key heads, keys, d_head); v: (..., key heads, keys, d_value), where the
    number of key heads divides that of heads. Returns (..., heads, queries, d_value). With `is_causal`, query i sees
    keys 0 to i; `window` and `lower_right` as in `stepscope.kernels.masks`.
    """
    return attention_and_lse(q, k, v, is_causal, window, lower_right)[0]


def attention_and_lse(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> tuple[Tensor, Tensor]:
    """The same, and log(sum(exp(scores))) of every query, natural logarithm: (..., queries), at least fp32.

    A query that sees no key has the output 0 and the log-sum-exp -inf.
    """
    masks.check(is_causal, window, lower_right)
    mask = masks.mask_of(q.shape[-2], k.shape[-2], is_causal, window, lower_right)
    if q.ndim == 2 or q.shape[-3] == k.shape[-3]:
        return _TiledAttention.apply(q, k, v, mask)
    # (..., key heads, heads that share them, length, d_head)
    q = q.unflatten(-3, (k.shape[-3], q.shape[-3] // k.shape[-3]))
    output, lse = _TiledAttention.apply(q, k.unsqueeze(-3), v.unsqueeze(-3), mask)
    return output.flatten(-4, -3), lse.flatten(-3, -2)


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        output, lse = _forward(q, k, v, mask)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.mask = mask
        ctx.mark_non_differentiable(lse)
        return output, lse

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output: Tensor, _d_lse: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        return *_backward(*ctx.saved_tensors, d_output, ctx.mask), None


def _forward(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Algorithm 1 of FlashAttention-2: each tile of queries goes once over the keys that it sees."""
    wide = torch.promote_types(q.dtype, torch.float32)
    output = q.new_zeros(*q.shape[:-1], v.shape[-1])
    lse = q.new_full(q.shape[:-1], -math.inf, dtype=wide)
    for rows in _tiles(q.shape[-2], QUERY_TILE):
        q_tile = q[..., rows, :].to(wide) * q.shape[-1] ** -0.5
        maximum = q_tile.new_full(q_tile.shape[:-1], -math.inf)
        normaliser = torch.zeros_like(maximum)
        weighted = q_tile.new_zeros(*q_tile.shape[:-1], v.shape[-1])
        for columns in _tiles(k.shape[-2], KEY_TILE):
            if not _meet(rows, columns, mask):
                continue
            scores = _masked(q_tile @ k[..., columns, :].to(wide).transpose(-2, -1), rows, columns, mask)
            new_maximum = torch.maximum(maximum, scores.amax(dim=-1))
            # A row that has seen nothing yet has the maximum -inf, and -inf minus -inf would be NaN.
            shift = new_maximum.masked_fill(new_maximum == -math.inf, 0)
            weights = torch.exp(scores - shift[..., None])
            # What was summed so far was relative to the old maximum.
            correction = torch.exp(maximum - shift)
            normaliser = normaliser * correction + weights.sum(dim=-1)
            weighted = weighted * correction[..., None] + weights @ v[..., columns, :].to(wide)
            maximum = new_maximum
        lse[..., rows] = maximum + torch.log(normaliser)
        output[..., rows, :] = weighted / normaliser.masked_fill(normaliser == 0, 1)[..., None]
    return output, lse


def _backward(
    q: Tensor, k: Tensor, v: Tensor, output: Tensor, lse: Tensor, d_output: Tensor, mask: Mask
) -> tuple[Tensor, Tensor, Tensor]:
    """Algorithm 2 of FlashAttention-2: gradients of q, k and v from weights that are computed again.

    With the weights P, the scores S and dP = dO V^T: dS = P * (dP - delta), where delta = rowsum(P * dP) is
    rowsum(dO * O) and so needs no weights (section 3.1.1).
    """
    wide = lse.dtype
    scale = q.shape[-1] ** -0.5
    # A query without a key: with this log-sum-exp its weights are 0 instead of exp(-inf + inf).
    lse = lse.masked_fill(lse == -math.inf, math.inf)
    delta = (d_output.to(wide) * output.to(wide)).sum(dim=-1)
    d_q, d_k, d_v = (torch.zeros_like(x, dtype=wide) for x in (q, k, v))
    for columns in _tiles(k.shape[-2], KEY_TILE):
        k_tile, v_tile = (x[..., columns, :].to(wide) for x in (k, v))
        for rows in _tiles(q.shape[-2], QUERY_TILE):
            if not _meet(rows, columns, mask):
                continue
            q_tile, d_output_tile = (x[..., rows, :].to(wide) for x in (q, d_output))
            scores = _masked(scale * q_tile @ k_tile.transpose(-2, -1), rows, columns, mask)
            weights = torch.exp(scores - lse[..., rows, None])
            # Heads that share keys and values add their gradients.
            d_v[..., columns, :] += (weights.transpose(-2, -1) @ d_output_tile).sum_to_size(v_tile.shape)
            d_weights = d_output_tile @ v_tile.transpose(-2, -1)
            d_scores = weights * (d_weights - delta[..., rows, None])
            d_q[..., rows, :] += scale * d_scores @ k_tile
            d_k[..., columns, :] += (scale * d_scores.transpose(-2, -1) @ q_tile).sum_to_size(k_tile.shape)
    return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype)


def _tiles(length: int, size: int) -> list[slice]:
    """0 to `length` in slices of `size`; the last one may be shorter."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _meet(rows: slice, columns: slice, mask: Mask) -> bool:
    """Whether some of these queries see some of these keys."""
    first, last = rows.start + mask.offset, rows.stop - 1 + mask.offset  # positions
    return not mask.is_causal or (columns.start <= last and (not mask.window or columns.stop - 1 > first - mask.window))


def _masked(scores: Tensor, rows: slice, columns: slice, mask: Mask) -> Tensor:
    """The tile (..., rows, columns) of the scores with -inf where a query does not see a key."""
    if not mask.is_causal:
        return scores
    position = torch.arange(rows.start, rows.stop, device=scores.device)[:, None] + mask.offset
    column = torch.arange(columns.start, columns.stop, device=scores.device)
    hidden = column > position
    if mask.window:
        hidden |= column <= position - mask.window
    return scores.masked_fill(hidden, -math.inf)
