"""Who may import whom: packages in one direction, and no kind of figure from another."""

import ast
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "scripts/stepscope"

# Each package or module at the top may import only those that stand before it.
LAYERS = (
    *("files", "archive", "axes", "machine", "kernels", "model", "config", "recordings", "trace", "snapshot"),
    *("measure", "results", "figures", "report/kit", "report/facts", "report"),
)
# Modules of the figures that all others may use: the last two draw, and lend a colour or a quotient besides.
SHARED_FIGURES = {"__init__", "colours", "theme", "marks", "svg", "words", "places", "steps", "where"}


def imported(path: Path) -> set[str]:
    """What a file may import of the library at any depth, as paths below it: `report/kit/table`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("stepscope.").replace(".", "/") for name in names if name.startswith("stepscope.")}


MODULES = {path.relative_to(LIBRARY).with_suffix("").as_posix(): imported(path) for path in LIBRARY.rglob("*.py")}


def layer(name: str) -> int:
    """The place among the layers of a module, or of what is imported from one; the longest name that matches."""
    found = [each for each in LAYERS if name == each or name.startswith(f"{each}/")]
    assert found, f"{name} is in no layer"
    return LAYERS.index(max(found, key=len))


def test_packages_import_in_one_direction():
    wrong = [
        f"{module} imports {name}"
        for module, names in MODULES.items()
        for name in names
        if module != "__init__" and layer(name) > layer(module)
    ]
    assert wrong == []


def test_every_layer_is_there():
    assert [name for name in LAYERS if not any(name == each or each.startswith(f"{name}/") for each in MODULES)] == []


def test_no_kind_of_figure_imports_from_another():
    shared = {f"figures/{name}" for name in SHARED_FIGURES}
    figures = {module for module in MODULES if module.startswith("figures/")}
    assert {"figures/ladder", "figures/memory", *shared} <= figures
    wrong = [
        f"{module} imports {name}"
        for module in figures - shared
        for name in MODULES[module]
        if any(name == each or name.startswith(f"{each}/") for each in figures - shared)
    ]
    assert wrong == []


def test_reporting_and_planning_do_without_torch():
    heavy = {"torch", "triton", "einops"}
    for folder in ("config", "machine", "recordings", "results", "report", "figures", "trace", "snapshot"):
        for path in (LIBRARY / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
                assert not heavy & {name.partition(".")[0] for name in names}, path
