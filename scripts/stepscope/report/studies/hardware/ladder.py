"""The first and the last rung of each ladder on every machine."""

import itertools
from dataclasses import dataclass

from stepscope.report.data.ladder import TIMES, Ladder, ladders, time, verdict
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.table import number
from stepscope.report.studies.hardware.compared import (
    LOST,
    absent,
    everyone,
    legend,
    machines_of,
    ratio_text,
    speed_cell,
)
from stepscope.report.studies.hardware.tables import MOST_ROWS
from stepscope.tables.reader import Tables


@dataclass(frozen=True)
class Rung:
    """A rung of the same place on several machines: hardware label -> its row."""

    ladder: Ladder
    name: str
    rows: dict[str, dict]

    @property
    def kind(self) -> str | None:
        """Prefix of the time that all machines have, a whole step if possible; None without one."""
        return next((each for each in TIMES if all(time(row, each) for row in self.rows.values())), None)


def rungs(tables: Tables, labels: list[str]) -> list[Rung]:
    """The first rung that all of these machines have, and the last that all finished, of every place.

    Machines of which the study has no ladder at all are left out.
    """
    found: dict[tuple, dict[str, Ladder]] = {}
    for one in ladders(tables):
        found.setdefault((one.size, one.context, one.batch), {})[one.hardware] = one
    having = {label for places in found.values() for label in places}
    labels = [label for label in labels if label in having]
    if len(labels) < 2:
        return []
    made = []
    for places in found.values():
        if not set(labels) <= set(places):
            continue
        names = [{str(row["name"]): row for row in places[label].rungs} for label in labels]
        shared = [
            Rung(places[labels[0]], name, dict(zip(labels, (own[name] for own in names), strict=True)))
            for name in names[0]
            if all(name in own for own in names)
        ]
        if shared:
            last = next((rung for rung in reversed(shared) if rung.kind), shared[-1])
            made += [shared[0], *([last] if last is not shared[0] else [])]
    return made


def ladder_table(found: list[Rung], labels: list[str]) -> Table | None:
    """A row a place and rung, a column a machine: its speed over the baseline's."""
    if not found:
        return None
    present = machines_of(found, labels)
    baseline, *others = present
    several = len(others) > 1
    batches = len({rung.ladder.batch for rung in found}) > 1
    columns = [Column("size", number=False), Column("context", "tokens"), *[Column("batch")] * batches]
    columns.append(Column("rung", number=False))
    columns += [Column(other if several else "× (ms)", group="times as fast") for other in others]
    rows = []
    for rung in found:
        line = [Cell(rung.ladder.size), number(rung.ladder.context, formatting.count)]
        line += [number(rung.ladder.batch, formatting.count)] * batches
        line.append(Cell(rung.name, "" if rung.kind in ("step", None) else "forward+backward"))
        rows.append(line + [_cell(rung, other, baseline) for other in others])
    of = "each machine" if several else others[0]
    last = f"the last that {everyone(labels, present)} finished"
    caption = f"The first rung of each ladder and {last}, on {of} over {baseline}."
    notes = [
        "Below each: the baseline's ms → its own. In brackets: the 95 % intervals overlap.",
        *_gains(found, present),
        *absent(labels, present, "ladder"),
    ]
    is_long = len(rows) > MOST_ROWS
    return Table("hardware-ladder", caption, columns, rows, notes + legend(rows), is_long, True, page_only=is_long)


def _cell(rung: Rung, other: str, baseline: str) -> Cell:
    before, after = rung.rows[baseline], rung.rows[other]
    kind = rung.kind or next(iter(TIMES))
    times = [time(row, kind) for row in (before, after)]
    statuses = [row.get(f"{kind}_status") or row["status"] for row in (before, after)]
    noisy = any(row.get(f"{kind}_noisy") for row in (before, after)) and all(times)
    is_clear = verdict(after, before) != "unclear"
    return speed_cell(*times, is_clear, [each if each in LOST else None for each in statuses], ("noisy",) * noisy)


def _gains(found: list[Rung], labels: list[str]) -> list[str]:
    """What the whole ladder brings on each machine, place by place, where both ends are of the same kind."""
    parts = []
    for first, last in itertools.pairwise(found):
        if first.ladder is last.ladder and first.kind and first.kind == last.kind:
            gains = [time(first.rows[each], first.kind) / time(last.rows[each], last.kind) for each in labels]
            told = [f"× {ratio_text(gain)} on {each}" for gain, each in zip(gains, labels, strict=True)]
            parts.append(f"{first.ladder.place}: {formatting.listing(told)}")
    return [f"Last rung over first: {'; '.join(parts)}."] if parts else []
