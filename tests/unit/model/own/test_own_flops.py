"""Operations of a step, against products counted by hand: 2 m n k each."""

import pytest
import torch
from examples import GPT_FILE, VIT_FILE
from stepscope.model.own import assembled
from stepscope.model.own.counting import Counter, multiplies


@pytest.fixture
def flops():
    """What a description says of a reference's operations, for a batch of 2."""

    def described(reference, context=16, **keys):
        return assembled.describe(reference, keys, context, 2)["flops"]

    return described


def test_a_gpt_counts_its_attention_in_full(flops):
    layers, width, context, tokens = 2, 64, 32, 2 * 32
    matrices = layers * 12 * width**2 + 10_000 * width
    attention = 12 * layers * 2 * context**2 * width
    assert flops(GPT_FILE, context, layers=layers, width=width, heads=4, dropout=0.0) == {
        "counter": 6 * matrices * tokens + attention,
        "forward": 2 * matrices * tokens + attention // 3,
    }


def test_images_are_as_many_positions_as_they_have_patches(flops):
    layers, width, patches = 2, 48, 64
    found = flops(VIT_FILE, layers=layers, width=width, heads=3)
    tokens = 2 * patches
    blocks = layers * 12 * width**2
    attention = 12 * layers * 2 * patches**2 * width
    patching, head = 2 * 2 * tokens * 48 * width, 6 * 2 * width * 10  # pixels need no gradient
    assert found["counter"] == 6 * blocks * tokens + attention + patching + head


EXPERTS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.router = nn.Embedding(10, 16), nn.Linear(16, 4, bias=False)
        self.experts = nn.ModuleList(nn.Linear(16, 10, bias=False) for _ in range(4))

    def forward(self, tokens):
        x = self.table(tokens).flatten(0, 1)
        weights, experts = self.router(x).softmax(-1).topk(2)
        logits = x.new_zeros(len(x), 10)
        for each, expert in enumerate(self.experts):
            rows, place = torch.where(experts == each)
            logits = logits.index_add(0, rows, expert(x[rows]) * weights[rows, place, None])
        return logits.unflatten(0, tokens.shape)

def build(context): return Net()
"""


def test_experts_count_with_the_tokens_that_they_get(flops, write):
    """Each token gets 2 of 4, which only values tell: a loop runs them."""
    assert flops(write(EXPERTS))["counter"] == 6 * 32 * (16 * 4 + 2 * 16 * 10)


RECURRENT = """
class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 12), nn.Linear(20, 10, bias=False)
        self.layers = getattr(nn, kind)(12, 20, num_layers=2, batch_first=True)

    def forward(self, tokens):
        return self.head(self.layers(self.table(tokens))[0])

def build(context, kind): return Net(kind)
"""


CONVOLUTION = """
class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.layer = nn.Conv1d(3, 12, 1), layer

    def forward(self, x):
        return self.layer(self.first(x))

def build(context, kind, groups):
    layer = getattr(nn, kind)(12, 24, 5, groups=groups, padding=2, bias=False)
    return Net(layer), make_batch, lambda outputs, batch: outputs.sum()

def make_batch(batch, context, device, generator):
    return torch.randn(batch, 3, context, device=device, generator=generator)
"""


RECOMPUTED = """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 16), nn.Linear(16, 10, bias=False)
        self.layers = nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(3))
        self.use_reentrant = use_reentrant

    def forward(self, tokens):
        x = self.table(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.use_reentrant)
        return self.head(x)

def build(context, use_reentrant): return Net(use_reentrant)
"""


# Attention of two layers in which heads of 16 positions of 2 sequences are so wide together: 12 for
# each channel.
ATTENTION = 12 * 2 * 2 * 16**2
SMALL = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


@pytest.mark.parametrize(
    "name, keys, weights, attention",
    [
        # written out, and found by its heads
        (
            "llama",
            {"hidden_size": 32, "intermediate_size": 48, "head_dim": 8}
            | {"attn_implementation": "eager"},
            2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48,
            32,
        ),
        # 2 of 4 experts a token, each of three matrices; keys and values in groups
        (
            "mixtral",
            {"hidden_size": 64, "intermediate_size": 96}
            | {"num_local_experts": 4, "num_experts_per_tok": 2},
            2 * 64 * 64 + 2 * 64 * 32 + 64 * 4 + 2 * 3 * 64 * 96,
            64,
        ),
        # 3 of 8 small experts; heads that are wider together than the model
        (
            "qwen3_moe",
            {"hidden_size": 64, "head_dim": 32, "moe_intermediate_size": 48}
            | {"num_experts": 8, "num_experts_per_tok": 3},
            2 * 64 * 128 + 2 * 64 * 64 + 64 * 8 + 3 * 3 * 64 * 48,
            128,
        ),
    ],
)
def test_architectures_of_transformers(flops, name, keys, weights, attention):
    """Weights of a layer that a token meets; the vocabulary has 100 entries."""
    found = flops(f"hf:{name}", vocab_size=100, **SMALL | keys)
    by_hand = 6 * (2 * weights + keys["hidden_size"] * 100) * 32 + ATTENTION * attention
    assert found["counter"] == pytest.approx(by_hand, rel=0.01)  # and the angles of RoPE
    assert "uncounted" not in found


ENCODER_DECODER = """
from transformers import T5Config, T5ForConditionalGeneration

