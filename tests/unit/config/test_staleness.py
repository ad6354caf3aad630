"""What makes which cell stale: its params before and after an edit of the configuration or of a
copy of the code."""

import copy
import shutil

import pytest
from common import ROOT, SCRIPTS
from configured import make_config
from stepscope.config.registry import Registry
from stepscope.config.studies import STUDIES
from stepscope.machine.labels import Hardware

RUN_THE_MODEL = {"timing", "ladder", "profile", "memory", "precision"}
STEPS = {"mine": {"build": f"{ROOT}/models/step_plain.py:build"}}


@pytest.fixture
def code(tmp_path):
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "scripts"


@pytest.fixture(scope="module")
def config():
    return make_config(steps=STEPS)


def params(config, scripts=SCRIPTS):
    """Cell → its two params, for a configuration and the code as it is now."""
    found = Registry(config, [Hardware("gpu", "cuda", 1, here=False)], STUDIES, scripts=scripts)
    cells = map(found.cell, found.names())
    return {cell.name: (cell.json, found.code_and_machine(cell)) for cell in cells}


@pytest.fixture(scope="module")
def stale(config):
    """The cells to be measured after a change: new ones, and those of which a param changed."""
    before = params(config)
    return lambda after: {name for name in after if before.get(name) != after[name]}


def append(code, module):
    path = code / "stepscope" / module
    path.write_text(path.read_text() + "\nADDED = 1\n")


def test_code_that_changes_no_number_makes_nothing_stale(config, stale, code):
    for module in ("config/flags.py", "config/grid.py", "files.py", "__init__.py"):
        append(code, module)
    for module in ("printing.py", "provenance.py"):
        append(code, f"measure/{module}")
    assert stale(params(config, code)) == set()


@pytest.mark.parametrize(
    "module, is_stale",
    {
        "model/transformer.py": lambda name, spec: (
            '"step":' not in spec and (name.split("/")[1] in RUN_THE_MODEL or "fp8" in spec)
        ),
        "step.py": lambda name, spec: '"step":' in spec,
        "model/precisions/fp8.py": lambda name, spec: '"fp8"' in spec or "precision/" in name,
        "model/attention/flex.py": lambda name, spec: '"flex"' in spec,
        "../measure_ceilings.py": lambda name, spec: name.split("/")[1] == "ceilings",
    }.items(),
)
def test_code_makes_those_cells_stale_that_run_it(module, is_stale, config, stale, code):
    append(code, module)
    after = params(config, code)
    expected = {name for name, (spec, _) in after.items() if is_stale(name, spec)}
    assert stale(after) == expected != set()


def test_a_context_more_makes_the_new_cells_and_no_other(config, stale):
    config = copy.deepcopy(config)
    config["timing"]["grid"]["cuda"][0]["context"].append(2048)
    new = {
        f"gpu/timing/{s}/ctx2048/{p}"
        for s in ("small", "medium", "large", "xl", "2.7B")
        for p in ("fp32", "bf16")
    }
    assert stale(params(config)) == new


def test_a_key_of_a_size_makes_its_own_cells_stale(config, stale):
    config = copy.deepcopy(config)
    config["sizes"]["xl"]["d_ff"] += 64
    after = params(config)
    assert stale(after) == {name for name in after if "/xl/" in name} != set()
