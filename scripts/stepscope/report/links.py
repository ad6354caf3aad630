"""Links from the pages to the explorer: a table's to the rows that its numbers are of, a figure's
to what it draws."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast
from urllib.parse import quote, urlencode

import jinja2
import pandas as pd

from stepscope.figures import (
    attention,
    ladder,
    learning,
    memory,
    places,
    roofline,
    start,
    steps,
    timeline,
    where,
)

from .explorer import FILE
from .kit.data import Data
from .kit.quantity import Quantity
from .kit.view import values_of

MOST_CELLS = 40  # that an address names one by one
NEUTRAL = "(none)"  # how the explorer names an empty field
View = dict[str, str]
Viewed = Callable[[Data], View]  # what a figure of a machine shows
Drawn = Callable[[Data], pd.DataFrame]  # the rows that a figure draws
PARTS = "forward|backward|optimizer"


def explorer_link(**state: str) -> str:
    """The address of a view, beside the report.

    show: `pivot`, `chart` or `rows`. of: `series.QUANTITY` or `TABLE.COLUMN`, by `rows` and
    `columns` (and `facet`). table: of rows. card: a cell. Any column: its value, or several with |
    between.
    """
    return f"{FILE}#{urlencode(state, safe='/=,', quote_via=quote)}"


def linked(templates: jinja2.Environment, data: Data) -> jinja2.Environment:
    """The templates of a machine, whose tables and figures have a link to their data at the end of
    their caption."""
    table = cast(Callable, templates.filters["table"])
    figure = cast(Callable, templates.globals["figure"])

    def linked_table(rows: Iterable, columns: str, caption: str = "") -> str | None:
        facts = list(rows or ())
        return table(facts, columns, f"{caption} {links_of_table(facts, columns)}".strip())

    def linked_figure(name: str, caption: str) -> str | None:
        drawn = figure(name, caption)
        if not drawn:
            return None
        return f"{drawn.removesuffix('*')} [Data]({explorer_link(**figure_view(name, data))})*"

    templates.filters["table"], templates.globals["figure"] = linked_table, linked_figure
    return templates


def links_of_table(rows: list, columns: str) -> str:
    """To the rows that hold the numbers of a table, or of which they are made; a link for each of
    the CSV files; none where no number comes from one."""
    shown = [value for _, values in values_of(rows, columns) for value in values]
    views = views_of([value for value in shown if isinstance(value, Quantity)])
    if len(views) == 1:
        return f"[Data]({explorer_link(**views[0])})"
    named = [f"[{view['table']}]({explorer_link(**view)})" for view in views]
    return f"Data: {', '.join(named)}" if named else ""


def views_of(quantities: Iterable[Quantity]) -> list[View]:
    """The rows of each table that quantities are of: of their cells, in series of what they are."""
    cells: dict[str, dict[str, None]] = {}
    names: dict[str, None] = {}
    for each in quantities:
        for table, _, name in (of.partition(".") for of in each.of):
            cells.setdefault(table, {}).update(dict.fromkeys(each.cells))
            if table == "series":
                names[name] = None
    views = []
    for table, own in cells.items():
        view = {"show": "rows", "table": table, **_chosen(list(own))}
        views.append(view | {"quantity": "|".join(names)} if table == "series" else view)
    return views


def _chosen(cells: list[str]) -> View:
    """What chooses the rows of cells: their names, of many their machines and studies."""
    if not cells:
        return {}
    if len(cells) <= MOST_CELLS:
        return {"cell": "|".join(cells)}
    machines, studies = zip(*(cell.split("/")[:2] for cell in cells), strict=True)
    return {"machine": _distinct(machines), "study": _distinct(studies)}


def _distinct(words: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(words))


def figure_view(name: str, data: Data) -> View:
    """What a figure of the machine draws; the start of the explorer for one that is not here."""
    if name in OF_ALL_MACHINES:
        return OF_ALL_MACHINES[name](data)
    view = VIEWS[name](data) if name in VIEWS else {}
    return view if "cell" in view else view | {"machine": data.machine or ""}


def _rows(table: str, drawn: Drawn | None = None, **chosen: str) -> Viewed:
    """A view of rows of a table; of the cells that a figure's own rows are of, if it has some."""

    def view(data: Data) -> View:
        cells = _chosen(list(dict.fromkeys(drawn(data)["cell"]))) if drawn else {}
        return {"show": "rows", "table": table, **cells, **chosen}

    return view


def _steps(drawn: Drawn, **chosen: str) -> Viewed:
    """Rows of whole training steps."""
    return _rows("series", drawn, mode="step", options=NEUTRAL, **chosen)


def _waterfall(data: Data) -> pd.DataFrame:
    """Its steps by the cells of their profiles."""
    led = where.led(data)
    return led.assign(cell=led["profile"])


VIEWS: dict[str, Viewed] = {
    "waterfall": _rows("categories", _waterfall, phase="step|optimizer"),
    "categories": _rows("categories", mode="step", options=NEUTRAL, phase=f"inference|{PARTS}"),
    "step_parts": _steps(places.tried_steps, quantity="time", phase=f"{PARTS}|step"),
    "time_by_context": _steps(places.tried_steps, quantity="time", phase="step"),
    "launches": _steps(steps.launch_rows, quantity="|".join(steps.WAYS), phase="step"),
    "precision_speedup": _steps(places.tried_steps, quantity="time", phase="step"),
    "timeline": _rows("timeline", timeline.profiled),
    "one_attention": _rows("timeline", timeline.profiled),
    "roofline": _rows("modules", roofline.plain_ranges),
    "memory_over_step": _rows("memory_timeline", memory.recorded),
    "memory_of_inference": _rows("memory_timeline", partial(memory.recorded, mode="inference")),
    "memory_of_forward": _rows("memory_timeline", partial(memory.recorded, mode="forward")),
    "memory_from_cold": _rows("memory_timeline", partial(memory.recorded, options="start=cold")),
    "memory_growth": _steps(places.tried_steps, quantity="|".join(places.PEAKS), phase="step"),
    "attention_time": _rows(
        "series", partial(attention.subject_rows, quantity="time"), quantity="time"
    ),
    "attention_rates": _rows(
        "series", partial(attention.subject_rows, quantity="rate"), quantity="rate"
    ),
    "forced": _rows("forced"),
    "warmup": _rows("warmup", start.warmed),
    "first_step": _rows("first_step", phase="step"),
    "ladder": _rows("series", ladder.climbed, quantity="time", phase=f"{PARTS}|step"),
    "curves": _rows("curves", learning.learned),
    "ranks": _rows("ranks", steps.most_devices),
}
OF_ALL_MACHINES: dict[str, Viewed] = {
    "machines": _rows(
        "series", study="timing", quantity="time", mode="step", phase="step", options=NEUTRAL
    ),
    "published": _rows("published", quantity="time"),
}
