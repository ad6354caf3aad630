"""Cross-entropy, against PyTorch's own."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from stepscope.model import chosen
from stepscope.model.losses import chunked
from stepscope.model.losses.own import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model, random_batch
from torch.autograd import grad
from torch.testing import assert_close
from watching import assert_same


def _reference(logits, targets):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


@pytest.mark.parametrize("positions", [(6,), (2, 5), (2, 3, 4)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("laid_out", [torch.Tensor.contiguous, lambda x: x.mT.contiguous().mT])
def test_cross_entropy(positions, scale, laid_out):
    torch.manual_seed(0)
    logits = scale * torch.randn(*positions, 11, dtype=torch.float64)
    targets = torch.randint(11, positions)

    def ours(logits, targets):
        return cross_entropy(laid_out(logits), targets)

    assert_same(ours, _reference, logits, targets)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_logits_give_an_fp32_loss(dtype):
    torch.manual_seed(0)
    logits = (5 * torch.randn(4, 8, 100)).to(dtype).requires_grad_()
    targets = torch.randint(100, (4, 8))
    loss = cross_entropy(logits, targets)
    (gradient,) = grad(loss, logits)
    wide = logits.detach().double().requires_grad_()
    expected = _reference(wide, targets)
    assert (loss.dtype, gradient.dtype) == (torch.float32, dtype)
    assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    assert_close(gradient.double(), *grad(expected, wide), rtol=torch.finfo(dtype).eps, atol=1e-7)


def test_nothing_of_the_size_of_the_logits_is_kept_but_the_logits():
    torch.manual_seed(0)
    logits = torch.randn(4, 8, 100, requires_grad=True)
    targets = torch.randint(100, (4, 8))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        cross_entropy(logits, targets)
    large = [x for x in kept if x.numel() == logits.numel()]
    assert [x.data_ptr() for x in large] == [logits.data_ptr()]


@pytest.fixture
def model():
    return build_model(ModelShape(16, 24, 1, 2, 37), 5, "naive", "cpu", seed=0)


@pytest.mark.parametrize("name", chosen.names("loss"))
def test_every_loss_of_the_model_is_that_in_float64(model, name, monkeypatch):
    """Value and gradient of each parameter of the model in float64, beside F.cross_entropy of its
    logits; 15 tokens, in chunks of 4 and one of 3."""
    monkeypatch.setattr(chunked, "CHUNK", 4)
    model.double()
    tokens, targets = random_batch(37, 3, 5, "cpu", seed=1)
    expected = _reference(model(tokens), targets)
    found = chosen.load("loss", name).loss(model, tokens, targets)
    assert_close(found, expected, rtol=1e-12, atol=0, check_dtype=False)
    gradients = (grad(loss, [*model.parameters()]) for loss in (found, expected))
    assert_close(*gradients, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", chosen.names("loss"))
def test_under_autocast_every_loss_has_gradients_in_fp32_like_those_of_float64(model, name):
    """bf16 has 8 bits: what is summed of 15 tokens lies within a few units of its last one."""
    tokens, targets = random_batch(37, 3, 5, "cpu", seed=1)
    wide = deepcopy(model).double()
    expected = _reference(wide(tokens), targets)
    (of_head,) = grad(expected, wide.head.weight)
    with torch.autocast("cpu", torch.bfloat16):
        found = chosen.load("loss", name).loss(model, tokens, targets)
    (gradient,) = grad(found, model.head.weight)
    assert found.dtype == gradient.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=2**-8)
    assert (gradient - of_head).norm() < 2**-6 * of_head.norm()
