"""The report: chapters in their order, each a facts module and a template; written as HTML,
Markdown and JSON.

A chapter more is a module in stepscope/report/facts, a template in report/chapters, and a line in
CHAPTERS.
"""

import dataclasses
import json
import os
import shutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import jinja2

from stepscope.files import write_whole

from . import explorer, fits, links
from .constants import CONSTANTS
from .kit import html, page
from .kit.data import Data, machines
from .kit.named import named
from .kit.page import Page
from .kit.quantity import Quantity

CHAPTERS = (
    "page_one",
    "steps",
    "setup",
    "time",
    "kernels",
    "memory",
    "ladder",
    "inside",
    "attention",
    "precision",
    "learning",
    "parallel",
    "warmup",
    "machines",
    "published",
    "method",
)
NO_DATA = "no machine has a measured cell in {}; measure first: snakemake --cores 1"


class ReportError(Exception):
    """What keeps the report from being written, for its user."""


@dataclass(frozen=True)
class Request:
    """tables, figures: folders of what `aggregate` and `draw_figures` wrote. command: what makes
    this report."""

    tables: Path
    figures: Path
    templates: Path
    out: Path
    command: str


def write(request: Request) -> list[Path]:
    """Write the report of the first machine as index.html, report.md and facts.json, of each other
    as MACHINE.html.

    All data are explorer.html. Returns the paths. Raises ReportError where no cell was measured.
    """
    there = machines(request.tables)
    if not there:
        raise ReportError(NO_DATA.format(request.tables))
    files: dict[Path, list[str]] = {}
    spoken = {}
    for machine in there:
        facts = facts_of(Data(request.tables, machine))
        pages = pages_of(facts, templates_of(request, machine, there))
        markdown, contents = put_together(pages)
        spoken[machine] = as_plain(facts)
        others = [(_file(other, there), other) for other in there if other != machine]
        document = html.document(
            request.templates,
            markdown,
            request.out,
            pages[0].title,
            contents,
            others=others,
            command=request.command,
        )
        files[request.out / _file(machine, there)] = [document]
        if machine == there[0]:
            files[request.out / "report.md"] = [markdown]
    data = explorer.document({"": request.tables}, request.out, request.command, request.templates)
    files[request.out / explorer.FILE] = [data]
    files[request.out / fits.FILE] = [fits.document(request.templates)]
    files[request.out / "facts.json"] = [_json({"command": request.command, "machines": spoken})]
    write_whole(files)
    return list(files)


def write_site(request: Request) -> list[Path]:
    """The report in a folder that needs nothing beside it: with its figures and tables, for a web
    server."""
    for name, folder in (("figures", request.figures), ("tables", request.tables)):
        shutil.copytree(
            folder, request.out / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.log")
        )
    (request.out / ".nojekyll").touch()  # GitHub Pages serves the files as they are
    return write(
        dataclasses.replace(request, figures=request.out / "figures", tables=request.out / "tables")
    )


def facts_of(data: Data) -> dict[str, object]:
    """Chapter → its facts, of those that have any. Steps of one's own are told of in theirs.
    Without a page one results come first, and the model last."""
    found = {}
    data = data.seen(own_steps=False)
    for name in CHAPTERS:
        module = import_module(f"stepscope.report.facts.{name}")
        facts = module.facts(data)
        if facts is not None:
            found[name] = facts
    if "page_one" not in found and "setup" in found:
        found["setup"] = found.pop("setup")
    return found


def templates_of(request: Request, machine: str, there: list[str]) -> jinja2.Environment:
    """The templates, which find the figures of a machine."""
    first = next(iter(Data(request.tables).machines), machine)
    is_first = machine == first or len(there) == 1

    def path(name: str) -> str | None:
        """A machine's own figure has its label behind the name, but for the first one of the
        tables."""
        own = request.figures / f"{name}-{machine}.svg"
        plain = request.figures / f"{name}.svg"
        if own.exists():
            return os.path.relpath(own, request.out)
        if is_first and plain.exists():
            return os.path.relpath(plain, request.out)
        return None

    made = page.environment(request.templates / "chapters", path)
    made.globals |= {
        "command": request.command,
        "constants": CONSTANTS,
        "example": example(request.templates),
    }
    return links.linked(made, Data(request.tables, machine, own_steps=False))


def example(templates: Path) -> dict:
    """Page one's facts of the GPU that a page without a GPU quotes; empty if they are not there."""
    path = templates / "reference" / "h200.json"
    if not path.exists():
        return {}
    quoted = json.loads(path.read_text())["machines"]
    return next(iter(quoted.values()), {})


def pages_of(facts: dict[str, object], templates: jinja2.Environment) -> list[Page]:
    """The pages of all chapters of which something is left."""
    has_gpu = any(own.machine.is_gpu for own in facts.values() if hasattr(own, "machine"))
    kind = "gpu" if has_gpu else "cpu"
    made = [page.render(templates, name, own, kind) for name, own in facts.items()]
    return [each for each in made if each.markdown]


def put_together(pages: list[Page]) -> tuple[str, list[tuple[str, str]]]:
    """(the Markdown, (anchor, title) of each chapter): the first page as it is, the others a level
    further down."""
    anchors = {each.name: html.slug(each.title) for each in pages}
    first, *rest = (page.linked(each.markdown, anchors) for each in pages)
    markdown = "\n".join([first, *map(page.deeper, rest)])
    return markdown, [(anchors[each.name], each.title) for each in pages]


def as_plain(value: object) -> object:
    """Facts as JSON has them: a quantity as its value, unit, interval and cells; what is missing is
    left out."""
    if isinstance(value, Quantity):
        return _quantity(value)
    if dataclasses.is_dataclass(value):
        plain = {name: as_plain(each) for name, each in named(value).items()}
        return {name: each for name, each in plain.items() if each not in (None, "", [], {})}
    if isinstance(value, dict):
        return {str(key): as_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(each) for each in value]
    return value


def _quantity(quantity: Quantity) -> dict[str, object]:
    said: dict[str, object] = {
        "value": quantity.value,
        "unit": quantity.unit,
        "text": str(quantity),
    }
    if quantity.has_interval:
        said |= {"low": quantity.low, "high": quantity.high}
    if quantity.cells:
        said["cells"] = list(quantity.cells)
    return said


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


def _file(machine: str, there: list[str]) -> str:
    return "index.html" if machine == there[0] else f"{machine}.html"
