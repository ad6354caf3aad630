"""How a user's model is named, and which files it comes from. Standard library only."""

import ast
import os
from dataclasses import dataclass
from pathlib import Path

HUGGING_FACE = "hf:"


class ModelError(Exception):
    """A model that cannot be built or run: one line that names it and says what to do."""


class Unsupported(Exception):
    """An option that cannot be had with this model: the reason, in one line."""


@dataclass(frozen=True)
class Reference:
    """What a model is built by: `function` of `file`, or the architecture `name` of Hugging Face transformers.

    text: as the configuration writes it. Of file and name one is None.
    """

    text: str
    file: Path | None = None
    function: str = ""
    name: str | None = None

    @property
    def folder(self) -> Path | None:
        """The folder with a config.json that an architecture is read from; None if it is no folder."""
        folder = Path(self.name) if self.name else None
        return folder if folder and (folder / "config.json").is_file() else None


def parse(reference: str) -> Reference:
    """The reference `FILE:FUNCTION` (models/mine.py:build) or `hf:NAME` (hf:llama, hf:Qwen/Qwen3-0.6B).

    Raises ModelError for anything else; whether it is there is not looked at.
    """
    if reference.startswith(HUGGING_FACE):
        name = reference.removeprefix(HUGGING_FACE)
        if not name or name != name.strip():
            raise ModelError(f"model {reference!r}: name an architecture, as hf:llama, or a folder with a config.json")
        return Reference(reference, name=name)
    file, colon, function = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise ModelError(f"model {reference!r}: write FILE.py:FUNCTION, as models/mine.py:build, or hf:NAME")
    return Reference(reference, file=Path(file), function=function)


def files_of(reference: str) -> list[Path]:
    """The files that a change of makes the model another one, sorted: the model's own and what it imports, at any
    depth, from the folder that it is in; the config.json of an architecture that has one here.

    Raises ModelError for a file that is not there or is no Python.
    """
    parsed = parse(reference)
    if parsed.file is None:
        found = _config_of(parsed)
        return [found] if found else []
    if not parsed.file.is_file():
        raise ModelError(f"{reference}: there is no file {parsed.file}; paths are from the working directory")
    folder = parsed.file.parent
    found, waiting = set(), [parsed.file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path, folder, reference)
    return sorted(found)


def _config_of(parsed: Reference) -> Path | None:
    """The config.json of an architecture: in its folder, or in Hugging Face's cache."""
    if parsed.folder:
        return parsed.folder / "config.json"
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(parsed.name, "config.json")
    except HFValidationError:
        return None
    return Path(found) if isinstance(found, str) else None


def _imported(path: Path, folder: Path, reference: str) -> list[Path]:
    """Files below `folder` that the import statements of `path` may load."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise ModelError(
            f"{reference}: {path} does not import: line {error.lineno}: {type(error).__name__}: {error.msg}"
        ) from None
    files = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            files += [file for alias in node.names for file in _files(folder, alias.name)]
        elif isinstance(node, ast.ImportFrom):
            up = node.level - 1
            base = folder if node.level == 0 else path.parent.joinpath(*[os.pardir] * up).resolve(strict=False)
            if node.level and not base.is_relative_to(folder.resolve()):
                continue
            base = folder / base.relative_to(folder.resolve()) if node.level else base
            prefix = f"{node.module}." if node.module else ""
            files += [file for alias in node.names for file in _files(base, prefix + alias.name)]
    return files


def _files(base: Path, name: str) -> list[Path]:
    """The modules and packages that importing the dotted `name` from `base` runs, as far as they are there."""
    parts = name.split(".")
    places = [base.joinpath(*parts[: count + 1]) for count in range(len(parts))]
    candidates = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return [file for file in candidates if file.is_file()]
