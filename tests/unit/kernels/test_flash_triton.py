"""What is particular to FlashAttention in Triton: what it refuses, autocast, torch.compile, and its
two adapters."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from attending import DEVICE, random_tensors
from common import one_line
from stepscope.kernels import fused, kernels, operands
from stepscope.kernels.launching import Plan
from torch import testing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import grad

ALIKE = "alike but for the length of q"


@pytest.mark.parametrize(
    "of_q, of_k, message",
    [
        ((2, 8, 12), (2, 8, 12), "multiple of 8, at most 256, not 12"),
        ((2, 8, 264), (2, 8, 264), "at most 256, not 264"),
        ((2, 8, 16), (3, 8, 16), ALIKE),
        ((2, 8, 16), (2, 8, 24), ALIKE),
        ((8, 16), (1, 8, 16), ALIKE),
        ((16,), (16,), ALIKE),
        ((6, 8, 16), (4, 8, 16), "a multiple of that of k and v"),
    ],
)
def test_shapes_that_the_kernels_cannot_run_are_one_line(of_q, of_k, message):
    q, k = (torch.zeros(shape, device=DEVICE) for shape in (of_q, of_k))
    assert message in one_line(ValueError, fused.attention, q, k, k, True)
    if k.ndim > 2:  # nor keys and values of two lengths
        assert ALIKE in one_line(ValueError, fused.attention, k, k, k[:, :-1], True)


@pytest.mark.parametrize(
    "of_q, of_keys, message",
    [
        (torch.float32, torch.float16, "one dtype"),
        (torch.float64, torch.float64, "no torch.float64"),
    ],
)
def test_formats_that_the_kernels_cannot_run_are_one_line(of_q, of_keys, message):
    q, k = (torch.zeros(2, 8, 16, device=DEVICE, dtype=dtype) for dtype in (of_q, of_keys))
    assert message in one_line(ValueError, fused.attention, q, k, k, True)


def test_a_cpu_is_an_error_unless_interpreted(monkeypatch):
    monkeypatch.setattr(kernels, "_INTERPRETED", False)
    kernels.unsupported.cache_clear()
    try:
        assert "needs a GPU, not cpu" in one_line(
            ValueError, fused.attention, *torch.zeros(3, 2, 8, 16), True
        )
    finally:
        kernels.unsupported.cache_clear()


def test_autocast_lowers_the_precision_as_it_does_for_pytorchs_own():
    q, k, v, d_output = random_tensors((1, 2), 40, 40, 16, torch.float32)
    q.requires_grad_()
    with torch.autocast(DEVICE, dtype=torch.float16):
        output = fused.attention(q, k.half(), v, True)
        expected = F.scaled_dot_product_attention(q, k.half(), v, is_causal=True)
    assert output.dtype == expected.dtype == torch.float16
    testing.assert_close(output, expected, rtol=1e-2, atol=2e-3)
    got, right = (grad(x, q, d_output.half())[0] for x in (output, expected))
    assert got.dtype == torch.float32
    testing.assert_close(got, right, rtol=2e-2, atol=1e-2)


def test_results_are_laid_out_like_the_inputs():
    """The model turns heads back into channels: with the output in the order of q, that needs no
    copy."""
    q, k, v = (
        torch.randn(2, 30, 3, 16, device=DEVICE).transpose(1, 2).requires_grad_() for _ in range(3)
    )
    output = fused.attention(q, k, v, True)
    assert output.stride() == q.stride()
    gradients = grad(output, (q, k, v), torch.randn_like(output))
    assert all(gradient.stride() == q.stride() for gradient in gradients)


def test_only_what_cannot_be_addressed_is_copied():
    projected = torch.zeros(2, 10, 3, 4, 16, device=DEVICE, dtype=torch.float16)
    heads = projected[:, :, 1].transpose(1, 2)
    one_row = projected.flatten()[:16].as_strided((1, 1, 1, 16), (3, 5, 7, 1))
    for x in (heads, one_row):
        assert operands.readable(x, operands.addressable_rows) is x
    misplaced = projected.flatten()[1:-15].view(2, 1, -1, 8)
    for x in (heads.mT, heads[:1].expand(2, -1, -1, -1), misplaced):
        copied = operands.readable(x, operands.addressable_rows)
        assert copied.data_ptr() % 16 == 0 and copied.is_contiguous()
    assert operands.strides(one_row.shape, one_row.stride()) == (16, 16, 16, 1)


def compiled(function):
    """As one graph, by a compiler that makes no code."""
    torch._dynamo.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True)


@pytest.mark.parametrize("sharing, mask", [(1, (True,)), (2, (True, 9, True))])
def test_torch_compile_sees_one_operator_each_way(sharing, mask):
    *given, d_output = random_tensors((1, 4), 40, 60, 16, torch.float32, sharing=sharing)
    given = [x.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in given]

    def attend(q, k, v):
        return 2 * fused.attention(q, k, v, *mask)

    outputs = [function(*given) for function in (compiled(attend), attend)]
    assert torch.equal(*outputs)
    gradients = [grad(output, given, d_output) for output in outputs]
    assert all(map(torch.equal, *gradients))
    inputs = (*(x.detach() for x in given), *mask)
    operator = torch.ops.stepscope.flash_forward.default
    torch.library.opcheck(operator, inputs, test_utils="test_faketensor")


def gradient_of_a_projection(attend):
    """Of one tensor of which q, k and v are views, with gaps between their rows."""
    whole = torch.randn(1, 16, 96, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    whole.requires_grad_()
    q, k, v = (x.view(1, 16, 2, 16).transpose(1, 2) for x in whole.split(32, -1))
    attend(q, k, v, is_causal=True).square().sum().backward()
    return whole.grad


def transposed(dimensions):
    """What gives tensors of so many dimensions back with other strides."""
    return lambda x: x.mT.contiguous().mT if x.ndim == dimensions else x


@pytest.mark.parametrize(
    "order",
    [
        # as torch.autograd.graph.save_on_cpu does, and again as it was in the next step
        [None, torch.clone, None],
        [torch.clone, None],
        [transposed(4)],  # output
        [transposed(3)],  # log-sum-exp
    ],
)
def test_what_is_saved_may_come_back_with_other_strides(order):
    expected = gradient_of_a_projection(F.scaled_dot_product_attention)
    for pack in order:
        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x)
        with hooks if pack else contextlib.nullcontext():
            found = gradient_of_a_projection(fused.attention)
        testing.assert_close(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("case", ["the same k and v", "not aligned"])
def test_torch_compile_of_tensors_that_share_memory_or_are_copied(case):
    def attend(q, k, v):
        return fused.attention(q, k, v, True).transpose(1, 2).reshape(2, 8, 32)

    # without the first number not on a multiple of 16 bytes
    of_numbers = torch.randn(3, 1 + 2 * 8 * 2 * 16, device=DEVICE)[:, int(case == "not aligned") :]
    numbers = of_numbers[:, : 2 * 8 * 2 * 16].unflatten(1, (2, 8, 2, 16)).transpose(2, 3)
    q, k, v = (x.requires_grad_() for x in numbers)
    inputs = (q, k, k if case == "the same k and v" else v)
    torch._dynamo.reset()
    results = []
    for function in (attend, torch.compile(attend, backend="aot_eager")):
        output = function(*inputs)
        results.append((output, *grad(output.square().sum(), [*dict.fromkeys(inputs)])))
    testing.assert_close(*results)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
@pytest.mark.parametrize(
    "mode, expected",
    [
        (torch.inference_mode, contextlib.nullcontext()),
        (FakeTensorMode, pytest.raises(ValueError, match="needs tensors that have data")),
    ],
)
def test_what_is_called_in_a_mode_leaves_nothing_of_it_behind(mode, expected):
    kernels.forward_plan.cache_clear()
    with mode(), expected:
        fused.attention(*(torch.zeros(1, 2, 16, 16, device=DEVICE) for _ in range(3)), True)
    attends = fused.attention, F.scaled_dot_product_attention
    found, expected = (gradient_of_a_projection(attend) for attend in attends)
    testing.assert_close(found, expected, rtol=1e-4, atol=2e-5)


def test_torch_compile_of_the_backward_pass_alone_and_of_functional_gradients():
    q, k, v, _ = (x.requires_grad_() for x in random_tensors((1, 2), 24, 24, 16, torch.float32))
    right = grad(fused.attention(q, k, v, True).square().sum(), q)[0]
    loss = fused.attention(q, k, v, True).square().sum()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
        loss.backward()
    testing.assert_close(q.grad, right)
    of_q = torch.func.grad(lambda q, k, v: fused.attention(q, k, v, True).square().sum())
    testing.assert_close(compiled(of_q)(*(x.detach() for x in (q, k, v))), right)


def test_the_precision_of_now_decides(monkeypatch, set_precision):
    """A backward pass under another precision leaves nothing behind for the next."""
    q, k, v = (torch.randn(1, 1, 40, 16, device=DEVICE).requires_grad_() for _ in range(3))
    ran, told = [], []
    run = Plan.run
    monkeypatch.setattr(Plan, "run", lambda plan, tensors: (ran.append(plan), run(plan, tensors)))
    for backward in ("high", "highest"):
        set_precision("highest")
        output = fused.attention(q, k, v, True)
        set_precision(backward)
        grad(output.sum(), (q, k, v))
        told.append({launch.constants.get("PRECISION") for launch in ran[-1].launches} - {None})
    assert told[0] == {"tf32"} and "tf32" not in told[1]


def test_launches_are_worked_out_once_a_shape():
    """Another mask, another layout, another number of heads that share keys: each is a shape of its
    own."""
    for plans in (kernels.forward_plan, kernels.backward_plan):
        plans.cache_clear()

    def made(*mask, sharing=1, transposed=False):
        for _ in range(2):
            q, k, v, d_output = random_tensors((1, 2), 24, 24, 16, torch.float32, sharing=sharing)
            q = q.transpose(1, 2).contiguous().transpose(1, 2) if transposed else q
            grad(fused.attention(q.requires_grad_(), k, v, *mask), q, d_output)
        forward, backward = kernels.forward_plan.cache_info(), kernels.backward_plan.cache_info()
        assert forward.currsize == backward.currsize
        return forward.currsize

    # A window and a corner that change nothing are the same shape.
    assert made(True) == made(True, 24, True) == 1
    assert (made(True, 5), made(False)) == (2, 3)
    assert (made(True, sharing=2), made(True, transposed=True), made(True)) == (4, 5, 5)


def test_forward_mode_gradients_are_refused_instead_of_lost():
    q, k, v, _ = random_tensors((1, 2), 40, 40, 16, torch.float32)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(k, v)
        assert "forward mode AD" in one_line(NotImplementedError, fused.attention, q, dual, v, True)
