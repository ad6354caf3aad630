"""Two runs beside each other: what is exact is judged, times by the clock are listed without a
verdict.

The clock belongs to the host of the day; two variants by the clock are compared by `ab`, in turns.
"""

import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from stepscope.files import write_whole
from stepscope.report import explorer
from stepscope.report.kit import html, page
from stepscope.report.kit.data import Data, Row, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, over
from stepscope.results import cells, writing
from stepscope.results.tables import Tables

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
ORDER = ("broke", "more", "works", "less", "same", "")  # verdicts, the worst first
KEY = ["study", "place", "variant", "mode", "phase", "length", "direction", "quantity"]
BY = ("day", "gpu", "cpu", "driver", "torch", "triton", "python", "commit", "code")
DAY, COMMIT = 10, 12  # characters of a date and of a commit that tell
FEW, MOST = 3, 15  # values of what a run was measured by, and rows, that a page shows
NOISE = 0.01  # of all kernels' time: one trace each, so that smaller differences say nothing
VISIBLE = 0.02  # times by the clock that differ by less are not listed
FILES = ("index.html", "compare.md", "compare.csv", explorer.FILE)


class CompareError(Exception):
    """Why two runs cannot be compared, for their user."""


@frozen
class Pair:
    """A series in both runs. verdict: `more`, `less`, `same`, `broke` (it ran before), `works`
    (now); else empty."""

    cell: Name
    what: Name
    quantity: str
    before: Maybe
    after: Maybe
    ratio: Maybe
    verdict: str

    @property
    def change(self) -> float:
        """How far after is from before, of before; 0 where one of them is missing."""
        return abs(self.ratio.value - 1) if self.ratio else 0.0


@frozen
class Run:
    """One of the two: what it was called, its tables, and of how many cells they are."""

    name: Name
    tables: Path
    cells: Quantity


@frozen
class Compared:
    """Both runs, and what of them differs.

    pairs: series of what is exact, the worst first: worse and better among them. times: those by
    the clock, that of the largest change first. kernels: those whose time a step differs.
    measured_by: days, hardware and software of both. only_before, only_after: how many series one
    run alone has. counts: how many are what; shown: of each list as many as a page shows.
    """

    before: Run
    after: Run
    pairs: list[Pair]
    worse: list[Pair]
    better: list[Pair]
    times: list[Pair]
    kernels: list[Row]
    measured_by: list[Row]
    only_before: int
    only_after: int
    counts: dict[str, Quantity]
    shown: dict[str, list[Pair]]


def compared(before: Path, after: Path, paired: dict[str, str], scratch: Path) -> Compared:
    """Two folders `results`, or folders that hold one, or archives of one.

    paired: label of a machine before → after, where they differ. scratch: a folder for the tables
    of those that have cells alone.

    Raises CompareError where one has neither tables nor cells, machines cannot be told, or no
    series is in both.
    """
    old, new = (Data(tables_of(folder, scratch)) for folder in (before, after))
    runs = Runs(old, new, _machines(old, new, paired))
    old_rows, new_rows = runs.placed("series")
    both = old_rows.merge(new_rows, on=KEY, suffixes=("_before", "_after"))
    if both.empty:
        raise CompareError(
            f"{before} and {after} have no series in common; measure the same cells in both"
        )
    every = [_pair(row) for row in both.to_dict("records")]
    every.sort(key=lambda pair: (ORDER.index(pair.verdict), -pair.change))
    of = {verdict: [pair for pair in every if pair.verdict == verdict] for verdict in ORDER}
    worse = of["broke"] + of["more"]  # also what no longer runs
    better = of["works"] + of["less"]
    times = [pair for pair in of[""] if pair.ratio and pair.quantity == "time"]
    lists = {"worse": worse, "better": better, "same": of["same"], "times": times}
    visible = lists | {"times": [pair for pair in times if pair.change > VISIBLE]}
    old_cells, new_cells = runs.placed("cells")
    return Compared(
        before=_run(before, old, old_cells),
        after=_run(after, new, new_cells),
        pairs=[pair for pair in every if pair.verdict],
        worse=worse,
        better=better,
        times=times,
        kernels=_kernels(runs)[:MOST],
        measured_by=_measured_by(old_cells, new_cells),
        only_before=len(old_rows) - len(both),
        only_after=len(new_rows) - len(both),
        counts={name: count(len(pairs)) for name, pairs in lists.items()},
        shown={name: pairs[:MOST] for name, pairs in visible.items()},
    )


