"""FlashAttention in Triton against attention in float64, and against what is known in closed
form."""

import math

import pytest
import torch
from stepscope.kernels import fused

# Error of an output relative to its norm: fp32 sums of products, or the rounding of weights and of
# the result to half precision (11 and 8 bits).
TOLERANCE = {torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}

# Triton's interpreter computes with NumPy, which warns of exp2(1000) and log2(0); they are meant
# here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

causal_or_not = pytest.mark.parametrize("is_causal", [True, False])
# Triton's interpreter multiplies tiles of bf16 as if they held integers.
needs_gpu_for_bf16 = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="Triton's interpreter has no bf16 products"
)
needs_three_warpgroups = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="only a GPU's kernel has them"
)
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
def test_output_log_sum_exp_and_gradients(
    random_tensors, run, exact, assert_close, queries, keys, d_head, dtype, is_causal
):
    q, k, v, d_output = random_tensors((1, 2), queries, keys, d_head, dtype)
    got = run(q, k, v, d_output, is_causal)
    assert [x.dtype for x in got] == [dtype, torch.float32, dtype, dtype, dtype]
    # With one key the gradients of q and k are 0, and what is left of the terms is larger beside
    # that.
    assert_close(
        got, exact(q, k, v, d_output, is_causal), TOLERANCE[dtype] * (10 if keys == 1 else 1)
    )


@causal_or_not
@pytest.mark.parametrize("batch", [(), (3,), (2, 1, 2, 1)])
def test_any_number_of_batch_dimensions(random_tensors, run, exact, assert_close, batch, is_causal):
    q, k, v, d_output = random_tensors(batch, 40, 40, 16, torch.float32)
    got = run(q, k, v, d_output, is_causal)
    assert_close(got, exact(q, k, v, d_output, is_causal), TOLERANCE[torch.float32])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
def test_heads_cut_out_of_a_projection(random_tensors, run, exact, assert_close, dtype):
    q, k, v, d_output = random_tensors((2, 3), 70, 70, 32, dtype)
    projected = (
        torch.stack([q, k, v]).permute(1, 3, 0, 2, 4).contiguous()
    )  # batch, length, three, heads, d_head
    q_view, k_view, v_view = projected.permute(2, 0, 3, 1, 4)
    d_output_view = d_output.transpose(1, 2).contiguous().transpose(1, 2)
    got = run(q_view, k_view, v_view, d_output_view, True)
    assert_close(got, exact(q, k, v, d_output, True), TOLERANCE[dtype])


def test_transposed_expanded_and_misplaced_inputs(random_tensors, run, exact, assert_close):
    q, k, v, d_output = random_tensors((1, 2), 40, 40, 16, torch.float16)
    transposed = q.transpose(-2, -1).contiguous().transpose(-2, -1)
    expanded = k[:, :1].expand(1, 2, 40, 16)
    misplaced = torch.cat([v.new_zeros(1), v.flatten()])[1:].view(
        v.shape
    )  # not on a multiple of 16 bytes
    got = run(transposed, expanded, misplaced, d_output.mT.contiguous().mT, True)
    assert_close(got, exact(q, expanded, v, d_output, True), TOLERANCE[torch.float16])


@causal_or_not
@pytest.mark.parametrize("dtype", [torch.float16, BF16])
def test_backward_gives_the_same_bits_again(random_tensors, run, dtype, is_causal):
    length = 1000 if torch.cuda.is_available() else 70
    q, k, v, d_output = random_tensors((2, 2), length, length, 64, dtype)
    first = run(q, k, v, d_output, is_causal)
    for _ in range(10 if torch.cuda.is_available() else 1):
        again = run(q, k, v, d_output, is_causal)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("scale", [30.0, 1e-3])
def test_extreme_scores(random_tensors, run, exact, assert_close, scale):
    q, k, v, d_output = random_tensors((1, 2), 140, 140, 32, torch.float32, scale)
    # Scores of some 1000 in fp32: exp() of them is off by their own rounding.
    tolerance = 1e-3 if scale > 1 else TOLERANCE[torch.float32]
    assert_close(run(q, k, v, d_output, True), exact(q, k, v, d_output, True), tolerance)


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
    random_tensors, exact, run, dtype, growth, d_head, length, is_causal
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
    for got, right, tolerance in zip(
        run(q, k, v, d_output, is_causal)[:2], expected, (TOLERANCE[dtype], 2e-6), strict=True
    ):
        assert (got.double() - right).norm() <= tolerance * right.norm()


