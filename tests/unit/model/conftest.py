"""The ranges that a model opens."""

import contextlib

import pytest
from stepscope.model import ranges


@pytest.fixture
def opened():
    """Ranges that are on, as (depth, name) in the order in which they were opened; each has to end
    before its outer."""
    log, inside = [], []

    @contextlib.contextmanager
    def opener(name):
        log.append((len(inside), name))
        inside.append(name)
        yield
        assert inside.pop() == name

    ranges.turn_on(opener)
    yield log
    ranges.turn_on(None)
    assert inside == []
