"""Reports made of synthetic tables, each kind once a session."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from report_maker import make_report


@pytest.fixture(scope="session")
def h100(tmp_path_factory):
    return make_report(tmp_path_factory.mktemp("h100"), "h100")


@pytest.fixture(scope="session")
def cpu(tmp_path_factory):
    return make_report(tmp_path_factory.mktemp("cpu"), "cpu")
