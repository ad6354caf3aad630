"""Which tiles are chosen, against what was measured with each; and which of them need a mask."""

import itertools
from pathlib import Path

import pandas as pd
import pytest
from stepscope.kernels import tiles
from stepscope.kernels.hopper_softmax import hides
from triton.language import constexpr

# Milliseconds on an H200 (132 multiprocessors) with two and three warpgroups in a program: forward,
# no mask, d_head 64, bf16, torch 2.11, triton 3.6.
MEASURED = pd.read_csv(Path(__file__).with_name("forward_h200.csv"))


@pytest.mark.parametrize("sequences, queries, two, three", MEASURED.to_numpy().tolist())
def test_no_more_than_3_percent_slower_than_the_best(sequences, queries, two, three):
    chosen = tiles.hopper_forward(64, queries, sequences, is_causal=False, multiprocessors=132)
    times = {2: two, 3: three}
    assert times[chosen.warpgroups] <= 1.03 * min(times.values())


# TFLOP/s on H200s with so many sequences of keys together: backward, causal, d_head 256, bf16,
# torch 2.11. Sequences of keys, their tokens, and how many heads share each.
TOGETHER = pd.read_csv(Path(__file__).with_name("backward_h200.csv"))
PLACE = ["sequences", "tokens", "sharing"]


@pytest.mark.parametrize("place, rows", [*TOGETHER.groupby(PLACE)])
def test_as_many_sequences_take_turns_as_is_best(place, rows):
    sequences, tokens, sharing = place
    measured = dict(zip(rows["together"], rows["rate"], strict=True))
    of = tiles.hopper_backward(256)
    chosen = (of.alone if sharing == 1 else of.shared).of(sequences, tokens // 64, 132)
    nearest = min(measured, key=lambda together: abs(together - chosen))
    assert abs(nearest - chosen) <= 1
    assert measured[nearest] >= 0.98 * max(measured.values())


def test_a_causal_mask_leaves_no_long_block_for_the_last_round():
    assert tiles.hopper_forward(64, 4096, 8, is_causal=True, multiprocessors=132).warpgroups == 3


CAUSAL = [(True, offset, 0) for offset in (0, 62, 63, 64, -70)]
WINDOWED = [
    (True, offset, window) for offset in (0, 30, -64) for window in (1, 64, 126, 127, 128, 500)
]


@pytest.mark.parametrize("keys", [63, 64, 65, 384])
@pytest.mark.parametrize("is_causal, offset, window", [(False, 0, 0), *CAUSAL, *WINDOWED])
def test_a_tile_is_masked_where_a_query_does_not_see_one_of_its_keys_and_nowhere_else(
    keys, is_causal, offset, window
):
    def sees(query, key):
        return key < keys and (
            not is_causal or query + offset - (window or 10**9) < key <= query + offset
        )

    found = set()
    for row, column, width in itertools.product(range(0, 384, 64), range(0, 384, 64), (64, 128)):
        is_hidden = not all(
            sees(query, column + i) for query in (row, row + 63) for i in range(width)
        )
        row, column, *mask = map(constexpr, (row, column, 384, keys, offset, window))
        assert hides.fn(row, column, mask, width, is_causal, is_causal).value == is_hidden
        found.add(is_hidden)
    assert True in found
