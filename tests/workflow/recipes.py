"""The recipes of docs/extending.md, read from its code blocks and performed in a copy of the
project.

A block belongs to the file that the line above it names last. ```diff edits that file: lines with
a minus or a space have to stand there once, together; a block of added lines alone goes to the
file's end; `@@` stands between two places. ```sh is typed. Any other block is a new file.
"""

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/extending.md"
_BLOCK = re.compile(r"(?P<above>[^\n]*)\n\n?```(?P<kind>\w+)\n(?P<text>.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One code block: its language, the file that it is about (empty for commands), its text."""

    kind: str
    file: str
    text: str


def recipe(heading):
    """The blocks below a heading, to the next one of its level. Raises KeyError for no such."""
    text = PAGE.read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in re.split(r"^## ", text, flags=re.M)[1:])
    blocks = []
    for found in _BLOCK.finditer(sections[heading]):
        named = re.findall(r"`([^`]+)`", found["above"])
        is_typed = found["kind"] == "sh"
        blocks.append(Block(found["kind"], "" if is_typed else named[-1], found["text"]))
    return blocks


def edited(text, diff, name):
    """A file's text after a diff. Raises AssertionError where its place is not there once."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M):
        lines = hunk.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        if not old:
            text += new
            continue
        assert text.count(old) == 1, f"{name}: stands there {text.count(old)} times:\n{old}"
        text = text.replace(old, new)
    return text


def perform(blocks, folder):
    """Make and edit the files of a recipe below `folder`; returns the commands that it types."""
    commands = []
    for block in blocks:
        path = folder / block.file
        if block.kind == "sh":
            commands += [line for line in block.text.splitlines() if line.strip()]
        elif block.kind == "diff":
            path.write_text(edited(path.read_text(), block.text, block.file))
        else:
            assert not path.exists(), f"{block.file} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    return commands
