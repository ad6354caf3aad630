"""How it was measured: counts, versions, dates, clocks, and what is missing."""

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.machine import Chapter, measured_rate, place
from stepscope.report.facts.profile import Profiled
from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, ordered, share, value_of
from stepscope.results.cells import NOT_MEASURED

SECOND = 1.0  # to which starts are known
MOST = 12  # cells that are named one by one
COMMIT = 12  # characters of a commit that tell
VERSIONS = {"torch": "PyTorch", "triton": "Triton", "python": "Python", "driver": "driver"}


def _most(column: str, unit: str) -> cached_property[Maybe]:
    """The fact that is the largest number in a column of the cells that ran."""

    return cached_property(lambda facts: max(facts.read(column, unit), key=value_of, default=None))


@frozen
class Method(Chapter):
    """Of all cells of a machine. Versions are joined where cells differ in them."""

    @cached_property
    def cells(self) -> Maybe:
        """Those that ran."""
        return _count(self._ran)

    @cached_property
    def days(self) -> list[str]:
        """On which they started, in order."""
        return sorted({row["started"][:10] for row in self._ran if row["started"]})

    @cached_property
    def time(self) -> Maybe:
        """What they took together."""
        return _minutes(self._ran)

    @cached_property
    def commits(self) -> list[Name]:
        """That measured."""
        return list(map(Name, _distinct(map(_commit, self._ran))))

    @cached_property
    def versions(self) -> list[Name]:
        """Of PyTorch and what is below it."""
        return versions(self._ran)

    @cached_property
    def studies(self) -> list[Row]:
        """Each with the cells that ran, and what they took."""
        cells = grouped(self._ran, "study").values()
        return list(map(_study, cells))

    @cached_property
    def ceilings(self) -> list[Row]:
        """Rates of large products by precision, then of copies."""
        rows = self.data.series(study="ceilings", quantity="rate")
        products = [row for row in rows if row["size"] == "matmul"]
        others = [row for row in rows if row["size"] != "matmul"]
        kinds = list(grouped(products, "precision").values())
        if others:
            kinds.append(others)
        return list(map(_ceiling, kinds))

    @cached_property
    def alike(self) -> list[Row]:
        """What is known of other cards of this type, too, beside theirs."""
        return beside_others(self.data)[:MOST]

    # What the card did: the highest that was read, and of clocks the cells' medians.

    clock = _most("sm_clock_median_mhz", "MHz")
    power = _most("power_max_w", "W")
    power_limit = _most("power_limit_w", "W")
    temperature = _most("temperature_max_c", "°C")

    @cached_property
    def clock_low(self) -> Maybe:
        """The lowest of the clocks."""
        return min(self.read("sm_clock_median_mhz", "MHz"), key=value_of, default=None)

    def read(self, column: str, unit: str) -> list[Quantity]:
        """A column of the cells that ran."""
        return list(filter(None, (number(row, column, unit) for row in self._ran)))

    @cached_property
    def throttled(self) -> Maybe:
        """Cells during which the card lowered its clocks."""
        return _count([row for row in self._ran if row["throttle"]])

    @cached_property
    def throttle(self) -> list[Name]:
        """What made it."""
        words = [word for row in self._ran for word in row["throttle"].split("; ")]
        return list(map(Name, _distinct(words)))

    @cached_property
    def shared(self) -> Maybe:
        """Cells beside which another process was on the GPU."""
        return _count([row for row in self._ran if row["other_processes"] > 0])

    @cached_property
    def at_once(self) -> Maybe:
        """On how many GPUs cells ran at a time."""
        return at_once(self._ran)

    @cached_property
    def cards(self) -> Maybe:
        """How many cards of the type there were; None of a single one."""
        cards = self.data.cards(row["cell"] for row in self._ran)
        return count(len(cards)) if len(cards) > 1 else None

    @property
    def has_doubt(self) -> bool:
        """Whether a step's time has no interval."""
        rows = self.data.series(quantity="time", study=["timing", "ladder"])
        return any(math.isnan(row["low"]) for row in rows)

    # What the profiler costs.

    @cached_property
    def profilers(self) -> list[Name]:
        """That profiled steps, with their versions."""
        told = (f"{row['profiler']} {row['profiler_version']}".strip() for row in self._ran)
        return list(map(Name, _distinct(told)))

    @cached_property
    def profiles(self) -> list[Row]:
        """Plain profiled steps, the largest first: their phases by range and clock, and how many
        times as long as without the profiler each takes."""
        ours = self.data.seen(own_steps=False)
        plain = [each for each in profile.profiled(ours) if not each.options]
        return list(map(_profile, plain))

    @cached_property
    def warnings(self) -> list[Row]:
        """What profilers and the analyses of their traces warned of, and in how many cells."""
        texts = grouped(self.data.dicts("warnings"), "text").values()
        return [{"warning": Name(rows[0]["text"]), "cells": _count(rows)} for rows in texts]

    # What is missing.

    @cached_property
    def missing(self) -> list[Row]:
        """Cells of the plan that were not measured, a few."""
        return _listed(self._missing[:MOST])

    @cached_property
    def more_missing(self) -> Maybe:
        """How many are not among them."""
        return _count(self._missing[MOST:])

    @cached_property
    def refused(self) -> list[Row]:
        """Cells whose files cannot be used, with the reason."""
        absent = self._of("missing")
        return _listed(row for row in absent if row not in self._missing)

    @cached_property
    def again(self) -> Name | None:
        """What has Snakemake measure these again, although there are records of them."""
        records = [f"results/{row['cell']}/record.json" for row in self.refused]
        return Name(" ".join(["--forcerun", *records])) if records else None

    @cached_property
    def older(self) -> list[Row]:
        """Cells that other code than today's measured, a few."""
        return _listed(self._older[:MOST])

    @cached_property
    def older_count(self) -> Maybe:
        """How many there are."""
        return _count(self._older)

    @cached_property
    def failed(self) -> list[Row]:
        """Cells that could not run."""
        return _listed(self._of("oom", "unsupported"))

    @cached_property
    def broken(self) -> list[Row]:
        """Cells that ran and computed nothing finite."""
        return _listed(self._of("failed"))

    @cached_property
    def commands(self) -> dict[str, str]:
        """Of every cell, for facts.json."""
        return {row["cell"]: row["command"] for row in self._cells}

    @cached_property
    def _cells(self) -> list[Row]:
        return self.data.dicts("cells")

    def _of(self, *statuses: str) -> list[Row]:
        return [row for row in self._cells if row["status"] in statuses]

    @cached_property
    def _ran(self) -> list[Row]:
        return [row for row in self._cells if row["status"] != "missing"]

    @property
    def _missing(self) -> list[Row]:
        return [row for row in self._of("missing") if row["reason"] in ("", NOT_MEASURED)]

    @property
    def _older(self) -> list[Row]:
        return [row for row in self._ran if not row["is_current"]]


