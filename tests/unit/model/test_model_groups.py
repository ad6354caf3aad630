"""The shape of a model whose heads share keys and values, or see a window: closed forms by
hand."""

import pytest
from common import one_line
from stepscope.formulas import flops
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model

CONTEXT = 10


def shape(**more):
    return ModelShape(d_model=24, d_ff=40, num_layers=3, num_heads=4, vocab_size=31, **more)


@pytest.mark.parametrize("heads, width", {0: 24, 4: 24, 2: 12, 1: 6}.items())
def test_parameters_are_those_of_the_built_model_and_of_the_formula(heads, width):
    own = shape(key_value_heads=heads)
    model = build_model(own, CONTEXT, "naive", "meta", seed=0)
    block = 24 * (24 + 2 * width) + 24 * 24 + 3 * 24 * 40 + 2 * 24
    built = sum(each.numel() for each in model.parameters())
    assert own.parameters == built == 2 * 31 * 24 + 3 * block + 24


@pytest.mark.parametrize(
    "said, given",
    {
        "num_heads = 4 is not divisible by key_value_heads = 3": {"key_value_heads": 3},
        "num_heads = 4 is not divisible by key_value_heads = 8": {"key_value_heads": 8},
        "key_value_heads must be a positive integer or 0, not -1": {"key_value_heads": -1},
        "window must be a positive integer or 0, not 2.0": {"window": 2.0},
    }.items(),
)
def test_a_shape_that_cannot_be_is_one_line(given, said):
    assert one_line(ValueError, shape, **given) == said


@pytest.mark.parametrize("window", [1, 4, 9, 50])
def test_operations_with_a_window_are_of_as_many_keys_a_query(window):
    """Two products of (4 heads x 6 channels) for each query and each key of its window, in 3 layers
    of 2 sequences."""
    plain, own = (
        flops.forward_flops_by_component(each, 2, 9) for each in (shape(), shape(window=window))
    )
    for part in ("scores", "attention x V"):
        assert own[part] == 3 * 2 * 2 * 9 * min(window, 9) * 24
    assert all(own[name] == plain[name] for name in ("qkv", "output", "head"))
