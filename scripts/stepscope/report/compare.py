"""Two runs beside each other: what is exact is judged, times by the clock are listed without a
verdict.

The clock belongs to the host of the day; two variants by the clock are compared by `ab`, in turns.
"""

import itertools
import math
import tempfile
import zipfile
from pathlib import Path

import pandas as pd

from stepscope.files import write_whole
from stepscope.results import cells, writing

from . import explorer
from .kit import html, page
from .kit.data import Data, Row, grouped, of_series
from .kit.named import Name, frozen
from .kit.quantity import Maybe, Quantity, count, over

# Quantity → how far two runs of the same program may differ, relative: what repeats on any host.
EXACT = {
    "host_free_time": 0.03,
    "busy_time": 0.01,
    "launches": 0.0,
    "kernels": 0.0,
    "operators": 0.0,
    "peak_asked": 0.001,
    "peak_allocated": 0.001,
    "peak_reserved": 0.02,
    "before_backward": 0.001,
}
KEY = ["study", "place", "variant", "mode", "phase", "length", "direction", "quantity"]
BY = ("day", "gpu", "cpu", "driver", "torch", "triton", "python", "commit")
DAY = 10  # characters of a date
MOST = 15  # rows that a page shows
COLUMNS = ["cell", "what", "quantity", "before", "after", "ratio", "verdict"]  # of compare.csv
FILES = ("index.html", "compare.md", "compare.csv", explorer.FILE)


class CompareError(Exception):
    """Why two runs cannot be compared, for their user."""


@frozen
class Compared:
    """Both runs, and what of them differs.

    before, after: of each run its `name`, its `tables`, and of how many `cells` they are; alone:
    how many series only it has. series: those of both, as _pair has them: what is `worse`, `better`
    and the `same`, and `times` by the clock; each with the largest change first. measured_by: days,
    hardware and software of both.
    """

    before: Row
    after: Row
    series: dict[str, list[Row]]
    measured_by: list[Row]

    @property
    def counts(self) -> dict[str, Quantity]:
        """How many series are what."""
        return {name: count(len(rows)) for name, rows in self.series.items()}

    @property
    def shown(self) -> dict[str, list[Row]]:
        """Of each as many as a page shows."""
        return {name: rows[:MOST] for name, rows in self.series.items()}


def compared(before: Path, after: Path, paired: dict[str, str], scratch: Path) -> Compared:
    """Two folders `results`, or folders that hold one, or archives of one.

    paired: label of a machine before → after, where they differ. scratch: a folder for the tables
    of those that have cells alone.

    Raises CompareError where one has neither tables nor cells, machines cannot be told, or no
    series is in both.
    """
    old, new = (Data(tables_of(folder, scratch)) for folder in (before, after))
    labels = _machines(old.machines, new.machines, paired)
    same = {label: label for label in labels.values()}
    old_rows, new_rows = _placed(old, "series", labels), _placed(new, "series", same)
    both = old_rows.merge(new_rows, on=KEY, suffixes=("_before", "_after"))
    if both.empty:
        raise CompareError(
            f"{before} and {after} have no series in common; measure the same cells in both"
        )
    pairs = [_pair(row) for row in both.to_dict("records")]
    pairs.sort(key=lambda pair: pair["change"], reverse=True)
    of = {verdict: rows for (verdict,), rows in grouped(pairs, "verdict").items()}
    unjudged = of.get("", [])
    old_cells, new_cells = _placed(old, "cells", labels), _placed(new, "cells", same)
    return Compared(
        before=_run(before, old, old_cells, len(old_rows) - len(both)),
        after=_run(after, new, new_cells, len(new_rows) - len(both)),
        series={
            "worse": of.get("broke", []) + of.get("more", []),  # also what no longer runs
            "better": of.get("works", []) + of.get("less", []),
            "same": of.get("same", []),
            "times": [pair for pair in unjudged if pair["ratio"] and pair["quantity"] == "time"],
        },
        measured_by=_measured_by(old_cells, new_cells),
    )


def _placed(data: Data, name: str, labels: dict[str, str]) -> pd.DataFrame:
    """A table's rows of these machines, with `place`: the cell under the label that its machine has
    after."""
    frame = data.rows(name, machine=list(labels))
    rest = frame["cell"].str.split("/", n=1).str[1]
    return frame.assign(place=frame["machine"].map(labels) + "/" + rest)


def tables_of(folder: Path, scratch: Path) -> Path:
    """The folder of a run's tables; where it is a zip file, or has cells and their plan alone, they
    are made below `scratch`."""
    if folder.is_file():
        inside = tempfile.mkdtemp(dir=scratch)
        try:
            with zipfile.ZipFile(folder) as archive:
                archive.extractall(inside)
        except zipfile.BadZipFile as error:
            raise CompareError(f"{folder} is no zip file: {error}") from None
        return tables_of(Path(inside), scratch)
    for found in (folder / "tables", folder / "results" / "tables", folder):
        if (found / "series.csv").exists():
            return found
    for cells_of in (folder, folder / "results"):
        if (cells_of / "plan.json").exists():
            return _made(cells_of, Path(tempfile.mkdtemp(dir=scratch)))
    raise CompareError(
        f"{folder} has neither tables/series.csv nor plan.json; run there: snakemake --cores 1"
        " report"
    )


