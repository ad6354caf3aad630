"""How a user's model or step is named. Standard library only."""

from dataclasses import dataclass
from pathlib import Path

from stepscope.model.chosen import Unsupported as Unsupported

HUGGING_FACE = "hf:"
RANGES = "ranges"  # the key that names a model's parts; not passed on to build()


class ModelError(Exception):
    """A model that cannot be built or run: one line that names it and says what to do."""


@dataclass(frozen=True)
class Reference:
    """What a model is built by: `function` of `file`, or the architecture `name` of Hugging Face
    transformers; or a step, by a function.

    text: as the configuration writes it. Without a name there is a file. kind: model or step.
    """

    text: str
    file: Path | None = None
    function: str = ""
    name: str = ""
    kind: str = "model"

    def existing_file(self) -> Path:
        """The file of a function. Raises ModelError where there is none."""
        assert self.file is not None, "a reference without a name has a file"
        if not self.file.is_file():  # a loop of links is none
            raise ModelError(
                f"{self.text}: there is no file {self.file}; paths are from the working directory,"
                f" {Path.cwd()}"
            )
        return self.file

    @property
    def folder(self) -> Path | None:
        """The folder with a config.json that an architecture is read from; None if it is no
        folder."""
        folder = Path(self.name)
        return folder if self.name and (folder / "config.json").is_file() else None


def parse(reference: str, kind: str = "model") -> Reference:
    """The reference `FILE:FUNCTION` (models/mine.py:build), or of a model `hf:NAME` (hf:llama,
    hf:Qwen/Qwen3-0.6B).

    Raises ModelError for anything else; whether it is there is not looked at.
    """
    if kind == "model" and reference.startswith(HUGGING_FACE):
        name = reference.removeprefix(HUGGING_FACE)
        if not name or name != name.strip():
            raise ModelError(
                f"model {reference!r}: name an architecture, as hf:llama, or a folder with a"
                " config.json"
            )
        return Reference(reference, name=name)
    file, colon, function = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        others = {
            "model": ", or hf:NAME",
            "step": ", whose function returns a stepscope.Step (docs/own-step.md)",
        }
        raise ModelError(
            f"{kind} {reference!r}: write FILE.py:FUNCTION, as models/mine.py:build{others[kind]}"
        )
    return Reference(reference, file=Path(file), function=function, kind=kind)
