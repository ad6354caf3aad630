"""FlashAttention in Triton against attention in float64, and against what is known in closed
form."""

import math

import pytest
import torch
from attending import DEVICE, agree, assert_close, exact, random_tensors, run
from stepscope.kernels import fused
from torch import testing

ON_GPU = torch.cuda.is_available()
# Triton's interpreter computes with NumPy, which warns of exp2(1000) and log2(0); they are meant
# here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

causal_or_not = pytest.mark.parametrize("is_causal", [True, False])
# Triton's interpreter multiplies tiles of bf16 as if they held integers.
needs_gpu_for_bf16 = pytest.mark.skipif(
    not ON_GPU, reason="Triton's interpreter has no bf16 products"
)
needs_three_warpgroups = pytest.mark.skipif(not ON_GPU, reason="only a GPU's kernel has them")
BF16 = pytest.param(torch.bfloat16, marks=needs_gpu_for_bf16)


@causal_or_not
@pytest.mark.parametrize(
    "queries, keys, d_head, dtype",
    [
        (150, 150, 64, torch.float32),
        (150, 150, 80, torch.float16),
        pytest.param(150, 150, 80, torch.bfloat16, marks=needs_gpu_for_bf16),
        (70, 200, 128, torch.float16),
        (200, 70, 16, torch.float32),
        (129, 129, 24, torch.float16),
        (33, 65, 256, torch.float32),
        (1, 90, 64, torch.float16),
        (90, 1, 64, torch.float32),
        (1, 1, 8, torch.float16),
        (128, 64, 64, torch.float32),
    ],
)
def test_output_log_sum_exp_and_gradients(queries, keys, d_head, dtype, is_causal):
    got = agree(queries, keys, d_head, dtype, is_causal)
    assert [x.dtype for x in got] == [dtype, torch.float32, dtype, dtype, dtype]


