"""Attention for the tests of kernels: random inputs, the kernels' results, and what is right."""

import math

import torch
from stepscope.kernels import fused, kernels
from stepscope.kernels.shapes import as_4d
from written_out import attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Error of an output relative to its norm: fp32 sums of products, or the rounding of weights and of
# the result to half precision (11 and 8 bits).
TOLERANCE = {torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def random_tensors(batch, queries, keys, d_head, dtype, scale=1.0, sharing=1):
    """Random q, k, v and dO of (*batch, queries or keys, d_head) on the device, the same for the
    same arguments."""
    generator = torch.Generator().manual_seed(0)
    of_keys = (*batch[:-1], batch[-1] // sharing) if sharing > 1 else batch
    shapes = [(*batch, queries), (*of_keys, keys), (*of_keys, keys), (*batch, queries)]
    tensors = [torch.randn(*shape, d_head, generator=generator) for shape in shapes]
    return [(scale * x).to(DEVICE, dtype) for x in tensors[:3]] + [tensors[3].to(DEVICE, dtype)]


def exact(q, k, v, d_output, is_causal, *mask, **masked):
    """Attention in float64: output, log-sum-exp and gradients of q, k and v."""
    inputs = [x.detach().double().requires_grad_() for x in (q, k, v)]
    output, lse = attention(*inputs, is_causal, *mask, **masked)
    gradients = torch.autograd.grad(output, inputs, d_output.double())
    return output.detach(), lse.detach(), *gradients


def run(q, k, v, d_output, is_causal, **mask):
    """What `exact` computes, of the kernels."""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    output = fused.attention(q, k, v, is_causal, **mask)
    lse = kernels.forward(*(as_4d(x.detach()) for x in (q, k, v)), is_causal, **mask)[1]
    return (
        output.detach(),
        lse.reshape(q.shape[:-1]),
        *torch.autograd.grad(output, (q, k, v), d_output),
    )


def assert_close(got, expected, tolerance, of_lse=1e-5):
    """Assert that (output, lse, dq, dk, dv) are off by at most `tolerance` relative to their norm,
    lse by far less; a query that sees nothing has the output 0 and an lse of -inf."""
    unseen = torch.isneginf(expected[1])
    assert torch.equal(torch.isneginf(got[1]), unseen)
    assert got[0][unseen].count_nonzero() == 0
    for name, a, b in zip(("output", "lse", "dq", "dk", "dv"), got, expected, strict=True):
        assert a.shape == b.shape, name
        if name == "lse":
            a, b = a[~unseen], b[~unseen]
        # Where terms cancel, as those of dq with one key, the error is that of the terms.
        norm = max(b.norm().item(), 0.1 * math.sqrt(b.numel()))
        error = (a.double() - b).norm().item() / norm
        assert error <= (min(tolerance, of_lse) if name == "lse" else tolerance), (
            f"{name}: {error:.1e}"
        )


def agree(
    queries,
    keys,
    d_head,
    dtype=torch.float32,
    is_causal=True,
    batch=(1, 2),
    sharing=1,
    scale=1.0,
    tolerance=None,
    of_lse=1e-5,
    again=0,
    projected=False,
    **mask,
):
    """Assert that the kernels agree with `exact`, and give the same bits again so many times;
    returns what they gave. With `projected`, q, k and v are cut out of one tensor."""
    given = random_tensors(batch, queries, keys, d_head, dtype, scale, sharing)
    inputs = given
    if projected:  # batch, length, three, heads, d_head
        together = torch.stack(given[:3]).permute(1, 3, 0, 2, 4).contiguous()
        d_output = given[3].transpose(1, 2).contiguous().transpose(1, 2)
        inputs = [*together.permute(2, 0, 3, 1, 4), d_output]
    got = run(*inputs, is_causal, **mask)
    tolerance = tolerance or TOLERANCE[dtype]
    # With one key the weights are 1, whatever the scores: the gradients of q and k are 0, and
    # what is left of the terms is larger beside that.
    if keys == 1 or mask.get("window") == 1:
        tolerance *= 10
    assert_close(got, exact(*given, is_causal, **mask), tolerance, of_lse)
    for _ in range(again):
        assert all(map(torch.equal, got, run(*inputs, is_causal, **mask)))
    return got
