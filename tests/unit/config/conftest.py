"""Helpers for the tests of planning: the project's own configuration, and a scripts/ folder made
for one test."""

import os

import pytest
from configured import SCHEMA
from stepscope.config import own_models
from stepscope.config.registry import Registry
from stepscope.config.studies import LADDER, TIMING
from stepscope.machine import gpus, identity
from stepscope.machine.labels import Hardware
from stepscope.yaml_files import read_yaml


@pytest.fixture(scope="session")
def schema():
    """The configuration's schema."""
    return read_yaml(SCHEMA)


def forget():
    """What was read of files; a plan reads each once."""
    own_models._made_of.cache_clear()


@pytest.fixture
def registry_of():
    """The registry of a configuration's cells on a CPU, of files as they are now."""

    def made(config):
        forget()
        return Registry(config, [Hardware("machine", "cpu", 1)], [TIMING, LADDER])

    forget()
    yield made
    forget()


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine of four cores without a GPU."""
    monkeypatch.setattr(gpus, "visible_gpus", list)
    monkeypatch.setattr(identity, "usable_cores", lambda: 4)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(identity, "cpu_name", lambda: "AMD EPYC 7B13")
