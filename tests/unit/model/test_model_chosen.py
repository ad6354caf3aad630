"""Implementations that are chosen by name."""

import pytest
from common import one_line
from stepscope.model import chosen


@pytest.mark.parametrize("name", ["nave", "", "__init__", "naive.attention", "../softmax"])
def test_unknown_name_lists_those_that_exist(name):
    said = one_line(ValueError, chosen.load, "attention", name)
    assert all(each in said for each in [repr(name), *chosen.names("attention")])


def test_unknown_option_lists_those_that_exist():
    assert (
        "no option 'dtype'; there are: attention, compile, loss, optimizer, precision"
        in one_line(ValueError, chosen.load, "dtype", "bf16")
    )