@causal_or_not
@pytest.mark.parametrize("batch", [(), (3,), (2, 1, 2, 1)])
def test_any_number_of_batch_dimensions(batch, is_causal):
    agree(40, 40, 16, is_causal=is_causal, batch=batch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
def test_heads_cut_out_of_a_projection(dtype):
    agree(70, 70, 32, dtype, batch=(2, 3), projected=True)


def test_transposed_expanded_overlapping_misplaced_and_negated_inputs():
    q, k, v, d_output = random_tensors((1, 2), 40, 40, 16, torch.float16)
    transposed, d_transposed = (x.mT.contiguous().mT for x in (q, d_output))
    # not on a multiple of 16 bytes
    misplaced = torch.cat([v.new_zeros(1), v.flatten()])[1:].view(v.shape)
    expanded = k[:, :1].expand(1, 2, 40, 16)
    windows = k.flatten(2)[..., :55].unfold(-1, 16, 1)  # of a signal
    for queries, keys, gradient in (
        (transposed, expanded, d_transposed),
        (windows, windows, d_output),
        map(torch._neg_view, (q, k, d_output)),
    ):
        given = (queries, keys, misplaced, gradient)
        assert_close(run(*given, True), exact(*given, True), 2e-3)


@causal_or_not
@pytest.mark.parametrize("dtype", [torch.float16, BF16])
def test_backward_gives_the_same_bits_again(dtype, is_causal):
    length, times = (1000, 10) if ON_GPU else (70, 1)
    agree(length, length, 64, dtype, is_causal, batch=(2, 2), again=times)


# Scores of some 1000 in fp32: exp() of them is off by their own rounding.
@pytest.mark.parametrize("scale, tolerance", [(30.0, 1e-3), (1e-3, 3e-6)])
def test_extreme_scores(scale, tolerance):
    agree(140, 140, 32, scale=scale, tolerance=tolerance)


@causal_or_not
@pytest.mark.parametrize(
    "d_head, length",
    [
        (64, 300),
        pytest.param(64, 1100, marks=needs_three_warpgroups),
        (80, 300),
        (128, 300),
        (256, 300),
    ],
)
@pytest.mark.parametrize("growth", [5.0, 12.0, 60.0])
@pytest.mark.parametrize("dtype", [torch.float16, BF16])
def test_maxima_that_grow_from_one_tile_of_keys_to_the_next(
    dtype, growth, d_head, length, is_causal
):
    q, k, v, d_output = random_tensors((1, 2), length, length, d_head, dtype)
    # In powers of two, scores grow by so much every 128 keys for every second query, and fall for
    # the others: some kernels begin with the first keys, some with the last. Of two queries that
    # are 8 apart, which one thread has in a matrix instruction's result, one grows.
    i = torch.arange(length, device=q.device)
    q[..., 0] = (2 * ((i + i // 8) % 2) - 1) * math.sqrt(d_head)
    k[..., 0] = growth * math.log(2) * i / 128
    # Not the gradients: that of q is the difference of terms that are as large as k, and far larger
    # than it.
    expected = exact(q, k, v, d_output, is_causal)[:2]
    tolerances = (2e-3 if dtype == torch.float16 else 1.6e-2, 2e-6)
    found = run(q, k, v, d_output, is_causal)[:2]
    for got, right, tolerance in zip(found, expected, tolerances, strict=True):
        assert (got.double() - right).norm() <= tolerance * right.norm()


def test_no_query_and_no_key():
    output, lse, d_q, *of_keys = run(*random_tensors((2,), 5, 0, 16, torch.float32), False)
    assert (lse == -math.inf).all() and not output.any() and not d_q.any()
    assert [x.shape for x in of_keys] == [(2, 0, 16)] * 2
    output, lse, d_q, *of_keys = run(*random_tensors((2,), 0, 5, 16, torch.float32), True)
    assert [x.shape for x in (output, d_q, lse)] == [(2, 0, 16), (2, 0, 16), (2, 0)]
    assert torch.equal(torch.stack(of_keys).cpu(), torch.zeros(2, 2, 5, 16))


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
def test_rows_of_which_every_score_is_minus_infinity(dtype):
    if DEVICE == "cuda" and dtype == torch.float32:
        pytest.skip("products in parts do not overflow to -inf: parts of both signs do")
    q = torch.zeros(1, 70, 16, device=DEVICE, dtype=dtype)
    q[:, 3] = 1e30
    k = torch.full((1, 70, 16), -1e30, device=DEVICE, dtype=dtype)
    v = torch.randn(1, 70, 16, device=DEVICE, dtype=dtype, requires_grad=True)
    output = fused.attention(q, k, v, False)
    assert output[:, 3].count_nonzero() == 0
    testing.assert_close(output[:, 4], v.mean(-2), rtol=1e-2, atol=1e-3)
    (d_v,) = torch.autograd.grad(output[:, 3].sum(), v)
    assert d_v.count_nonzero() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
def test_scores_far_below_zero_beside_the_end_of_the_keys(dtype):
    """Beyond the last key a kernel reads zeros, whose scores are far above those of the keys."""
    q, k, v, d_output = random_tensors((1, 2), 70, 70, 16, dtype)
    q, k = torch.full_like(q, 40.0), torch.full_like(k, -40.0)
    output, lse, d_q, d_k, d_v = run(q, k, v, d_output, False)
    testing.assert_close(lse, torch.full_like(lse, -6400 + math.log(70)))
    for found, of in ((output, v), (d_v, d_output)):
        mean = of.float().mean(-2, keepdim=True).expand_as(v)
        testing.assert_close(found.float(), mean, rtol=2e-2, atol=5e-3)
    assert d_q.isfinite().all() and d_k.isfinite().all()


def test_gradients_only_where_they_are_asked_for():
    q, k, v, _ = random_tensors((1,), 20, 20, 16, torch.float32)
    output = fused.attention(q, k, v.requires_grad_(), True)
    assert output.requires_grad
    output.sum().backward()
    assert q.grad is None and v.grad.shape == v.shape
    with torch.no_grad():
        assert not fused.attention(q, k, v, True).requires_grad
