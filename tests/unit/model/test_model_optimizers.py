"""The AdamW implementations, against PyTorch's own and against the paper's first step."""

import pytest
import torch
from stepscope.model.chosen import load

SHAPES = [(3, 5), (7,), (), (2, 3, 4), (1, 1)]
SETTINGS = [
    {},  # PyTorch's defaults are ours
    # An eps of the size of the gradients: shows whether it is added before or after the bias
    # correction.
    {"lr": 0.05, "betas": (0.8, 0.95), "eps": 0.1, "weight_decay": 0.3},
    {"lr": 0.01, "betas": (0.0, 0.5), "eps": 1e-8, "weight_decay": 0.0},
]


def _parameters():
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
        _set_gradients(ours, step)
        _set_gradients(reference, step)
        our_optimizer.step()
        reference_optimizer.step()
        for got, expected in zip(ours, reference, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)
    assert torch.equal(ours[1], _parameters()[1])
    assert not torch.equal(ours[2], _parameters()[2])


def test_which_pytorch_implementation():
    assert load("optimizer", "torch").make(_parameters()).param_groups[0]["fused"] is None
    assert load("optimizer", "fused").make(_parameters()).param_groups[0]["fused"] is True


def test_own_launches_seven_operations_a_parameter_and_never_waits(record_operations):
    parameters = _parameters()
    optimizer = load("optimizer", "own").make(parameters)
    _set_gradients(parameters, 0)
    optimizer.step()
    with record_operations() as recorded:
        optimizer.step()
    with_gradient = sum(parameter.grad is not None for parameter in parameters)
    update = ["lerp_", "mul_", "addcmul_", "sqrt", "add_", "mul_", "addcdiv_"]
    executed = [
        name for name in recorded.names if not name.startswith("_record_function")
    ]  # PyTorch's own markers
    assert executed == update * with_gradient


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": -1.0},
        {"eps": -1e-8},
        {"weight_decay": -0.1},
        {"betas": (1.0, 0.9)},
        {"betas": (0.9, -0.1)},
    ],
)
@pytest.mark.parametrize("name", ["own", "torch", "fused"])
def test_settings_out_of_range(name, settings):
    with pytest.raises(ValueError):
        load("optimizer", name).make(_parameters(), **settings)
