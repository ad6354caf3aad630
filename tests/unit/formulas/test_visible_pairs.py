"""Pairs of a query and a key that it sees, against counting them one by one."""

import itertools

import pytest
from stepscope.axes import MASKS
from stepscope.formulas import flops


def seen_one_by_one(queries, keys, mask, window):
    found = 0
    for query, key in itertools.product(range(queries), range(keys)):
        position = query + (keys - queries if mask == "causal-lower-right" else 0)
        found += mask == "full" or position - (window or 10**9) < key <= position
    return found


@pytest.mark.parametrize("mask", MASKS)
def test_visible_pairs_are_those_that_are_counted_one_by_one(mask):
    sizes, windows = range(1, 8), [None] if mask == "full" else [None, 1, 2, 5, 9]
    for queries, keys, window in itertools.product(sizes, sizes, windows):
        expected = seen_one_by_one(queries, keys, mask, window)
        assert flops.visible_pairs(queries, keys, mask, window) == expected, (queries, keys, window)


def test_of_a_plain_causal_mask_half_is_counted_as_papers_do():
    assert (
        flops.attention_flops(2, 3, 100, 16, "causal", "forward") == 4 * 2 * 3 * 100 * 100 / 2 * 16
    )
    assert flops.attention_flops(2, 3, 100, 16, "causal", "forward", keys=100) == 1_920_000


@pytest.mark.parametrize("direction, times", [("forward", 1), ("backward", 2.5)])
def test_operations_of_other_masks_are_of_the_pairs_that_are_seen(direction, times):
    """Two products, 2 operations each, for each of 2 x 3 heads, each pair and each of 16
    channels."""
    for mask, keys, window in [
        ("causal", 7, None),
        ("causal", 5, 2),
        ("causal-lower-right", 9, 3),
        ("full", 3, None),
    ]:
        pairs = seen_one_by_one(5, keys, mask, window)
        counted = flops.attention_flops(2, 3, 5, 16, mask, direction, keys, window)
        assert counted == 4 * 2 * 3 * pairs * 16 * times
