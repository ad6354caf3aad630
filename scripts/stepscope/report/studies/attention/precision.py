"""What TF32 changes: the same implementation, shape and direction in fp32 and in tf32."""

from dataclasses import dataclass

from stepscope.report.data.attention import DIRECTIONS, Group, compared, count, lost, median, notes, verdict
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import percent_change
from stepscope.report.studies.attention.tables import POINT


@dataclass(frozen=True)
class Pair:
    """A result in tf32 and the same one in fp32; a row is empty where the grid has none."""

    tf32: dict
    fp32: dict

    @property
    def change(self) -> float | None:
        """tf32's time over fp32's, less one."""
        own, reference = median(self.tf32), median(self.fp32)
        return own / reference - 1 if own and reference else None

    @property
    def verdict(self) -> str:
        """`faster`, `slower` or `unclear`."""
        return verdict(self.tf32, self.fp32)


def pairs(group: Group) -> list[Pair]:
    """Every result in tf32 beside that in fp32, where both have a time."""
    found = [pair_at(group, row) for row in group.rows if row["precision"] == "tf32"]
    return [pair for pair in found if pair.change is not None]


def pair_at(group: Group, row: dict) -> Pair:
    """The pair at the point of a row."""
    first, *rest = (row[name] for name in ("implementation", "d_head", "length", "direction"))
    return Pair(*(group.at(first, precision, *rest) for precision in ("tf32", "fp32")))


def tf32_table(group: Group) -> Table | None:
    """A row for each d and length: how much tf32 changes the time of each implementation; None without pairs."""
    if not pairs(group):
        return None
    names = [name for name in group.values("implementation", "tf32") if name in group.values("implementation", "fp32")]
    rows = []
    for d_head, length in group.points("tf32"):
        line = [count(d_head), count(length)]
        for name in names:
            points = [{"implementation": name, "d_head": d_head, "length": length, "direction": w} for w in DIRECTIONS]
            line += [_cell(pair_at(group, point)) for point in points]
        rows.append(line)
    columns = [*POINT, *(Column(way, "%", group=name) for name in names for way in DIRECTIONS)]
    caption = f"What TF32 changes: time in tf32 against fp32 in %, {group.place}."
    note = "Negative: tf32 takes less time. In brackets: the two 95 % intervals overlap."
    name = f"attention-tf32-{group.hardware}"
    return Table(name, caption, columns, rows, [note, *notes([], rows)], grouped=True)


def _cell(pair: Pair) -> Cell:
    if pair.change is None:
        badges = tuple(dict.fromkeys((*lost(pair.tf32), *lost(pair.fp32))))
        return Cell("" if badges else "–", badges=badges)
    text = percent_change(pair.change).removesuffix(" %")
    return Cell(compared(pair.tf32, pair.fp32, text), sort=pair.change)


def range_of(changes: list[float]) -> str:
    """`−12 % to −50 %`, or one number."""
    low, high = (percent_change(end(changes)) for end in (max, min))
    return low if low == high else f"{low} to {high}"


def told(group: Group) -> str:
    """What TF32 changes at the longest length that was measured in both; empty without pairs."""
    found = pairs(group)
    if not found:
        return ""
    longest = max(pair.tf32["length"] for pair in found)
    parts = []
    for name in group.values("implementation", "tf32"):
        for way in DIRECTIONS:
            own = [p for p in found if p.tf32["implementation"] == name and p.tf32["direction"] == way]
            there = [pair.change for pair in own if pair.tf32["length"] == longest]
            parts += [f"{name} {way} {range_of(there)}"] if there else []
    clear = {word: sum(pair.verdict == word for pair in found) for word in ("faster", "slower")}
    points = f"{len(found):,} point{'s' * (len(found) != 1)}"
    return (
        f"tf32 against fp32, time at length {formatting.count(longest)}, over d: {'; '.join(parts)}. With disjoint "
        f"intervals faster in {clear['faster']:,} and slower in {clear['slower']:,} of {points}; single runs."
    )
