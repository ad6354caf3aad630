"""Groups of heads that share keys, masks in either corner, and windows: every implementation
against float64."""

import pytest
import torch
from attending import DEVICE, agree, exact, random_tensors
from common import one_line
from stepscope.kernels import fused, masks
from stepscope.kernels.launching import Plan
from stepscope.model.chosen import load
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

ON_GPU = torch.cuda.is_available()
HALF = torch.bfloat16 if ON_GPU else torch.float16  # Triton's interpreter has no bf16 products

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# queries, keys, d_head, heads that share keys, window, lower right
SHAPES = [
    (100, 100, 64, 2, None, False),
    (100, 100, 80, 3, 37, False),
    (40, 150, 96, 1, None, True),
    (150, 70, 64, 2, None, True),  # the first queries see nothing
    (200, 70, 128, 1, 40, False),  # the last ones see nothing
    (70, 140, 64, 2, 60, True),
    (1, 130, 64, 2, None, True),
    (90, 90, 32, 1, 1, False),
    (33, 65, 256, 2, 50, True),
]
LONG = [
    (1000, 1000, 64, 4, 300, False),
    (1000, 1000, 128, 8, 257, False),
    (700, 1300, 64, 1, None, True),
    (700, 1300, 128, 2, None, True),
    (1300, 700, 64, 2, None, True),
    (1300, 700, 128, 2, 128, False),
    (1024, 4096, 96, 4, 1024, True),
    (900, 900, 80, 5, None, False),
    (400, 900, 72, 2, 200, True),
    (1000, 1000, 96, 1, None, False),
    (600, 600, 256, 4, 333, False),
    (2048, 2048, 256, 1, None, False),
]


@pytest.mark.parametrize(
    "queries, keys, d_head, sharing, window, lower_right", SHAPES + (LONG if ON_GPU else [])
)
def test_output_log_sum_exp_and_gradients(queries, keys, d_head, sharing, window, lower_right):
    batch = (1, (2 if ON_GPU else 1) * sharing)
    mask = {"sharing": sharing, "window": window, "lower_right": lower_right}
    if ON_GPU or d_head <= 64:
        agree(queries, keys, d_head, torch.float32, batch=batch, tolerance=5e-6, **mask)
    if ON_GPU or d_head > 64:
        agree(queries, keys, d_head, HALF, batch=batch, **mask)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", ["naive", "sdpa", "flex", "triton"])
@pytest.mark.parametrize(
    "queries, keys, sharing, window",
    [(30, 30, 3, None), (30, 30, 2, 7), (30, 30, 2, 40), (20, 40, 6, None), (40, 20, 1, None)],
)
def test_every_implementation_takes_groups_and_windows(name, queries, keys, sharing, window):
    *given, d_output = random_tensors((1, 6), queries, keys, 16, torch.float32, sharing=sharing)
    right = exact(*given, d_output, True, window, False)
    attend = load("attention", name).attention
    with torch.compiler.set_stance("force_eager"):  # to compile flex for a CPU takes half a minute
        output = attend(*given, True, window)
    tolerance = {"rtol": 1e-2, "atol": 2e-3 if ON_GPU else 2e-5}
    torch.testing.assert_close(output.double(), right[0], **tolerance)
    if name != "flex":
        given = [x.requires_grad_() for x in given]
        output = attend(*given, True, window)
        gradients = torch.autograd.grad(output, given, d_output)
        torch.testing.assert_close([x.double() for x in gradients], [*right[2:]], **tolerance)


@pytest.mark.parametrize("queries, keys", [(5, 5), (3, 8), (8, 3)])
def test_both_corners_are_pytorchs(queries, keys):
    with pytest.warns(UserWarning) if queries > keys else torch.no_grad():
        right = causal_lower_right(queries, keys)._materialize()
    left = causal_upper_left(queries, keys)._materialize()
    cpu = torch.device("cpu")
    assert torch.equal(masks.visible(queries, keys, cpu, None, True), right)
    assert torch.equal(masks.visible(queries, keys, cpu, None, False), left)
    for lower_right in (False, True):
        seen = masks.visible(queries, keys, cpu, 2, lower_right)
        assert seen.sum(-1).max() == 2
        first, last = masks.blind(queries, keys, masks.mask_of(queries, keys, True, 2, lower_right))
        assert [i for i in range(queries) if seen[i].any()] == list(range(first, last))


def test_a_window_that_hides_nothing_is_none():
    assert masks.mask_of(10, 10, True, 10) == masks.mask_of(10, 10, True)
    cases = ((10, 9, False), (4, 9, True), (4, 9, False))
    windows = [masks.mask_of(queries, 10, True, *mask).window for queries, *mask in cases]
    assert windows == [9, 9, 0]


@pytest.mark.parametrize(
    "is_causal, window, message",
    [
        (False, 5, "a window needs is_causal=True"),
        (True, 0, "at least 1, not 0"),
        (True, 2.5, "at least 1, not 2.5"),
    ],
)
@pytest.mark.parametrize("name", ["naive", "sdpa", "flex", "triton"])
def test_masks_that_mean_nothing_are_errors_of_one_line(name, is_causal, window, message):
    q, k, v = torch.zeros(3, 1, 2, 8, 16, device=DEVICE)
    given = (q, k, v, is_causal, window)
    assert message in one_line(ValueError, load("attention", name).attention, *given)


def test_a_corner_without_a_causal_mask_is_an_error():
    q, k, v = torch.zeros(3, 1, 2, 8, 16, device=DEVICE)
    assert "lower_right needs is_causal=True" in one_line(
        ValueError, fused.attention, q, k, v, False, None, True
    )


def test_keys_are_not_copied_for_their_group(monkeypatch):
    """K and V of a group are read where they are: the kernels get the tensors that the caller
    has."""
    seen = []
    monkeypatch.setattr(Plan, "run", lambda plan, tensors, *_: seen.extend(tensors[1:3]))
    q, k, v = (torch.zeros(1, heads, 8, 16, device=DEVICE) for heads in (6, 2, 2))
    fused.attention(q, k, v, True)
    assert [x.data_ptr() for x in seen] == [k.data_ptr(), v.data_ptr()]
    assert seen[0].numel() == k.numel()
