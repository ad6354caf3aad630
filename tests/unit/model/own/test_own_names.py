"""What parts of a model are called."""

import pytest
from stepscope.model.own import assembled, structure


@pytest.fixture
def names(write):
    """Part → what it is called, of a module that build() of a file returns."""

    def named(text, keys=None):
        reference = text if text.startswith("hf:") else write(text)
        module = assembled.build(reference, keys or {}, 8, 2, "cpu", 0).module
        return structure.parts_of(module, structure.blocks_of(module))

    return named


SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "vocab_size": 50, "num_attention_heads": 2}


def test_a_class_that_holds_the_blocks_is_no_part_whatever_its_name_has(names):
    keys = {"num_key_value_heads": 1, "num_experts": 4, "moe_intermediate_size": 8}
    found = names("hf:qwen3_moe", SMALL | keys)
    assert "model" not in found
    assert found["model.layers.0"] == "block"
    assert found["model.layers.0.mlp"] == "FFN"
    assert found["model.layers.0.self_attn.q_norm"] == "norm in attention"
    assert (found["model.norm"], found["lm_head"]) == ("final norm", "LM head")


LETTERS = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        return self.o(self.q(x) + self.k(x) + self.v(x))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.SelfAttention, self.norm = Attention(), nn.LayerNorm(8)

    def forward(self, x):
        return x + self.SelfAttention(self.norm(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 8), nn.Linear(8, 50)
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

def build(context):
    return Net()
"""


def test_projections_of_one_letter_are_those_of_attention(names):
    found = names(LETTERS)
    called = [found.get(f"layers.0.SelfAttention.{letter}") for letter in "qkvo"]
    assert called == ["Q projection", "K projection", "V projection", "output projection"]


RWKV = """
class TimeMix(nn.Module):
    def __init__(self):
        super().__init__()
        self.receptance, self.output = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.output(self.receptance(x))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.mix, self.output = nn.LayerNorm(8), TimeMix(), nn.Linear(8, 8)

    def forward(self, x):
        return self.output(self.mix(self.ln(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.first = nn.Embedding(20, 8), nn.LayerNorm(8)
        self.blocks = nn.ModuleList([Block()])
        self.last, self.head = nn.LayerNorm(8), nn.Linear(8, 20)

    def forward(self, tokens):
        x = self.first(self.table(tokens))
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))

def build(context): return Net()
"""


def test_the_output_of_a_mixer_is_no_ffn_and_the_first_norm_not_the_final_one(names):
    assert names(RWKV) == {
        "table": "embedding",
        "first": "norm",
        "blocks.0": "block",
        "blocks.0.ln": "norm",
        "blocks.0.output": "FFN",  # as BERT's
        "last": "final norm",
        "head": "LM head",
    }


RESNET = """
class Basic(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)

    def forward(self, x):
        return x + self.bn1(self.conv1(x)).relu()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(Basic(8), Basic(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.layer1(self.bn1(self.conv1(x))).mean((2, 3)))

def images(batch, context, device, generator):
    return torch.randn(batch, 3, 16, 16, generator=generator, device=device)

def build(context): return Net(), images, lambda outputs, batch: outputs.sum()
"""


def test_a_stem_has_no_final_norm_and_classes_of_images_no_lm_head(names):
    assert names(RESNET) == {
        "bn1": "norm",
        "layer1.0": "block",
        "layer1.0.bn1": "norm",
        "layer1.1": "block",
        "layer1.1.bn1": "norm",
        "head": "head",
    }


TRANSFORMERS = """
import transformers

def build(context, kind, model_type, **keys):
    configuration = transformers.AutoConfig.for_model(model_type, vocab_size=600, **keys)
    return getattr(transformers, kind)(configuration)
"""
NARROW = {"d_model": 16, "decoder_start_token_id": 0}
LAYERS = {"encoder_layers": 1, "decoder_layers": 1}
LAYERS |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}


def test_a_feed_forward_network_is_known_by_what_it_is_made_of(names):
    """T5's is of a class and a name that say nothing: 16 -> 40 -> 16, or with a gate."""
    sizes = NARROW | {"d_kv": 8, "num_heads": 2, "d_ff": 40, "num_layers": 1}
    t5 = {"kind": "T5ForConditionalGeneration", "model_type": "t5"} | sizes
    for kind in ("relu", "gated-gelu"):
        found = names(TRANSFORMERS, t5 | {"feed_forward_proj": kind})
        ffn = {path for path, name in found.items() if name == "FFN"}
        assert ffn == {
            "encoder.block.0.layer.1.DenseReluDense",
            "decoder.block.0.layer.2.DenseReluDense",
        }
        assert found["lm_head"] == "LM head"


def test_layers_of_a_feed_forward_network_beside_the_attention(names):
    """BART's encoder, whose blocks are not the model's."""
    sizes = NARROW | LAYERS | {"encoder_ffn_dim": 40, "decoder_ffn_dim": 40}
    sizes |= {"max_position_embeddings": 32}
    bart = {"kind": "BartForConditionalGeneration", "model_type": "bart"}
    found = names(TRANSFORMERS, bart | sizes)
    ffn = {path for path, name in found.items() if name == "FFN"}
    layers = ("encoder.layers.0", "decoder.layers.0")
    assert ffn == {f"model.{layer}.fc{i}" for layer in layers for i in (1, 2)}


def test_a_mixer_that_no_rule_knows_has_no_name(names):
    """Although it widens and goes back."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "vocab_size": 600, "state_size": 4}
    found = names("hf:mamba", sizes)
    assert not [path for path in found if ".mixer" in path]
    assert "FFN" not in found.values()


ADAPTED = """
class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen, self.down, self.up = nn.Linear(8, 8), nn.Linear(8, 2), nn.Linear(2, 8)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
        self.blocks = nn.ModuleList([Adapter(), Adapter()])

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def build(context): return Net()
"""


def test_an_adapter_is_no_feed_forward_network(names):
    found = names(ADAPTED)
    assert found["blocks.1"] == "block"
    assert not [path for path in found if path.startswith("blocks.1.")]
