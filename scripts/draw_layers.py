"""Draw the library's layers from its imports, as Mermaid in Markdown (which GitHub shows as a
picture).

    python scripts/draw_layers.py > docs/layers.md

An arrow leads from a package to one that it imports. One that follows from others is left out:
where A imports B and B imports C, there is none from A to C.
"""

import ast
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent / "stepscope"
# The report's parts are layers of their own; else a layer is a folder or a module at the top.
SPLIT = "report"
# The table of what can change a number names modules without loading them.
NAMES_ALL = ("config", "code_digest")
HEAD = """\
# The library's layers

Drawn by `python scripts/draw_layers.py > docs/layers.md`. An arrow leads from a package to one that
it imports, or loads by name; arrows that follow from others are left out.
"""


def layer_of(module: tuple[str, ...]) -> str:
    """The layer of a module below `stepscope`: ("report", "kit", "page") is in `report/kit`."""
    is_split = module[0] == SPLIT and len(module) > 2
    return "/".join(module[: 2 if is_split else 1])


def imports_of_layers(library: Path = LIBRARY) -> dict[str, set[str]]:
    """Layer → the other layers that its modules import, at any depth of their code."""
    modules = {
        path.relative_to(library).with_suffix("").parts: ast.parse(path.read_bytes())
        for path in sorted(library.rglob("*.py"))
        if path != library / "__init__.py"
    }
    found: dict[str, set[str]] = {layer_of(module): set() for module in modules}
    for module, tree in modules.items():
        for node in ast.walk(tree):
            names = _imported(node) if module == NAMES_ALL else _imported(node) + _named(node)
            for name in names:
                layer = layer_of(tuple(name.split(".")[1:]))
                if layer in found and layer != layer_of(module):
                    found[layer_of(module)].add(layer)
    return found


def _imported(node: ast.AST) -> list[str]:
    """The dotted names of this library that an import statement loads."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name.startswith("stepscope.")]


def _named(node: ast.AST) -> list[str]:
    """A text that is the name of a module of this library, or its beginning."""
    text = node.value if isinstance(node, ast.Constant) else None
    if isinstance(text, str) and text.startswith("stepscope.") and " " not in text:
        return [text]
    return []


def reduced(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports without those that follow from others (transitive reduction; no circles)."""

    def reached(layer: str) -> set[str]:
        return imports[layer].union(*(reached(below) for below in imports[layer]))

    return {
        layer: below - set().union(*(reached(other) for other in below))
        for layer, below in imports.items()
    }


def main() -> None:
    """Print the page."""
    imports = reduced(imports_of_layers())
    print(HEAD)
    print("```mermaid\nflowchart TD")
    for layer in sorted(imports):
        print(f'  {layer.replace("/", "_")}["{layer}"]')
    for layer in sorted(imports):
        for below in sorted(imports[layer]):
            print(f"  {layer.replace('/', '_')} --> {below.replace('/', '_')}")
    print("```")


if __name__ == "__main__":
    main()
