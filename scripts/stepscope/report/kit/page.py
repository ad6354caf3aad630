"""Facts and a template make Markdown. No other text is made in Python.

A value that is missing is no error: the paragraph, list item, table or figure that needs it is left
out, and then each heading with nothing below it. So templates need no conditions on what was
measured. A name that no fact declares is an error. `Page.dropped` is what was left out.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jinja2

from stepscope.report.kit.quantity import Quantity
from stepscope.report.kit.view import escaped, table

_GAP = "\0"
_ITEM = re.compile(r"\n(?=(?:[-*]|\d+\.) )")
_LINK = re.compile(r"\[([^\]]+)\]\((\w+)\.md(#[\w-]+)?\)")
_LINKING = re.compile(
    r"(?:^|(?<=\. ))(?:(?!\. )[^\n|])*?\]\((\w+)\.md(?:(?!\. )[^\n|])*\.(?: |$)", re.MULTILINE
)


class Missing(jinja2.ChainableUndefined):
    """What stands below a fact that is None, or is no key of a dictionary, is missing too.

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
        if self._undefined_obj is not None and not isinstance(self._undefined_obj, dict):
            self._fail_with_undefined_error()


class Name(str):
    """Text of a record: Markdown shows it as it is, wherever a template prints it."""


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
        return re.match(r"#+ (.*)", self.markdown)[1]


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

    made.filters |= {"table": table, "bare": _bare, "listed": listed}
    made.globals |= {"figure": figure}
    return made


def _printed(value: object) -> object:
    return _GAP if value is None else escaped(value) if isinstance(value, Name) else value


def _bare(quantity: Quantity | None) -> str | None:
    """A quantity without its unit: `458 of 546 ms`."""
    return quantity.bare if quantity else None


def listed(names) -> str | None:
    """`a, b and c`; None of none."""
    names = [escaped(name) if isinstance(name, Name) else str(name) for name in names or ()]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else None


def render(templates: jinja2.Environment, name: str, facts: object, kind: str = "") -> Page:
    """The page of a chapter: NAME.KIND.md.j2 if there is one, else NAME.md.j2, told of its
    facts."""
    template = templates.select_template([f"{name}.{kind}.md.j2", f"{name}.md.j2"])
    return page_of(name, template.render(facts=facts))


def page_of(name: str, text: str) -> Page:
    """What is left of a rendered template."""
    blocks, dropped = [], []
    for block in re.split(r"\n\s*\n", text.strip()):
        items = _ITEM.split(block.strip("\n"))
        blocks.append("\n".join(item.rstrip() for item in items if _GAP not in item))
        dropped += [item for item in items if _GAP in item]
    left = _without_bare_headings(
        _without_bare_captions([block for block in blocks if block.strip()])
    )
    return Page(name, "\n\n".join(left) + "\n" if len(left) > 1 else "", tuple(dropped))


def _without_bare_captions(blocks: list[str]) -> list[str]:
    """A line that ends with a colon announces a list or table: it goes where neither follows."""
    after = [*blocks[1:], ""]
    return [
        block
        for block, follower in zip(blocks, after, strict=True)
        if not (block.endswith(":") and not re.match(r"[-*|]|\d+\. |```", follower))
    ]


def _without_bare_headings(blocks: list[str]) -> list[str]:
    """Leave out the headings below which nothing is left, the deepest first."""
    for depth in (3, 2):
        ends = [re.match(r"#*", block)[0] for block in blocks] + ["#"]
        blocks = [
            block
            for block, own, after in zip(blocks, ends, ends[1:], strict=False)
            if len(own) != depth or not 0 < len(after) <= depth
        ]
    return blocks


def linked(text: str, anchors: dict[str, str]) -> str:
    """Links between chapters (`memory.md`, `memory.md#section`) as anchors of one page, without the
    sentences that refer to one that is not there.

    anchors: of the chapters that are there, by their names.
    """

    def target(found: re.Match) -> str:
        words, name, section = found.groups()
        return f"[{words}]({section or '#' + anchors[name]})" if name in anchors else words

    text = _LINKING.sub(lambda found: found[0] if found[1] in anchors else "", text)
    return _LINK.sub(target, text)


def deeper(text: str) -> str:
    """Each heading a level further down: of a chapter within a page."""
    return re.sub(r"^(#+ )", r"#\1", text, flags=re.MULTILINE)


def words(text: str) -> int:
    """Words of its prose: without headings, tables, figures, captions, code blocks and addresses of
    links."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = [block for block in text.split("\n\n") if not re.match(r"[#|!*](?!\*)", block.strip())]
    return len(re.sub(r"\]\([^)]*\)|[*\[`]|^- ", "", "\n".join(prose), flags=re.MULTILINE).split())
