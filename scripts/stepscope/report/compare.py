"""Two runs beside each other: what is exact is judged, times by the clock are listed without a
verdict.

The clock belongs to the host of the day; two variants by the clock are compared by `ab`, in turns.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from stepscope.files import write_whole
from stepscope.report import explorer
from stepscope.report.kit import html, page
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, count, minus, over
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
KEY = ["study", "place", "variant", "mode", "phase", "length", "direction", "quantity"]
SOFTWARE = ("gpu", "cpu", "driver", "torch", "triton", "python", "commit", "code")
LONGEST = {"commit": 12}  # characters that tell
MOST = 15
VISIBLE = 0.02  # times by the clock that differ by less are not listed
FILES = ("index.html", "compare.md", "compare.csv", explorer.FILE)


class CompareError(Exception):
    """Why two runs cannot be compared, for their user."""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel whose time a step differs."""

    cell: Name
    name: Name
    before: Maybe
    after: Maybe
    more: Maybe


@dataclass(frozen=True, kw_only=True)
class Changed:
    """What is different about the runs themselves."""

    what: str
    before: Name
    after: Name


@dataclass(frozen=True, kw_only=True)
class Compared:
    """pairs: of what is exact, the worst first; times: by the clock; only_*: series of one run
    alone."""

    before: Name
    after: Name
    pairs: tuple[Pair, ...]
    times: tuple[Pair, ...]
    kernels: tuple[Kernel, ...]
    changed: tuple[Changed, ...]
    only_before: int
    only_after: int

    def of(self, *verdicts: str) -> list[Pair]:
        """Those with one of these verdicts."""
        return [pair for pair in self.pairs if pair.verdict in verdicts]

    @property
    def worse(self) -> list[Pair]:
        """More time, launches or bytes, or what no longer runs."""
        return self.of("broke", "more")

    @property
    def better(self) -> list[Pair]:
        """Less of these, or what runs now."""
        return self.of("works", "less")

    @property
    def counts(self) -> dict[str, Quantity]:
        """How many are what."""
        lists = {
            "worse": self.worse,
            "better": self.better,
            "same": self.of("same"),
            "times": self.times,
        }
        return {name: count(len(found)) for name, found in lists.items()}

    @property
    def shown(self) -> dict[str, list]:
        """Of each list as many as a page shows."""
        differ = [pair for pair in self.times if abs(pair.ratio.value - 1) > VISIBLE]
        return {"worse": self.worse[:MOST], "better": self.better[:MOST], "times": differ[:MOST]}


def compared(before: Path, after: Path, paired: dict[str, str]) -> Compared:
    """Two folders `results`, or folders that hold one. paired: label of a machine before → after,
    where they differ.

    Raises CompareError where a folder has no tables, machines cannot be told, or no series is in
    both.
    """
    tables = [Data(_tables(folder)) for folder in (before, after)]
    machines = _machines(*tables, paired)
    frames = [
        _placed(data, "series", names) for data, names in zip(tables, _sides(machines), strict=True)
    ]
    both = frames[0].merge(frames[1], on=KEY, suffixes=("_before", "_after"))
    if both.empty:
        raise CompareError(
            f"{before} and {after} have no series in common; measure the same cells in both"
        )
    pairs = [_pair(row) for row in both.to_dict("records")]
    exact = [pair for pair in pairs if pair.verdict]
    times = [pair for pair in pairs if not pair.verdict and pair.quantity == "time" and pair.ratio]
    order = {"broke": 0, "more": 1, "works": 2, "less": 3, "same": 4}
    exact.sort(
        key=lambda pair: (order[pair.verdict], -abs(pair.ratio.value - 1) if pair.ratio else 0)
    )
    times.sort(key=lambda pair: -abs(pair.ratio.value - 1))
    return Compared(
        before=Name(before),
        after=Name(after),
        pairs=tuple(exact),
        times=tuple(times),
        kernels=tuple(_kernels(*tables, machines)[:MOST]),
        changed=tuple(_changed(*tables, machines)),
        only_before=len(frames[0]) - len(both),
        only_after=len(frames[1]) - len(both),
    )


def _tables(folder: Path) -> Path:
    for found in (folder / "tables", folder / "results" / "tables", folder):
        if (found / "series.csv").exists():
            return found
    raise CompareError(f"{folder} has no tables/series.csv; run there: snakemake --cores 1 report")


def _machines(before: Tables, after: Tables, paired: dict[str, str]) -> dict[str, str]:
    """Label before → after: as given, else equal ones, else the only one of each."""
    there = before.machines, after.machines
    for old, new in paired.items():
        if old not in there[0] or new not in there[1]:
            named = " and ".join(", ".join(names) for names in there)
            raise CompareError(f"--paired {old}={new}: the machines are {named}")
    found = paired or {name: name for name in there[0] if name in there[1]}
    if not found and len(there[0]) == len(there[1]) == 1:
        found = {there[0][0]: there[1][0]}
    if not found:
        named = "; ".join(", ".join(names) for names in there)
        raise CompareError(f"no machine is in both ({named}); use --paired OLD=NEW")
    return found


