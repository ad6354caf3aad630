"""Implementations that are chosen by name."""

import inspect

import pytest
from common import one_line
from stepscope.model import chosen


def test_every_name_of_every_option_can_be_loaded():
    assert {"naive", "sdpa"} <= set(chosen.names("attention"))
    assert {"own", "torch", "fused"} <= set(chosen.names("optimizer"))
    # Implementations for a GPU may need packages that a CPU machine lacks: load those that run
    # everywhere.
    for name in ("naive", "sdpa"):
        parameters = list(inspect.signature(chosen.load("attention", name).attention).parameters)
        assert parameters == ["q", "k", "v", "is_causal", "window", "lower_right"]
    for name in ("own", "torch", "fused"):
        module = chosen.load("optimizer", name)
        assert module.__name__ == f"stepscope.model.optimizers.{name}"


@pytest.mark.parametrize("name", ["nave", "", "__init__", "naive.attention", "../softmax"])
def test_unknown_name_lists_those_that_exist(name):
    said = one_line(ValueError, chosen.load, "attention", name)
    assert all(each in said for each in [repr(name), *chosen.names("attention")])


def test_unknown_option_lists_those_that_exist():
    with pytest.raises(
        ValueError,
        match="no option 'dtype'; there are: attention, compile, loss, optimizer, precision",
    ):
        chosen.load("dtype", "bf16")
