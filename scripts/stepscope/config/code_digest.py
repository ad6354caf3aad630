"""A digest of the code that a job really runs, and what of it can change a measured number.

It covers the program and the modules of this library that it imports, transitively, as parsed code without docstrings:
a comment or a reformat changes nothing, and Python 3.11 to 3.13 give the same digest. C++ that a module builds, the
file of its name beside it, counts as it is written.
"""

import ast
import contextlib
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stepscope.axes import CHOSEN_BY_NAME
from stepscope.files import write_whole

SCRIPTS = Path(__file__).resolve().parents[2]
PACKAGE = "stepscope"
# What a cell names -> package with a module for each name: an option's implementations, and the kind of model.
LOADED_BY_NAME = CHOSEN_BY_NAME | {"model": "stepscope.measure.models"}


@dataclass(frozen=True)
class Declared:
    """Whether a module, or every module of a package, can change a measured number, and why."""

    name: str
    counts: bool
    why: str


# Decides what makes a measured cell stale, beside its program, which always counts. The longest name that matches a
# module decides. A module that nothing here matches counts.
DECLARED = (
    Declared("stepscope", False, "the package's docstring"),
    Declared("stepscope.archive", False, "reads results that were packed"),
    Declared("stepscope.archive_making", False, "packs results that are there"),
    Declared("stepscope.axes", True, "what runs under a name: a precision's type, a mode's phases, a backend"),
    Declared("stepscope.confidence", False, "what is said of numbers that are measured"),
    Declared("stepscope.files", False, "how files are written"),
    Declared("stepscope.machine", False, "what the machine is, and who waits for whom: nothing measured"),
    Declared("stepscope.machine.cores", True, "which core the steps run on"),
    Declared("stepscope.model", True, "the model, its attention, loss and optimizers: what a step computes"),
    Declared("stepscope.model.flops", False, "operations by formula; a measured time is divided by them afterwards"),
    Declared("stepscope.model.traffic", False, "bytes moved by formula, for the roofline"),
    Declared("stepscope.model.footprint", False, "memory by formula, shown beside the measured peak"),
    Declared("stepscope.model.footprint_formulas", False, "the text of these formulas"),
    Declared("stepscope.model.footprint_peak", False, "the predicted peak"),
    Declared("stepscope.kernels", True, "our attention kernels and how they are launched"),
    Declared("stepscope.measure", True, "clock, steps, precision, and each study's own measuring module"),
    Declared("stepscope.measure.arguments", False, "flags and their help; what comes of them is the spec"),
    Declared("stepscope.measure.model_in_words", False, "what the terminal shows of a model of one's own"),
    Declared("stepscope.measure.own_attention", False, "which attention transformers chose, for the record"),
    Declared("stepscope.measure.own_cell", False, "what is shown and recorded of a model of one's own"),
    Declared("stepscope.measure.printing", False, "what the terminal shows"),
    Declared("stepscope.measure.provenance", False, "versions and names for the record"),
    Declared("stepscope.measure.training", False, "flags and what is shown, of programs that run the model"),
    Declared("stepscope.measure.record", False, "how results are written"),
    Declared("stepscope.config", False, "how a configuration becomes specs and commands; the spec counts by itself"),
    Declared("stepscope.config.profilers", True, "what Nsight Systems is told unless the spec says otherwise"),
    Declared("stepscope.recordings", False, "reads what was recorded"),
    Declared("stepscope.snapshot", False, "reads what was recorded"),
    Declared("stepscope.trace", False, "reads what was recorded"),
    Declared("stepscope.turns", False, "runs measuring programs of two checkouts; no cell runs it"),
)

# Fields of Python's syntax tree that do not change what a program does, or that not every version has.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params"})
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def declaration(module: str) -> Declared | None:
    """What DECLARED says of a module; None if it says nothing."""
    found = [each for each in DECLARED if module == each.name or module.startswith(f"{each.name}.")]
    if [each.name for each in found] == [PACKAGE] != [module]:
        return None  # the package's own entry speaks of its __init__ alone
    return max(found, key=lambda each: len(each.name), default=None)


def counts(module: str) -> bool:
    """Whether a module, or a program by its file name, can change a measured number."""
    declared = declaration(module)
    return declared is None or declared.counts


def chosen_modules(chosen: dict[str, str]) -> list[str]:
    """Modules that are chosen by name, as {"attention": "naive"}."""
    return [f"{LOADED_BY_NAME[option]}.{name}" for option, name in sorted(chosen.items())]


