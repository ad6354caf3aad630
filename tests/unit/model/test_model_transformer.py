"""Each layer and the whole model, against formulas written independently with PyTorch's
functions."""

import contextlib
import math

import pytest
import torch
import torch.nn.functional as F
from stepscope.model.attention import naive, sdpa
from stepscope.model.chosen import load
from stepscope.model.losses.own import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import (
    RMSNorm,
    RotaryEmbedding,
    TransformerLM,
    build_model,
    random_batch,
)

SHAPE = ModelShape(d_model=24, d_ff=40, num_layers=3, num_heads=2, vocab_size=31)
CONTEXT = 10


@contextlib.contextmanager
def in_float64():
    """Within it parameters and tables are made in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _model(attention="naive"):
    torch.manual_seed(0)
    with in_float64():
        model = TransformerLM(SHAPE, CONTEXT, load("attention", attention).attention)
    for name, parameter in model.named_parameters():
        if name.endswith("gain"):  # all ones would hide a gain that is not applied
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model


@pytest.fixture
def batch():
    """Tokens and targets of four sequences."""
    return random_batch(SHAPE.vocab_size, 4, CONTEXT, "cpu", seed=1)


def _loss(model, batch):
    return cross_entropy(model(batch[0]), batch[1])


# Layers


def _with_weight(layer, weight):
    return lambda *inputs: torch.func.functional_call(layer, weight, inputs)


def test_rms_norm(assert_same):
    layer = RMSNorm(8).double()
    torch.manual_seed(0)
    # The second row is so small that eps = 1e-5 decides its result.
    x = (
        torch.randn(2, 3, 8, dtype=torch.float64)
        * torch.tensor([1.0, 1e-3, 100.0], dtype=torch.float64)[:, None]
    )
    gain = torch.randn(8, dtype=torch.float64)
    assert_same(
        lambda x, gain: _with_weight(layer, {"gain": gain})(x),
        lambda x, gain: F.rms_norm(x, (8,), gain, 1e-5),
        x,
        gain,
    )


def test_rms_norm_of_low_precision_is_exact_up_to_the_final_rounding():
    torch.manual_seed(0)
    layer = RMSNorm(512)
    torch.nn.init.normal_(layer.gain)
    x = (300 * torch.randn(4, 512)).to(torch.float16)  # squares overflow fp16
    expected = F.rms_norm(x.double(), (512,), layer.gain.double(), 1e-5)
    got = layer(x)
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.double(), expected, rtol=2**-11 + 1e-6, atol=1e-7)


def _rotate(x, theta=10_000.0):
    """RoPE as RoFormer derives it: a channel pair of x (..., length, d_head) is a complex number,
    times e^(i p w)."""
    length, d_head = x.shape[-2:]
    position = torch.arange(length, dtype=torch.float64)
    w = torch.tensor([theta ** (-2 * i / d_head) for i in range(d_head // 2)], dtype=torch.float64)
    z = torch.complex(x[..., 0::2], x[..., 1::2]) * torch.polar(
        torch.ones(length, len(w)).double(), position[:, None] * w
    )
    return torch.stack([z.real, z.imag], dim=-1).flatten(-2)


def test_rotary_tables_stay_accurate_at_long_context():
    layer = RotaryEmbedding(16_384, 8)
    x = torch.randn(1, 16_384, 1, 8)
    expected = _rotate(x.double().movedim(1, -2)).movedim(-2, 1)
    torch.testing.assert_close(layer(x).double(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rotation_of_low_precision_is_exact_up_to_the_final_rounding(dtype):
    torch.manual_seed(0)
    layer = RotaryEmbedding(64, 8)
    x = torch.randn(2, 64, 3, 8).to(dtype)
    expected = _rotate(x.double().movedim(1, -2)).movedim(-2, 1)
    got = layer(x)
    assert got.dtype == dtype
    torch.testing.assert_close(
        got.double(), expected, rtol=torch.finfo(dtype).eps / 2 + 1e-5, atol=2e-6
    )


# The whole model


def _reference_logits(weights, tokens, num_heads):
    """The model as a function of its weights, built of PyTorch's functions only."""

    def heads(x):
        return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    x = F.embedding(tokens, weights["embedding.weight"])
    d_model = x.shape[-1]
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
    for i in range(layers):
        block = {
            name.removeprefix(f"blocks.{i}."): w
            for name, w in weights.items()
            if name.startswith(f"blocks.{i}.")
        }
        y = F.rms_norm(x, (d_model,), block["attention_norm.gain"], 1e-5)
        w_q, w_k, w_v = block["attention.qkv.weight"].chunk(3)
        q, k, v = (
            _rotate(heads(F.linear(y, w_q))),
            _rotate(heads(F.linear(y, w_k))),
            heads(F.linear(y, w_v)),
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(y.transpose(1, 2).flatten(2), block["attention.output.weight"])
        y = F.rms_norm(x, (d_model,), block["feed_forward_norm.gain"], 1e-5)
        gate, up = (
            F.linear(y, block["feed_forward.gate.weight"]),
            F.linear(y, block["feed_forward.up.weight"]),
        )
        x = x + F.linear(F.silu(gate) * up, block["feed_forward.down.weight"])
    return F.linear(
        F.rms_norm(x, (d_model,), weights["final_norm.gain"], 1e-5), weights["head.weight"]
    )


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
@pytest.mark.parametrize("length", [CONTEXT, 6])
def test_model_and_all_its_gradients(attention, length):
    model = _model(attention)
    tokens, targets = random_batch(SHAPE.vocab_size, 4, length, "cpu", seed=1)
    logits = model(tokens)
    gradients = torch.autograd.grad(cross_entropy(logits, targets), list(model.parameters()))

    expected_logits = _reference_logits(dict(model.named_parameters()), tokens, SHAPE.num_heads)
    expected_loss = F.cross_entropy(expected_logits.flatten(0, 1), targets.flatten())
    expected_gradients = torch.autograd.grad(expected_loss, list(model.parameters()))

    torch.testing.assert_close(logits, expected_logits, rtol=1e-10, atol=1e-12)
    for (name, _), got, expected in zip(
        model.named_parameters(), gradients, expected_gradients, strict=True
    ):
        assert expected.abs().max() > 0, name
        torch.testing.assert_close(
            got, expected, rtol=1e-9, atol=1e-13, msg=lambda text, name=name: f"{name}: {text}"
        )


# Precision and execution


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
def test_autocast(attention, batch, record_operations):
    model = build_model(SHAPE, CONTEXT, attention, "cpu", seed=0)
    expected = _loss(model, batch)
    with record_operations() as recorded, torch.autocast("cpu", torch.bfloat16):
        logits = model(batch[0])
        loss = cross_entropy(logits, batch[1])
    loss.backward()

    products = [
        args
        for name, args in recorded.calls
        if name in ("mm", "bmm") or "scaled_dot_product" in name
    ]
    assert len(products) == 1 + SHAPE.num_layers * (5 + (2 if attention == "naive" else 1))
    assert all(
        x.dtype == torch.bfloat16 for args in products for x in args if isinstance(x, torch.Tensor)
    )
    assert logits.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=1e-2, atol=0)
    assert all(
        p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in model.parameters()
    )


