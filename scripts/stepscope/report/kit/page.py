"""Facts and a template make Markdown. No other text is made in Python.

A value that is missing is no error: the paragraph, list item, table or figure that needs it is left
out, and then each heading with nothing below it. So templates need no conditions on what was
measured. A name that no fact declares is an error. `Page.dropped` is what was left out.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import jinja2

from .named import Name
from .view import escaped, table

_GAP = "\0"  # stands in the text where a value is missing
_ITEM = re.compile(r"\n(?=(?:[-*]|\d+\.) )")
_LINK = re.compile(r"\[([^\]]+)\]\((\w+)\.md(#[\w-]+)?\)")
_END_OF_SENTENCE = re.compile(r"(?<=\.) ")
_KEEPS_LINES = ("#", "|", "![", "```", ">")  # starts of lines that Markdown reads one by one


class Missing(jinja2.ChainableUndefined):
    """What stands below a fact that is None, or is no key of a dictionary or no place of a list, is
    missing too.

    What no fact declares is a mistake in the template: it raises jinja2.UndefinedError.
    """

    def __str__(self) -> str:
        self._declared()
        return _GAP

    def __bool__(self) -> bool:
        self._declared()
        return False

    def __iter__(self):
        self._declared()
        return iter(())

    def _declared(self) -> None:
        is_item = isinstance(self._undefined_obj, dict) or isinstance(self._undefined_name, int)
        if self._undefined_obj is not None and not is_item:
            self._fail_with_undefined_error()


@dataclass(frozen=True)
class Page:
    """A chapter: its name, its Markdown (empty if nothing is left), and what was left out for want
    of a value."""

    name: str
    markdown: str
    dropped: tuple[str, ...]

    @property
    def title(self) -> str:
        """The text of its first heading."""
        return self.markdown.partition("\n")[0].lstrip("#").strip()


def environment(folder: Path, figures: Callable[[str], str | None]) -> jinja2.Environment:
    """The templates of a folder. `figures`: from a figure's name to the path of its file, None if
    it was not drawn."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=Missing,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def figure(name: str, caption: str) -> str | None:
        """A figure with its caption, if it was drawn."""
        path = figures(name) if name else None
        return f"![{name}]({path})\n*{caption}*" if path else None

    made.filters |= {"table": table, "listed": listed}
    made.globals |= {"figure": figure}
    return made


def _printed(value: object) -> object:
    if value is None:
        return _GAP
    return escaped(value) if isinstance(value, Name) else value


def listed(names: Iterable[object] | None) -> str | None:
    """`a, b and c`; None of none."""
    words = [escaped(name) if isinstance(name, Name) else str(name) for name in names or ()]
    if not words:
        return None
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def render(templates: jinja2.Environment, name: str, facts: object, kind: str = "") -> Page:
    """The page of a chapter: NAME.KIND.md.j2 if there is one, else NAME.md.j2, told of its
    facts."""
    template = templates.select_template([f"{name}.{kind}.md.j2", f"{name}.md.j2"])
    return page_of(name, template.render(facts=facts))


def page_of(name: str, text: str) -> Page:
    """What is left of a rendered template: a paragraph, or an item of a list, is one line."""
    blocks: list[str] = []
    dropped: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        items = _ITEM.split(block.strip("\n"))
        kept = [_on_one_line(item) for item in items if _GAP not in item]
        dropped += [item for item in items if _GAP in item]
        if any(kept):
            blocks.append("\n".join(kept))
    blocks = _without_bare_headings(_without_bare_captions(blocks))
    is_more_than_title = len(blocks) > 1
    markdown = "\n\n".join(blocks) + "\n" if is_more_than_title else ""
    return Page(name, markdown, tuple(dropped))


def _on_one_line(item: str) -> str:
    """However its template breaks it: a sentence of which a value is missing is found in a line."""
    lines = [line.rstrip() for line in item.split("\n")]
    if any(line.startswith(_KEEPS_LINES) for line in lines):
        return "\n".join(lines)
    return " ".join(filter(None, map(str.strip, lines)))


def _without_bare_captions(blocks: list[str]) -> list[str]:
    """A line that ends with a colon announces a list or table: it goes where neither follows."""
    left = []
    for block, follower in zip(blocks, [*blocks[1:], ""], strict=True):
        is_announced = re.match(r"[-*|]|\d+\. |```", follower)
        if is_announced or not block.endswith(":"):
            left.append(block)
    return left


def _without_bare_headings(blocks: list[str]) -> list[str]:
    """Leave out the headings below which nothing is left, the deepest first."""
    for depth in (3, 2):
        left = []
        for block, follower in zip(blocks, [*blocks[1:], "#"], strict=True):
            is_bare = _depth(block) == depth and 0 < _depth(follower) <= depth
            if not is_bare:
                left.append(block)
        blocks = left
    return blocks


def _depth(block: str) -> int:
    """Of a heading; 0 of anything else."""
    return len(block) - len(block.lstrip("#"))


def linked(text: str, anchors: dict[str, str]) -> str:
    """Links between chapters (`memory.md`, `memory.md#section`) as anchors of one page, without the
    sentences that refer to one that is not there.

    anchors: of the chapters that are there, by their names.
    """

    def target(found: re.Match) -> str:
        words, name, section = found.groups()
        return f"[{words}]({section or '#' + anchors[name]})" if name in anchors else words

    def is_alive(sentence: str) -> bool:
        names = [name for _, name, _ in _LINK.findall(sentence)]
        is_sentence = sentence.endswith(".")  # else an item or a cell of a table: words stay
        return not is_sentence or all(name in anchors for name in names)

    lines = []
    for line in text.split("\n"):
        sentences = [line] if line.startswith("|") else _END_OF_SENTENCE.split(line)
        lines.append(" ".join(filter(is_alive, sentences)))
    blocks = [block for block in re.split(r"\n\s*\n", "\n".join(lines).strip()) if block]
    return _LINK.sub(target, "\n\n".join(_without_bare_headings(blocks)) + "\n")


def deeper(text: str) -> str:
    """Each heading a level further down: of a chapter within a page."""
    return re.sub(r"^(#+ )", r"#\1", text, flags=re.MULTILINE)
