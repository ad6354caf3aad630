"""The frame around page one, chapters and sections: Markdown templates, filled in with the blocks of a back end."""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stepscope.report.content import Content, tidy_tables
from stepscope.report.kit.blocks import Fold, Picture
from stepscope.report.kit.chapter import Chapter
from stepscope.report.kit.escaping import Prose, markdown
from stepscope.report.kit.files import Files, linked

DATA_PAGE = "data.html"
# Words of a link where they are not the name with a capital letter.
LINK_WORDS = {"warmup": "Warm-up"}


class Frame:
    """One document: templates, the content, and the blocks that write it."""

    def __init__(self, templates: Path, blocks, content: Content, files: Files) -> None:
        self.content = content
        self.files = files
        self.blocks = blocks
        self.environment = environment(templates)
        self.environment.globals.update(
            **block_functions(blocks),
            show=self._show,
            told=content.told,
            takeaway=lambda findings: blocks.takeaway([content.told(each) for each in findings]),
            link=self._link,
            everything=self._everything,
            csv=self._csv,
            file=lambda path: linked(path.rsplit("/", 1)[-1], files.of_cell(path)),
        )

    def report(self) -> str:
        """Page one, the chapters, and the method."""
        content = self.content
        parts = [self._render("title", title=content.title, box=content.box)]
        parts += [self.front()] if content.front else []
        parts += [self.chapter(chapter) for chapter in content.chapters]
        described = [name for name in content.sections if self._has(f"methods/{name}")]
        methods = [(name, Fold(f"Method of {name}")) for name in described]
        parts.append(self._render("method", methods=methods, command=content.command, **content.run))
        return self._whole(parts)

    def data(self) -> str:
        """All findings, tables and figures, by study."""
        content = self.content
        parts = [self._render("title", title=f"All data: {content.title}", box=content.box)]
        parts += [self.section(name) for name in content.sections]
        parts.append(self._render("agreement", **content.agreement))
        return self._whole(parts)

    def front(self) -> str:
        """Page one."""
        return self._render("page_one", **self.content.front)

    def chapter(self, chapter: Chapter) -> str:
        """A chapter."""
        return self._render("chapter", chapter=chapter)

    def section(self, name: str) -> str:
        """A section of the data page, with its findings below its heading."""
        heading, _, rest = self._render(f"sections/{name}", **self.content.section(name)).partition("\n")
        return self._render(
            "section",
            name=name,
            title=Prose(heading.removeprefix("## ")),
            findings=self.content.findings(name),
            tidy=[each for each in tidy_tables(name) if self.files.has_table(each)],
            rest=Prose(rest),
        )

    def _whole(self, parts: list[str]) -> str:
        return without_gaps("\n\n".join([*parts, self._foot()]))

    def _foot(self) -> str:
        return self._render(
            "foot", command=self.content.command, tables=linked("results/tables", self.files.all_tables)
        )

    def _title(self, name: str) -> str:
        """The heading that a section begins with."""
        source, *_ = self.environment.loader.get_source(self.environment, f"sections/{name}.md.j2")
        return source.partition("\n")[0].removeprefix("## ")

    def _render(self, template: str, **context) -> str:
        return self.environment.get_template(f"{template}.md.j2").render(context)

    def _has(self, template: str) -> bool:
        return f"{template}.md.j2" in self.environment.list_templates()

    def _show(self, block) -> Prose:
        """A table or a figure; nothing of one that was not drawn, since the report is made without its study."""
        if not isinstance(block, Picture):
            return self.blocks.table(block)
        return self.blocks.figure(block) if self.files.figure(block.name) else Prose("")

    def _link(self, name: str) -> Prose:
        """A link to a chapter, or to a section of the data page that no chapter speaks of; empty without either."""
        chapter = self.content.chapter_of(name)
        if chapter:
            words = LINK_WORDS.get(chapter.name, chapter.name.capitalize())
            return linked(words, self.blocks.anchor(chapter.title, f"chapter-{chapter.name}"))
        if name in self.content.sections:
            return linked(LINK_WORDS.get(name, name.capitalize()), f"{DATA_PAGE}#data-{name}")
        return Prose("")

    def _everything(self, names: tuple[str, ...]) -> list[Prose]:
        """Links to all data of these sections."""
        return [
            linked(self._title(each), f"{DATA_PAGE}#data-{each}") for each in names if each in self.content.sections
        ]

    def _csv(self, name: str) -> Prose:
        """A link to a tidy table; its name alone where it was not written."""
        return linked(f"{name}.csv", self.files.table(name))


def environment(templates: Path) -> Environment:
    """Markdown templates: every value is escaped, unless it is Prose."""
    return Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: value if isinstance(value, Prose) else markdown(value),
    )


def block_functions(blocks) -> dict:
    """What templates call to write their blocks with a back end."""
    return {
        "table": blocks.table,
        "figure": blocks.figure,
        "warning": blocks.box,
        "code": blocks.command_line,
        "fold": blocks.fold,
        "heading": blocks.heading,
    }


def without_gaps(text: str) -> str:
    """At most one empty line in a row, and no heading of the lowest level with nothing below it."""
    lines: list[str] = []
    for line in text.split("\n"):
        if re.match(r"#{1,4} |</details>", line) and len(lines) > 1 and lines[-2].startswith("#### ") and not lines[-1]:
            del lines[-2:]
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip() + "\n"
