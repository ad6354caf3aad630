"""A digest of the code that a cell really runs.

It covers the program and every module of this library that it imports, transitively, as parsed code without
docstrings: a comment or a reformat changes nothing, and Python 3.11 to 3.13 give the same digest.
"""

import ast
import atexit
import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from stepscope.model.chosen import CHOSEN_BY_NAME

SCRIPTS = Path(__file__).resolve().parents[2]
PACKAGE = "stepscope"

# Modules that cannot change a measured number. They, and what only they import, do not count.
BOOKKEEPING = frozenset(
    {
        "stepscope.measure.arguments",  # flags and their help
        "stepscope.measure.printing",  # what the terminal shows
        "stepscope.measure.provenance",  # versions and names for the record
        "stepscope.measure.record",  # how results are written
        "stepscope.measure.training",  # flags and what is shown, of programs that run the model
        "stepscope.plan.code_digest",  # this module
        "stepscope.plan.config",  # how the configuration is read; what comes of it is the spec
        "stepscope.plan.grid",  # how a grid becomes specs, and a spec a command
        "stepscope.machine.gpus",  # how the machine is named; what comes of it is compared by itself
        "stepscope.machine.identity",
    }
)

# Fields of Python's syntax tree that do not change what a program does, or that not every version has.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params"})
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_digest(program: str, by_name: Iterable[str] = ()) -> str:
    """Digest of `program` (a path relative to scripts/) with its imports; hexadecimal, 16 characters.

    `by_name` are modules that the program loads by name, so that no import statement shows them. Raises
    FileNotFoundError for a program or module that is not there.
    """
    total = hashlib.sha256()
    for name, path in sorted(_reachable(SCRIPTS / program, tuple(by_name)).items()):
        total.update(f"{name}\0{_read(path)[0]}\0".encode())
    return total.hexdigest()[:16]


def chosen_modules(chosen: dict[str, str]) -> list[str]:
    """Modules of implementations that are chosen by name, as {"attention": "naive"}."""
    return [f"{CHOSEN_BY_NAME[option]}.{name}" for option, name in sorted(chosen.items())]


def modules(program: str, by_name: Iterable[str] = ()) -> set[str]:
    """Names of the modules that count for `program`; the program itself stands under its file name."""
    return set(_reachable(SCRIPTS / program, tuple(by_name)))


def _reachable(program: Path, extra: tuple[str, ...]) -> dict[str, Path]:
    """Module name → file, for the program, what it imports, and `extra`, without the bookkeeping."""
    found = {program.name: program}
    waiting = [*_imported(program), *extra]
    for name in extra:
        if _file_of(name) is None:
            raise FileNotFoundError(f"there is no module {name} in {SCRIPTS}")
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if path is None or name in found or name in BOOKKEEPING:
            continue
        found[name] = path
        waiting += _imported(path)
    return found


@functools.cache
def _file_of(name: str) -> Path | None:
    """File of a module or package of this library; None for anything else."""
    if name != PACKAGE and not name.startswith(PACKAGE + "."):
        return None
    base = SCRIPTS / Path(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@functools.cache
def _imported(path: Path) -> tuple[str, ...]:
    """Names that the file may import, parents included; `from a import b` gives both a and a.b."""
    return _read(path)[1]


def _names(nodes: list[ast.Import | ast.ImportFrom]) -> tuple[str, ...]:
    """What import statements may import, parents included; `from a import b` gives both a and a.b."""
    names = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif node.module and node.level == 0:
            names += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    parents = {".".join(parts[:i]) for parts in (n.split(".") for n in names) for i in range(1, len(parts))}
    return tuple(sorted({*names, *parents}))


# What files were found to be, by their path in scripts/: [time, size, digest, imported names]. None: not kept.
_kept: dict[str, list] | None = None


def keep_in(file: Path) -> None:
    """Keep what parsed files were found to be in a file, so that the next planning parses only those that changed.

    As Python does with its own caches, a file counts as unchanged while its time and size are. A cache that cannot be
    read or written is none.
    """
    global _kept
    state = Path(__file__).stat()
    version = [state.st_mtime_ns, state.st_size]  # another way of reading makes all of it worthless
    _kept = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(file.read_text())
        _kept = dict(content["files"]) if content["version"] == version else {}
    before = dict(_kept)

    def save() -> None:
        if _kept != before:
            with contextlib.suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_suffix(".part")
                beside.write_text(json.dumps({"version": version, "files": _kept}))
                beside.replace(file)

    atexit.register(save)


@functools.cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """The file's source_digest(), and the names that it imports at any depth."""
    state = path.stat()
    name, stamp = str(path.relative_to(SCRIPTS)), [state.st_mtime_ns, state.st_size]
    if _kept is not None and (found := _kept.get(name)) and found[:2] == stamp:
        return found[2], tuple(found[3])
    parts: list[str] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    _canonical(ast.parse(path.read_bytes(), filename=str(path)), parts, imports)
    result = _hashed(parts), _names(imports)
    if _kept is not None:
        _kept[name] = [*stamp, result[0], list(result[1])]
    return result


def source_digest(source: str) -> str:
    """SHA-256 of Python source as a canonical syntax tree: no docstrings, comments, positions or empty fields."""
    parts: list[str] = []
    _canonical(ast.parse(source), parts, [])
    return _hashed(parts)


def _hashed(parts: list[str]) -> str:
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(node: object, parts: list[str], imports: list) -> None:
    """Append the canonical text of a syntax tree to `parts`, and its import statements to `imports`."""
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        parts.append(type(node).__name__ + "(")
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(node, ast.JoinedStr):  # Python 3.12 puts an empty string after a nested format specifier
                value = [part for part in value if not (isinstance(part, ast.Constant) and part.value == "")]
            if value is None or value == [] or field in _IGNORED_FIELDS:
                continue
            if field == "body" and isinstance(node, _WITH_DOCSTRING) and _starts_with_docstring(value):
                value = value[1:]
            parts.append(field + "=")
            _canonical(value, parts, imports)
            parts.append(",")
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            _canonical(item, parts, imports)
            parts.append(",")
        parts.append("]")
    else:
        parts.append(f"{type(node).__name__}:{node!r}")


def _starts_with_docstring(body: list[ast.stmt]) -> bool:
    first = body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
