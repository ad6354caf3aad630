"""Who may import whom: packages in one direction, no circle of modules, no kind of figure from
another; and the picture of it."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

import draw_layers
from common import ROOT
from stepscope.config.code_digest import imported

LIBRARY = ROOT / "scripts/stepscope"

# Each package or module at the top may import, and name, only those that stand before it.
LAYERS = (
    "files",
    "yaml_files",
    "archive",
    "axes",
    "step",
    "machine",
    "kernels",
    "model",
    "formulas",
    "config",
    "recordings",
    "snapshot",
    "trace",
    "measure",
    "parallel",
    "results",
    "figures",
    "report/kit",
    "report/facts",
    "report",
)

# Modules of the figures that all others may use: the last two draw, and lend a colour or a quotient
# besides.
SHARED_FIGURES = {
    "__init__",
    "colours",
    "theme",
    "marks",
    "svg",
    "words",
    "places",
    "curves",
    "steps",
    "where",
}
HEAVY = {"torch", "triton", "einops"}
LIGHT = {
    "formulas",
    "config",
    "machine",
    "recordings",
    "results",
    "report",
    "figures",
    "trace",
    "snapshot",
}


TREES = {
    path.relative_to(LIBRARY).with_suffix("").as_posix(): ast.parse(path.read_bytes())
    for path in LIBRARY.rglob("*.py")
}
# Module → what it imports, parents included: `report/kit/page`, torch.
IMPORTS = {}
for module, tree in TREES.items():
    names = imported(tree, ("stepscope", *module.split("/")[:-1]))
    IMPORTS[module] = {name.removeprefix("stepscope.").replace(".", "/") for name in names}


def test_packages_import_and_name_in_one_direction_without_a_circle():
    found = draw_layers.imports_of_layers()
    assert set(found) == set(LAYERS)
    for at, one in enumerate(LAYERS):
        assert found[one] <= set(LAYERS[:at]), one
    modules = {module: names & IMPORTS.keys() - {module} for module, names in IMPORTS.items()}
    TopologicalSorter(modules).prepare()  # raises CycleError


def test_no_kind_of_figure_imports_from_another():
    shared = {f"figures/{name}" for name in SHARED_FIGURES}
    figures = {module for module in TREES if module.startswith("figures/")}
    assert {"figures/ladder", "figures/memory", *shared} <= figures
    kinds = figures - shared
    for module in kinds:
        assert IMPORTS[module] & kinds == set(), module


def test_reporting_and_planning_do_without_torch():
    for module, names in IMPORTS.items():
        assert module.partition("/")[0] not in LIGHT or not HEAVY & names, module


def test_the_picture_of_the_layers_is_of_todays_imports():
    drawn = subprocess.run(
        [sys.executable, "scripts/draw_layers.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert drawn.stdout == (ROOT / "docs/layers.md").read_text()