def test_a_step_neither_casts_nor_waits_nor_builds_constants(batch, record_operations):
    model = build_model(SHAPE, CONTEXT, "naive", "cpu", seed=0)
    optimizer = load("optimizer", "own").make(model.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        _loss(model, batch).backward()
        optimizer.step()

    step()  # makes the mask and the optimizer's state
    with record_operations() as recorded:
        step()
    assert {"mm", "bmm", "lerp_"} <= set(recorded.names)
    # _to_copy: a cast or a copy between devices. _local_scalar_dense: .item().
    unwanted = {
        "_to_copy",
        "_local_scalar_dense",
        "lift_fresh",
        "triu",
        "arange",
        "zeros_like",
        "nonzero",
    }
    assert not unwanted & set(recorded.names)


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
def test_a_step_never_reads_a_value_on_the_host(attention):
    # A meta tensor has no values: whatever needs one raises.
    model = build_model(SHAPE, CONTEXT, attention, "meta", seed=0)
    tokens = torch.zeros(4, CONTEXT, dtype=torch.int64, device="meta")
    optimizer = load("optimizer", "own").make(model.parameters())
    cross_entropy(model(tokens), tokens).backward()
    optimizer.step()
    assert all(p.grad.shape == p.shape for p in model.parameters())


def test_training_after_inference_mode(batch):
    # The kept mask is then made in inference mode, and must serve the backward pass all the same.
    naive.kept_causal_mask.cache_clear()
    model = build_model(SHAPE, CONTEXT, "naive", "cpu", seed=0)
    with torch.inference_mode():
        expected = _loss(model, batch)
    loss = _loss(model, batch)
    loss.backward()
    assert naive.kept_causal_mask.cache_info().misses == 1
    torch.testing.assert_close(loss, expected.clone(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("attention", ["naive", "sdpa"])
@pytest.mark.filterwarnings("error:.*lru_cache")
def test_compiler_sees_one_graph(attention, batch):
    model = build_model(SHAPE, CONTEXT, attention, "cpu", seed=0)
    torch.compiler.reset()
    compiled = torch.compile(_loss, fullgraph=True, backend="eager")
    expected = torch.autograd.grad(_loss(model, batch), list(model.parameters()))
    got = torch.autograd.grad(compiled(model, batch), list(model.parameters()))
    torch.testing.assert_close(got, expected)


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
    called = [node for node in graphs[0].graph.nodes if node.op == "call_function"]
    product = torch.nn.functional.scaled_dot_product_attention
    (node,) = (node for node in called if node.target is product)
    assert node.args[3:] == (None,)
    assert node.kwargs["is_causal"] is True


# What the model starts from


def test_same_seed_same_model():
    first, second, other = (build_model(SHAPE, CONTEXT, "naive", "cpu", seed) for seed in (3, 3, 4))
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
        assert torch.equal(weight, other.state_dict()[name]) == name.endswith("gain")


def test_initial_weights_are_truncated_normal():
    shape = ModelShape(d_model=256, d_ff=512, num_layers=1, num_heads=2, vocab_size=1000)
    weights = build_model(shape, 8, "naive", "cpu", seed=0).state_dict()
    for name, weight in weights.items():
        if name.endswith("gain"):
            assert (weight == 1).all()
            continue
        z = weight / math.sqrt(2 / sum(weight.shape))
        assert z.abs().max() <= 3 + 1e-4, name
        assert z.abs().max() > 2.95, name
        assert abs(z.mean()) < 0.02, name
        # Standard deviation of a normal cut at 3, and its share within one (0.6827 / 0.9973).
        assert abs(z.std() - 0.98658) < 0.01, name
        assert abs((z.abs() < 1).double().mean() - 0.68454) < 0.01, name


def test_a_context_is_not_empty_and_a_sequence_no_longer_than_it():
    with pytest.raises(ValueError, match="sequence of 11 tokens is longer than the context of 10"):
        _model()(torch.zeros(1, CONTEXT + 1, dtype=torch.int64))
    with pytest.raises(ValueError, match="context must be a positive integer, not 0"):
        build_model(SHAPE, 0, "naive", "cpu", seed=0)


def test_random_batch():
    tokens, targets = random_batch(7, 3, 50, "cpu", seed=5)
    assert tokens.shape == targets.shape == (3, 50)
    assert tokens.dtype == targets.dtype == torch.int64
    assert tokens.is_contiguous() and targets.is_contiguous()
    assert set(tokens.flatten().tolist()) == set(range(7))
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    assert torch.equal(tokens, random_batch(7, 3, 50, "cpu", seed=5)[0])
    assert not torch.equal(tokens, random_batch(7, 3, 50, "cpu", seed=6)[0])
