"""The shape of a model: its parameter count and the errors that it raises."""

import pytest
import torch
from common import one_line
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model

# Counts in millions, as the write-ups publish them.
PUBLISHED = {
    "small": (ModelShape(768, 3072, 12, 12), 128.625),
    "medium": (ModelShape(1024, 4096, 24, 16), 423.183),
    "large": (ModelShape(1280, 5120, 36, 20), 969.412),
    "xl": (ModelShape(1600, 6400, 48, 25), 1998.235),
    "2.35B": (ModelShape(3200, 25600, 8, 4), 2357.814),
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameter_count_is_the_published_one_and_that_of_the_built_model(size):
    shape, millions = PUBLISHED[size]
    model = build_model(shape, context=16, attention="naive", device="meta", seed=0)
    assert round(shape.parameters / 1e6, 3) == millions
    assert shape.parameters == sum(p.numel() for p in model.parameters())


def test_rotary_tables_are_shared_and_not_saved():
    shape = ModelShape(24, 40, 3, 2, 17)
    model = build_model(shape, context=8, attention="naive", device="cpu", seed=0)
    assert len({block.attention.rotary for block in model.blocks}) == 1
    assert {each.dtype for each in [*model.buffers(), *model.parameters()]} == {torch.float32}
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("field", ["d_model", "d_ff", "num_layers", "num_heads", "vocab_size"])
@pytest.mark.parametrize("value", [0, -8, 8.0, "8", True, None])
def test_each_field_must_be_a_positive_integer(field, value):
    good = {"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 10}
    said = one_line(ValueError, ModelShape, **good | {field: value})
    assert said == f"{field} must be a positive integer, not {value!r}"


@pytest.mark.parametrize(
    "given, said",
    [
        ((100, 16, 1, 3), "d_model = 100 is not divisible by num_heads = 3"),
        ((9, 16, 1, 3), "head dimension d_model / num_heads = 9 / 3 = 3 must be even"),
    ],
)
def test_heads_divide_d_model_into_even_dimensions(given, said):
    assert one_line(ValueError, ModelShape, *given) == said
