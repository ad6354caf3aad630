"""What is built, how it is fed, and its loss, against numbers by hand."""

import json

import pytest
import torch
import torch.nn.functional as F
from examples import GPT_FILE, VIT_FILE, make, step
from stepscope.model.own import assembled
from stepscope.model.own.inputs import item_of
from stepscope.model.own.reference import Unsupported
from torch.testing import assert_close

ENCODER = """
def build(context, layers=2):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.25, batch_first=True)
    return nn.TransformerEncoder(layer, layers), make_batch, loss

def make_batch(batch, context, device, generator):
    return [torch.randn(batch, context, 8, device=device, generator=generator)]

def loss(outputs, batch):
    return (outputs - batch[0]).square().mean()
"""
OF_A_TABLE = """
def build(context):
    return Net(context)

class Net(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.vocab_size, self.context = 11, context
        self.table = nn.Parameter(torch.randn(11, 4))

    def forward(self, tokens):
        assert tokens.shape[1] == self.context
        return {"logits": self.table[tokens] @ self.table.T}
"""
WITH_TARGETS = """
def build(context):
    return Net()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 4)

    def forward(self, tokens, targets=None):
        logits = self.table(tokens) @ self.table.weight.T
        if targets is None:
            return logits[:, -1:], None
        return logits, 3 * F.cross_entropy(logits.flatten(0, 1), targets.flatten())
"""


SMALL = {"layers": 1, "width": 8, "heads": 2}


def test_a_gpt_has_its_parameters_once():
    found = make("gpt", SMALL | {"layers": 3}).description
    # norms, QKV, projection, MLP
    block = 2 * 2 * 8 + (8 * 24 + 24) + (8 * 8 + 8) + (8 * 32 + 32) + (32 * 8 + 8)
    parameters = 10_000 * 8 + 16 * 8 + 3 * block + 2 * 8
    assert found["parameters"] == found["trainable_parameters"] == parameters
    assert found["blocks"] == {"count": 3, "class": "Block", "path": "blocks"}
    assert found["vocab_size"] == 10_000
    assert found["dtype"] == "torch.float32"
    assert "rows of the first nn.Embedding, tokens" in found["inputs"]
    assert found["unknown"] == []
    assert json.loads(json.dumps(found)) == found


def test_default_loss_is_that_of_the_next_tokens():
    model = make("gpt", SMALL | {"dropout": 0.0})
    batch = model.make_batch()
    tokens, targets = batch["tokens"], batch["targets"]
    assert tokens.shape == targets.shape == (2, 16)
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    by_hand = F.cross_entropy(model.module(tokens).mT, targets)
    assert_close(model.loss(batch), by_hand)


@pytest.mark.parametrize(
    "architecture, own_parameters",
    [("llama", 0), ("qwen3", 2 * 2 * 16)],  # Qwen3 normalises Q and K of each block, by head
)
def test_an_architecture_of_transformers(architecture, own_parameters):
    model = make(f"hf:{architecture}", {"head_dim": 16})
    found = model.description
    block = 32 * 64 + 2 * 32 * 32 + 64 * 32 + 3 * 32 * 48 + 2 * 32  # Q, K and V, output, FFN, norms
    tables = 50 * 32 * (1 if model.module.config.tie_word_embeddings else 2)
    assert found["parameters"] == tables + 2 * block + 32 + own_parameters
    assert (found["blocks"]["count"], found["blocks"]["path"]) == (2, "model.layers")
    assert "use_cache=False" in found["inputs"]
    assert found["unknown"] == []
    batch = model.make_batch()
    logits = model.outputs(batch).logits
    by_hand = F.cross_entropy(logits[:, :-1].mT, batch["tokens"][:, 1:])
    assert_close(model.loss(batch), by_hand)


def test_an_architecture_of_a_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "dtype": "bfloat16"}))
    for keys, dtype in (({}, torch.float32), ({"dtype": "bfloat16"}, torch.bfloat16)):
        model = make(f"hf:{tmp_path}", {"num_hidden_layers": 3} | keys)
        assert len(model.blocks) == 3
        assert {each.dtype for each in model.module.parameters()} == {dtype}


def test_a_transformer_encoder_with_its_own_batch_and_loss(write):
    model = make(write(ENCODER), {"layers": 3})
    found = model.description
    attention = 4 * (8 * 8 + 8)
    assert found["parameters"] == 3 * (attention + 2 * 8 * 16 + 16 + 8 + 2 * 2 * 8)
    assert found["blocks"]["class"] == "TransformerEncoderLayer"
    assert found["vocab_size"] is None
    assert found["inputs"].startswith("the user's make_batch")
    batch = model.make_batch()
    model.module.eval()
    by_hand = (model.module(batch[0]) - batch[0]).square().mean()
    model.module.train()
    assert model.loss(batch).item() != pytest.approx(by_hand.item())  # it drops
    assert_close((model.outputs(batch) - batch[0]).square().mean(), by_hand)


def test_a_model_that_says_its_vocabulary_and_returns_a_dictionary(write):
    model = make(write(OF_A_TABLE))
    found = model.description
    assert (found["vocab_size"], found["parameters"]) == (11, 44)
    assert "random tokens tokens" in found["inputs"]
    assert "module.vocab_size" in found["inputs"]
    assert step(model).gradients["table"].abs().sum() > 0


