"""The explorer: all tables of one or several runs in one page that needs no network; and links to
its views.

Tables are columns of JSON, gzipped, in base64: numbers to DIGITS significant digits, whole ones in
full.
"""

import base64
import dataclasses
import gzip
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import jinja2
import pandas as pd
from markupsafe import Markup

from stepscope.figures import colours, places
from stepscope.report.kit.named import named
from stepscope.report.kit.number_format import UNITS
from stepscope.report.kit.quantity import Quantity
from stepscope.results.schema import NUMBER, QUANTITIES, TABLES, Column, axis
from stepscope.results.tables import Tables

FILE = "explorer.html"
DIGITS = 5
MOST_BYTES = (
    2_400_000  # of all tables in base64; the last ones that would exceed it stay in their CSV
)
LAST = ("memory_timeline", "timeline")  # drawn by figures, seldom read as rows
FILES = (
    "measure.log",
    "record.json",
    "samples.csv",
    "trace.json.gz",
    "snapshot.pickle",
)  # of a cell, or below it
SCRIPTS = ("data", "print", "state", "selection", "pivot", "chart", "rows", "card", "main")
RUN = axis("run", "run", "which of the results beside each other")
# Figure → the view of what it shows; one that is not here links to the start.
_TIMES = {"show": "chart", "of": "series.time", "study": "timing", "columns": "context"}
_ATTENTION = {
    "show": "chart",
    "of": "series.time",
    "study": "attention",
    "rows": "variant",
    "columns": "length",
}
FIGURES = {
    **{
        name: {"show": "rows", "table": name}
        for name in ("sums", "forced", "timeline", "published", "first_step")
    },
    "memory_over_step": {"show": "rows", "table": "memory_timeline"},
    **dict.fromkeys(
        ("waterfall", "ladder"), _TIMES | {"show": "pivot", "study": "ladder", "rows": "variant"}
    ),
    "machines": _TIMES | {"show": "pivot", "rows": "size", "columns": "machine"},
    "step_parts": _TIMES | {"show": "pivot", "rows": "size", "columns": "phase"},
    "time_by_context": _TIMES | {"rows": "size"},
    "precision_speedup": _TIMES | {"show": "pivot", "columns": "precision"},
    "categories": {"show": "pivot", "of": "categories.time", "rows": "category", "columns": "size"},
    "launches": {
        "show": "rows",
        "table": "series",
        "quantity": "time|host_free_time|busy_time",
        "phase": "step",
    },
    "warmup": {"show": "pivot", "of": "warmup.mean", "rows": "cell", "columns": "skipped"},
    "attention_time": _ATTENTION,
    "attention_rates": _ATTENTION | {"of": "series.rate"},
    "memory_growth": {
        "show": "rows",
        "table": "series",
        "study": "timing",
        "quantity": "peak_reserved|peak_resident",
    },
}


def explorer_link(**state: str) -> str:
    """The address of a view, beside the report.

    show: `pivot`, `chart` or `rows`. of: `series.QUANTITY` or `TABLE.COLUMN`, by `rows` and
    `columns` (and `facet`). table: of rows. card: a cell. Any column: its value, or several with |
    between.
    """
    return f"{FILE}#{urlencode(state, quote_via=quote)}"


def linked(templates: jinja2.Environment, machine: str) -> jinja2.Environment:
    """The templates of a machine, whose tables and figures have a link to their data at the end of
    their caption."""
    table, figure = templates.filters["table"], templates.globals["figure"]

    def linked_table(rows, columns: str, caption: str = "") -> str | None:
        return table(rows, columns, f"{caption} [Data]({link_of_cells(cells_of(rows))})".strip())

    def linked_figure(name: str, caption: str) -> str | None:
        drawn = figure(name, caption)
        state = FIGURES.get(name, {}) | (
            {} if name in ("machines", "published") else {"machine": machine}
        )
        return drawn and f"{drawn[:-1]} [Data]({explorer_link(**state)})*"

    templates.filters["table"], templates.globals["figure"] = linked_table, linked_figure
    return templates


def cells_of(facts: object) -> list[str]:
    """Cells of all quantities in facts, each once."""
    if isinstance(facts, Quantity):
        return list(facts.cells)
    if dataclasses.is_dataclass(facts):
        facts = named(facts)
    parts = (
        facts.values()
        if isinstance(facts, dict)
        else facts
        if isinstance(facts, (list, tuple))
        else ()
    )
    return list(dict.fromkeys(cell for part in parts for cell in cells_of(part)))


def link_of_cells(cells: list[str]) -> str:
    """The view of what these cells measured: the card of one, the rows of a few, else the rows of
    their studies."""
    if len(cells) == 1:
        return explorer_link(card=cells[0])
    if len(cells) <= 6:
        return explorer_link(
            show="rows", table="series", **({"cell": "|".join(cells)} if cells else {})
        )
    machines, studies = (
        "|".join(dict.fromkeys(cell.split("/")[at] for cell in cells)) for at in (0, 1)
    )
    return explorer_link(show="rows", table="series", machine=machines, study=studies)


