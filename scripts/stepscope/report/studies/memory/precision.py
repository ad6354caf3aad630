"""What a lower precision saves or loses at the peak, and which categories shrink and grow."""

from dataclasses import dataclass

from stepscope.report.data.memory import POINT, Memory, lead, leading, out_of_memory
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.order import ordered, precision_rank
from stepscope.report.kit.sizes import change, change_cell, size_cell
from stepscope.report.studies.memory.peaks import place

REFERENCE = "fp32"
SAME = 0.01  # a difference of the peaks below this share is called none
_LEAST = 0.005  # share of the reference's peak from which on a category is named


@dataclass(frozen=True)
class Pair:
    """A cell and the fp32 cell of the same point."""

    row: dict
    reference: dict
    peaks: tuple[float | None, float | None]  # bytes, of the reference and of the cell
    changes: dict[str, float]  # category -> bytes, largest change first; only where both finished

    @property
    def share(self) -> float | None:
        """The peak's difference over the reference's peak; None unless both finished."""
        finished = self.row["status"] == self.reference["status"] == "ok" and all(map(formatting.known, self.peaks))
        return (self.peaks[1] - self.peaks[0]) / self.peaks[0] if finished and self.peaks[0] else None

    @property
    def difference(self) -> float:
        """Of the peaks, in bytes."""
        return self.peaks[1] - self.peaks[0]

    def told(self, sign: int) -> list[str]:
        """`activations −3.1 GiB`: the categories that grew (sign 1) or shrank (−1) by what is worth naming."""
        least = _LEAST * self.peaks[0]
        return [f"{name} {change(value)}" for name, value in self.changes.items() if sign * value >= least]


def pairs(memory: Memory) -> list[Pair]:
    """Each first run in another precision beside fp32 at the same point, where both were tried."""
    tried = [row for row in memory.first_runs(memory.all) if row["status"] in ("ok", "oom")]
    found = {_key(row): row for row in tried if row["precision"] == REFERENCE}
    return [
        _pair(memory, row, found[_key(row)]) for row in tried if row["precision"] != REFERENCE and _key(row) in found
    ]


def _key(row: dict) -> tuple:
    return tuple(row[name] for name in (*POINT, "context"))


def _pair(memory: Memory, row: dict, reference: dict) -> Pair:
    before, after = memory.at_peak(reference), memory.at_peak(row)
    finished = row["status"] == reference["status"] == "ok"
    names = {**before, **after} if finished and before and after else {}
    changes = {name: after.get(name, 0) - before.get(name, 0) for name in names}
    largest = dict(sorted(changes.items(), key=lambda entry: -abs(entry[1])))
    return Pair(row, reference, (memory.peak(reference), memory.peak(row)), largest)


def precision_table(memory: Memory, found: list[Pair]) -> Table | None:
    """A row a pair: both peaks, their difference, what shrank and what grew."""
    if not found:
        return None
    precisions = ordered([pair.row["precision"] for pair in found], key=precision_rank)
    several = len(precisions) > 1
    but = ("repeat",) if several else ("repeat", "precision")
    other = "this" if several else precisions[0]
    columns = [*leading(memory, but), Column(REFERENCE, group="peak"), Column(other, group="peak")]
    columns += [Column("bytes", group="difference"), Column("%", group="difference")]
    columns += [Column("less of", number=False, wrap=True), Column("more of", number=False, wrap=True)]
    columns.append(Column("peak lies in", number=False))
    rows = [_line(memory, pair, but) for pair in found]
    caption = f"{formatting.listing(precisions)} against {REFERENCE}: the peak, and what makes the difference."
    note = (
        "Negative: saved. The categories are those of the two peaks, which need not lie in the same phase; named are "
        f"changes of {100 * _LEAST:.1f} % of the peak in {REFERENCE} or more. What the allocator adds by rounding is "
        f"in none of them. Peak lies in: first in {REFERENCE}, where they differ."
    )
    return Table("memory-precision", caption, columns, rows, [note], grouped=True)


def _line(memory: Memory, pair: Pair, but: tuple[str, ...]) -> list[Cell]:
    first, *rest = lead(pair.row, memory, but)
    line = [Cell(first.text), *rest]
    for row, peak in zip((pair.reference, pair.row), pair.peaks, strict=True):
        line.append(size_cell(peak, badges=out_of_memory(row)))
    if pair.share is None:
        line += [Cell("–"), Cell("–"), Cell(_fits(pair)), Cell("–")]
    else:
        line += [Cell(change(pair.difference), sort=pair.difference), change_cell(pair.share)]
        line += [Cell(formatting.listing(pair.told(sign)) or "–") for sign in (-1, 1)]
    return [*line, Cell(" → ".join(dict.fromkeys(place(memory, row).text for row in (pair.reference, pair.row))))]


def _fits(pair: Pair) -> str:
    fitting = [row["precision"] for row in (pair.reference, pair.row) if row["status"] == "ok"]
    return f"fits only in {fitting[0]}" if fitting else "fits in neither"
