"""Packages of the library import in one direction: each only those that stand before it."""

import ast
from pathlib import Path

import stepscope

LAYERS = ("axes", "machine", "attention", "model", "plan", "trace", "snapshot", "measure", "tables")


def imported_packages(path):
    """Packages of the library, or modules at its top, that a file imports at any depth."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("stepscope."))


def test_a_package_imports_only_those_before_it():
    (top,) = stepscope.__path__
    for place, layer in enumerate(LAYERS):
        files = [Path(top, f"{layer}.py")] if layer == "axes" else list(Path(top, layer).rglob("*.py"))
        assert files
        for path in files:
            later = set(imported_packages(path)) - set(LAYERS[: place + 1])
            assert not later, f"{path.relative_to(top)} imports {', '.join(sorted(later))}"