def document(runs: dict[str, Path], out: Path, command: str, folder: Path) -> str:
    """The whole page. runs: name → tables, no name where there is one; out: its folder; folder:
    that of its parts."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "explorer/page.html").read_text())
    about, data = _embedded({name: Tables(tables) for name, tables in runs.items()})
    files = {
        cell: files for run, tables in runs.items() for cell, files in _files(run, tables, out)
    }
    data["beside"] = _packed(_json({"more": about.pop("more"), "files": files}).encode())
    about["units"] = {
        name: {"scales": unit.scales, "digits": unit.digits} for name, unit in UNITS.items()
    }
    about["colours"] = [
        f"var(--figure-{name})" for name in colours.OKABE_ITO if name not in ("pale", "yellow")
    ]
    data |= {
        name: _packed((folder / f"vendor/{name}.min.js").read_bytes()) for name in ("d3", "plot")
    }
    return template.render(
        style=Markup(
            colours.css()
            + (folder / "style.css").read_text()
            + (folder / "explorer/style.css").read_text()
        ),
        about=Markup(_json(about).replace("</", "<\\/")),
        data=data,
        left_out=about["left_out"],
        script=Markup("\n".join((folder / f"explorer/{name}.js").read_text() for name in SCRIPTS)),
        tables=os.path.relpath(next(iter(runs.values())), out),
        command=command,
    )


def _embedded(runs: dict[str, Tables]) -> tuple[dict, dict[str, str]]:
    """(what the script has to know of the tables, table → its data): as many tables as MOST_BYTES
    holds."""
    measured = {name for tables in runs.values() for name in tables["series"]["quantity"]}
    quantities = {name: _as_shown(each) for name, each in QUANTITIES.items() if name in measured}
    parameters = {
        size: number
        for tables in runs.values()
        for size, number in places.parameters(tables).items()
    }
    about, data = {"tables": {}, "quantities": quantities, "more": {}, "left_out": []}, {}
    for name in sorted(TABLES, key=lambda each: LAST.index(each) + 1 if each in LAST else 0):
        frame, shown = _together(name, runs)
        if frame.empty:
            continue
        packed = _packed(
            _json([_values(each, frame[each["name"]], parameters) for each in shown]).encode()
        )
        if sum(map(len, data.values())) + len(packed) > MOST_BYTES:
            about["left_out"].append(f"{name}.csv")
            continue
        about["tables"][name] = {"row": TABLES[name].row, "count": len(frame), "columns": shown}
        data[name] = packed
        for place, count in (
            frame.groupby(["run", "cell"]).size().items() if "cell" in frame else ()
        ):
            about["more"].setdefault(_identity(*place), {})[name] = count
    return about, data


def _together(name: str, runs: dict[str, Tables]) -> tuple[pd.DataFrame, list[dict]]:
    """A table of all runs, with the places of its cells; the columns that say something of any
    row."""
    frame = pd.concat(
        [tables[name].assign(run=run) for run, tables in runs.items()], ignore_index=True
    )
    known = {"run": RUN} | TABLES["cells"].by_name | TABLES[name].by_name
    names = [
        "run",
        *TABLES[name].names,
        *(each for each in frame if each not in TABLES[name].names and each != "run"),
    ]
    return frame, [
        _as_shown(known[each])
        for each in names
        if (frame[each].notna() & (frame[each] != "")).any()
    ]


def _identity(run: str, cell: str) -> str:
    """A cell's name on the page, as the script makes it."""
    return f"{run}: {cell}" if run else cell


def _as_shown(column: Column) -> dict:
    """A column or quantity, with the unit that it is printed in and whether rows are chosen by
    it."""
    unit = "share" if column.printed == "share" else column.unit
    is_chosen_by = column.kind != NUMBER or column.is_axis
    return dataclasses.asdict(column) | {"unit": unit, "chosen": is_chosen_by}


def _values(column: dict, values: pd.Series, parameters: dict[str, float]) -> list:
    """`[values, indices]` of a column that rows are chosen by, else the numbers; null where there
    is none. Sizes stand in the order of their parameters, other words in that of the rows."""
    if not column["chosen"]:
        return [_short(value) for value in values]
    if column["kind"] == NUMBER:
        values = ["" if value is None else value for value in map(_short, values)]
        keys = sorted(set(values), key=lambda value: value or -math.inf)
    else:
        keys = list(dict.fromkeys(values := [str(value) for value in values]))
        keys.sort(key=lambda key: parameters.get(key, 0) if column["name"] == "size" else 0)
    place = {key: index for index, key in enumerate(keys)}
    return [keys, [place[value] for value in values]]


def _short(value: float) -> float | int | None:
    """To DIGITS significant digits, a whole number in full; what is no finite number is missing."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.{DIGITS}g}")


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _files(run: str, tables: Path, out: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """(cell, file → its path from `out`) of what is there beside the tables."""
    for cell in Tables(tables)["cells"]["cell"]:
        below = [
            folder := tables.parent / cell,
            *(each for each in folder.glob("*/") if "=" not in each.name),
        ]
        there = [each / name for each in below for name in FILES if (each / name).exists()]
        yield _identity(run, cell), {each.name: os.path.relpath(each, out) for each in there}
