"""Helpers for the tests of machines."""

import pytest


@pytest.fixture(autouse=True)
def own_locks(tmp_path_factory, monkeypatch):
    """Locks of a folder of our own, so that no test waits for a measurement on this machine."""
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path_factory.mktemp("locks")))
