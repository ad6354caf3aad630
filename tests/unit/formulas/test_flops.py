"""The closed-form count of operations, against PyTorch's counter, which watches the products that
are executed."""

import pytest
import torch
from stepscope.formulas import flops
from stepscope.model.losses.own import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model
from torch.utils.flop_counter import FlopCounterMode

GRID = [
    (ModelShape(d_model=24, d_ff=40, num_layers=3, num_heads=2, vocab_size=17), 2, 9),
    (ModelShape(d_model=16, d_ff=56, num_layers=1, num_heads=8, vocab_size=101), 3, 32),
    (ModelShape(d_model=768, d_ff=3072, num_layers=12, num_heads=12), 4, 512),
    (
        ModelShape(
            d_model=24, d_ff=40, num_layers=2, num_heads=4, vocab_size=17, key_value_heads=2
        ),
        2,
        9,
    ),
    (
        ModelShape(
            d_model=24, d_ff=40, num_layers=1, num_heads=4, vocab_size=17, key_value_heads=1
        ),
        3,
        8,
    ),
]


def _counted(shape, batch, context):
    """(forward, forward and backward, forward by module) as PyTorch counts them; nothing is
    computed."""
    model = build_model(shape, context, "naive", "meta", seed=0)
    tokens = torch.zeros(batch, context, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter:
        loss = cross_entropy(model(tokens), tokens)
        forward = counter.get_total_flops()
        by_module = {
            name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()
        }
        loss.backward()
    return forward, counter.get_total_flops(), by_module


@pytest.mark.parametrize("shape, batch, context", GRID)
def test_totals(shape, batch, context):
    forward, step, _ = _counted(shape, batch, context)
    assert flops.forward_flops(shape, batch, context) == forward
    assert step == 3 * forward
    assert flops.step_flops(shape, batch, context) == step


@pytest.mark.parametrize("shape, batch, context", GRID)
def test_components(shape, batch, context):
    _, _, by_module = _counted(shape, batch, context)

    def total(suffix):
        return sum(count for name, count in by_module.items() if name.endswith(suffix))

    components = flops.forward_flops_by_component(shape, batch, context)
    assert all(type(count) is int for count in components.values())
    assert components["qkv"] == total(".attention.qkv")
    assert components["output"] == total(".attention.output")
    assert components["feed-forward"] == total(".feed_forward")
    assert components["head"] == total(".head")
    attention = total(".attention") - total(".attention.qkv") - total(".attention.output")
    assert components["scores"] == components["attention x V"] == attention // 2


def test_agrees_with_the_rule_of_two_operations_a_parameter_and_token():
    # Kaplan et al. 2020, table 1: 2 N + 2 n_layer n_ctx d_attn a token, for the scores alone; here
    # attention x V too.
    shape, batch, context = ModelShape(1024, 4096, 24, 16), 4, 256
    norms = (2 * shape.num_layers + 1) * shape.d_model
    multiplying = shape.parameters - norms - shape.vocab_size * shape.d_model
    per_token = 2 * multiplying + 4 * shape.num_layers * context * shape.d_model
    assert flops.forward_flops(shape, batch, context) == batch * context * per_token
