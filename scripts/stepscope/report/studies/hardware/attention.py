"""Attention by itself on every machine: each implementation at the longest length that all machines finished."""

from dataclasses import dataclass

from stepscope.report.data.attention import (
    DIRECTIONS,
    Attention,
    Group,
    Setting,
    implementation_rank,
    median,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.compare import UNCLEAR, timed, verdict
from stepscope.report.kit.order import precision_rank
from stepscope.report.kit.table import number
from stepscope.report.studies.hardware.compared import LOST, absent, everyone, legend, machines_of, speed_cell
from stepscope.report.studies.hardware.tables import MOST_ROWS
from stepscope.tables.reader import Tables


@dataclass(frozen=True)
class Line:
    """An implementation, precision, d and direction in one setting: hardware label -> its result at one length.

    length: the longest that all machines finished, or, where there is none, the longest that any has.
    """

    setting: Setting
    implementation: str
    precision: str
    d_head: float
    direction: str
    length: float
    rows: dict[str, dict]

    def ratio(self, label: str, baseline: str) -> float | None:
        """How many times the baseline's speed a machine has; None unless both finished."""
        own, other = (median(self.rows[each]) for each in (label, baseline))
        return other / own if own and other else None


def lines(tables: Tables, labels: list[str]) -> list[Line]:
    """The lines of the settings that all of these machines have, but for those that the study does not have at all."""
    attention = Attention(tables)
    labels = [label for label in labels if label in attention.hardware]
    if len(labels) < 2:
        return []
    found: dict[Setting, dict[str, Group]] = {}
    for group in attention.groups:
        found.setdefault(group.setting, {})[group.hardware] = group
    made = []
    for setting, groups in found.items():
        if set(labels) <= set(groups):
            made += _of(setting, {label: groups[label] for label in labels})
    return made


def _of(setting: Setting, groups: dict[str, Group]) -> list[Line]:
    names = ("implementation", "precision", "d_head", "direction")
    keys = {tuple(row[name] for name in names) for group in groups.values() for row in group.rows}
    ranked = sorted(keys, key=lambda key: (implementation_rank(key[0]), precision_rank(key[1]), *key[2:]))
    made = []
    for implementation, precision, d_head, direction in ranked:
        by_length: dict[float, dict[str, dict]] = {}
        for label, group in groups.items():
            for row in group.rows:
                if tuple(row[name] for name in names) == (implementation, precision, d_head, direction):
                    by_length.setdefault(row["length"], {})[label] = row
        shared = [length for length, rows in by_length.items() if len(rows) == len(groups)]
        if shared:
            done = [length for length in shared if all(median(row) for row in by_length[length].values())]
            length = max(done or shared)
            made.append(Line(setting, implementation, precision, d_head, direction, length, by_length[length]))
    return made


def attention_tables(found: list[Line], labels: list[str]) -> list[Table]:
    """A table a setting: a row an implementation, precision and d, a column a direction and machine."""
    if not found:
        return []
    present = machines_of(found, labels)
    baseline, *others = present
    several, tables = len(others) > 1, []
    for at, setting in enumerate(dict.fromkeys(line.setting for line in found)):
        own = {}
        for line in (line for line in found if line.setting == setting):
            own.setdefault((line.implementation, line.precision, line.d_head, line.length), {})[line.direction] = line
        ways = [way for way in DIRECTIONS if any(way in pair for pair in own.values())]
        columns = [Column("implementation", number=False), Column("precision", number=False), Column("d")]
        columns.append(Column("length", "tokens"))
        columns += [Column(other if several else "× (ms)", group=way) for way in ways for other in others]
        rows = []
        for (name, precision, d_head, length), pair in own.items():
            line = [Cell(name), Cell(precision), *(number(each, formatting.count) for each in (d_head, length))]
            rows.append(line + [_cell(pair.get(way), other, baseline) for way in ways for other in others])
        of = "each machine" if several else others[0]
        caption = (
            f"How many times as fast attention is on {of} as on {baseline}, at the longest length that "
            f"{everyone(labels, present)} finished; below it the baseline's ms → its own; {setting.title}."
        )
        is_long = len(rows) > MOST_ROWS
        notes = ["In brackets: the 95 % intervals of the medians overlap.", *legend(rows)]
        notes += absent(labels, present, "attention")
        tables.append(
            Table(f"hardware-attention-{at}", caption, columns, rows, notes, is_long, True, page_only=is_long)
        )
    return tables


def _cell(line: Line | None, other: str, baseline: str) -> Cell:
    if line is None:
        return Cell("–")
    before, after = line.rows[baseline], line.rows[other]
    statuses = [row["status"] if row["status"] in LOST else None for row in (before, after)]
    noisy = any(row.get("noisy") and median(row) for row in (before, after))
    is_clear = verdict(timed(after), timed(before)) != UNCLEAR
    return speed_cell(median(before), median(after), is_clear, statuses, ("noisy",) * noisy)
