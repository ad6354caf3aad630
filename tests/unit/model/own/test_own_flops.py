"""Operations of a step, against products counted by hand: 2 m n k each."""

import pytest
from stepscope.model import own

LINEAR = """
def build(context, bias=False):
    return nn.Sequential(nn.Linear(3, 5, bias=bias), nn.Linear(5, 7, bias=bias)), make_batch, loss

def make_batch(batch, context, device, generator):
    return torch.randn(batch, context, 3, device=device, generator=generator)

def loss(outputs, batch):
    return outputs.sum()
"""


@pytest.fixture
def flops():
    """What a description says of a reference's operations, for a batch of 2."""
    return lambda reference, keys=None, context=16: own.describe(reference, keys or {}, context, 2)[
        "flops"
    ]


def test_a_linear_stack(flops, write):
    tokens = 2 * 16
    forward = 2 * tokens * (3 * 5 + 5 * 7)
    weights, inputs = (
        forward,
        2 * tokens * 5 * 7,
    )  # nothing asks for the gradient of the first one's input
    assert flops(write(LINEAR))["counter"] == forward + weights + inputs


def test_a_gpt_counts_its_attention_in_full_and_agrees_with_the_formula(flops, gpt):
    layers, width, context, tokens = 2, 64, 32, 2 * 32
    keys = {
        "layers": layers,
        "width": width,
        "heads": 4,
        "dropout": 0.0,
    }  # by one kernel, as far as torch has one
    matrices = layers * 12 * width**2 + 10_000 * width
    attention = 12 * layers * 2 * context**2 * width
    others = (
        layers * 13 * width + 2 * width
    )  # biases and norms: 6 operations a token in the formula alone
    assert flops(gpt, keys, context) == {
        "counter": 6 * matrices * tokens + attention,
        "formula": 6 * (matrices + others) * tokens + attention,
        "disagree": False,
        "why": "",
    }


def test_attention_that_is_written_out_is_found_by_its_heads(flops):
    keys = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "vocab_size": 50,
        "head_dim": 8,
    }
    keys |= {"num_attention_heads": 4, "num_key_value_heads": 2, "attn_implementation": "eager"}
    found = flops("hf:llama", keys)
    matrices = 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48) + 32 * 50
    attention, norms = 12 * 2 * 2 * 16**2 * 32, 5 * 32
    assert found["formula"] == 6 * (matrices + norms) * 32 + attention
    assert found["counter"] == pytest.approx(
        6 * matrices * 32 + attention, rel=0.01
    )  # and the angles of RoPE
    assert not found["disagree"]


def test_tokens_of_images_are_the_positions_in_the_blocks(flops, vit):
    layers, width, patches = 2, 48, 64
    found = flops(vit, {"layers": layers, "width": width, "heads": 3})
    tokens = 2 * patches
    blocks = layers * 12 * width**2
    attention = 12 * layers * 2 * patches**2 * width
    patching, head = 2 * 2 * tokens * 48 * width, 6 * 2 * width * 10  # pixels need no gradient
    assert found["counter"] == 6 * blocks * tokens + attention + patching + head
    parameters = (
        blocks
        + layers * 13 * width
        + 48 * width
        + width
        + patches * width
        + 2 * width
        + 10 * width
        + 10
    )
    assert found["formula"] == 6 * parameters * tokens + attention
    assert found["disagree"]
    assert "fewer positions" in found["why"]


LAYERS = """
class Expert(nn.Linear):
    pass

class Net(nn.Module):
    def __init__(self, experts, repeats):
        super().__init__()
        self.table, self.head, self.repeats = nn.Embedding(10, 16), nn.Linear(16, 10), repeats
        self.layers = nn.ModuleList((Expert if experts > 1 else nn.Linear)(16, 16) for _ in range(experts))

    def forward(self, tokens):
        x = self.table(tokens)
        for _ in range(self.repeats):
            x = self.layers[0](x)
        return self.head(x)

def build(context, experts, repeats): return Net(experts, repeats)
"""


@pytest.mark.parametrize(
    ("experts", "repeats", "why"),
    [(4, 1, "the model has experts"), (1, 2, "more than once"), (1, 3, "more than once")],
)
def test_experts_of_which_a_token_takes_one_and_weights_that_are_used_again_disagree(
    flops, write, experts, repeats, why
):
    found = flops(write(LAYERS), {"experts": experts, "repeats": repeats})
    assert found["counter"] == 6 * 32 * (repeats * 16 * 16 + 16 * 10)
    assert found["formula"] == 6 * 32 * (experts * (16 * 16 + 16) + 16 * 10 + 10)
    assert found["disagree"]
    assert why in found["why"]


def test_without_blocks_or_tokens_there_is_no_formula(write):
    reference = write("""
        def build(context):
            return nn.Linear(3, 5), make_batch, lambda outputs, batch: outputs.sum()

        def make_batch(batch, context, device, generator):
            return torch.randn(batch, 3, device=device, generator=generator)
        """)
    found = own.describe(reference, {}, 16, 2)
    assert found["flops"] == {
        "counter": 2 * 2 * 2 * 3 * 5,
        "formula": None,
        "disagree": False,
        "why": "",
    }
    assert found["blocks"] is None
    assert any(line.startswith("operations by formula") for line in found["unknown"])