@dataclass(frozen=True)
class Runs:
    """The tables of two runs. machines: label before → label after."""

    before: Data
    after: Data
    machines: dict[str, str]

    def placed(self, name: str, **where: object) -> list[pd.DataFrame]:
        """A table's rows of these machines in both runs, with `place`: the cell under the label
        that its machine has after."""
        frames = []
        same = {label: label for label in self.machines.values()}
        for data, labels in ((self.before, self.machines), (self.after, same)):
            frame = data.rows(name, machine=list(labels), **where)
            rest = frame["cell"].str.split("/", n=1).str[1]
            frames.append(frame.assign(place=frame["machine"].map(labels) + "/" + rest))
        return frames


def tables_of(folder: Path, scratch: Path) -> Path:
    """The folder of a run's tables; where it is a zip file, or has cells and their plan alone, they
    are made below `scratch`."""
    if folder.is_file():
        inside = scratch / "unzipped" / str(len(list(scratch.glob("unzipped/*"))))
        try:
            with zipfile.ZipFile(folder) as archive:
                archive.extractall(inside)
        except zipfile.BadZipFile as error:
            raise CompareError(f"{folder} is no zip file: {error}") from None
        return tables_of(inside, scratch)
    for found in (folder / "tables", folder / "results" / "tables", folder):
        if (found / "series.csv").exists():
            return found
    for cells_of in (folder, folder / "results"):
        if (cells_of / "plan.json").exists():
            return _made(cells_of, scratch)
    raise CompareError(
        f"{folder} has neither tables/series.csv nor plan.json; run there: snakemake --cores 1"
        " report"
    )


def _made(results: Path, scratch: Path) -> Path:
    """Tables of the cells below a folder."""
    plan = results / "plan.json"
    try:
        found, samples, refused = cells.read(plan, results)
        tables, damaged, _ = writing.tables(found, samples, [])
    except cells.PlanError as error:
        raise CompareError(str(error)) from None
    for name, why in (refused | damaged).items():
        raise CompareError(f"{results / name}: {why}")
    made = scratch / "tables" / str(len(list(scratch.glob("tables/*"))))
    made.mkdir(parents=True)
    writing.write(made, tables)
    return made


def _run(name: Path, data: Data, cells: pd.DataFrame) -> Run:
    ran = cells[cells["status"] != "missing"]
    return Run(name=Name(name), tables=data.folder, cells=count(len(ran)))


def _machines(before: Tables, after: Tables, paired: dict[str, str]) -> dict[str, str]:
    """Label before → after: as given, else equal ones, else the only one of each."""
    old, new = before.machines, after.machines
    there = f"{', '.join(old)} before; {', '.join(new)} after"
    for label, other in paired.items():
        if label not in old or other not in new:
            raise CompareError(f"--paired {label}={other}: the machines are {there}")
    found = paired or {label: label for label in old if label in new}
    if not found and len(old) == len(new) == 1:
        found = {old[0]: new[0]}
    if not found:
        raise CompareError(f"no machine is in both ({there}); use --paired OLD=NEW")
    return found


def _pair(row: dict) -> Pair:
    quantity, length = row["quantity"], row["length"]
    before, after = _of(row, "before"), _of(row, "after")
    ratio = over(after, before)
    statuses = (row["status_before"], row["status_after"])
    words = [
        row["variant"],
        row["mode"],
        row["phase"],
        row["direction"],
        "" if math.isnan(length) else f"at {length:,.0f}",
    ]
    return Pair(
        cell=Name(row["cell_after"]),
        what=Name(" ".join(dict.fromkeys(filter(None, words)))),  # each once
        quantity=quantity,
        before=before,
        after=after,
        ratio=ratio,
        verdict=_verdict(quantity, statuses, ratio),
    )


def _of(row: Row, side: str) -> Maybe:
    """What a run measured; None where it did not run."""
    if row[f"status_{side}"] != "ok":
        return None
    columns = ("median", "low", "high", "unit", "cell")
    own = {column: row[f"{column}_{side}"] for column in columns}
    return of_series(own | {"quantity": row["quantity"]})


