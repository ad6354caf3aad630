"""Figures of made-up tables."""

import made
import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """All tables."""
    return made.folder(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def tables(folder):
    """Those of the GPU."""
    return made.Tables(folder, made.GPU)