def test_scores_of_one_key_far_above_all_others(device, run):
    q = torch.full((1, 1, 100, 16), 100.0, device=device)
    k = torch.zeros(1, 1, 100, 16, device=device)
    k[..., 3, :] = 100
    k[..., 70, :] = -100
    v = torch.randn(1, 1, 100, 16, device=device)
    output, lse, *_ = run(q, k, v, torch.ones_like(v), False)
    torch.testing.assert_close(output, v[..., 3:4, :].expand_as(output))
    torch.testing.assert_close(lse, torch.full_like(lse, 40_000.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
def test_one_key_gives_its_value(random_tensors, run, dtype):
    q, k, v, d_output = random_tensors((2,), 66, 1, 16, dtype)
    output, lse, d_q, d_k, d_v = run(q, k, v, d_output, False)
    if (
        q.is_cuda and dtype == torch.float32
    ):  # on tensor cores v comes in parts, of 22 bits together
        torch.testing.assert_close(output, v.expand_as(output), rtol=2**-21, atol=0)
    else:
        assert torch.equal(output, v.expand_as(output))
    torch.testing.assert_close(lse, (q.float() @ k.float().mT).squeeze(-1) / 4)
    torch.testing.assert_close(d_v, d_output.float().sum(-2, keepdim=True).to(dtype))
    # The weight of the only key is 1, whatever its score.
    bound = 0.02 if dtype != torch.float32 else 1e-5
    assert d_q.abs().max() <= bound and d_k.abs().max() <= bound * math.sqrt(66)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
def test_equal_scores_give_the_mean_of_the_values_seen(random_tensors, run, dtype):
    q, k, v, d_output = random_tensors((2,), 130, 130, 16, dtype)
    output, lse, _, d_k, d_v = run(torch.zeros_like(q), k, v, d_output, True)
    seen = torch.arange(1, 131, device=q.device)
    tolerance = (
        {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    )
    torch.testing.assert_close(output.float(), v.float().cumsum(-2) / seen[:, None], **tolerance)
    torch.testing.assert_close(lse, seen.log().expand_as(lse))
    spread = (d_output.float() / seen[:, None]).flip(-2).cumsum(-2).flip(-2)
    torch.testing.assert_close(d_v.float(), spread, **tolerance)
    assert d_k.count_nonzero() == 0


def test_no_query_and_no_key(random_tensors, run):
    q, k, v, d_output = random_tensors((2,), 5, 0, 16, torch.float32)
    output, lse, d_q, d_k, d_v = run(q, k, v, d_output, False)
    assert output.count_nonzero() == 0 and (lse == -math.inf).all() and d_q.count_nonzero() == 0
    assert d_k.shape == d_v.shape == (2, 0, 16)
    q, k, v, d_output = random_tensors((2,), 0, 5, 16, torch.float32)
    output, lse, d_q, d_k, d_v = run(q, k, v, d_output, True)
    assert output.shape == d_q.shape == (2, 0, 16) and lse.shape == (2, 0)
    assert d_k.count_nonzero() == d_v.count_nonzero() == 0 and d_k.shape == (2, 5, 16)


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
def test_rows_of_which_every_score_is_minus_infinity(device, dtype):
    if device == "cuda" and dtype == torch.float32:
        pytest.skip("products in parts do not overflow to -inf: parts of both signs do")
    q = torch.zeros(1, 70, 16, device=device, dtype=dtype)
    q[:, 3] = 1e30
    k = torch.full((1, 70, 16), -1e30, device=device, dtype=dtype)
    v = torch.randn(1, 70, 16, device=device, dtype=dtype, requires_grad=True)
    output = fused.attention(q, k, v, False)
    assert output[:, 3].count_nonzero() == 0
    torch.testing.assert_close(output[:, 4], v.mean(-2), rtol=1e-2, atol=1e-3)
    (d_v,) = torch.autograd.grad(output[:, 3].sum(), v)
    assert d_v.count_nonzero() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
def test_scores_far_below_zero_beside_the_end_of_the_keys(random_tensors, run, dtype):
    """Beyond the last key a kernel reads zeros, whose scores are far above those of the keys."""
    q, k, v, d_output = random_tensors((1, 2), 70, 70, 16, dtype)
    q, k = torch.full_like(q, 40.0), torch.full_like(k, -40.0)
    output, lse, d_q, d_k, d_v = run(q, k, v, d_output, False)
    torch.testing.assert_close(
        output.float(), v.float().mean(-2, keepdim=True).expand_as(v), rtol=2e-2, atol=5e-3
    )
    torch.testing.assert_close(lse, torch.full_like(lse, -6400 + math.log(70)))
    torch.testing.assert_close(
        d_v.float(), d_output.float().mean(-2, keepdim=True).expand_as(v), rtol=2e-2, atol=5e-3
    )
    assert d_q.isfinite().all() and d_k.isfinite().all()


def test_gradients_only_where_they_are_asked_for(random_tensors):
    q, k, v, _ = random_tensors((1,), 20, 20, 16, torch.float32)
    output = fused.attention(q, k, v.requires_grad_(), True)
    assert output.requires_grad
    output.sum().backward()
    assert q.grad is None and v.grad.shape == v.shape
    with torch.no_grad():
        assert not fused.attention(q, k, v, True).requires_grad
