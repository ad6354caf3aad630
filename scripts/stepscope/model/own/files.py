"""The files that a model of one's own is made of, by their import statements. Standard library
only."""

import ast
import os
from pathlib import Path

from stepscope.model.own.reference import ModelError, Reference, parse


def files_of(reference: str) -> list[Path]:
    """The files that a change of makes the model another one, sorted: the model's own and what it
    imports, at any depth, from the folder that it is in; the config.json of an architecture that
    has one here.

    Raises ModelError for a file that is not there or is no Python.
    """
    parsed = parse(reference)
    if parsed.file is None:
        config = _config_of(parsed)
        return [config] if config else []
    if not parsed.file.is_file():
        raise ModelError(
            f"{reference}: there is no file {parsed.file}; paths are from the working directory"
        )
    folder = parsed.file.parent
    found: set[Path] = set()
    waiting: list[Path] = [parsed.file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            try:
                waiting += _imported(path, folder)
            except SyntaxError as error:
                told = f"line {error.lineno}: {type(error).__name__}: {error.msg}"
                raise ModelError(f"{reference}: {path} does not import: {told}") from None
    return sorted(found)


def _config_of(parsed: Reference) -> Path | None:
    """The config.json of an architecture: in its folder, or in Hugging Face's cache. Raises
    ModelError for a repository, `owner/name`, that is in neither."""
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
    if isinstance(found, str):
        return Path(found)
    if "/" in parsed.name:
        raise ModelError(
            f"{parsed.text} is not in Hugging Face's cache, and nothing is downloaded; give a"
            " folder with a config.json, or an architecture with its keys, as hf: qwen3"
        )
    return None


def _imported(path: Path, folder: Path) -> list[Path]:
    """Files below `folder` that the import statements of `path` may load. Raises SyntaxError."""
    found: list[Path] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        base = "."
        prefix = ""
        if isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            if node.level:  # `.` is the file's folder, each dot more one further up
                base = os.path.relpath(path / (node.level * "../"), folder)
        if not base.startswith(os.pardir):
            for alias in node.names:
                found += _files(folder / base, prefix + alias.name)
    return found


def _files(place: Path, name: str) -> list[Path]:
    """The modules and packages that importing the dotted `name` from a folder runs, as far as they
    are there."""
    found: list[Path] = []
    for part in name.split("."):
        place = place / part
        found += [place.with_suffix(".py"), place / "__init__.py"]
    return [file for file in found if file.is_file()]
