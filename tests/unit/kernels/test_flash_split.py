"""The backward pass in fp32 with operands taken apart once: compiled on a Hopper GPU, else
interpreted on the CPU."""

import pytest
import torch
from stepscope.kernels import kernels, split_backward, tiles

TOLERANCE = 3e-6


@pytest.fixture(autouse=True)
def taken_apart(monkeypatch):
    """Take this backward pass, and see that it is taken: the number of plans made."""
    if torch.cuda.is_available() and not kernels._is_hopper(torch.device("cuda", 0)):
        pytest.skip("needs the shared memory of a Hopper GPU")
    made = []
    choose, add_to = tiles.split_backward, split_backward.add_to
    monkeypatch.setattr(tiles, "split_backward", lambda q, on_hopper: choose(q, True))
    monkeypatch.setattr(
        split_backward, "add_to", lambda *given: (made.append(given), add_to(*given))
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
def test_gradients(
    taken_apart,
    random_tensors,
    run,
    exact,
    assert_close,
    queries,
    keys,
    d_head,
    sharing,
    is_causal,
    mask,
):
    q, k, v, d_output = random_tensors(
        (1, 2), queries, keys, d_head, torch.float32, sharing=sharing
    )
    got = run(q, k, v, d_output, is_causal, **mask)
    assert len(taken_apart) == 1
    right = exact(q, k, v, d_output, is_causal, **mask)
    assert torch.equal(got[1].isneginf(), right[1].isneginf())  # queries that see nothing
    seen = ~right[1].isneginf()
    assert_close(
        (got[0], got[1][seen], *got[2:]), (right[0], right[1][seen], *right[2:]), TOLERANCE
    )


def test_heads_cut_out_of_a_projection(random_tensors, run, exact, assert_close):
    q, k, v, d_output = random_tensors((2, 3), 70, 70, 32, torch.float32)
    projected = (
        torch.stack([q, k, v]).permute(1, 3, 0, 2, 4).contiguous()
    )  # batch, length, three, heads, d_head
    got = run(*projected.permute(2, 0, 3, 1, 4), d_output, True)
    assert_close(got, exact(q, k, v, d_output, True), TOLERANCE)


def test_the_same_bits_again(random_tensors, run):
    q, k, v, d_output = random_tensors((1, 2), 140, 140, 64, torch.float32)
    first, again = (run(q, k, v, d_output, True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_stays_so(random_tensors, run, value):
    """dO of one query reaches the keys that it sees, and the gradient of no other query."""
    q, k, v, d_output = random_tensors((1,), 70, 70, 16, torch.float32)
    d_output[0, 40, 3] = value
    _, _, d_q, d_k, d_v = run(q, k, v, d_output, True)
    assert (
        not d_q[0, 40].isfinite().any()
        and not d_k[0, :41].isfinite().any()
        and not d_v[0, :41, 3].isfinite().any()
    )
    assert d_q[0, :40].isfinite().all() and d_q[0, 41:].isfinite().all()


@pytest.mark.parametrize(
    "d_head, dtype, on_hopper, taken",
    [
        (64, torch.float32, True, True),
        (128, torch.float32, True, True),
        (136, torch.float32, True, False),
        (64, torch.bfloat16, True, False),
        (64, torch.float32, False, False),
    ],
)
def test_where_it_is_taken(monkeypatch, d_head, dtype, on_hopper, taken):
    monkeypatch.undo()
    monkeypatch.setattr(torch.version, "hip", None)
    assert (
        tiles.split_backward(torch.empty(1, 1, 8, d_head, dtype=dtype), on_hopper) is not None
    ) == taken


def test_tf32_is_not_taken_apart():
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert tiles.split_backward(torch.empty(1, 1, 8, 64), True) is None
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="tensor cores cut off where the CPU rounds"
)
@pytest.mark.parametrize("d_head", [64, 128])
def test_errors_do_not_grow_with_the_length(random_tensors, run, exact, assert_close, d_head):
    q, k, v, d_output = random_tensors((1, 2), 4096, 4096, d_head, torch.float32)
    assert_close(run(q, k, v, d_output, False), exact(q, k, v, d_output, False), TOLERANCE)
