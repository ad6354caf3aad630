"""Softmax and the attention implementations, against PyTorch's own."""

import pytest
import torch
import torch.nn.functional as F
from stepscope.model.attention import naive
from stepscope.model.chosen import load
from stepscope.model.softmax import softmax
from watching import Recorder, assert_same


def test_softmax_of_usual_extreme_and_masked_logits():
    x = torch.tensor(
        [
            [0.3, -1.2, 0.8],
            [1e4, -1e4, 1e4],
            [-1e4, -1e4, -1e4 - 1],
            [0.0, float("-inf"), 1e4],
            [3.0, float("-inf"), float("-inf")],
        ],
        dtype=torch.float64,
    )
    assert_same(softmax, lambda x: torch.softmax(x, -1), x)
    assert_same(softmax, lambda x: torch.softmax(x, -1), x.float(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_softmax_of_low_precision_is_exact_up_to_the_final_rounding(dtype):
    torch.manual_seed(0)
    x = (20 * torch.randn(16, 64)).to(dtype)
    got = softmax(x)
    assert got.dtype == dtype
    # A difference taken in bf16 would be off by up to 0.1 at these magnitudes, the result by 10 %.
    torch.testing.assert_close(
        got.double(),
        torch.softmax(x.double(), -1),
        rtol=torch.finfo(dtype).eps,
        atol=torch.finfo(dtype).tiny,
    )


def test_naive_makes_the_mask_once_and_keeps_none_of_an_earlier_length():
    q = torch.randn(2, 12, 4)
    naive.kept_causal_mask.cache_clear()
    with Recorder() as first:
        naive.attention(q, q, q, True)
    with Recorder() as second:
        naive.attention(q, q, q, True)
    assert first.names.count("triu") == 1
    assert "triu" not in second.names
    assert "bmm" in second.names
    naive.attention(q[:, :8], q[:, :8], q[:, :8], True)
    assert naive.kept_causal_mask.cache_info().currsize == 1


@pytest.mark.parametrize("name", ["naive", "sdpa"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_keeps_low_precision(name, dtype):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 16, 8).to(dtype)
    got = load("attention", name).attention(q, k, v, True)
    assert got.dtype == dtype
    expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    torch.testing.assert_close(got.double(), expected, rtol=0.05, atol=0.02)
