"""Options of a user's model: the same numbers by another way, or a line that says why not."""

import pytest
import torch
import torch.nn.functional as F
from common import one_line
from examples import GPT_FILE, make, step
from stepscope.model.attention import naive
from stepscope.model.own.reference import Unsupported

GPT = {"layers": 2, "width": 16, "heads": 2, "dropout": 0.0}
SEQUENTIAL = """
class Block(nn.Module):
    runs = 0

    def __init__(self, dropout):
        super().__init__()
        self.linear, self.dropout = nn.Linear(4, 4), nn.Dropout(dropout)

    def forward(self, x):
        Block.runs += 1
        return x + self.dropout(self.linear(x).relu())

class Net(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 4), nn.Linear(4, 10)
        self.blocks = nn.Sequential(*(Block(dropout) for _ in range(5)))

    def forward(self, tokens):
        return self.head(self.blocks(self.table(tokens)))

def build(context, dropout=0.0):
    return Net(dropout)
"""
CALLS = """
class Net(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.table, self.options = nn.Embedding(10, 16), options

    def forward(self, tokens):
        q = self.table(tokens)[:, None]
        mask = torch.zeros(8, 8) if "mask" in self.options else None
        scale = self.options.get("scale")
        attended = F.scaled_dot_product_attention(q, q, q, attn_mask=mask, scale=scale)
        return attended[:, 0] @ self.table.weight.T

def build(context, **options): return Net(options)
"""


def assert_close(one, other):
    torch.testing.assert_close(one.loss, other.loss)
    torch.testing.assert_close(one.gradients, other.gradients)


@pytest.mark.parametrize(
    "reference, keys",
    [("gpt", GPT), ("hf:llama", {}), ("hf:llama", {"attn_implementation": "eager"})],
)
@pytest.mark.parametrize("attention", ["sdpa", "triton"])
def test_another_attention_gives_the_same_numbers(monkeypatch, reference, keys, attention):
    plain = step(make(reference, keys))
    model = make(reference, keys, attention=attention)
    ran = []
    if attention == "triton":
        kernels = pytest.importorskip("stepscope.kernels.fused")
        forward = kernels.forward
        monkeypatch.setattr(kernels, "forward", lambda *given: ran.append(1) or forward(*given))
    assert_close(step(model), plain)
    assert len(ran) == (len(model.blocks) if attention == "triton" else 0)
    assert F.scaled_dot_product_attention is torch._C._nn.scaled_dot_product_attention


@pytest.fixture
def ran(monkeypatch):
    """Ones, as many as the kernel's calls; the plain attention runs in its place."""
    calls = []
    kernels = pytest.importorskip("stepscope.kernels.fused")
    monkeypatch.setattr(
        kernels,
        "attention",
        lambda q, k, v, *masking: calls.append(1) or naive.attention(q, k, v, *masking),
    )
    return calls


def test_an_attention_imported_by_name_whose_heads_share_keys_and_values_is_replaced_too(
    write, ran
):
    reference = write("""
        from torch.nn.functional import scaled_dot_product_attention as attend

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.kv = nn.Embedding(10, 32), nn.Embedding(10, 16)

            def forward(self, tokens):
                q = self.q(tokens).unflatten(-1, (4, 8)).transpose(1, 2)
                k = self.kv(tokens).unflatten(-1, (2, 8)).transpose(1, 2)
                x = attend(q, k, k, is_causal=True, enable_gqa=True)
                return x.transpose(1, 2).flatten(2) @ self.q.weight.T

        def build(context): return Net()
        """)
    plain = step(make(reference))
    assert_close(step(make(reference, attention="triton")), plain)
    assert ran == [1]


@pytest.mark.parametrize(
    "keys, reason",
    [
        (
            {"mask": 1},
            "the model's attention has a mask; triton has only the causal one, by is_causal=True",
        ),
        ({"scale": 1.0}, "the model scales its scores by 1; triton by 1/sqrt(d_head) = 0.25"),
    ],
)
def test_calls_that_the_kernel_cannot_run(write, keys, reason):
    given = (write(CALLS), keys)
    assert one_line(Unsupported, make, *given, context=8, attention="triton") == reason
    make(write(CALLS, "other.py"), keys, context=8, attention="sdpa")


@pytest.mark.parametrize(
    "model, keys, attention, said",
    [
        ("gpt", {"dropout": 0.1}, "triton", r"has dropout 0\.1, which triton lacks; set it to 0"),
        ("gpt", {"heads": 4}, "triton", "d_head a multiple of 8, at most 256, not 4"),
        ("gpt", {}, "flex", "flex trains on a GPU only"),
        (SEQUENTIAL, None, "sdpa", "neither calls torch's scaled_dot_product_attention nor has"),
        (SEQUENTIAL, None, "triton", "neither calls torch's scaled_dot_product_attention nor has"),
    ],
)
def test_other_reasons_against_an_attention(write, model, keys, attention, said):
    given = (write(model),) if keys is None else (model, GPT | keys)
    with pytest.raises(Unsupported, match=said):
        make(*given, attention=attention)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_blocks_are_computed_again_and_give_the_same_numbers(write, dropout):
    reference = write(SEQUENTIAL)
    plain = step(make(reference, {"dropout": dropout}))
    model = make(reference, {"dropout": dropout}, checkpoint=1)
    block = type(model.blocks[0])
    block.runs = 0
    again = step(model)
    assert block.runs == 2 * 5
    torch.testing.assert_close(tuple(again), tuple(plain), rtol=0, atol=0)
    block.runs = 0
    with torch.no_grad():
        model.outputs(model.make_batch())
    assert block.runs == 5


def test_more_than_each_block_is_one_line():
    said = "checkpoint: 2 is there for the sizes of this project alone; use checkpoint: 1"
    assert one_line(Unsupported, make, GPT_FILE, GPT, checkpoint=2) == said


def test_recomputed_blocks_run_in_the_chosen_attention(ran):
    plain = step(make(GPT_FILE, GPT))
    assert_close(step(make(GPT_FILE, GPT, attention="triton", checkpoint=1)), plain)
    assert len(ran) == 2 * 2


@pytest.mark.parametrize(
    "options", [{"checkpoint": 1}, {"compile": "block"}, {"compile": "graphs"}]
)
def test_options_of_blocks_need_blocks(write, options):
    reference = write(
        "def build(context): return nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))"
    )
    assert "needs blocks" in one_line(Unsupported, make, reference, **options)


def test_compiled_blocks_give_the_same_numbers(write):
    reference = write(SEQUENTIAL)
    plain = step(make(reference))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compile_without_code = torch.compile
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            torch, "compile", lambda forward: compile_without_code(forward, backend="aot_eager")
        )
        assert_close(step(make(reference, compile="block")), plain)
    assert torch._dynamo.utils.counters["frames"]["ok"] >= 1
