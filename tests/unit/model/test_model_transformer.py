"""Each layer and the whole model, against formulas written independently with PyTorch's
functions."""

import contextlib
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
import written_out
from common import one_line
from stepscope.model.attention import naive, sdpa
from stepscope.model.chosen import load as chosen
from stepscope.model.losses.own import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import (
    RMSNorm,
    RotaryEmbedding,
    TransformerLM,
    build_model,
    random_batch,
)
from torch.autograd import grad
from torch.testing import assert_close
from watching import Recorder

SHAPE = ModelShape(24, 40, 3, 4, 31)
CONTEXT = 10


@contextlib.contextmanager
def in_float64():
    """Within it parameters and tables are made in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _model(attention="naive", shape=SHAPE):
    """In float64, with gains that are no ones."""
    torch.manual_seed(0)
    with in_float64():
        model = TransformerLM(shape, CONTEXT, chosen("attention", attention).attention)
    for name, parameter in model.named_parameters():
        if name.endswith("gain"):  # all ones would hide a gain that is not applied
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model


def built(attention="naive", seed=0):
    """As a measurement builds it, in fp32."""
    return build_model(SHAPE, CONTEXT, attention, "cpu", seed)


@pytest.fixture
def batch():
    """Tokens and targets of four sequences."""
    return random_batch(SHAPE.vocab_size, 4, CONTEXT, "cpu", seed=1)


def _loss(model, batch):
    """Of a batch."""
    return cross_entropy(model(batch[0]), batch[1])


# Layers


def test_rms_norm_of_low_precision_is_exact_up_to_the_final_rounding():
    torch.manual_seed(0)
    layer = RMSNorm(512)
    torch.nn.init.normal_(layer.gain)
    x = (300 * torch.randn(4, 512)).to(torch.float16)  # squares overflow fp16
    expected = F.rms_norm(x.double(), (512,), layer.gain.double(), 1e-5)
    got = layer(x)
    assert got.dtype == torch.float16
    assert_close(got.double(), expected, rtol=2**-11 + 1e-6, atol=1e-7)


def _rotate(x, theta=10_000.0):
    """RoPE as RoFormer derives it: a channel pair of x (..., length, d_head) is a complex number,
    times e^(i p w)."""
    length, d_head = x.shape[-2:]
    position = torch.arange(length, dtype=torch.float64)
    w = torch.tensor([theta ** (-2 * i / d_head) for i in range(d_head // 2)], dtype=torch.float64)
    z = torch.complex(x[..., 0::2], x[..., 1::2]) * (1j * position[:, None] * w).exp()
    return torch.stack([z.real, z.imag], dim=-1).flatten(-2)


@pytest.mark.parametrize(
    "dtype, length, rtol",
    [
        (torch.float32, 16_384, 0.0),
        # exact up to the final rounding
        (torch.bfloat16, 64, 2**-8 + 1e-5),
        (torch.float16, 64, 2**-11 + 1e-5),
    ],
)
def test_rotation_stays_accurate_at_long_context_and_in_low_precision(dtype, length, rtol):
    torch.manual_seed(0)
    layer = RotaryEmbedding(length, 8)
    x = torch.randn(2, length, 3, 8).to(dtype)
    expected = _rotate(x.double().movedim(1, -2)).movedim(-2, 1)
    got = layer(x)
    assert got.dtype == dtype
    assert_close(got.double(), expected, rtol=rtol, atol=2e-6)


# The whole model


def _reference_logits(weights, tokens, shape):
    """The model as a function of its weights, built of PyTorch's functions only; attention as its
    formula reads, each key asked for."""

    def norm(x, name):
        return F.rms_norm(x, x.shape[-1:], weights[f"{name}.gain"], 1e-5)

    def linear(x, name):
        return F.linear(x, weights[f"{name}.weight"])

    heads, shared = shape.num_heads, shape.key_value_heads or shape.num_heads
    x = F.embedding(tokens, weights["embedding.weight"])
    for i in range(shape.num_layers):
        block = f"blocks.{i}"
        projected = linear(norm(x, f"{block}.attention_norm"), f"{block}.attention.qkv")
        each = projected.unflatten(-1, (heads + 2 * shared, -1)).transpose(1, 2)
        q, k, v = each.split([heads, shared, shared], 1)
        y, _ = written_out.attention(_rotate(q), _rotate(k), v, True, shape.window or None)
        x = x + linear(y.transpose(1, 2).flatten(2), f"{block}.attention.output")
        y, ffn = norm(x, f"{block}.feed_forward_norm"), f"{block}.feed_forward"
        x = x + linear(F.silu(linear(y, f"{ffn}.gate")) * linear(y, f"{ffn}.up"), f"{ffn}.down")
    return linear(norm(x, "final_norm"), "head")


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
@pytest.mark.parametrize(
    "length, way",
    [
        (CONTEXT, {}),
        (6, {}),
        (CONTEXT, {"key_value_heads": 1}),
        (CONTEXT, {"window": 3}),
        (CONTEXT, {"key_value_heads": 2, "window": 4}),
    ],
)
def test_model_and_all_its_gradients(attention, length, way):
    shape = replace(SHAPE, **way)
    model = _model(attention, shape)
    tokens, targets = random_batch(SHAPE.vocab_size, 4, length, "cpu", seed=1)
    logits = model(tokens)
    gradients = grad(cross_entropy(logits, targets), [*model.parameters()])

    expected_logits = _reference_logits(dict(model.named_parameters()), tokens, shape)
    expected_loss = F.cross_entropy(expected_logits.flatten(0, 1), targets.flatten())
    expected_gradients = grad(expected_loss, [*model.parameters()])

    assert_close(logits, expected_logits, rtol=1e-10, atol=1e-12)
    assert all(gradient.any() for gradient in expected_gradients)
    assert_close(gradients, expected_gradients, rtol=1e-9, atol=1e-13)


# Precision and execution


@pytest.mark.parametrize("attention, products", [("naive", 7), ("sdpa", 6)])
def test_autocast(attention, products, batch):
    model = built(attention)
    expected = _loss(model, batch)
    with Recorder() as recorded, torch.autocast("cpu", torch.bfloat16):
        logits = model(batch[0])
        loss = cross_entropy(logits, batch[1])
    loss.backward()
    given = [
        args
        for name, args in recorded.calls
        if name in ("mm", "bmm") or "scaled_dot_product" in name
    ]
    assert len(given) == 1 + SHAPE.num_layers * products
    factors = [x for args in given for x in args if isinstance(x, torch.Tensor)]
    assert {x.dtype for x in (logits, *factors)} == {torch.bfloat16}
    assert {loss.dtype, *(p.grad.dtype for p in model.parameters())} == {torch.float32}
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert_close(loss, expected, rtol=1e-2, atol=0)


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
def test_a_step_neither_casts_nor_waits_nor_builds_constants(attention, batch):
    model = built(attention)
    optimizer = chosen("optimizer", "own").make(model.parameters())

    def step():
        optimizer.zero_grad()
        _loss(model, batch).backward()
        optimizer.step()

    step()  # makes the mask and the optimizer's state
    with Recorder() as recorded:
        step()
    ran = set(recorded.names)
    assert {"mm", "lerp_"} <= ran
    # _to_copy: a cast or a copy between devices. _local_scalar_dense: .item().
    assert not ran & {"_to_copy", "_local_scalar_dense", "lift_fresh", "nonzero"}
    assert not ran & {"triu", "arange", "zeros_like"}


def test_training_after_inference_mode(batch):
    # The kept mask is then made in inference mode, and must serve the backward pass all the same.
    naive.kept_causal_mask.cache_clear()
    model = built()
    with torch.inference_mode():
        expected = _loss(model, batch)
    loss = _loss(model, batch)
    loss.backward()
    assert naive.kept_causal_mask.cache_info().misses == 1
    assert_close(loss, expected.clone(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
@pytest.mark.filterwarnings("error:.*lru_cache")
def test_compiler_sees_one_graph(attention, batch):
    model = built(attention)
    torch.compiler.reset()
    compiled = torch.compile(_loss, fullgraph=True, backend="eager")
    got, expected = (grad(loss(model, batch), [*model.parameters()]) for loss in (compiled, _loss))
    assert_close(got, expected)


def test_compiled_attention_is_given_no_mask():
    # PyTorch's own causal kernels; a mask would choose others, and compiled by torch 2.11 its
    # lower-right one has wrong gradients in bf16.
    graphs = []

    def kept(graph, _):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    q, k, v = torch.randn(3, 2, 4, 8, 16)
    torch.compile(sdpa.attention, fullgraph=True, backend=kept)(q, k, v, True)
    product = F.scaled_dot_product_attention
    (node,) = graphs[0].graph.find_nodes(op="call_function", target=product)
    assert node.args[3:] == (None,)
    assert node.kwargs["is_causal"] is True


# What the model starts from


def test_same_seed_same_model():
    first, second, other = (built(seed=seed).state_dict() for seed in (3, 3, 4))
    for name, weight in first.items():
        assert torch.equal(weight, second[name])
        assert torch.equal(weight, other[name]) == name.endswith("gain")


def test_initial_weights_are_truncated_normal():
    shape = ModelShape(256, 512, 1, 2, 1000)
    weights = build_model(shape, 8, "naive", "cpu", seed=0).state_dict()
    for name, weight in weights.items():
        if name.endswith("gain"):
            assert (weight == 1).all()
            continue
        z = weight / math.sqrt(2 / sum(weight.shape))
        assert 2.95 < z.abs().max() <= 3 + 1e-4, name
        assert abs(z.mean()) < 0.02, name
        # Standard deviation of a normal cut at 3, and its share within one (0.6827 / 0.9973).
        assert abs(z.std() - 0.98658) < 0.01, name
        assert abs((z.abs() < 1).double().mean() - 0.68454) < 0.01, name


def test_a_context_is_not_empty_and_a_sequence_no_longer_than_it():
    assert "sequence of 11 tokens is longer than the context of 10" in one_line(
        ValueError, _model(), torch.zeros(1, CONTEXT + 1, dtype=torch.int64)
    )
    assert "context must be a positive integer, not 0" in one_line(
        ValueError, build_model, SHAPE, 0, "naive", "cpu", seed=0
    )


def test_random_batch():
    tokens, targets = random_batch(7, 3, 50, "cpu", seed=5)
    assert tokens.shape == targets.shape == (3, 50)
    assert tokens.dtype == targets.dtype == torch.int64
    assert tokens.is_contiguous() and targets.is_contiguous()
    assert set(tokens.flatten().tolist()) == set(range(7))
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    again, other = (random_batch(7, 3, 50, "cpu", seed)[0] for seed in (5, 6))
    assert torch.equal(tokens, again) and not torch.equal(tokens, other)
