"""Which tiles are chosen, against what was measured with each."""

import pytest
from stepscope.attention import tiles

# Milliseconds on an H200 (132 multiprocessors) with 2 and 3 warpgroups in a program: forward, no mask, d_head 64, bf16,
# torch 2.11, triton 3.6. Sequences and queries of each.
MEASURED = {
    (8, 1024): (0.0179, 0.0216),
    (8, 2048): (0.0277, 0.0351),
    (8, 4096): (0.0856, 0.1136),
    (8, 8192): (0.3121, 0.3198),
    (8, 16384): (1.2009, 1.2183),
    (16, 1024): (0.0187, 0.0223),
    (16, 2048): (0.0476, 0.0614),
    (16, 4096): (0.1645, 0.1676),
    (16, 16384): (2.3732, 2.2066),
    (32, 1024): (0.0292, 0.0361),
    (32, 4096): (0.3170, 0.3225),
    (32, 8192): (1.2037, 1.1265),
    (64, 1024): (0.0498, 0.0507),
    (64, 4096): (0.6161, 0.5786),
    (64, 16384): (9.4212, 8.8544),
    (128, 1024): (0.0927, 0.0904),
    (128, 2048): (0.3251, 0.3018),
    (128, 8192): (4.6328, 4.2798),
}


@pytest.mark.parametrize(("sequences", "queries"), MEASURED)
def test_no_more_than_3_percent_slower_than_the_best(sequences, queries):
    chosen = tiles.hopper_forward(64, queries, sequences, is_causal=False, multiprocessors=132)
    times = dict(zip((2, 3), MEASURED[sequences, queries], strict=True))
    assert times[chosen.warpgroups] <= 1.03 * min(times.values())


def test_a_causal_mask_leaves_no_long_block_for_the_last_round():
    assert tiles.hopper_forward(64, 4096, 8, is_causal=True, multiprocessors=132).warpgroups == 3
