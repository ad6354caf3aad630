"""The closed-form count of operations, against PyTorch's counter, which watches the products that
are executed."""

import itertools

import pytest
import torch
from stepscope.axes import MASKS
from stepscope.formulas import flops
from stepscope.model.losses.own import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model
from torch.utils.flop_counter import FlopCounterMode

GRID = [
    (ModelShape(24, 40, 3, 2, 17), 2, 9),
    (ModelShape(16, 56, 1, 8, 101), 3, 32),
    (ModelShape(768, 3072, 12, 12), 4, 512),
    (ModelShape(24, 40, 2, 4, 17, key_value_heads=2), 2, 9),
    (ModelShape(24, 40, 1, 4, 17, key_value_heads=1), 3, 8),
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
def test_operations_are_those_that_are_counted(shape, batch, context):
    forward, step, by_module = _counted(shape, batch, context)
    assert flops.step_flops(shape, batch, context) == step == 3 * forward

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


def test_model_flops_of_the_wide_8b_blocks_by_hand():
    """8 blocks of an 8B model at 2 x 4,096 tokens, all sums written out."""
    shape = ModelShape(4096, 14336, 8, 32, vocab_size=128_256, key_value_heads=8)
    qkv_and_output = 4096 * (4096 + 2 * 1024) + 4096 * 4096
    block = qkv_and_output + 3 * 4096 * 14336 + 2 * 4096
    multiplied = 8 * block + 4096 + 4096 * 128_256
    assert shape.parameters == multiplied + 4096 * 128_256 == 2_795_573_248
    a_token = 6 * multiplied + 12 * 8 * 4096 * 4096
    assert flops.model_flops(shape, 2, 4096) == 8192 * a_token == 124_780_812_435_456
    halved = 8192 * (6 * multiplied + 6 * 8 * 4096 * 4096)
    assert flops.model_flops(shape, 2, 4096, is_causal_half=True) == halved


def seen_one_by_one(length, mask, window):
    pairs = itertools.product(range(length), range(length))
    most = window or length
    return sum(mask == "full" or query - most < key <= query for query, key in pairs)


@pytest.mark.parametrize("mask", MASKS)
def test_visible_pairs_are_those_that_are_counted_one_by_one(mask):
    windows = [None] if mask == "full" else [None, 1, 2, 5, 9]
    for length, window in itertools.product(range(1, 8), windows):
        expected = seen_one_by_one(length, mask, window)
        assert flops.visible_pairs(length, mask, window) == expected, (length, window)


def test_of_a_plain_causal_mask_half_is_counted_as_papers_do():
    assert (
        flops.attention_flops(2, 3, 100, 16, "causal", "forward") == 4 * 2 * 3 * 100 * 100 / 2 * 16
    )


@pytest.mark.parametrize("direction, times", [("forward", 1), ("backward", 2.5)])
def test_operations_of_other_masks_are_of_the_pairs_that_are_seen(direction, times):
    """Two products, 2 operations each, for each of 2 x 3 heads, each pair and each of 16
    channels."""
    for mask, window in [("causal", 2), ("full", None)]:
        pairs = seen_one_by_one(5, mask, window)
        counted = flops.attention_flops(2, 3, 5, 16, mask, direction, window)
        assert counted == 4 * 2 * 3 * pairs * 16 * times
