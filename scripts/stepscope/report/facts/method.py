"""How it was measured: counts, versions, dates, clocks, and what is missing."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from stepscope.report.facts.machine import Machine, machine
from stepscope.report.kit.data import Data, number
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, count

SECOND = 1.0  # to which starts are known
MOST = 12  # cells that are named one by one


@dataclass(frozen=True, kw_only=True)
class ListedCell:
    """A cell with what measures it."""

    cell: Name
    reason: Name
    command: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study: its cells, and what they took."""

    study: Name
    cells: Maybe
    processes: Maybe
    time: Maybe


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The rates of a large product or copy."""

    what: Name
    burst: Maybe
    sustained: Maybe
    promised: Maybe


@dataclass(frozen=True, kw_only=True)
class Method:
    """Versions are joined where cells differ in them. commands: of every cell, for facts.json."""

    machine: Machine
    cells: Maybe = None
    first_day: str = ""
    last_day: str = ""
    time: Maybe = None
    commits: tuple[Name, ...] = ()
    versions: tuple[Name, ...] = ()
    studies: tuple[Study, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    clock_low: Maybe = None
    clock_high: Maybe = None
    power: Maybe = None
    power_limit: Maybe = None
    temperature: Maybe = None
    throttled: Maybe = None
    throttle: tuple[Name, ...] = ()
    shared: Maybe = None
    has_doubt: bool = False
    at_once: Maybe = None
    cards: Maybe = None
    processes: Maybe = None
    missing: tuple[ListedCell, ...] = ()
    refused: tuple[ListedCell, ...] = ()
    again: Name | None = None
    more_missing: Maybe = None
    older: tuple[ListedCell, ...] = ()
    older_count: Maybe = None
    failed: tuple[ListedCell, ...] = ()
    broken: tuple[ListedCell, ...] = ()
    commands: dict[str, str] | None = None


def facts(data: Data) -> Method | None:
    """Of all cells of the machine."""
    rows = data.dicts("cells")
    if not rows:
        return None
    ran = [row for row in rows if row["status"] != "missing"]
    lacking = [row for row in rows if row["status"] == "missing"]
    missing = [row for row in lacking if row["reason"] == "not measured"]
    refused = [row for row in lacking if row["reason"] != "not measured"]
    older = [row for row in ran if not row["is_current"]]
    failed = [row for row in ran if row["status"] in ("oom", "unsupported")]
    broken = [row for row in ran if row["status"] == "failed"]
    started = sorted(row["started"] for row in ran if row["started"])
    clocks = [
        row["sm_clock_median_mhz"]
        for row in ran
        if row["sm_clock_median_mhz"] == row["sm_clock_median_mhz"]
    ]
    throttled = [row for row in ran if row["throttle"]]
    shared = [row for row in ran if row["other_processes"] > 0]
    return Method(
        machine=machine(data),
        cells=count(len(ran)) if ran else None,
        first_day=started[0][:10] if started else "",
        last_day=started[-1][:10] if started else "",
        time=_sum(ran),
        commits=tuple(Name(each) for each in _distinct(ran, "commit", short=12)),
        versions=versions(ran),
        studies=_studies(ran),
        ceilings=_ceilings(data),
        clock_low=Quantity(min(clocks), "MHz") if clocks else None,
        clock_high=Quantity(max(clocks), "MHz") if clocks else None,
        power=_most(ran, "power_max_w", "W"),
        power_limit=_most(ran, "power_limit_w", "W"),
        temperature=_most(ran, "temperature_max_c", "°C"),
        throttled=count(len(throttled)) if throttled else None,
        throttle=tuple(
            map(
                Name,
                dict.fromkeys(word for row in throttled for word in row["throttle"].split("; ")),
            )
        ),
        shared=count(len(shared)) if shared else None,
        at_once=at_once(ran),
        cards=count(len(cards)) if len(cards := _distinct(ran, "gpu_uuid")) > 1 else None,
        has_doubt=any(
            row["low"] != row["low"]
            for row in data.series(quantity="time", study=["timing", "ladder"])
        ),
        missing=tuple(map(_cell, missing[:MOST])),
        more_missing=count(len(missing) - MOST) if len(missing) > MOST else None,
        older=tuple(map(_cell, older[:MOST])),
        older_count=count(len(older)) if older else None,
        failed=tuple(map(_cell, failed)),
        broken=tuple(map(_cell, broken)),
        refused=tuple(map(_cell, refused)),
        again=Name(_again(refused)) if refused else None,
        commands={row["cell"]: row["command"] for row in rows},
    )


def at_once(cells: list[dict]) -> Maybe:
    """On how many GPUs cells ran at a time at most, where that was more than one: by their starts
    and durations."""
    events = []
    for row in cells:
        if row["gpu_uuid"] and row["started"] and row["duration_s"] == row["duration_s"]:
            start = datetime.fromisoformat(row["started"]).timestamp()
            events += [
                (start, 1, row["gpu_uuid"]),
                (start + row["duration_s"] - SECOND, -1, row["gpu_uuid"]),
            ]
    now: Counter[str] = Counter()
    most = 0
    for _, change, gpu in sorted(events):
        now[gpu] += change
        most = max(most, len(+now))
    return count(most) if most > 1 else None


def _again(rows: list[dict]) -> str:
    """What has Snakemake measure cells again whose records are there."""
    return " ".join(["--forcerun", *(f"results/{row['cell']}/record.json" for row in rows)])


def _cell(row: dict) -> ListedCell:
    return ListedCell(
        cell=Name(row["cell"]), reason=Name(row["reason"] or row["status"]), command=row["command"]
    )


def _sum(rows: list[dict]) -> Maybe:
    known = [row["duration_s"] for row in rows if row["duration_s"] == row["duration_s"]]
    return Quantity(sum(known) / 60, "min") if known else None


def _most(rows: list[dict], column: str, unit: str) -> Maybe:
    known = [made for row in rows if (made := number(row, column, unit))]
    return max(known, key=lambda each: each.value, default=None)


def _distinct(rows: list[dict], column: str, short: int = 60) -> list[str]:
    found = dict.fromkeys(row[column] for row in rows if row[column])
    return [
        each[:short] + ("-dirty" if each.endswith("-dirty") and short < len(each) else "")
        for each in found
    ]


def versions(cells: list[dict]) -> tuple[Name, ...]:
    """Of PyTorch and what is below it, all that cells name."""
    names = {"torch": "PyTorch", "triton": "Triton", "python": "Python", "driver": "driver"}
    found = {label: _distinct(cells, column) for column, label in names.items()}
    return tuple(Name(f"{label} {', '.join(each)}") for label, each in found.items() if each)


def _studies(rows: list[dict]) -> tuple[Study, ...]:
    made = []
    for name in dict.fromkeys(row["study"] for row in rows):
        own = [row for row in rows if row["study"] == name]
        processes = max(
            (row["processes"] for row in own if row["processes"] == row["processes"]), default=None
        )
        made.append(
            Study(
                study=Name(name), cells=count(len(own)), processes=count(processes), time=_sum(own)
            )
        )
    return tuple(made)


def _ceilings(data: Data) -> tuple[Ceiling, ...]:
    """Products by precision, then copies."""
    rows = data.series(study="ceilings", quantity="rate")
    found: dict[str, dict[str, Quantity]] = {}
    for row in sorted(rows, key=lambda row: row["size"] == "copy"):
        what = f"product in {row['precision']}" if row["size"] == "matmul" else "copy"
        rate = Quantity(row["median"], row["unit"], cells=(row["cell"],))
        found.setdefault(what, {})[row["variant"]] = rate
    return tuple(
        Ceiling(
            what=Name(what),
            burst=rates.get("burst"),
            sustained=rates.get("sustained"),
            promised=rates.get("datasheet"),
        )
        for what, rates in found.items()
    )
