"""The adapter to PyTorch's flex_attention."""

import re

import pytest
import torch
import torch.nn.functional as F
from attending import DEVICE, random_tensors
from stepscope.model.attention import flex

pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize(
    "batch, queries, keys", [((2, 3), 40, 40), ((), 20, 50), ((2, 1, 3), 50, 20)]
)
def test_flex_agrees_with_pytorchs_own(batch, queries, keys, is_causal):
    *given, d_output = random_tensors(batch, queries, keys, 16, torch.float32)
    # Compiling for the CPU takes half a minute; gradients it has none there.
    is_trained = d_output.is_cuda
    given = [x.requires_grad_(is_trained) for x in given]
    with torch.compiler.set_stance("default" if is_trained else "force_eager"):
        output = flex.attention(*given, is_causal)
    results = [output, F.scaled_dot_product_attention(*given, is_causal=is_causal)]
    torch.testing.assert_close(*results, rtol=1e-2, atol=1e-2)
    if is_trained:
        gradients = [torch.autograd.grad(x, given, d_output) for x in results]
        torch.testing.assert_close(*gradients, rtol=1e-2, atol=1e-2)


def test_flex_makes_the_mask_once_and_keeps_none_of_an_earlier_length():
    on = torch.device(DEVICE)
    made = [flex.kept_causal_mask(length, length, on, 0) for length in (16, 32, 32)]
    assert made[1] is made[2] and list(flex._kept.values()) == made[2:]


def test_compiled_model_makes_the_mask_once():
    operations = []

    def backend(graph, inputs):
        operations.extend(node.target for node in graph.graph.nodes if node.op == "call_function")
        return graph

    def two_layers(q, k, v):
        return flex.attention(flex.attention(q, k, v, True), k, v, True)

    compiled = torch.compile(two_layers, backend=backend, fullgraph=True, dynamic=False)
    for length in (40, 300):
        q, k, v = torch.randn(3, 1, 2, length, 16, device=DEVICE)
        flex._kept.clear()
        got = compiled(q, k, v)
        once = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        twice = F.scaled_dot_product_attention(once, k, v, is_causal=True)
        torch.testing.assert_close(got, twice)
    assert not re.search("arange|argsort|where", str(operations))
