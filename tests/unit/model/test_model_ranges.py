"""The model's named ranges: which there are, in which order and how often; and that they change no
result."""

import pytest
import torch
from stepscope.model import ranges
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model

LAYERS = 3
ATTENTION = {
    "naive": ["attention scores", "mask", "softmax", "attention × V"],
    "sdpa": ["fused attention"],
}


def _model(attention):
    return build_model(ModelShape(16, 24, LAYERS, 2, 50), 8, attention, "cpu", seed=0)


@pytest.mark.parametrize("attention", sorted(ATTENTION))
def test_every_part_of_the_forward_pass_has_its_range(opened, attention):
    model = _model(attention)
    model(torch.zeros(2, 8, dtype=torch.int64))
    inside = ["QKV projection", "RoPE(Q)", "RoPE(K)", *ATTENTION[attention], "output projection"]
    block = [
        (0, "attention norm"),
        (0, "attention"),
        *((1, name) for name in inside),
        (0, "FFN norm"),
        (0, "FFN"),
    ]
    assert opened == [(0, "embedding"), *(LAYERS * block), (0, "final norm"), (0, "LM head")]


def test_a_profiler_sees_the_compiled_program_that_is_timed(opened):
    """Compiled blocks have no ranges inside: the compiler would make another program, of parts."""
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    model = _model("sdpa")
    torch._dynamo.reset()
    for block in model.blocks:
        block.compile(backend=backend)
    tokens = torch.zeros(2, 8, dtype=torch.int64)
    ranges.turn_on(None)
    model(tokens)
    before = len(graphs)
    ranges.turn_on(torch.profiler.record_function)
    model(tokens)
    assert before >= 1 and len(graphs) == before
    assert opened == []
