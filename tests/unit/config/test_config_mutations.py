"""200 mutations of the default configuration: each either plans, or is refused in one line that
names a key of it."""

import random

import pytest
from attacks.configurations import changed
from common import ROOT
from stepscope.config.config import ConfigError, validated
from stepscope.config.hardware import hardware_of
from stepscope.config.registry import Registry
from stepscope.config.studies import STUDIES
from stepscope.machine.identity import MachineError
from stepscope.machine.labels import Hardware
from stepscope.yaml_files import read_yaml

pytestmark = pytest.mark.usefixtures("no_gpu")


@pytest.fixture(scope="module")
def default():
    return read_yaml(ROOT / "config.yaml")


def plan(config, results):
    """Plan the configuration's cells for the machine at hand, and expand its grids for a GPU."""
    config = validated(config, ROOT / "rules/config.schema.yaml")
    machines = hardware_of(config, results)
    registry = Registry(config, machines, STUDIES, results=results)
    for study in STUDIES:
        assert all(cell.json for cell in study.cells(config, Hardware("gpu", "cuda", 1)))
    return registry.plan


@pytest.mark.parametrize("seed", range(200))
def test_a_mutated_configuration_plans_or_is_refused_in_a_line_a_complaint(seed, default, tmp_path):
    how, config = changed(default, random.Random(seed))
    path, _, change = how.partition(" ")
    name = change.removeprefix("is called ").removeprefix("is there as ").removesuffix(", too")
    keys = [*path.split("."), name.strip("'")]
    try:
        assert plan(config, tmp_path)
    except (ConfigError, MachineError) as refused:
        lines = str(refused).splitlines()
        assert all(line.isprintable() and len(line) < 600 for line in lines), lines
        assert any(key in line for key in keys for line in lines), (how, lines)
