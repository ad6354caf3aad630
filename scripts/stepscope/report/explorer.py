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
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from stepscope.figures import colours, places
from stepscope.results.schema import NUMBER, QUANTITIES, TABLES, Column, axes
from stepscope.results.tables import Tables

from .kit.data import Row
from .kit.number_format import UNITS

Runs = dict[str, Tables]  # by what they are called; no name where there is one
Ranks = dict[str, dict[str, float]]  # column → value → its place
FILE = "explorer.html"
FAINT = ("pale", "yellow")  # colours that no line can be told by
DIGITS = 5
# Of all tables in base64; the last ones that would exceed it stay in their CSV.
MOST_BYTES = 2_400_000
LAST = ("memory_timeline", "timeline")  # drawn by figures, seldom read as rows
# Of a cell, or below it.
FILES = ("measure.log", "record.json", "samples.csv", "trace.json.gz", "snapshot.pickle")
SCRIPTS = ("data", "print", "state", "selection", "pivot", "chart", "rows", "card", "main")
RUNGS = ("variant", "a", "b", "after")  # columns that hold variants
# Table → the column that its rows stand by, the most first, until a reader asks for another.
SORTED = {
    "kernels": "time:down",
    "categories": "time:down",
    "modules": "gpu_time:down",
    "memory_lines": "bytes:down",
    "memory_largest": "bytes:down",
}
(RUN,) = axes(run="which of the results beside each other")


def document(
    runs: dict[str, Path],
    out: Path,
    command: str,
    folder: Path,
    where: str = "",
) -> str:
    """The whole page.

    runs: name → folder of tables, no name where there is one. out: the page's folder, from which
    its links start. command: what makes it, for its readers. folder: of its template, styles and
    scripts. where: what readers are told of the tables' place, if not the first run's.
    """
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "explorer/page.html").read_text())
    tables = {run: Tables(path) for run, path in runs.items()}
    held = _held(tables)
    beside = {"more": held.more, "files": _files(tables, out)}
    data = held.data | {"beside": _packed(_json(beside).encode())}
    for name in ("d3", "plot"):
        data[name] = _packed((folder / f"vendor/{name}.min.js").read_bytes())
    measured = set(_together("series", tables)["quantity"])
    shown_quantities = [each for each in QUANTITIES.values() if each.name in measured]
    about = {
        "tables": held.tables,
        "quantities": {each.name: _as_shown(each) for each in shown_quantities},
        "left_out": held.left_out,
        "units": {
            name: {"scales": unit.scales, "digits": unit.digits} for name, unit in UNITS.items()
        },
        "colours": [f"var(--figure-{name})" for name in colours.OKABE_ITO if name not in FAINT],
    }
    styles = [(folder / name).read_text() for name in ("style.css", "explorer/style.css")]
    scripts = [(folder / f"explorer/{name}.js").read_text() for name in SCRIPTS]
    return template.render(
        style=Markup(colours.css() + "".join(styles)),
        about=Markup(_json(about).replace("</", "<\\/")),
        data=data,
        left_out=held.left_out,
        script=Markup("\n".join(scripts)),
        tables=where or os.path.relpath(next(iter(runs.values())), out),
        command=command,
    )


@dataclass
class Held:
    """What the page holds.

    tables: as the script has to know them. data: table → its columns, packed. more: cell → table →
    how many rows. left_out: files of tables that are too large.
    """

    tables: dict[str, Row] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    more: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def _held(runs: Runs) -> Held:
    """As many tables as MOST_BYTES holds."""
    variants = _together("variants", runs).sort_values("order")
    labels = dict(variants[["variant", "label"]].to_numpy())
    ranks = _ranks(runs, dict(variants[["variant", "order"]].to_numpy()))
    held = Held()
    size = 0
    names = [name for name in TABLES if name not in LAST]
    for name in (*names, *LAST):
        frame = _together(name, runs)
        if frame.empty:
            continue
        columns = _shown(name, frame)
        values = []
        for column in columns:
            values.append(_values(column, list(frame[column["name"]]), ranks))
        packed = _packed(_json(values).encode())
        if size + len(packed) > MOST_BYTES:
            held.left_out.append(f"{name}.csv")
            continue
        size += len(packed)
        held.data[name] = packed
        for column in columns:
            if column["name"] in RUNGS:  # what the page calls its values
                column["names"] = labels
        held.tables[name] = {
            "row": TABLES[name].row,
            "count": len(frame),
            "columns": columns,
            "sort": SORTED.get(name, ""),
        }
        if "cell" in frame:
            identities = map(_identity, frame["run"], frame["cell"])
            for identity, count in Counter(identities).items():
                held.more.setdefault(identity, {})[name] = count
    return held


