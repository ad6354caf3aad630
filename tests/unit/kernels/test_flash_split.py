"""The backward pass in fp32 with operands taken apart once: compiled on a Hopper GPU, else
interpreted on the CPU."""

import pytest
import torch
from attending import agree, random_tensors, run
from stepscope.kernels import kernels, portable_backward, tiles


@pytest.fixture(autouse=True)
def taken_apart(monkeypatch):
    """Take this backward pass, and see that it is taken: the tensors that were taken apart."""
    if torch.cuda.is_available() and not kernels._is_hopper(torch.device("cuda", 0)):
        pytest.skip("needs the shared memory of a Hopper GPU")
    made = []
    choose, split = tiles.split_backward, portable_backward.split
    monkeypatch.setattr(tiles, "split_backward", lambda q, on_hopper: choose(q, True))
    monkeypatch.setattr(
        portable_backward, "split", lambda *given: made.append(given) or split(*given)
    )
    kernels.backward_plan.cache_clear()
    yield made
    kernels.backward_plan.cache_clear()


@pytest.mark.parametrize(
    "queries, keys, d_head, sharing, is_causal, mask",
    [
        (150, 150, 64, 1, True, {}),
        (150, 150, 80, 2, True, {}),
        (70, 200, 128, 2, False, {}),
        (130, 190, 128, 1, True, {"window": 40, "lower_right": True}),
        (200, 70, 24, 1, True, {"window": 30}),
        (1, 90, 16, 1, False, {}),
    ],
)
def test_gradients(taken_apart, queries, keys, d_head, sharing, is_causal, mask):
    agree(queries, keys, d_head, is_causal=is_causal, sharing=sharing, **mask)
    assert len(taken_apart) == 4  # Q, K, V and the gradient of the output


def test_heads_cut_out_of_a_projection_give_the_same_bits_again():
    agree(70, 70, 32, batch=(2, 3), projected=True, again=1)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_stays_so(value):
    """dO of one query reaches the keys that it sees, and the gradient of no other query."""
    q, k, v, d_output = random_tensors((1,), 70, 70, 16, torch.float32)
    d_output[0, 40, 3] = value
    _, _, d_q, d_k, d_v = run(q, k, v, d_output, True)
    for spoilt in (d_q[0, 40], d_k[0, :41], d_v[0, :41, 3]):
        assert not spoilt.isfinite().any()
    assert d_q[0, :40].isfinite().all() and d_q[0, 41:].isfinite().all()


@pytest.mark.parametrize(
    "d_head, dtype, on_hopper, precision, taken",
    [
        (64, torch.float32, True, "highest", True),
        (128, torch.float32, True, "highest", True),
        (136, torch.float32, True, "highest", False),
        (64, torch.bfloat16, True, "highest", False),
        (64, torch.float32, False, "highest", False),
        (64, torch.float32, True, "high", False),
    ],
)
def test_where_it_is_taken(monkeypatch, set_precision, d_head, dtype, on_hopper, precision, taken):
    monkeypatch.undo()
    monkeypatch.setattr(torch.version, "hip", None)
    set_precision(precision)
    found = tiles.split_backward(torch.empty(1, 1, 8, d_head, dtype=dtype), on_hopper)
    assert (found is not None) == taken


@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="tensor cores cut off where the CPU rounds"
)
@pytest.mark.parametrize("d_head", [64, 128])
def test_errors_do_not_grow_with_the_length(d_head):
    agree(4096, 4096, d_head, is_causal=False)
