"""200 mutations of the default configuration: each either plans, or is refused in one line that
names a key of it."""

import copy
import datetime
import math
import random
from pathlib import Path

import pytest
from stepscope.config.config import ConfigError, validated
from stepscope.config.hardware import hardware_of
from stepscope.config.registry import Registry
from stepscope.config.studies import STUDIES
from stepscope.machine import identity
from stepscope.machine.labels import Hardware
from stepscope.yaml_files import read_yaml

pytestmark = pytest.mark.usefixtures("no_gpu")
ROOT = Path(__file__).resolve().parents[3]
HOSTILE = [
    None,
    True,
    -1,
    0,
    1,
    7,
    0.5,
    -0.0,
    1e-9,
    1e300,
    math.nan,
    math.inf,
    10**15,
    10**4300,
    "",
    " ",
    "x\n",
    "a" * 300,
    "../up",
    "~",
    "#",
    "'",
    '"',
    "$(id)",
    "{wild}",
    "%s",
    "<b>",
    "ü",
    "\x00",
    "\ud800",
    "-n",
    "nan",
    "1e3",
    "nano",
    "cuda",
    "none",
    "fp32",
    b"bytes",
    datetime.date(2026, 2, 3),
    {1, 2},
    [],
    {},
    [[]],
    [{}],
    {"": 1},
    {"x": {}},
    {None: 1},
    [None],
    [1, 1.0],
    [{"a": 1}],
    list(range(200)),
]
NAMES = [value for value in HOSTILE if value is None or isinstance(value, str | bool | float)]


@pytest.fixture(scope="module")
def default():
    return read_yaml(ROOT / "config.yaml")


def places(value, path=()):
    """Where something stands in a configuration: keys of mappings and numbers in lists, at every
    depth."""
    members = ()
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in members:
        yield (*path, key)
        yield from places(item, (*path, key))


def mutated(config, chance):
    """(the configuration with one thing changed, the keys that lead to it)."""
    config = copy.deepcopy(config)
    path = chance.choice(list(places(config)))
    *way, last = path
    parent = config
    for key in way:
        parent = parent[key]
    match chance.choice(["replace", "replace", "remove", "rename", "wrap", "repeat", "swap"]):
        case "replace":
            parent[last] = copy.deepcopy(chance.choice(HOSTILE))
        case "remove":
            del parent[last]
        case "rename" if isinstance(parent, dict):
            name = chance.choice([*NAMES, f"{last}x"])
            parent[name] = parent.pop(last)
            path = (*path, name)
        case "wrap":
            parent[last] = [parent[last]]
        case "repeat" if isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        case _:
            other = chance.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
            parent[last], parent[other] = parent[other], parent[last]
            path = (*path, other)
    return config, path


def plan(config, results):
    """Plan the configuration's cells for the machine at hand, and expand its grids for a GPU."""
    config = validated(config, ROOT / "rules/config.schema.yaml")
    machines = hardware_of(config, results)
    registry = Registry(config, machines, STUDIES, results=results)
    registry.check_results()
    for study in STUDIES:
        assert all(cell.json for cell in study.cells(config, Hardware("gpu", "cuda", 1)))
    return registry.plan


@pytest.mark.parametrize("seed", range(200))
def test_a_mutated_configuration_plans_or_is_refused_in_a_line_a_complaint(seed, default, tmp_path):
    config, path = mutated(default, random.Random(seed))
    try:
        assert plan(config, tmp_path)
    except (ConfigError, identity.MachineError) as refused:
        lines = str(refused).splitlines()
        assert all(line.isprintable() and len(line) < 600 for line in lines), lines
        assert any(str(key) in line for key in path for line in lines), (path, lines)


def test_the_default_configuration_plans(default, tmp_path):
    assert plan(default, tmp_path)