def build(context):
    sizes = dict(vocab_size=50, d_model=32, d_kv=8, num_heads=4, d_ff=64, num_layers=2)
    return T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0)), make_batch, None

def make_batch(batch, context, device, generator):
    tokens = torch.randint(50, (batch, context), device=device, generator=generator)
    return {"input_ids": tokens, "labels": tokens[:, : context // 2].contiguous()}
"""


def test_what_an_encoder_and_a_decoder_multiply(flops, write):
    """T5, 16 tokens in and 8 out, with 4 matrices of each attention; keys and values of the cross
    attention are of what comes in."""
    encoder, decoder = 2 * 16, 2 * 8
    attention, ffn = 4 * 32 * 32, 2 * 32 * 64
    layer = encoder * (attention + ffn + attention // 2) + decoder * (attention * 3 // 2 + ffn)
    pairs = 16 * 16 + 8 * 8 + 8 * 16
    by_hand = 6 * (2 * layer + decoder * 32 * 50) + 12 * 2 * 2 * pairs * 32
    assert flops(write(ENCODER_DECODER))["counter"] == by_hand


def test_a_state_space_model(flops):
    """Mamba: a depthwise convolution of 4 taps over 3 more positions than there are, and each
    position's state of 8 numbers a channel read once."""
    sizes = {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "vocab_size": 100}
    found = flops("hf:mamba", **sizes, conv_kernel=4, expand=2, time_step_rank=4)
    channels = 64
    projections = 32 * 2 * channels + channels * (4 + 2 * 8) + 4 * channels + channels * 32
    layer = (projections + channels * 8) * 32 + channels * 4 * 2 * (16 + 3)
    assert found["counter"] == pytest.approx(6 * (2 * layer + 32 * 100 * 32), rel=0.01)
    assert "uncounted" not in found


SCALED = """
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        one = torch.ones((), device=x.device)
        low = x.to(torch.float8_e4m3fn), weight.to(torch.float8_e4m3fn).t()
        return torch._scaled_mm(*low, scale_a=one, scale_b=one, out_dtype=torch.float32)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.weight = nn.Embedding(32, 16), nn.Parameter(torch.randn(32, 16))

    def forward(self, tokens):
        x = self.table(tokens)
        return Product.apply(x.flatten(0, 1), self.weight).unflatten(0, tokens.shape)

def build(context): return Net()
"""


def test_products_of_8_bits_by_the_newer_operator():
    x, weight = torch.ones(16, 32), torch.ones(48, 32)
    low = x.to(torch.float8_e4m3fn), weight.to(torch.float8_e4m3fn).t()
    kind = torch.nn.functional.ScalingType.TensorWise
    one = torch.ones(1)
    with Counter() as counter:
        torch.nn.functional.scaled_mm(*low, one, kind, one, kind, output_dtype=torch.float32)
    assert counter.get_total_flops() == 2 * 16 * 32 * 48 and not counter.uncounted


def test_attention_in_one_kernel_counts_its_scores_once():
    """Its backward pass computes them again: beside them it has four products, forward has two."""
    aten = torch.ops.aten
    x = torch.empty(2, 4, 32, 16, device="meta", dtype=torch.bfloat16)
    with Counter() as counter:
        y, lse, *lengths, seed, offset, _ = aten._scaled_dot_product_flash_attention(x, x, x)
        saved = (x, x, x, y, lse, *lengths)
        aten._scaled_dot_product_flash_attention_backward(x, *saved, 0.0, False, seed, offset)
    assert counter.get_total_flops() == 3 * 2 * 2 * (2 * 4 * 32 * 32 * 16)


def test_recurrent_layers_on_a_gpu():
    """Two layers of an LSTM in one operator; a cell is given its products."""
    layers = torch.nn.LSTM(12, 20, 2, device="meta")
    x, start = torch.empty(7, 3, 12, device="meta"), torch.empty(2, 3, 20, device="meta")
    weights = [each for layer in layers.all_weights for each in layer]
    sizes = (2, 20, 0, 2, False, 0.0, True, False, [], None)
    with Counter() as counter:
        torch.ops.aten._cudnn_rnn(x, weights, 4, None, start, start, *sizes)
    assert counter.get_total_flops() == 2 * 7 * 3 * 4 * (20 * 12 + 3 * 20 * 20)
    assert multiplies("aten.miopen_rnn") and not multiplies("aten._thnn_fused_lstm_cell")


FLEX = """
from torch.nn.attention.flex_attention import flex_attention

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 32), nn.Linear(32, 10, bias=False)

    def forward(self, tokens):
        x = self.table(tokens).unflatten(-1, (2, 16)).transpose(1, 2)
        return self.head(flex_attention(x, x, x).transpose(1, 2).flatten(-2))

def build(context): return Net()
"""


OF_GATE = 20 * 12 + 20 * 20 + 20 * 20 + 20 * 20


@pytest.mark.parametrize(
    "text, keys, by_hand",
    [
        # Each gate of a layer has a weight for its input and one for what it remembers. A GRU runs
        # step by step, and nothing asks for the gradient of what either layer remembers at first.
        (RECURRENT, {"kind": "LSTM"}, 6 * 32 * (4 * OF_GATE + 20 * 10)),
        (RECURRENT, {"kind": "GRU"}, 6 * 32 * (3 * OF_GATE + 20 * 10) - 2 * 2 * 2 * 3 * 20 * 20),
        (RECOMPUTED, {"use_reentrant": False}, 6 * 32 * (3 * 16 * 16 + 16 * 10)),
        (RECOMPUTED, {"use_reentrant": True}, 6 * 32 * (3 * 16 * 16 + 16 * 10)),
        (SCALED, {}, 6 * 32 * 16 * 32),
        (FLEX, {}, 6 * 32 * 32 * 10 + 12 * 2 * 16**2 * 32),
    ],
)
def test_products_of_any_kind_are_counted_once_and_in_full(flops, write, text, keys, by_hand):
    found = flops(write(text), **keys)
    assert found["counter"] == by_hand


@pytest.mark.parametrize("kind", ["Conv1d", "ConvTranspose1d"])
@pytest.mark.parametrize("groups", [1, 4, 12])
def test_convolutions_in_groups(flops, write, kind, groups):
    """Each of 16 positions of 2 sequences meets 12 x 24 / groups x 5 numbers, three times; those of
    the first layer twice, as nothing asks for the gradient of its input."""
    found = flops(write(CONVOLUTION), kind=kind, groups=groups)
    assert found["counter"] == 2 * 32 * (3 * 12 * 24 // groups * 5 + 2 * 3 * 12)


OTHERS = """
@torch.library.custom_op("strangers::product", mutates_args=())
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b

@product.register_fake
def _(a, b): return a.new_empty(*a.shape[:-1], b.shape[-1])

product.register_autograd(
    lambda ctx, gradient: (gradient @ ctx.b.t(), None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "b", inputs[1]),
)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 16), nn.Linear(16, 10, bias=False)

    def forward(self, tokens):
        return self.head(product(self.table(tokens), torch.ones(16, 16)))

def build(context): return Net()
"""


def test_an_operator_without_a_formula_is_named(write):
    found = assembled.describe(write(OTHERS), {}, 16, 2)
    assert found["flops"]["uncounted"] == ["strangers.product"]
    assert any("strangers.product: no formula" in line for line in found["unknown"])


FROZEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.base = nn.Embedding(10, 16), nn.Linear(16, 16, bias=False)
        self.down, self.up = nn.Linear(16, 2, bias=False), nn.Linear(2, 16, bias=False)
        self.head = nn.Linear(16, 10, bias=False)
        for frozen in (self.base, self.head):
            frozen.requires_grad_(False)

    def forward(self, tokens):
        x = self.table(tokens)
        return self.head(self.base(x) + self.up(self.down(x)))

def build(context): return Net()
"""


def test_frozen_weights_have_no_gradient_of_their_own(flops, write):
    """An adapter of rank 2: its two matrices are multiplied three times, frozen ones twice."""
    frozen, trained = 16 * 16 + 16 * 10, 2 * 16 * 2
    found = flops(write(FROZEN))
    assert found["counter"] == (4 * frozen + 6 * trained) * 32
    assert found["forward"] == 2 * (frozen + trained) * 32
