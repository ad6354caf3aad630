"""How a user's model or step is named. Standard library only."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from stepscope.model.chosen import Unsupported as Unsupported

HUGGING_FACE = "hf:"
BUILDS_THEM = Path(__file__).parents[4] / "models/hf.py"  # by its function build
RANGES = "ranges"  # the key that names a model's parts; not passed on to build()


class ModelError(Exception):
    """A model that cannot be built or run: one line that names it and says what to do."""


@dataclass(frozen=True)
class Reference:
    """What a model or a step is built by: `function` of `file`.

    text: as the configuration writes it. kind: model or step. name: of an architecture of Hugging
    Face transformers, which the function is given then.
    """

    text: str
    file: Path
    function: str
    kind: str = "model"
    name: str = ""

    def existing_file(self) -> Path:
        """The file of the function. Raises ModelError where there is none."""
        if not self.file.is_file():  # a loop of links is none
            raise ModelError(
                f"{self.text}: there is no file {self.file}; paths are from the working directory,"
                f" {Path.cwd()}"
            )
        return self.file

    def files(self) -> list[Path]:
        """What it is made of: the file, and the config.json of an architecture that has one here,
        in its folder or in Hugging Face's cache. Raises ModelError for a file that is not there, or
        a repository, `owner/name`."""
        found = [self.existing_file()]
        own = Path(self.name) / "config.json"
        if self.name and own.is_file():
            found.append(own)
        elif self.name:
            with contextlib.suppress(ImportError):
                found += self._in_cache()
        return found

    def _in_cache(self) -> list[Path]:
        from huggingface_hub import try_to_load_from_cache

        with contextlib.suppress(ValueError):  # for what is no name of a repository
            found = try_to_load_from_cache(self.name, "config.json")
            if isinstance(found, str):
                return [Path(found)]
        if "/" in self.name:
            raise ModelError(
                f"{self.text} is not in Hugging Face's cache, and nothing is downloaded; give a"
                " folder with a config.json, or an architecture with its keys, as hf: qwen3"
            )
        return []


def parse(reference: str, kind: str = "model") -> Reference:
    """The reference `FILE:FUNCTION` (models/mine.py:build), or of a model `hf:NAME` (hf:llama,
    hf:Qwen/Qwen3-0.6B).

    Raises ModelError for anything else; whether it is there is not looked at.
    """
    name = reference.removeprefix(HUGGING_FACE).strip()
    if kind == "model" and name and reference == HUGGING_FACE + name:
        return Reference(reference, BUILDS_THEM, "build", name=name)
    file, colon, function = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise ModelError(
            f"{kind} {reference!r}: write FILE.py:FUNCTION, as models/mine.py:build"
            f" (docs/own-{kind}.md)"
        )
    return Reference(reference, Path(file), function, kind)