def facts(data: Data) -> Method | None:
    """Of all cells of the machine, those of one's own steps among them."""
    data = data.seen(own_steps=None)
    return Method(data=data) if data.dicts("cells") else None


def at_once(cells: list[Row]) -> Maybe:
    """On how many GPUs cells ran at a time at most, where that was more than one: by their starts
    and durations."""
    events = []
    for row in cells:
        gpu = row["gpu_uuid"]
        if gpu and row["started"] and not math.isnan(row["duration_s"]):
            start = datetime.fromisoformat(row["started"]).timestamp()
            end = start + row["duration_s"] - SECOND
            events += [(start, 1, gpu), (end, -1, gpu)]
    now: Counter[str] = Counter()
    most = 0
    for _, change, gpu in sorted(events):
        now[gpu] += change
        most = max(most, len(+now))
    return count(most) if most > 1 else None


def is_suspect(torch: str) -> bool:
    """Whether a release of PyTorch was seen to compile SDPA with wrong gradients, on a GPU."""
    return torch.startswith("2.11.")


def versions(cells: list[Row]) -> list[Name]:
    """Of PyTorch and what is below it, all that cells name."""
    found = []
    for column, label in VERSIONS.items():
        named = _distinct(row[column] for row in cells)
        if named:
            found.append(Name(f"{label} {', '.join(named)}"))
    return found


def _listed(rows: Iterable[Row]) -> list[Row]:
    return [
        {"cell": Name(row["cell"]), "reason": Name(row["reason"] or row["status"])} for row in rows
    ]


def beside_others(data: Data) -> list[Row]:
    """Rows of the table `cards`, in their own unit, those that most cards are known of first."""
    found = []
    for row in data.dicts("cards"):
        unit = row["unit"]
        where = place(data, row)
        what = where.name if where else row["size"]
        found.append(
            shown(row, value=unit, low=unit, high=unit)
            | {"what": Name(f"{what}, {row['precision']}")}
        )
    return list(ordered(found, "cards", reverse=True))


def _count(rows: list[Row]) -> Maybe:
    """None of none."""
    return count(len(rows)) if rows else None


def _minutes(rows: list[Row]) -> Maybe:
    known = [row["duration_s"] for row in rows if not math.isnan(row["duration_s"])]
    return Quantity(sum(known) / 60, "min") if known else None


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, words)))


def _commit(row: Row) -> str:
    commit, dirty, _ = row["commit"].partition("-dirty")
    return commit[:COMMIT] + dirty


def _study(rows: list[Row]) -> Row:
    """Of its cells: how many, the most processes of one, and minutes in all."""
    processes = [row["processes"] for row in rows if not math.isnan(row["processes"])]
    return {
        "study": Name(rows[0]["study"]),
        "cells": _count(rows),
        "processes": count(max(processes)) if processes else None,
        "time": _minutes(rows),
    }


def _profile(step: Profiled) -> Row:
    """Its place, `phases`, and by the name of each phase what the profiler costs; `moving`: the
    share of copies and fills in the GPU's time."""
    phases = [shown(row) for row in step.data.dicts("phases", cell=step.cell)]
    costs = {str(row["phase"]): row["overhead"] for row in phases}
    whole = next((row for row in phases if row["phase"] == "step"), {})
    timed = [row for row in phases if row["clock"]]
    moving = share(whole.get("memory_time"), whole.get("gpu_time"))
    return {"place": step.place, "phases": timed, "moving": moving} | costs


def _ceiling(rows: list[Row]) -> Row:
    """The rates of a large product or copy: in a burst, sustained, and by the data sheet."""
    one = rows[0]
    what = Name(f"product in {one['precision']}" if one["size"] == "matmul" else "copy")
    return {"what": what} | {row["variant"]: measured_rate(row) for row in rows}
