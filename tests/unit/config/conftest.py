"""Helpers for the tests of planning: the project's own configuration, and a scripts/ folder made
for one test."""

import os

import pytest
from common import ROOT
from snakemake.utils import update_config
from stepscope.config import own_models
from stepscope.config.code_digest import Sources
from stepscope.config.config import validated
from stepscope.config.registry import Registry
from stepscope.config.studies import LADDER, TIMING
from stepscope.machine import gpus, identity
from stepscope.machine.labels import Hardware
from stepscope.yaml_files import read_yaml

SCHEMA = ROOT / "rules/config.schema.yaml"


@pytest.fixture(scope="session")
def schema():
    """The configuration's schema."""
    return read_yaml(SCHEMA)


@pytest.fixture
def make_config():
    """The checked configuration as `snakemake --config KEY=VALUE …` gives it."""

    def make(**given):
        preset = (
            ROOT / f"rules/presets/{given['preset']}.yaml"
            if "preset" in given
            else SCHEMA.with_name("none")
        )
        config = read_yaml(ROOT / "config.yaml")
        update_config(config, read_yaml(preset) if preset.exists() else {})
        return validated(config | given, SCHEMA)

    return make


@pytest.fixture
def cells_of(make_config):
    """The cells of a study whose grid has these entries, in the configuration that `given`
    makes."""

    def cells(study, *entries, device="cpu", **given):
        config = make_config(**given)
        config[study.name]["grid"][device] = list(entries)
        return study.cells(config, Hardware("machine", device, 3))

    return cells


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


class Scripts:
    """A scripts/ folder of a test's own."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, sources):
        """Write programs and modules: {"program": …} is program.py, {"a/b": …} is
        stepscope/a/b.py."""
        for name, source in sources.items():
            path = self.folder / ("stepscope" if "/" in name else "") / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)

    def digest(self, by_name=()):
        """Digest of program.py as a new process computes it."""
        return Sources(self.folder).digest("program.py", by_name)

    def measured_digest(self, by_name=()):
        """The same of what can change a measured number."""
        return Sources(self.folder).digest("program.py", by_name, measured=True)

    def modules(self, by_name=()):
        """Modules that program.py may load."""
        return Sources(self.folder).modules("program.py", by_name)


@pytest.fixture
def scripts(tmp_path):
    """An empty scripts/ folder that digests are taken of."""
    return Scripts(tmp_path)