def _sides(machines: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Of each run: label of a machine there → its label after."""
    return machines, {name: name for name in machines.values()}


def _placed(data: Data, name: str, machines: dict[str, str], **where: object) -> pd.DataFrame:
    """The rows of these machines with `place`: the cell under the label that its machine has
    after."""
    frame = data.rows(name, machine=list(machines), **where)
    cells = [cell.partition("/") for cell in frame["cell"]]
    return frame.assign(place=[f"{machines[machine]}/{rest}" for machine, _, rest in cells])


def _pair(row: dict) -> Pair:
    names = ("median", "low", "high", "unit", "status", "cell")
    sides = [{name: row[f"{name}_{side}"] for name in names} for side in ("before", "after")]
    values = [
        of_series(side | {"quantity": row["quantity"]}) if side["status"] == "ok" else None
        for side in sides
    ]
    ratio = over(values[1], values[0])
    at = f"at {row['length']:,.0f}" if row["length"] == row["length"] else ""
    words = [
        row["variant"],
        row["mode"],
        row["phase"] if row["phase"] != row["mode"] else "",
        row["direction"],
        at,
    ]
    return Pair(
        cell=Name(row["cell_after"]),
        what=Name(" ".join(dict.fromkeys(filter(None, words)))),  # each once
        quantity=row["quantity"],
        before=values[0],
        after=values[1],
        ratio=ratio,
        verdict=_verdict(row["quantity"], [side["status"] for side in sides], ratio),
    )


def _verdict(quantity: str, statuses: list[str], ratio: Maybe) -> str:
    if statuses != ["ok", "ok"]:
        return "broke" if statuses[0] == "ok" else "works" if statuses[1] == "ok" else "same"
    if quantity not in EXACT or ratio is None:
        return ""
    holds_one = (
        ratio.has_interval and ratio.low <= 1 <= ratio.high
    )  # processes of one run differ as much
    if abs(ratio.value - 1) <= EXACT[quantity] + 1e-12 or holds_one:
        return "same"
    return "more" if ratio.value > 1 else "less"


def _kernels(before: Data, after: Data, machines: dict[str, str]) -> list[Kernel]:
    """Kernels of whole steps by how much their time a step differs, the most first; those below 1 %
    of it are noise."""
    frames = [
        _placed(data, "kernels", names, phase="step").groupby(["place", "name"])["time"].sum()
        for data, names in zip((before, after), _sides(machines), strict=True)
    ]
    common = set(frames[0].index.get_level_values(0)) & set(frames[1].index.get_level_values(0))
    table = pd.concat(frames, axis=1, keys=["before", "after"]).fillna(0.0)
    table = table[table.index.get_level_values(0).isin(common)]
    table = table.assign(more=table["after"] - table["before"])
    steps = table.groupby(level=0)["before"].transform("sum")
    table = table[table["more"].abs() > 0.01 * steps].sort_values("more", key=abs, ascending=False)
    return [
        Kernel(cell=Name(cell), name=Name(name), before=(old := Quantity(row["before"], "s")),
               after=(new := Quantity(row["after"], "s")), more=minus(new, old))
        for (cell, name), row in table.iterrows()
    ]  # fmt: skip


def _changed(before: Data, after: Data, machines: dict[str, str]) -> list[Changed]:
    found = []
    for column in SOFTWARE:
        sides, said = [], []
        for data, names in ((before, machines.keys()), (after, machines.values())):
            sides.append(
                {row[column] for row in data.dicts("cells", machine=list(names)) if row[column]}
            )
        for own, other in (sides, sides[::-1]):
            shown = [
                value[: LONGEST.get(column)]
                for value in [*sorted(own - other), *sorted(own & other)]
            ]
            said.append(", ".join(shown[:3] + [f"{len(shown) - 3} more"] * (len(shown) > 3)))
        if sides[0] != sides[1]:
            found.append(Changed(what=column, before=Name(said[0]), after=Name(said[1])))
    return found


def write(found: Compared, templates: Path, out: Path, command: str) -> str:
    """Write index.html, compare.md, compare.csv and explorer.html; returns the summary for a
    terminal."""
    environment = page.environment(templates / "chapters", lambda name: None)
    environment.globals["margins"] = {name: f"{100 * margin:g} %" for name, margin in EXACT.items()}
    made = page.render(environment, "compare", found)
    rows = [
        {"cell": pair.cell, "what": pair.what, "quantity": pair.quantity, "before": _value(pair.before),
         "after": _value(pair.after), "ratio": _value(pair.ratio), "verdict": pair.verdict}
        for pair in (*found.pairs, *found.times)
    ]  # fmt: skip
    runs = {
        name: _tables(Path(folder))
        for name, folder in (("before", found.before), ("after", found.after))
    }
    write_whole(
        {
            out / explorer.FILE: [explorer.document(runs, out, command, templates)],
            out / "index.html": [
                html.document(templates, made.markdown, out, made.title, [], command=command)
            ],
            out / "compare.md": [made.markdown],
            out / "compare.csv": [pd.DataFrame(rows).to_csv(index=False)],
        }
    )
    return f"{summary(found)}\nThe page: {out / 'index.html'}"


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
    lines += [f"changed: {each.what}: {each.before} -> {each.after}" for each in found.changed]
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _value(quantity: Maybe) -> float | None:
    return quantity.value if quantity else None