def test_a_model_that_takes_targets_gives_its_own_loss(write):
    model = make(write(WITH_TARGETS))
    batch = model.make_batch()
    table = model.module.table.weight
    by_hand = 3 * F.cross_entropy((table[batch["tokens"]] @ table.T).mT, batch["targets"])
    assert_close(model.loss(batch), by_hand)
    assert model.outputs(batch)[0].shape == (2, 1, 11)
    assert any(line.startswith("inference:") for line in model.description["unknown"])


def test_targets_that_forward_cannot_do_without_are_always_given(write):
    """Also where torch.compile() hides what forward takes."""
    required = WITH_TARGETS.replace("targets=None", "targets")
    compiled = required.replace("return Net()", 'return torch.compile(Net(), backend="eager")')
    for text in (required, compiled):
        model = make(write(text))
        logits, loss = model.outputs(model.make_batch())
        assert logits.shape == (2, 16, 11)
        assert_close(loss, model.loss(model.make_batch()))
        assert not any(line.startswith("inference:") for line in model.description["unknown"])


def test_what_a_batch_is_made_of():
    keys = {"layers": 1, "width": 8, "heads": 2}
    for reference, expected in ((GPT_FILE, (2 * 16, "tokens")), (VIT_FILE, (2, "images"))):
        found = assembled.describe(reference, keys, 16, 2)
        assert (found["items"], found["item"]) == expected
    assert item_of((torch.ones(2, 16),), (2, 16)) == "samples"


def test_the_same_seed_gives_the_same_model_and_batch():
    first, again, other = (make("gpt", SMALL, seed=seed) for seed in (0, 0, 1))
    weights = [[*model.module.parameters()] for model in (first, again)]
    assert all(map(torch.equal, *weights))
    batch = first.make_batch()["tokens"]
    for same in (again, first):
        assert torch.equal(batch, same.make_batch()["tokens"])
    assert not torch.equal(first.module.tokens.weight, other.module.tokens.weight)
    assert not torch.equal(batch, other.make_batch()["tokens"])


def test_inference_drops_nothing_and_training_goes_on_as_built(write):
    model = make(
        write("""
        def build(context):
            drops = nn.Dropout(0.5), nn.Dropout(0.5)
            net = nn.Sequential(nn.Embedding(10, 4), *drops, nn.Linear(4, 10))
            net[2].eval()
            return net
        """)
    )
    batch = model.make_batch()
    assert torch.equal(model.outputs(batch), model.outputs(batch))
    assert not any(part.training for part in model.module.modules())
    model.loss(batch)
    assert [part.training for part in model.module] == [True, True, False, True]


@pytest.mark.parametrize("name, size", [("bfloat16", 2), ("float64", 8), ("float32", 4)])
def test_weights_keep_their_type_and_frozen_ones_are_counted_apart(write, name, size):
    model = make(
        write(f"""
        def build(context):
            net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10)).to(torch.{name})
            net[0].weight.requires_grad_(False)
            net.register_buffer("angles", torch.ones(3, dtype=torch.complex64))
            return net
        """)
    )
    assert {each.dtype for each in model.module.parameters()} == {getattr(torch, name)}
    assert model.module.angles.dtype == torch.complex64
    numbers = {
        "parameters": 90,
        "trainable_parameters": 50,
        "buffers_bytes": 24,
        "parameters_bytes": 90 * size,
        "trained_bytes": 50 * size,
        "dtype": f"torch.{name}",
    }
    assert numbers.items() <= model.description.items()
    model.loss(model.make_batch()).backward()


@pytest.mark.parametrize(
    "weight, kind",
    [
        ("torch.ones(10, 4, dtype=torch.complex64)", "complex"),
        ("torch.ones(10, 4).to_sparse()", "sparse"),
    ],
)
def test_what_is_no_dense_real_number_is_refused_before_anything_runs(write, weight, kind):
    reference = write(f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.odd = nn.Embedding(10, 4), nn.Parameter({weight})

            def forward(self, tokens):
                raise RuntimeError("it ran")

        def build(context): return Net()
        """)
    line = f"parameter odd is {kind}; only dense real ones are measured"
    with pytest.raises(Unsupported, match=line):
        make(reference)
    assert f"operations: {line}" in assembled.describe(reference, {}, 16, 2)["unknown"]


def test_describing_takes_no_memory():
    layers, width = 24, 2**15  # 13 G parameters each: no machine has room for them
    found = assembled.describe(GPT_FILE, {"layers": layers, "width": width, "heads": 256}, 32, 1)
    by_hand = 10_000 * width + 32 * width + layers * (12 * width**2 + 13 * width) + 2 * width
    assert found["parameters"] == by_hand


def test_what_cannot_be_followed_by_shapes_is_run(write):
    reference = write("""
        class Net(nn.Sequential):
            def forward(self, tokens):
                assert tokens.max().item() < 10
                return super().forward(tokens)

        def build(context):
            return Net(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))
        """)
    found = assembled.describe(reference, {}, 8, 2)
    assert found["flops"]["counter"] == 6 * 16 * 4 * 10
