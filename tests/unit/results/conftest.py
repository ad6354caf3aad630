"""A results folder for the tests of tables."""

import pytest

from tests.unit.results.cells import Results


@pytest.fixture
def results(tmp_path):
    """An empty one."""
    return Results(tmp_path)
