"""What of a GPU's memory tensors may ask for."""

import pytest
from stepscope.report.kit import reserve

GIB = 2**30


def test_a_peak_that_is_said_to_fit_leaves_room_for_the_context_and_the_allocators_blocks():
    """Of 80 GiB one is the context's; what is asked for takes up to 1.25 times as much."""
    assert reserve.usable(80 * GIB) == pytest.approx(79 / 1.25 * GIB)
    asked = reserve.usable(80 * GIB)
    assert asked * 1.23 + 0.5 * GIB < 80 * GIB
