"""Operations of a step, against products counted by hand: 2 m n k each."""

import pytest
from stepscope.model import own


@pytest.fixture
def flops():
    """What a description says of a reference's operations, for a batch of 2."""

    def described(reference, context=16, **keys):
        return own.describe(reference, keys, context, 2)["flops"]

    return described


def test_a_gpt_counts_its_attention_in_full_and_agrees_with_the_formula(flops, gpt):
    layers, width, context, tokens = 2, 64, 32, 2 * 32
    matrices = layers * 12 * width**2 + 10_000 * width
    attention = 12 * layers * 2 * context**2 * width
    # biases and norms: 6 operations a token in the formula alone
    others = layers * 13 * width + 2 * width
    # by one kernel, as far as torch has one
    assert flops(gpt, context, layers=layers, width=width, heads=4, dropout=0.0) == {
        "counter": 6 * matrices * tokens + attention,
        "forward": 2 * matrices * tokens + attention // 3,
        "formula": 6 * (matrices + others) * tokens + attention,
    }


def test_tokens_of_images_are_the_positions_in_the_blocks(flops, vit):
    layers, width, patches = 2, 48, 64
    found = flops(vit, layers=layers, width=width, heads=3)
    tokens = 2 * patches
    blocks = layers * 12 * width**2
    attention = 12 * layers * 2 * patches**2 * width
    patching, head = 2 * 2 * tokens * 48 * width, 6 * 2 * width * 10  # pixels need no gradient
    assert found["counter"] == 6 * blocks * tokens + attention + patching + head
    biases = layers * 13 * width + 3 * width + 10
    parameters = blocks + 48 * width + patches * width + 10 * width + biases
    assert found["formula"] == 6 * parameters * tokens + attention
    assert "from" not in found


LAYERS = """
class Expert(nn.Linear):
    pass

class Net(nn.Module):
    def __init__(self, experts, repeats):
        super().__init__()
        self.table, self.head, self.repeats = nn.Embedding(10, 16), nn.Linear(16, 10), repeats
        kind = Expert if experts > 1 else nn.Linear
        self.layers = nn.ModuleList(kind(16, 16) for _ in range(experts))

    def forward(self, tokens):
        x = self.table(tokens)
        for _ in range(self.repeats):
            x = self.layers[0](x)
        return self.head(x)

def build(context, experts, repeats): return Net(experts, repeats)
"""


@pytest.mark.parametrize("experts, repeats", [(4, 1), (1, 2), (1, 3)])
def test_experts_of_which_a_token_takes_one_and_weights_that_are_used_again_disagree(
    flops, write, experts, repeats
):
    found = flops(write(LAYERS), experts=experts, repeats=repeats)
    assert found["counter"] == 6 * 32 * (repeats * 16 * 16 + 16 * 10)
    assert found["formula"] == 6 * 32 * (experts * (16 * 16 + 16) + 16 * 10 + 10)
    assert "from" not in found


def test_without_blocks_or_tokens_there_is_no_formula(write):
    reference = write("""
        def build(context):
            return nn.Linear(3, 5), make_batch, lambda outputs, batch: outputs.sum()

        def make_batch(batch, context, device, generator):
            return torch.randn(batch, 3, device=device, generator=generator)
        """)
    found = own.describe(reference, {}, 16, 2)
    forward = 2 * 2 * 3 * 5
    # nothing asks for the gradient of its input
    assert found["flops"] == {"counter": 2 * forward, "forward": forward, "formula": None}
    assert found["blocks"] is None
    assert any(line.startswith("operations by formula") for line in found["unknown"])


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
    assert not {"uncounted", "from"} & set(found)
    norms = 5 * keys["hidden_size"]
    assert name != "llama" or found["formula"] == by_hand + 6 * norms * 32


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
    assert found["counter"] == by_hand and "from" not in found


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
    found = own.describe(write(OTHERS), {}, 16, 2)
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
    assert found["counter"] == found["formula"] == (4 * frozen + 6 * trained) * 32
    assert found["forward"] == 2 * (frozen + trained) * 32