class Sources:
    """The files of a scripts/ folder as parsed code; each is read once.

    kept_in: a file in which save() keeps what was found, so that the next planning parses only what has changed. As
    with Python's own caches, a file counts as unchanged while its time and size are. A cache that cannot be read or
    written is ignored.
    """

    def __init__(self, scripts: Path = SCRIPTS, kept_in: Path | None = None):
        self._scripts, self._kept_in = scripts, kept_in
        self._parsed: dict[Path, tuple[str, tuple[str, ...]]] = {}
        self._paths: dict[str, Path | None] = {}
        self._digests: dict[tuple, str] = {}
        self._kept = self._read_kept()
        self._is_changed = False

    def digest(self, program: str, by_name: Iterable[str] = ()) -> str:
        """Digest of `program` (a path relative to scripts/) with all its imports; hexadecimal, 16 characters.

        `by_name` are modules that the program loads by name, so that no import statement shows them. Raises
        FileNotFoundError for a program or module that is not there.
        """
        return self._digest(program, tuple(by_name), measured=False)

    def measured_digest(self, program: str, by_name: Iterable[str] = ()) -> str:
        """The same of a measuring program, of the modules alone that can change a number: see DECLARED."""
        return self._digest(program, tuple(by_name), measured=True)

    def modules(self, program: str, by_name: Iterable[str] = ()) -> set[str]:
        """Names of the modules that `program` may load; the program itself stands under its file name."""
        return set(self._reachable(program, tuple(by_name)))

    def save(self) -> None:
        """Keep what was parsed for the next planning."""
        if not (self._kept_in and self._is_changed):
            return
        with contextlib.suppress(OSError):
            write_whole({self._kept_in: [json.dumps({"version": _stamp(Path(__file__)), "files": self._kept})]})

    def _digest(self, program: str, by_name: tuple[str, ...], measured: bool) -> str:
        key = (program, by_name, measured)
        if key not in self._digests:
            total = hashlib.sha256()
            for name, path in sorted(self._reachable(program, by_name).items()):
                if not measured or counts(name):
                    total.update(f"{name}\0{self._read(path)[0]}\0".encode())
                    built = path.with_suffix(".cpp")  # what a module builds lies beside it
                    total.update(built.read_bytes() if built.is_file() else b"")
            self._digests[key] = total.hexdigest()[:16]
        return self._digests[key]

    def _reachable(self, program: str, by_name: tuple[str, ...]) -> dict[str, Path]:
        """Module name → file, for the program, what it imports, and `by_name`."""
        first = self._scripts / program
        found = {first.name: first}
        for name in by_name:
            if self._file_of(name) is None:
                raise FileNotFoundError(f"there is no module {name} in {self._scripts}")
        waiting = [*self._read(first)[1], *by_name]
        while waiting:
            name = waiting.pop()
            path = self._file_of(name)
            if path is None or name in found:
                continue
            found[name] = path
            waiting += self._read(path)[1]
        return found

    def _file_of(self, name: str) -> Path | None:
        """File of a module or package of this library; None for anything else."""
        if name not in self._paths:
            base = self._scripts / Path(*name.split("."))
            own = name == PACKAGE or name.startswith(f"{PACKAGE}.")
            files = (base.with_suffix(".py"), base / "__init__.py") if own else ()
            self._paths[name] = next((path for path in files if path.is_file()), None)
        return self._paths[name]

    def _read(self, path: Path) -> tuple[str, tuple[str, ...]]:
        """The file's source_digest(), and the names that it imports at any depth."""
        if path not in self._parsed:
            name, stamp = str(path.relative_to(self._scripts)), _stamp(path)
            kept = self._kept.get(name)
            if kept and kept[:2] == stamp:
                self._parsed[path] = kept[2], tuple(kept[3])
            else:
                parts: list[str] = []
                imports: list[ast.Import | ast.ImportFrom] = []
                _canonical(ast.parse(path.read_bytes(), filename=str(path)), parts, imports)
                self._parsed[path] = _hashed(parts), _names(imports)
                self._kept[name] = [*stamp, _hashed(parts), list(self._parsed[path][1])]
                self._is_changed = True
        return self._parsed[path]

    def _read_kept(self) -> dict[str, list]:
        """File → [time, size, digest, imported names], as save() kept them."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads(self._kept_in.read_text()) if self._kept_in else {}
            if content["version"] == _stamp(Path(__file__)):  # another way of reading makes all of it worthless
                return dict(content["files"])
        return {}


def _stamp(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_mtime_ns, state.st_size]


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