def _made(results: Path, out: Path) -> Path:
    """Tables of the cells below a folder, in another."""
    plan = results / "plan.json"
    try:
        found, samples, refused = cells.read(plan, results)
        tables, _ = writing.tables(found, samples, [])
    except cells.PlanError as error:
        raise CompareError(str(error)) from None
    for name, why in refused.items():
        raise CompareError(f"{results / name}: {why}")
    writing.write(out, tables)
    return out


def _machines(old: list[str], new: list[str], paired: dict[str, str]) -> dict[str, str]:
    """Label before → after: as given, else equal ones, else the only one of each."""
    found = paired or {label: label for label in old if label in new}
    if not found and len(old) == len(new) == 1:
        found = {old[0]: new[0]}
    unknown = [f" {a}={b}" for a, b in paired.items() if a not in old or b not in new]
    if unknown or not found:
        there = f"{', '.join(old)} before; {', '.join(new)} after"
        pairs = "".join(unknown)
        raise CompareError(f"no such pair of machines{pairs} ({there}); say --paired OLD=NEW")
    return found


def _run(folder: Path, data: Data, cells: pd.DataFrame, alone: int) -> Row:
    ran = cells[cells["status"] != "missing"]
    return {"name": Name(folder), "tables": data.folder, "cells": count(len(ran)), "alone": alone}


def _pair(row: Row) -> Row:
    """A series in both runs. change: how far after is from before, of before; 0 where one of them
    is missing."""
    quantity, length = row["quantity"], row["length"]
    before, after = _of(row, "before"), _of(row, "after")
    ratio = over(after, before)
    words = [row["variant"], row["mode"], row["phase"], row["direction"]]
    words.append("" if math.isnan(length) else f"at {length:,.0f}")
    return {
        "cell": Name(row["cell_after"]),
        "what": Name(" ".join(dict.fromkeys(filter(None, words)))),  # each once
        "quantity": quantity,
        "before": before,
        "after": after,
        "ratio": ratio,
        "verdict": _verdict(row, ratio),
        "change": abs(ratio.value - 1) if ratio else 0.0,
    }


def _of(row: Row, side: str) -> Maybe:
    """What a run measured; None where it did not run."""
    if row[f"status_{side}"] != "ok":
        return None
    columns = ("median", "low", "high", "unit", "cell")
    own = {column: row[f"{column}_{side}"] for column in columns}
    return of_series(own | {"quantity": row["quantity"]})


def _verdict(row: Row, ratio: Maybe) -> str:
    """`more`, `less`, `same`, `broke` (it ran before), `works` (now); else empty."""
    ran_before, runs_now = row["status_before"] == "ok", row["status_after"] == "ok"
    if not ran_before:
        return "works" if runs_now else "same"
    if not runs_now:
        return "broke"
    if row["quantity"] not in EXACT or ratio is None:
        return ""
    low, high = ratio.ends or (ratio.value, ratio.value)
    is_within_noise = ratio.has_interval and low <= 1 <= high  # one run's processes differ as much
    if is_within_noise or abs(ratio.value - 1) <= EXACT[row["quantity"]] + 1e-12:
        return "same"
    return "more" if ratio.value > 1 else "less"


def _measured_by(*runs: pd.DataFrame) -> list[Row]:
    """All values of each column in both runs."""
    dated = [cells.assign(day=cells["started"].str[:DAY]) for cells in runs]
    found = []
    for column in BY:
        before, after = (Name(", ".join(sorted(set(cells[column]) - {""}))) for cells in dated)
        found.append({"what": column, "before": before, "after": after})
    return found


def write(found: Compared, templates: Path, out: Path, command: str) -> str:
    """Write index.html, compare.md, compare.csv and explorer.html; returns the summary for a
    terminal."""
    environment = page.environment(templates / "chapters", lambda name: None)
    environment.globals["margins"] = {name: f"{100 * each:g} %" for name, each in EXACT.items()}
    made = page.render(environment, "compare", found)
    pairs = itertools.chain(*found.series.values())
    rows = pd.DataFrame(list(pairs), columns=COLUMNS)
    runs = {"before": found.before["tables"], "after": found.after["tables"]}
    index = html.document(templates, made.markdown, out, made.title, [], command=command)
    where = f"{found.before['name']} and {found.after['name']}"
    write_whole(
        {
            out / explorer.FILE: [explorer.document(runs, out, command, templates, where)],
            out / "index.html": [index],
            out / "compare.md": [made.markdown],
            out / "compare.csv": [rows.map(_plain).to_csv(index=False)],
        }
    )
    return f"{summary(found)}\nThe page: {out / 'index.html'}"


def _plain(value: object) -> object:
    return value.value if isinstance(value, Quantity) else value


def summary(found: Compared) -> str:
    """A few lines for a terminal."""
    text = (
        "{worse} worse, {better} better, {same} the same; {times} times by the clock without"
        " verdict"
    )
    lines = [text.format(**found.counts)]
    for pair in found.shown["worse"]:
        lines.append("worse: {cell} {what} {quantity} {before} -> {after}".format(**pair))
    for row in found.measured_by:
        if row["before"] != row["after"]:
            lines.append("changed: {what}: {before} -> {after}".format(**row))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