def _together(name: str, runs: Runs) -> pd.DataFrame:
    """A table of all runs, with the places of its cells."""
    frames = [tables[name].assign(run=run) for run, tables in runs.items()]
    return pd.concat(frames, ignore_index=True)


def _shown(name: str, frame: pd.DataFrame) -> list[Row]:
    """The columns that say something of any row: the table's own, then those of its cells."""
    own = {"run": RUN} | TABLES[name].columns
    known = TABLES["cells"].columns | own
    says = frame.columns[(frame.notna() & (frame != "")).any()]
    others = [each for each in says if each not in own]
    return [_as_shown(known[each]) for each in (*own, *others) if each in says]


def _identity(run: str, cell: str) -> str:
    """A cell's name on the page, as the script makes it."""
    return f"{run}: {cell}" if run else cell


def _as_shown(column: Column) -> Row:
    """A column or quantity, with the unit that it is printed in and whether rows are chosen by
    it."""
    unit = "share" if column.printed == "share" else column.unit
    is_chosen_by = column.kind != NUMBER or column.is_axis
    made = {"label": column.name.replace("_", " "), "unit": unit, "chosen": is_chosen_by}
    return dataclasses.asdict(column) | made


def _ranks(runs: Runs, rungs: dict[str, float]) -> Ranks:
    """Column → value → its place: sizes by their parameters, rungs as ladders have them."""
    sizes: dict[str, float] = {}
    for each in runs.values():
        sizes |= places.parameters(each)
    return {"size": sizes, **dict.fromkeys(RUNGS, rungs)}


def _values(column: Row, values: list, ranks: Ranks) -> list:
    """`[values, indices]` of a column that rows are chosen by, else the numbers; null where there
    is none. What has no rank stands in the order of the rows, behind what has one."""
    if column["kind"] != NUMBER:
        words = [str(value) for value in values]
        rank = ranks.get(column["name"], {})
        known: list = list(dict.fromkeys(words))
        known = sorted(known, key=lambda word: rank.get(word, math.inf))
        return _indexed(words, known)
    numbers = [_short(value) for value in values]
    if not column["chosen"]:
        return numbers
    keys = ["" if number is None else number for number in numbers]
    known = sorted(set(keys), key=lambda key: -math.inf if key == "" else key)
    return _indexed(keys, known)


def _indexed(values: list, known: list) -> list:
    place = {value: index for index, value in enumerate(known)}
    return [known, [place[value] for value in values]]


def _short(value: float) -> float | int | None:
    """To DIGITS significant digits, a whole number in full; what is no finite number is missing."""
    if not math.isfinite(value):
        return None
    is_whole = value == int(value)
    return int(value) if is_whole else float(f"{value:.{DIGITS}g}")


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _files(runs: Runs, out: Path) -> dict[str, dict[str, str]]:
    """Cell → file → its path from `out`, of what is there beside the tables."""
    found = {}
    for run, tables in runs.items():
        for cell in tables["cells"]["cell"]:
            folder = tables.folder.parent / cell
            parts = [each for each in folder.glob("*/") if "=" not in each.name]  # not other cells
            paths = [part / name for part in (folder, *parts) for name in FILES]
            found[_identity(run, cell)] = {
                path.name: os.path.relpath(path, out) for path in paths if path.exists()
            }
    return found
