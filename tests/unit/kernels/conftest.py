"""Kernels for the tests: compiled where there is a GPU, else in Triton's interpreter on the CPU;
and what is right."""

import importlib.util
import math

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HAS_TRITON = importlib.util.find_spec("triton") is not None  # it exists for Linux only
collect_ignore_glob = [] if HAS_TRITON else ["test_flash_*.py"]


@pytest.fixture
def device():
    return DEVICE


@pytest.fixture
def random_tensors():
    """Random q, k, v and dO of (*batch, queries or keys, d_head) on the device, the same for the
    same arguments."""

    def make(batch, queries, keys, d_head, dtype, scale=1.0, sharing=1):
        generator = torch.Generator().manual_seed(0)
        of_keys = (*batch[:-1], batch[-1] // sharing) if sharing > 1 else batch
        lengths = (queries, keys, keys, queries)
        shapes = [
            (*b, n, d_head) for b, n in zip((batch, of_keys, of_keys, batch), lengths, strict=True)
        ]
        tensors = [torch.randn(shape, generator=generator) for shape in shapes]
        return [(scale * x).to(DEVICE, dtype) for x in tensors[:3]] + [tensors[3].to(DEVICE, dtype)]

    return make


def _sees(query, key, queries, keys, window, lower_right):
    """As PyTorch's causal_upper_left and causal_lower_right say, and as many keys as the window,
    the latest."""
    last = query if not lower_right else query + keys - queries
    return key <= last and (window is None or key > last - window)


@pytest.fixture
def exact():
    """Attention in float64 as the formula reads: output, log-sum-exp and gradients of q, k and
    v."""

    def compute(q, k, v, d_output, is_causal, window=None, lower_right=False):
        inputs = [x.detach().double().requires_grad_() for x in (q, k, v)]
        q, k, v = inputs
        if q.ndim > 2:
            k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        lse = torch.logsumexp(scores, -1)
        if is_causal:
            queries, keys = scores.shape[-2:]
            sees = [
                [_sees(i, j, queries, keys, window, lower_right) for j in range(keys)]
                for i in range(queries)
            ]
            sees = torch.tensor(sees, device=scores.device)
            lse = torch.logsumexp(scores.masked_fill(~sees, -math.inf), -1)
            # The output of a query that sees nothing is 0, whatever it would have been.
            some = sees.any(-1)
            scores = scores.masked_fill(~sees & some[:, None], -math.inf)
            output = (torch.softmax(scores, -1) * some[:, None]) @ v
        else:
            output = torch.softmax(scores, -1) @ v
        return (
            output.detach(),
            lse.detach(),
            *torch.autograd.grad(output, inputs, d_output.double()),
        )

    return compute


@pytest.fixture
def run():
    """What `exact` computes, of the kernels."""
    from stepscope.kernels import fused, kernels
    from stepscope.kernels.operands import as_4d

    def compute(q, k, v, d_output, is_causal, **mask):
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        output = fused.attention(q, k, v, is_causal, **mask)
        lse = kernels.forward(*(as_4d(x.detach()) for x in (q, k, v)), is_causal, **mask)[1]
        return (
            output.detach(),
            lse.reshape(q.shape[:-1]),
            *torch.autograd.grad(output, (q, k, v), d_output),
        )

    return compute


@pytest.fixture
def assert_close():
    """Assert that (output, lse, dq, dk, dv) are off by at most `tolerance` relative to their norm,
    lse by far less."""

    def check(got, expected, tolerance):
        for name, a, b in zip(("output", "lse", "dq", "dk", "dv"), got, expected, strict=True):
            assert a.shape == b.shape, name
            # Where terms cancel, as those of dq with one key, the error is that of the terms.
            norm = max(b.norm().item(), 0.1 * math.sqrt(b.numel()))
            error = (a.double() - b).norm().item() / norm
            assert error <= (min(tolerance, 1e-5) if name == "lse" else tolerance), (
                f"{name}: {error:.1e}"
            )

    return check
