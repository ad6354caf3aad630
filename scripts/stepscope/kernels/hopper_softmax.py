"""The softmax of the forward pass for Hopper GPUs: masks, and sums that are rescaled when their
maximum grows."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr

from .tiles import HOPPER_ROWS

_ROWS = constexpr(HOPPER_ROWS)  # queries of a warpgroup
# Weights are 2^(score - maximum); so much a row's maximum may have grown before its sums are
# rescaled. In fp32 and bf16 a weight of 2^8 is as precise as one of 1, and fp16 holds it.
_GROWTH = constexpr(8.0)
_ONE = "0f3F800000"  # of fp32, as PTX writes it


@gluon.jit
def hides(row, column, mask, KEYS: constexpr, CAUSAL: constexpr, LOCAL: constexpr):
    """Whether some of the queries of a warpgroup, from `row` on, do not see some keys of the tile
    at `column`."""
    _queries, keys, offset, window = mask
    hidden = column + KEYS > keys
    if CAUSAL:
        hidden = hidden | (column + KEYS > row + offset + 1)
    if LOCAL:
        hidden = hidden | ((window > 0) & (column + window < row + offset + _ROWS))
    return hidden


@gluon.jit
def masked(scores, rows, column, mask, KEYS: constexpr, CAUSAL: constexpr, LOCAL: constexpr):
    """The scores of `rows` and the keys from `column` on, -inf where a query does not see the
    key."""
    _queries, keys, offset, window = mask
    columns = column + gl.arange(0, KEYS, layout=gl.SliceLayout(0, scores.type.layout))
    last = gl.minimum(rows + offset, keys - 1) if CAUSAL else rows * 0 + (keys - 1)
    scores = gl.where(columns[None, :] <= last[:, None], scores, float("-inf"))
    if LOCAL:
        first = gl.where(window > 0, rows + offset - window + 1, 0)
        scores = gl.where(columns[None, :] >= first[:, None], scores, float("-inf"))
    return scores


@gluon.jit
def grown(maximum, of_tile, LAZY: constexpr):
    """The maximum from which weights are made after a tile with this maximum. If lazy, the old one
    unless it is far exceeded: few maxima change then, and the sums need no rescaling after most
    tiles (FlashAttention-4, Zadouri et al. 2026, conditional rescaling)."""
    new = gl.maximum(maximum, of_tile)
    if LAZY:
        new = gl.where(new > maximum + _GROWTH, new, maximum)
    return new


@gluon.jit
def finite(maximum):
    """0 for -inf, the maximum of a row that has seen nothing else: -inf minus -inf would be NaN."""
    return gl.where(maximum == float("-inf"), 0.0, maximum)


@gluon.jit
def rescaled(sums, factors, LAZY: constexpr):
    """Rows of `sums`, (64, columns), each times its factor; if lazy, a warp whose factors are all 1
    does nothing."""
    LAYOUT: constexpr = sums.type.layout
    VALUES: constexpr = _values(sums.shape[1])
    factors = gl.convert_layout(factors, gl.SliceLayout(1, LAYOUT))
    if not LAZY:
        return sums * factors[:, None]
    sums, factors = gl.broadcast(sums, factors[:, None])
    return gl.inline_asm_elementwise(
        _unless_all_one(VALUES),
        _registers(VALUES),
        [sums, factors],
        dtype=gl.float32,
        is_pure=False,
        pack=VALUES,
    )


@gluon.constexpr_function
def _values(columns):
    """Values that each of a warpgroup's 128 threads has of 64 rows of so many columns."""
    return 64 * columns // 128


@gluon.constexpr_function
def _unless_all_one(values):
    """PTX that multiplies so many values of a thread, which all lie in the two rows of the first
    four."""
    results, sums, factors = ([f"${part * values + i}" for i in range(values)] for part in range(3))
    lines = [".reg .pred other, any;"]
    lines += [f"mov.f32 {to}, {x};" for to, x in zip(results, sums, strict=True)]
    lines += [f"setp.neu.f32 other, {factors[0]}, {_ONE};"]
    lines += [f"setp.neu.or.f32 other, {factor}, {_ONE}, other;" for factor in factors[1:4]]
    lines += ["vote.sync.any.pred any, other, 0xffffffff;", "@!any bra.uni done;"]
    lines += [f"mul.f32 {to}, {to}, {factor};" for to, factor in zip(results, factors, strict=True)]
    return "{ " + " ".join(lines) + " done: }"


@gluon.constexpr_function
def _registers(values):
    """Constraints of its operands: results are written before all operands have been read."""
    return ",".join(["=&f"] * values + ["f"] * (2 * values))