def _verdict(quantity: str, statuses: tuple[str, str], ratio: Maybe) -> str:
    ran_before, runs_now = (status == "ok" for status in statuses)
    if not ran_before and not runs_now:
        return "same"
    if not runs_now:
        return "broke"
    if not ran_before:
        return "works"
    if quantity not in EXACT or ratio is None:
        return ""
    low, high = ratio.ends or (ratio.value, ratio.value)
    is_within_noise = ratio.has_interval and low <= 1 <= high  # one run's processes differ as much
    if is_within_noise or abs(ratio.value - 1) <= EXACT[quantity] + 1e-12:
        return "same"
    return "more" if ratio.value > 1 else "less"


def _kernels(runs: Runs) -> list[Row]:
    """Kernels of whole steps by how much their time a step differs, the most first; those below
    NOISE of it are left out."""
    old, new = (
        frame.groupby(["place", "name"])["time"].sum()
        for frame in runs.placed("kernels", phase="step")
    )
    in_both = set(old.index.get_level_values(0)) & set(new.index.get_level_values(0))
    both = pd.concat([old, new], axis=1, keys=["before", "after"])
    table = both.fillna(0.0).reset_index()
    table = table[table["place"].isin(in_both)]
    steps = table.groupby("place")["before"].transform("sum")
    table = table.assign(more=table["after"] - table["before"])
    table = table[table["more"].abs() > NOISE * steps]
    ordered = table.sort_values("more", key=abs, ascending=False).to_dict("records")
    return [_kernel(row) for row in ordered]


def _kernel(row: Row) -> Row:
    """Seconds a step of a kernel in both runs, and how much more that is."""
    seconds = {name: Quantity(row[name], "s") for name in ("before", "after", "more")}
    return seconds | {"cell": Name(row["place"]), "name": Name(row["name"])}


def _measured_by(*runs: pd.DataFrame) -> list[Row]:
    """A few values of each column in both runs, those first that the other run does not have."""
    short = [
        cells.assign(day=cells["started"].str[:DAY], commit=cells["commit"].str[:COMMIT])
        for cells in runs
    ]
    found = []
    for column in BY:
        old, new = (set(cells[column]) - {""} for cells in short)
        both = sorted(old & new)
        before, after = (sorted(own - {*both}) + both for own in (old, new))
        told = {"before": Name(", ".join(before[:FEW])), "after": Name(", ".join(after[:FEW]))}
        found.append({"what": column} | told)
    return found


def write(found: Compared, templates: Path, out: Path, command: str) -> str:
    """Write index.html, compare.md, compare.csv and explorer.html; returns the summary for a
    terminal."""
    environment = page.environment(templates / "chapters", lambda name: None)
    margins = EXACT | {"kernels_time": NOISE}
    environment.globals["margins"] = {name: f"{100 * each:g} %" for name, each in margins.items()}
    made = page.render(environment, "compare", found)
    rows = [_as_row(pair) for pair in (*found.pairs, *found.times)]
    runs = {"before": found.before.tables, "after": found.after.tables}
    index = html.document(templates, made.markdown, out, made.title, [], command=command)
    where = f"{found.before.name} and {found.after.name}"
    write_whole(
        {
            out / explorer.FILE: [explorer.document(runs, out, command, templates, where)],
            out / "index.html": [index],
            out / "compare.md": [made.markdown],
            out / "compare.csv": [pd.DataFrame(rows).to_csv(index=False)],
        }
    )
    return f"{summary(found)}\nThe page: {out / 'index.html'}"


def _as_row(pair: Pair) -> Row:
    """Of compare.csv."""
    numbers = {name: getattr(pair, name) for name in ("before", "after", "ratio")}
    return {
        "cell": pair.cell,
        "what": pair.what,
        "quantity": pair.quantity,
        **{name: each.value if each else None for name, each in numbers.items()},
        "verdict": pair.verdict,
    }


def summary(found: Compared) -> str:
    """A few lines for a terminal."""
    numbers = {name: int(each.value) for name, each in found.counts.items()}
    text = (
        "{worse} worse, {better} better, {same} the same; {times} times by the clock without"
        " verdict"
    )
    lines = [text.format(**numbers)]
    for pair in found.worse[:MOST]:
        lines.append(
            f"worse: {pair.cell} {pair.what} {pair.quantity} {pair.before} -> {pair.after}"
        )
    for row in found.measured_by:
        if row["before"] != row["after"]:
            lines.append("changed: {what}: {before} -> {after}".format(**row))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
