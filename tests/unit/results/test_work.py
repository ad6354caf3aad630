"""What is known of a profile's work, and of which steps it is not."""

from types import SimpleNamespace

import pytest
from stepscope.model.shape import ModelShape
from stepscope.results import work

SPEC = {"precision": "fp32", "batch": 2, "context": 64}


def cell(window=0, **spec):
    shape = ModelShape(64, 128, 2, 4, vocab_size=100, window=window)
    return SimpleNamespace(shape=shape, spec=SPEC | spec, place={"mode": "step"})


def test_a_plain_steps_head_by_hand():
    operations, moved = work._of_ranges(cell())[("module", "LM head")]
    assert operations == 2 * 128 * 64 * 100
    assert moved == 4 * (128 * 64 + 64 * 100 + 128 * 100)


@pytest.mark.parametrize(
    "own, unknown",
    [
        ({"batch": 1}, {"attention scores", "attention × V"}),
        ({"loss": "chunked"}, {"LM head"}),
    ],
)
def test_ranges_that_do_something_else_are_not_known(own, unknown):
    plain, other = (work._of_ranges(each) for each in (cell(), cell(**own)))
    assert {name for _, name in plain.keys() - other.keys()} == unknown


def test_what_sees_a_window_or_is_computed_twice_is_not_known():
    assert work._of_ranges(cell(window=16)) == work._of_kinds(cell(window=16)) == {}
    assert work._of_kinds(cell(checkpoint=1)) == {} != work._of_kinds(cell())
