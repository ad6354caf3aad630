"""The AdamW implementations, against PyTorch's own and against the paper's first step."""

import pytest
import torch
from stepscope.model.chosen import load
from watching import Recorder

SHAPES = [(3, 5), (7,), (), (2, 3, 4), (1, 1)]
SETTINGS = [
    {},  # PyTorch's defaults are ours
    # An eps of the size of the gradients: shows whether it is added before or after the bias
    # correction.
    {"lr": 0.05, "betas": (0.8, 0.95), "eps": 0.1, "weight_decay": 0.3},
    {"lr": 0.01, "betas": (0.0, 0.5), "eps": 1e-8, "weight_decay": 0.0},
]


def _parameters():
    """The same random ones each time, one of which has no dimension."""
    generator = torch.Generator().manual_seed(0)
    return [
        torch.nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64))
        for shape in SHAPES
    ]


def _set_gradients(parameters, step):
    """Random gradients; the second parameter never has one, the third only in every third step."""
    generator = torch.Generator().manual_seed(step)
    for i, parameter in enumerate(parameters):
        gradient = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        parameter.grad = None if i == 1 or (i == 2 and step % 3) else gradient


@pytest.mark.parametrize("name", ["own", "torch", "fused"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_adamw_follows_pytorch_for_25_steps(name, settings):
    ours, reference = _parameters(), _parameters()
    our_optimizer = load("optimizer", name).make(ours, **settings)
    reference_optimizer = torch.optim.AdamW(reference, foreach=False, **settings)
    for step in range(25):
        for parameters, optimizer in ((ours, our_optimizer), (reference, reference_optimizer)):
            _set_gradients(parameters, step)
            optimizer.step()
        torch.testing.assert_close(ours, reference, rtol=1e-12, atol=1e-14)
    moved = [not torch.equal(*each) for each in zip(ours, _parameters(), strict=True)]
    assert moved == [True, False, True, True, True]


def test_which_pytorch_implementation():
    assert load("optimizer", "torch").make(_parameters()).param_groups[0]["fused"] is None
    assert load("optimizer", "fused").make(_parameters()).param_groups[0]["fused"] is True


def test_own_launches_seven_operations_a_parameter_and_never_waits():
    parameters = _parameters()
    optimizer = load("optimizer", "own").make(parameters)
    _set_gradients(parameters, 0)
    optimizer.step()
    with Recorder() as recorded:
        optimizer.step()
    with_gradient = len(SHAPES) - 1
    update = ["lerp_", "mul_", "addcmul_", "sqrt", "add_", "mul_", "addcdiv_"]
    # but for PyTorch's own markers
    executed = [name for name in recorded.names if not name.startswith("_record_function")]
    assert executed == update * with_gradient
