"""Who may import whom: packages in one direction, no circle of modules, no kind of figure from
another; and the picture of it."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

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


def below(names):
    """Those of the library, as paths below it: `report/kit/page`."""
    return {
        name.removeprefix("stepscope.").replace(".", "/")
        for name in names
        if name.startswith("stepscope.")
    }


def imports_of(module):
    """The dotted names that a module's import statements load at any depth."""
    return imported(TREES[module], ("stepscope", *module.split("/")[:-1]))


TREES = {
    path.relative_to(LIBRARY).with_suffix("").as_posix(): ast.parse(path.read_bytes())
    for path in LIBRARY.rglob("*.py")
}
IMPORTS = {module: below(imports_of(module)) for module in TREES if module != "__init__"}


def circle(modules):
    """Modules that import each other in a circle; empty if none do."""
    known = set(modules)
    graph = {}
    for module, names in modules.items():
        named = names | {name.rpartition("/")[0] for name in names}
        graph[module] = named & known - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_packages_import_and_name_in_one_direction_without_a_circle():
    found = draw_layers.imports_of_layers()
    assert set(found) == set(LAYERS)
    for at, one in enumerate(LAYERS):
        assert found[one] <= set(LAYERS[:at]), one
    assert circle(IMPORTS) == []


def test_no_kind_of_figure_imports_from_another():
    shared = {f"figures/{name}" for name in SHARED_FIGURES}
    figures = {module for module in TREES if module.startswith("figures/")}
    assert {"figures/ladder", "figures/memory", *shared} <= figures
    kinds = figures - shared
    for module in kinds:
        others = {name for name in IMPORTS[module] if {name, name.rpartition("/")[0]} & kinds}
        assert others == set(), module


def test_reporting_and_planning_do_without_torch():
    for module in TREES:
        if module.partition("/")[0] in LIGHT:
            assert not HEAVY & imports_of(module), module


def test_the_picture_of_the_layers_is_of_todays_imports():
    drawn = subprocess.run(
        [sys.executable, "scripts/draw_layers.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert drawn.stdout == (ROOT / "docs/layers.md").read_text()
