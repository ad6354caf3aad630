"""Pairs of a query and a key that it sees, against counting them one by one."""

import itertools

import pytest
from stepscope.axes import MASKS
from stepscope.formulas import flops


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
