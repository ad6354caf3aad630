"""The two tables of page one: the ladder at its largest place, and the best configuration of each size."""

import dataclasses
import math

from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.control import floors
from stepscope.report.data.ladder import Ladder, rate, reached, time
from stepscope.report.data.own_models import is_own
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import Floors, judged, timed
from stepscope.report.kit.formatting import known

MOST_ROWS = 8


def largest_ladder(machine: Machine) -> Ladder | None:
    """The largest of the ladders of which any rung has a time."""
    found = [one for one in machine.ladders if any(time(row) for row in one.rungs)]
    return max(found, key=lambda one: work(one.parameters, one.context), default=None)


def ladder_table(machine: Machine) -> Table | None:
    """Rung by rung: ms, times the first rung's speed, share of the measured peak, GiB."""
    one = largest_ladder(machine)
    if one is None:
        return None
    rungs = one.rungs[:MOST_ROWS]
    start = next((row for row in one.climbed if time(row, "step")), None)
    others = [row for row in rungs if start and row is not start and time(row, "step")]
    control = floors(machine.tables["timing"])
    found = judged([(timed(row, "step_"), timed(start, "step_")) for row in others], control)
    speeds = {row["cell"]: speed for row, speed in zip(others, found, strict=True)}

    def gain(row: dict) -> TableCell:
        if row is start:
            return TableCell("1", sort=1.0)
        return table.times_as_fast(speeds[row["cell"]]) if row["cell"] in speeds else TableCell("–")

    def share(row: dict) -> float | None:
        if not time(row, "step"):
            return None
        own, most = rate(row, "tflops"), matmul_ceiling(machine.tables["ceilings"], one.hardware, row["precision"])
        return 100 * own / most if own is not None and most else None

    def before(row: dict) -> TableCell:
        speed = one.over_before.get(row["cell"])
        is_step = speed and time(row, "step") and time(one.at(row["compared_with"]), "step")
        return table.times_as_fast(speed) if is_step else TableCell("–")

    columns = [
        Column("rung", number=False, value=lambda row: TableCell(str(row["name"]), badges=table.lost(row))),
        Column("step", "ms", value=time_cell),
        Column("the rung before", group="times as fast as", value=before, optional=True),
        Column(str(start["name"]) if start else "", group="times as fast as", value=gain, optional=True),
        Column(
            "tokens a second",
            value=lambda row: rate(row, "tokens_per_s") if time(row, "step") else None,
            show=formatting.count,
            optional=True,
        ),
        Column("of the measured peak", "%", value=share, optional=True),
        Column("peak memory", "GiB", value=peak_cell, optional=True),
    ]
    any_lost = any(row["status"] == "oom" for row in rungs)
    more = f" {len(one.rungs) - MOST_ROWS:,} more stand in its section." if len(one.rungs) > MOST_ROWS else ""
    caption = (
        f"Changes made one after another, the ladder, at its largest place: {one.place}, batch {one.batch:,.0f}."
        f"{' Of an OOM rung the peak is what was reached before memory ran out.' * any_lost}{more}"
    )
    notes = [
        table.verdict_note([*speeds.values(), *map(one.over_before.get, speeds)]),
        *table.reasons(
            [row | {"reason": formatting.first_sentence(row.get("reason") or "")} for row in rungs],
            lambda row: row["name"],
            statuses=("unsupported",),
        ),
    ]
    meanings = table.PLAIN_MEANINGS | {"unsupported": "not possible, for the reason above"}
    return table.build("page-ladder", caption, columns, rungs, notes, meanings=meanings)


def peak_cell(row: dict) -> TableCell:
    """A rung's peak memory, with `>` where more was asked for than there was."""
    made = table.number(reached(row), formatting.gib)
    return dataclasses.replace(made, text=f"> {made.text}") if row["status"] == "oom" and known(reached(row)) else made


def time_cell(row: dict) -> TableCell:
    """A step's median over its interval."""
    series = timed(row, "step_")
    if series is None:
        return TableCell("–")
    text, below = formatting.median_beside_interval(series.median, series.low, series.high)
    return TableCell(text, below, series.median, table.unsure(row, "step_") + table.disturbed(row))


def best_rows(machine: Machine) -> list[dict]:
    """A row of the timing table a size: at the longest context of which a step fits, the most tokens a second.

    Of cells that differ by no more than unchanged ones do it is the plainest precision. Of more than MOST_ROWS sizes
    the largest.
    """
    of_run, by_size = floors(machine.tables["timing"]), {}
    for row in machine.timing:
        if timed(row, "step_"):
            by_size.setdefault(row["size"], []).append(row)
    best = []
    for rows in by_size.values():
        longest = max(row["context"] for row in rows)
        rows = [row for row in rows if row["context"] == longest]
        first = max(rows, key=tokens_per_s)
        best.append(next(row for row in rows if _is_as_fast(row, first, of_run)))
    return sorted(best, key=lambda row: work(row.get("parameters"), row["context"])[1])[-MOST_ROWS:]


def _is_as_fast(row: dict, first: dict, of_run: Floors) -> bool:
    """Whether a row is within what unchanged cells differ by of the fastest; rows stand by precision."""
    margin = of_run.margin(timed(row, "step_"), timed(first, "step_"))
    return math.log(tokens_per_s(first) / tokens_per_s(row)) <= margin


def _told_tokens_per_s(row: dict) -> float | None:
    """The same, but of a model of one's own only what the table says: it may take no tokens."""
    return row.get("step_tokens_per_s") if is_own(row) else tokens_per_s(row)


def tokens_per_s(row: dict) -> float:
    """Tokens of a step over its median."""
    return 1e3 * row["batch"] * row["context"] / row["step_median_ms"]


def memory_of(row: dict) -> float | None:
    """Peak bytes of a step: the allocator's, on a CPU those of the process."""
    values = (row.get(f"step_peak_{name}_bytes") for name in ("allocated", "resident"))
    return next((value for value in values if known(value)), None)


def best_table(machine: Machine) -> Table | None:
    """The fastest cell of each size at its longest context."""
    rows = best_rows(machine)
    fixed = [name for name in ("batch", "precision") if len({row[name] for row in rows}) == 1]
    told = {"batch": "batch {:,.0f}", "precision": "{}"}
    alike = "".join(f"; {told[name].format(rows[0][name])}" for name in fixed)
    columns = [
        Column("size", value="size", number=False),  # without marks: they stand beside the time
        *table.point("parameters", "context"),
        *(table.point(name)[0] for name in ("batch", "precision") if name not in fixed),
        Column("options", number=False, value="options", optional=True),
        Column("step", "ms", value=time_cell),
        Column("tokens a second", value=_told_tokens_per_s, show=formatting.count),
        Column("peak memory", "GiB", value=lambda row: table.number(memory_of(row), formatting.gib), optional=True),
    ]
    own = ", models of one's own as they are built" * any(map(is_own, rows))
    caption = (
        f"The baseline by size, nothing fused or compiled{own}: the precision with the most tokens a second, or a "
        f"plainer one within the floor of it, at the longest measured context of which a step fits{alike}."
    )
    return table.build("page-best", caption, columns, rows, meanings=table.PLAIN_MEANINGS)
