"""A digest of the code that a cell really runs, and what of it can change a measured number.

It covers the program and the modules of this library that it imports, transitively, as parsed code
without docstrings: a comment or a reformat changes nothing, and Python 3.11 to 3.13 give the same
digest. An implementation that is chosen by name is a module of its own and counts for the cells
that name it.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from stepscope.axes import IMPLEMENTATIONS, PLAIN_STEP, is_step, option
from stepscope.model.about import Attention
from stepscope.model.chosen import call_of, module_of, names, said

SCRIPTS = Path(__file__).resolve().parents[2]
PACKAGE = "stepscope"
KINDS_OF_MODEL = "stepscope.measure.models"  # a module for each kind of model
OF_STEP = "stepscope.measure.own_step"

# Modules, or packages with all their modules, that cannot change a measured number, and those that
# can. The longest name that matches decides; what nothing here matches counts, and so does every
# program.
WITHOUT_EFFECT = (
    "stepscope.archive",  # packs results that are there
    "stepscope.files",  # how files are written
    "stepscope.machine",  # what the machine is, and who waits for whom
    "stepscope.model.own.reference",  # how a model of one's own is named
    "stepscope.model.about",  # what an option's value says of itself
    "stepscope.model.chosen",  # finds the modules, which count by themselves
    "stepscope.formulas",  # what a step costs, which times are divided by afterwards
    "stepscope.measure.own_cell",  # what is shown and recorded of a model of one's own
    "stepscope.measure.printing",  # what the terminal shows
    "stepscope.measure.provenance",  # versions and names for the record
    "stepscope.measure.record",  # how results are written
    "stepscope.parallel.predicted",  # what is set beside it
    "stepscope.config",  # how a configuration becomes specs; the spec counts by itself
    "stepscope.recordings",  # reads what was recorded
    "stepscope.results",  # reads records
    "stepscope.snapshot",  # reads what was recorded
    "stepscope.trace",  # reads what was recorded
    "stepscope.yaml_files",  # how the configuration is read
)
WITH_EFFECT = (
    "stepscope.axes",  # what runs under a name: a precision's type, a mode's phases
    "stepscope.step",  # what a step of one's own marks
    "stepscope.machine.cores",  # which core the steps run on
    "stepscope.model",  # what a step computes
    "stepscope.kernels",  # our attention kernels and how they are launched
    "stepscope.measure",  # clock, steps, precision, and each study's own measuring module
    "stepscope.parallel",  # several devices in one step
    "stepscope.trace.apart",  # of ranks, as they are measured
    "stepscope.trace.collectives",  # who waits for whom, among them
    "stepscope.trace.nesting",  # what of a kernel lies beside them
)

Read = tuple[str, set[str]]  # a file's tree_digest(), and the names that it imports

# Fields of Python's syntax tree that do not change what a program does, or that not every version
# has.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params"})
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def counts(module: str) -> bool:
    """Whether a module, or a program by its file name, can change a measured number."""
    if module == PACKAGE:
        return False  # it hands on what training scripts import
    known = (*WITHOUT_EFFECT, *WITH_EFFECT)
    found = [name for name in known if f"{module}.".startswith(f"{name}.")]
    return max(found, key=len, default=module) not in WITHOUT_EFFECT


def modules_of(spec: dict) -> tuple[str, ...]:
    """The modules that a cell loads by name, sorted: what its digest covers beside what its program
    imports.

    A model of one's own at neutral attention runs what it was written with, none of ours.
    """
    if is_step(spec):
        return (OF_STEP,)
    found = {module_of(name, value) for name, value in _chosen(spec)}
    kinds = {"model": "own", "num_layers": "transformer"}
    found |= {f"{KINDS_OF_MODEL}.{kind}" for key, kind in kinds.items() if key in spec}
    return tuple(sorted(found))


def packages_of(spec: dict) -> set[str]:
    """Packages of Python whose kernels a cell, or a variant of it, runs where they are installed:
    their versions count for it."""
    names = [name for option, name in _chosen(spec) if option == "attention"]
    packages = {said("attention", name, Attention).package for name in names}
    return {package for package in packages if package}


def _chosen(spec: dict) -> Iterator[tuple[str, str]]:
    """(option, value) of what a cell, or a variant of it, loads by name."""
    if spec["study"] == "precision":  # it compares formats
        for name in names("precision"):
            yield "precision", name
        return
    variants = spec.get("variants", [spec])
    for variant in variants:
        yield "precision", (PLAIN_STEP | spec | variant)["precision"]
    if spec["study"] == "attention":
        for variant in variants:
            yield "attention", IMPLEMENTATIONS[variant["name"]].module
    elif "model" in spec or "num_layers" in spec:
        for variant in variants:
            for name in ("optimizer", "compile", "attention", "loss"):
                is_ours = "model" not in spec or name in ("optimizer", "compile")
                if is_ours or name in variant:
                    yield name, option(spec | variant, name)


class Sources:
    """The files of a folder as parsed code; each is read once.

    package: the only one whose imports are followed; without it all that is in the folder is.
    """

    def __init__(self, folder: Path = SCRIPTS, package: str | None = PACKAGE):
        self._folder = folder
        self._package = package
        self._read = functools.cache(self._parsed)
        self._file_of = functools.cache(self._found)
        self.digest = functools.cache(self._digest)

    def _digest(self, program: str, by_name: tuple[str, ...] = (), measured: bool = False) -> str:
        """Digest of `program` (a path relative to the folder) with all its imports; hexadecimal, 16
        characters.

        by_name: modules that the program loads by name, so that no import statement shows them.
        measured: of the modules alone that can change a number. Raises FileNotFoundError for a
        program that is not there.
        """
        total = hashlib.sha256()
        for name, path in sorted(self.modules(program, by_name).items()):
            if not measured or counts(name):
                total.update(f"{name}\0{self._read(path)[0]}\0".encode())
        return total.hexdigest()[:16]

    def modules(self, program: str, by_name: Iterable[str] = ()) -> dict[str, Path]:
        """Module → file, for what `program` may load; the program itself stands under its file
        name."""
        found = {program: self._folder / program}
        waiting = [*self._read(found[program])[1], *by_name]
        while waiting:
            name = waiting.pop()
            path = self._file_of(name)
            if path is not None and name not in found:
                found[name] = path
                waiting += self._read(path)[1]
        return found

    def others(self, program: str) -> set[str]:
        """The packages that `program` may load and that are not in the folder."""
        modules = self.modules(program)
        names = set().union(*(self._read(path)[1] for path in modules.values()))
        return {_top(name) for name in names} - {_top(name) for name in modules}

    def _found(self, name: str) -> Path | None:
        """File of a module or package of the folder; None for anything else."""
        if self._package not in (None, _top(name)):
            return None
        base = self._folder / Path(*name.split("."))
        files = (base.with_suffix(".py"), base / "__init__.py")
        return next((path for path in files if path.is_file()), None)

    def _parsed(self, path: Path) -> Read:
        source = path.read_bytes()
        try:
            tree = ast.parse(source, str(path))
        except (SyntaxError, ValueError):  # of an own model, as its cell will say
            return hashlib.sha256(source).hexdigest(), set()
        # What an option's value says of itself is for readers.
        tree.body = [node for node in tree.body if call_of(node, "ABOUT") is None]
        return tree_digest(tree), imported(tree, path.relative_to(self._folder).parts[:-1])


def _top(name: str) -> str:
    return name.partition(".")[0]


def imported(tree: ast.Module, package: Iterable[str] = ()) -> set[str]:
    """What import statements may import, parents included; `from a import b` gives both a and a.b.
    package: what dots are relative to, a name a level."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            with contextlib.suppress(ImportError):  # from above the folder
                dotted = "." * node.level + (node.module or "")
                module = importlib.util.resolve_name(dotted, ".".join(package))
                names += [module] + [f"{module}.{alias.name}" for alias in node.names]
    found: set[str] = set()
    for name in names:  # a.b.c is a, a.b and a.b.c
        found.update(itertools.accumulate(name.split("."), "{}.{}".format))
    return found


def tree_digest(tree: ast.Module) -> str:
    """SHA-256 of Python source as a canonical syntax tree: no docstrings, comments, positions or
    empty fields."""
    return hashlib.sha256(_canonical(tree).encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(node: object) -> str:
    """The text of a syntax tree, the same for Python 3.11 to 3.13."""
    if isinstance(node, list):
        return "[" + "".join(f"{_canonical(item)}," for item in node) + "]"
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__}:{node!r}"
    parts = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(node, ast.JoinedStr):
            value = [part for part in node.values if not _is_empty_text(part)]
        if value is None or value == [] or field in _IGNORED_FIELDS:
            continue
        if field == "body" and _has_docstring(node):
            value = value[1:]
        parts.append(f"{field}={_canonical(value)},")
    return f"{type(node).__name__}({''.join(parts)})"


def _is_empty_text(node: ast.AST) -> bool:
    """As Python 3.12 puts one after a nested format specifier."""
    return isinstance(node, ast.Constant) and node.value == ""


def _has_docstring(node: ast.AST) -> bool:
    return isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None
