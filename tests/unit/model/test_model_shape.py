"""The shape of a model: its parameter count and the errors that it raises."""

import dataclasses

import pytest
import torch
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


def test_parameter_count_of_a_model_with_weights():
    shape = ModelShape(d_model=24, d_ff=40, num_layers=3, num_heads=2, vocab_size=17)
    model = build_model(shape, context=8, attention="sdpa", device="cpu", seed=0)
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_rotary_tables_are_shared_and_not_saved():
    shape = ModelShape(d_model=24, d_ff=40, num_layers=3, num_heads=2, vocab_size=17)
    model = build_model(shape, context=8, attention="naive", device="cpu", seed=0)
    assert len({id(block.attention.rotary) for block in model.blocks}) == 1
    assert [buffer.dtype for buffer in model.buffers()] == [torch.float32] * 2
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}


def test_d_head_and_default_vocabulary():
    shape = ModelShape(768, 3072, 12, 12)
    assert shape.d_head == 64
    assert shape.vocab_size == 10_000


def test_shape_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelShape(8, 8, 1, 1).d_model = 16


@pytest.mark.parametrize("field", ["d_model", "d_ff", "num_layers", "num_heads", "vocab_size"])
@pytest.mark.parametrize("value", [0, -8, 8.0, "8", True, None])
def test_each_field_must_be_a_positive_integer(field, value):
    good = {"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 10}
    with pytest.raises(ValueError) as error:
        ModelShape(**good | {field: value})
    assert str(error.value) == f"{field} must be a positive integer, not {value!r}"


def test_d_model_must_be_divisible_by_num_heads():
    with pytest.raises(ValueError, match=r"^d_model = 100 is not divisible by num_heads = 3$"):
        ModelShape(100, 16, 1, 3)


def test_head_dimension_must_be_even():
    with pytest.raises(ValueError, match=r"^head dimension d_model / num_heads = 9 / 3 = 3 must be even$"):
        ModelShape(9, 16, 1, 3)
