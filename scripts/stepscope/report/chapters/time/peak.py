"""How near a step comes to the machine's rates: of matrix products, and of the memory that its optimizer moves."""

from statistics import median

from stepscope.model.traffic import OPTIMIZER_BYTES, WRITTEN_OUT_BYTES
from stepscope.report.chapters.parts import percent_range
from stepscope.report.data.predicted import optimizer_ms, products_ms
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import TimingGrid, cells_of, place
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number, key_of
from stepscope.report.kit.formatting import known
from stepscope.tables.reader import Tables

HALF = 0.5  # of a step in which products would be done at the measured rate: from here on FLOP predict most of it
FAR = 1.5  # a time so many times that of its bytes has a cause


def rates(machine: Machine, grid: TimingGrid) -> Finding | None:
    """The share of the measured rate of matrix products, by precision, and in how many cells that is most of a step."""
    numbers, parts, most = {}, [], []
    for precision in grid.shown:
        rows = [row for row in grid.timed(precision) if products_ms(machine.tables, row)]
        if rows:
            key, shares = key_of(precision), [products_ms(machine.tables, row) / row["step_median_ms"] for row in rows]
            numbers[key] = Number(shares, cells_of(rows), percent_range)
            parts.append(f"{{{key}}} in {precision}")
            numbers[f"most_{key}"] = Number(sum(each >= HALF for each in shares), cells_of(rows), formatting.count)
            most.append(f"{{most_{key}}} of {formatting.cells(len(rows))} in {precision}")
    if not parts:
        return None
    answer = f"A step's FLOP at the rate of a large matrix product would take {formatting.listing(parts)} of its time."
    if any(max(number.value) > 1 for name, number in numbers.items() if not name.startswith("most_")):
        answer += " Above 100 % the large product was no ceiling."
    cause = f"That is half or more in {formatting.listing(most)}."
    return Finding("how near is a step to the machine's rate", answer, numbers, machine.hardware, cause)


def gap(machine: Machine, grid: TimingGrid) -> Finding | None:
    """The reference step, predicted from its FLOP and measured, and what the rest is; without a profile the largest."""
    own = machine.reference
    if own is None:
        return _plain_gap(machine.tables, grid)
    row, cells = own.row, (own.row["cell"],)
    predicted = products_ms(machine.tables, row)
    if not predicted:
        return None
    numbers = {
        "predicted": Number(predicted, cells),
        "measured": Number(own.total, cells),
        "products": Number(own.products, cells),
        "optimizer": Number(own.optimizer, cells),
        "memory": Number(own.attention + own.other, cells),
        "idle": Number(own.idle, cells),
    }
    answer = f"By its FLOP a step of {own.name} in {own.precision} would take {{predicted}} ms, not {{measured}}."
    cause = "Its products take {products} ms"
    if predicted < own.total:
        cause += ", the optimizer {optimizer}, other kernels {memory}; for {idle} ms no kernel runs"
    cause += "."
    return Finding("what lies between prediction and measurement", answer, numbers, machine.hardware, cause)


def _plain_gap(tables: Tables, grid: TimingGrid) -> Finding | None:
    rows = [row for name in grid.shown[:1] for row in grid.timed(name) if products_ms(tables, row)]
    row = max(rows, key=lambda row: products_ms(tables, row), default=None)
    if row is None:
        return None
    cells = cells_of([row])
    numbers = {
        "predicted": Number(products_ms(tables, row), cells),
        "measured": Number(row["step_median_ms"], cells),
    }
    answer = f"By FLOP a step of {place(row)} in {row['precision']} would take {{predicted}} ms, not {{measured}}."
    cause = ""
    if known(row.get("optimizer_median_ms")) and products_ms(tables, row) < row["step_median_ms"]:
        numbers["optimizer"] = Number(row["optimizer_median_ms"], cells)
        cause = "Of the gap {optimizer} ms are the optimizer's."
    return Finding("what lies between prediction and measurement", answer, numbers, row["hardware"], cause)


def mfu(grid: TimingGrid) -> Finding | None:
    """The share of the data sheet's peak, by precision."""
    numbers, parts = {}, []
    for precision in grid.shown:
        rows = [row for row in grid.timed(precision) if known(row.get("step_mfu"))]
        if rows:
            numbers[key_of(precision)] = Number([row["step_mfu"] for row in rows], cells_of(rows), percent_range)
            parts.append(f"{{{key_of(precision)}}} in {precision}")
    if not parts:
        return None
    answer = f"MFU is {formatting.listing(parts)}."
    return Finding("which share of the peak is used", answer, numbers, grid.rows[0]["hardware"])


def optimizer_share(grid: TimingGrid) -> Finding | None:
    """The optimizer's share of a step, by precision, and where it is the largest."""
    numbers, parts, most = {}, [], {}
    for precision in grid.shown:
        rows = [row for row in grid.timed(precision) if known(row.get("optimizer_median_ms"))]
        if rows:
            numbers[key_of(precision)] = Number([_share(row) for row in rows], cells_of(rows), percent_range)
            parts.append(f"{{{key_of(precision)}}} in {precision}")
            most[precision] = place(max(rows, key=_share))
    if not most:
        return None
    where = next(iter(most.values()))
    if len(set(most.values())) > 1:
        where = formatting.listing([f"{there} ({precision})" for precision, there in most.items()])
    answer = f"Of a step it takes {formatting.listing(parts)}, most in {where}."
    return Finding("what is the optimizer's share", answer, numbers, grid.rows[0]["hardware"])


def _share(row: dict) -> float:
    return row["optimizer_median_ms"] / row["step_median_ms"]


def optimizer_bytes(tables: Tables, grid: TimingGrid) -> Finding | None:
    """The largest size's AdamW beside what its bytes would take, and whether anything but parameters sets its time."""
    rows = [row for row in grid.rows if known(row.get("optimizer_median_ms")) and row.get("optimizer") in (None, "own")]
    rows = [row for row in rows if optimizer_ms(tables, row)]
    largest = max((row["parameters"] for row in rows), default=None)
    rows = [row for row in rows if row["parameters"] == largest]
    if not rows:
        return None
    times, predicted = [row["optimizer_median_ms"] for row in rows], optimizer_ms(tables, rows[0])
    numbers = {
        "times": Number(times, cells_of(rows), formatting.value_range),
        "predicted": Number(predicted, cells_of(rows)),
    }
    where = f" ({formatting.cells(len(rows))})" if len(rows) > 1 else ""
    moved = f"At a large copy's rate AdamW's {OPTIMIZER_BYTES} bytes a parameter would take {{predicted}} ms"
    answer = f"In {rows[0]['size']} it takes {{times}} ms{where}. {moved}."
    cause = ""
    if median(times) > FAR * predicted:
        numbers["written_out"] = Number(optimizer_ms(tables, rows[0], WRITTEN_OUT_BYTES), cells_of(rows))
        cause = f"Written out, its operations move {WRITTEN_OUT_BYTES} bytes: {{written_out}} ms."
    return Finding("what sets the optimizer's time", answer, numbers, rows[0]["hardware"], cause)
