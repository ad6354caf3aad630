"""Peak memory of the same cell on every machine, beside the closed form."""

from dataclasses import dataclass

from stepscope.report.data.memory import Memory
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.order import label, precision_rank
from stepscope.report.kit.sizes import change, percent_change, unit_of
from stepscope.report.kit.table import number
from stepscope.report.studies.hardware.compared import absent, everyone, legend, machines_of
from stepscope.report.studies.hardware.tables import MOST_ROWS

_POINT = ("size", "mode", "precision", "context", "batch", "options")


@dataclass(frozen=True)
class Peaks:
    """A point of the memory study on several machines: hardware label -> its row, and its peak in bytes or None.

    A peak that was reached when memory ran out is none.
    """

    rows: dict[str, dict]
    bytes: dict[str, float | None]

    @property
    def row(self) -> dict:
        """The point's columns."""
        return next(iter(self.rows.values()))

    @property
    def name(self) -> str:
        """`medium at 512 (bf16, step)`."""
        row = self.row
        return f"{row['size']} at {row['context']:,.0f} ({row['precision']}, {label(mode(row))})"

    @property
    def predicted(self) -> list[float]:
        """What the closed form says, once for each distinct number."""
        values = (row.get("predicted_peak_bytes") for row in self.rows.values())
        return list(dict.fromkeys(value for value in values if formatting.known(value)))

    @property
    def finished(self) -> bool:
        """Has every machine a peak?"""
        return all(self.bytes.values())


def peaks(memory: Memory, labels: list[str]) -> list[Peaks]:
    """The points that all of these machines have, by size, mode, precision and context.

    Machines of which the study has no cells at all are left out.
    """
    found: dict[tuple, dict[str, dict]] = {}
    for row in memory.first_runs(memory.all):
        if row["hardware"] in labels:
            found.setdefault(tuple(str(row.get(name)) for name in _POINT), {})[row["hardware"]] = row
    having = {label for rows in found.values() for label in rows}
    shared = [rows for rows in found.values() if set(rows) == having and len(having) > 1]
    made = [
        Peaks(rows, {name: memory.peak(row) if row["status"] == "ok" else None for name, row in rows.items()})
        for rows in shared
    ]
    return sorted(made, key=_rank)


def _rank(found: Peaks) -> tuple:
    row = found.row
    parameters = row["parameters"] if formatting.known(row.get("parameters")) else float("inf")
    return (parameters, row["size"], mode(row), precision_rank(row["precision"]), row["context"], str(row["batch"]))


def peaks_table(found: list[Peaks], labels: list[str]) -> Table | None:
    """A row a point: the closed form, the peak on each machine, and the differences to the baseline's."""
    if not found:
        return None
    present = machines_of(found, labels)
    baseline, *others = present
    unit = unit_of(value for each in found for value in each.bytes.values())
    extra = [name for name in ("batch", "options") if len({str(each.row.get(name)) for each in found}) > 1]
    columns = [Column(name, number=False) for name in ("size", "mode", "precision")] + [Column("context", "tokens")]
    columns += [Column(name, number=name == "batch") for name in extra]
    columns += [Column("closed form", unit.name), *(Column(each, group=f"peak ({unit.name})") for each in present)]
    columns += [Column(each, group=f"more than on {baseline}") for each in others]
    rows = []
    for each in found:
        row = each.row
        line = [Cell(str(row["size"])), Cell(label(mode(row))), Cell(str(row["precision"]))]
        line += [number(row["context"], formatting.count)]
        line += [number(row[name], formatting.count) if name == "batch" else Cell(row[name] or "–") for name in extra]
        texts = [unit.cell(value).text for value in each.predicted]
        line.append(Cell(" or ".join(dict.fromkeys(texts)) or "–", sort=each.predicted[0] if texts else None))
        for name in present:
            status = each.rows[name]["status"]
            line.append(unit.cell(each.bytes[name], badges=(status,) if status != "ok" else ()))
        rows.append(line + [_difference(each, name, baseline) for name in others])
    caption = "Peak memory of the same cells on every machine, beside the closed form."
    notes = [
        "Peak: of the allocator's counter, on a CPU the largest sum of recorded allocations. The closed form is the "
        "same on every machine but for what libraries hold; two numbers are its values on different machines.",
        *legend(rows),
        *absent(labels, present, "memory"),
    ]
    is_long = len(rows) > MOST_ROWS
    return Table("hardware-memory", caption, columns, rows, notes, is_long, True, page_only=is_long)


def _difference(found: Peaks, name: str, baseline: str) -> Cell:
    own, other = found.bytes[name], found.bytes[baseline]
    if not own or not other:
        return Cell("–")
    return Cell(change(own - other), percent_change(own / other - 1), own - other)


def findings(found: list[Peaks], labels: list[str]) -> list[str]:
    """Where the peak is the smallest, by how much they differ, and what fits on some machines only."""
    present = machines_of(found, labels)
    done = [each for each in found if each.finished]
    sentences = [_least(done, present, everyone(labels, present))] if done else []
    fits: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for each in found:
        ran, lost = (tuple(name for name in present if each.rows[name]["status"] == word) for word in ("ok", "oom"))
        if ran and lost:
            fits.setdefault((ran, lost), []).append(each.name)
    for (ran, lost), names in fits.items():
        verb = "fits" if len(names) == 1 else "fit"
        told = formatting.listing(names, 4, "; ")
        sentences.append(
            f"In the memory study {told} {verb} on {formatting.listing(ran)}{_elsewhere(ran, lost, present)}."
        )
    return sentences + (absent(labels, present, "memory") if sentences else [])


def _elsewhere(ran: tuple[str, ...], lost: tuple[str, ...], labels: list[str]) -> str:
    """` only`, if all others ran out of memory; else which did, and of which others it is not known."""
    unknown = [name for name in labels if name not in ran + lost]
    if not unknown:
        return " only"
    return f", but not on {formatting.listing(lost)}; of {formatting.listing(unknown)} it is not known"


def _least(done: list[Peaks], labels: list[str], all_machines: str) -> str:
    """`The same cells peak at the same memory on …`, or who needs least how often and the largest difference."""
    widest = max(max(each.bytes.values()) / min(each.bytes.values()) - 1 for each in done)
    cells = "the 1 cell" if len(done) == 1 else f"all {len(done):,} cells"
    if percent_change(widest) == "±0 %":
        return f"Peak memory is the same on {formatting.listing(labels)} in {cells} that {all_machines} finished."
    counts = {
        name: sum(each.bytes[name] == min(each.bytes.values()) < max(each.bytes.values()) for each in done)
        for name in labels
    }
    above = f"the largest peak is at most {formatting.percent(widest)} above the smallest"
    if max(counts.values()) == len(done) and len([name for name in counts if counts[name]]) == 1:
        name = max(counts, key=counts.get)
        return f"Peak memory is smallest on {name} in {cells} that {all_machines} finished; {above}."
    parts = [f"on {name} in {count:,}" for name, count in counts.items() if count]
    of = cells.removeprefix("all ")
    return f"Of {of} that {all_machines} finished, peak memory is smallest {formatting.listing(parts)}; {above}."
