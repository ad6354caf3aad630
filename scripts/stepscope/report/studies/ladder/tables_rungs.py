"""The ladder study's tables but those of checkpointing: times, rates, memory, gains, compiling, agreement."""

from dataclasses import replace

from stepscope.report.data.ladder import (
    TIMES,
    Ladder,
    agrees,
    kind,
    peak,
    rate,
    time,
)
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import BADGES, Column, Table, TableCell
from stepscope.report.kit.compare import Comparison
from stepscope.report.kit.order import PHASES
from stepscope.report.kit.sizes import Unit, size_cell, unit_of

MOST_LADDERS = 8  # beside each other
_WHOLE = "fastest over first rung"  # the last line of a table of gains
_GAINS_NOTE = (
    "×: times the speed of the rung before, or of the one named below it where that has no result; below it ms of a "
    "step. Cells after the last rung of the chain are compared with the rung that they vary."
)
_TIMES_NOTE = "Times are medians. Phased steps wait for the device after each phase, free ones do not."
_BOTH_NOTE = " f+b: the gain is that of forward+backward, where not both have a step."


def rungs_table(ladder: Ladder) -> Table:
    """A row a rung, then what was tried beside the chain, without checkpointing."""
    rows = [*ladder.rungs, *ladder.wholes]
    phases = [phase for phase in PHASES if phase not in TIMES]
    both = any(kind(row) == "forward_backward" for row in rows)
    unit = unit_of(peak(row) for row in rows)
    columns = [
        Column("rung", number=False, value=_name),
        *(_time_column(phase, phase, "phased steps (ms)", optional=True) for phase in phases),
        *[_time_column("forward_backward", "forward+backward", "free steps (ms)")] * both,
        _time_column("step", "step", "free steps (ms)"),
        Column("rung before", group="times the speed of", value=lambda row: _gain(ladder, row)),
        Column("first rung", group="times the speed of", value=lambda row: _of_start(ladder, row)),
        Column("tokens/s", value=lambda row: rate(row, "tokens_per_s"), show=_four_digits),
        Column("rate", "TFLOP/s", value=lambda row: rate(row, "tflops")),
        Column("MFU", "%", value=lambda row: _percent(rate(row, "mfu")), optional=True),
        Column("peak memory", unit.name, value=lambda row: _peak(row, unit)),
        *(_count_column(name) for name in ("kernels", "launches", "operators")),
        Column("compiling", "s", value="compile_seconds", optional=True),
    ]
    note = f"{_TIMES_NOTE} {table.verdict_note(_speeds(ladder, rows))}".rstrip() + _BOTH_NOTE * both
    caption = f"The ladder of {ladder.place}, batch {ladder.batch:,.0f}, on {ladder.hardware}."
    name = f"ladder-{ladder.hardware}-{ladder.size}-{ladder.context:.0f}-{ladder.batch:.0f}"
    return table.build(name, caption, columns, rows, [note, _runs_elsewhere(ladder), *losses(rows)])


def _speeds(ladder: Ladder, rows: list[dict]) -> list[Comparison]:
    """The comparisons of these cells with the rung before."""
    return [found for row in rows if (found := ladder.over_before.get(row["cell"]))]


def _runs_elsewhere(ladder: Ladder) -> str:
    """What the timing study measured for cells of this ladder."""
    parts = []
    for cell, run in ladder.again.items():
        row = ladder.at(cell)
        of = " of forward+backward" if run.phase == "forward_backward" else ""
        here = formatting.times(time(row, run.phase) / run.median)
        parts.append(f"{row['name']}, {formatting.significant(run.median)} ms{of} (here {here})")
    return f"The timing study's runs of the same cells: {formatting.listing(parts, 8, '; ')}." if parts else ""


def losses(rows: list[dict]) -> list[str]:
    """Why cells have no result, and which are no rungs."""
    told = table.reasons(rows, lambda row: str(row["name"]), most_names=8, between="; ", most=6)
    wrong = formatting.listing([str(row["name"]) for row in rows if agrees(row) is False])
    return [*told, f"Loss or gradients are not those of the first rung, so no gain is given: {wrong}." if wrong else ""]


def _name(row: dict) -> TableCell:
    below = "differs: no rung" if agrees(row) is False else ""
    return TableCell(str(row["name"]), below, badges=table.disturbed(row))


def _time_column(prefix: str, label: str, group: str, optional: bool = False) -> Column:
    return Column(label, group=group, value=lambda row: _time_cell(row, prefix), optional=optional)


def _time_cell(row: dict, prefix: str) -> TableCell:
    """Median, and for whole steps its interval below; a badge where the mode has no time."""
    median = time(row, prefix)
    if not median:
        status = row.get(f"{prefix}_status") or row["status"]
        is_told = prefix in TIMES and status in BADGES and status != "ok"
        return TableCell(badges=(status,)) if is_told else table.NOTHING
    badges = table.unsure(row, f"{prefix}_")
    if prefix not in TIMES:
        return TableCell(formatting.significant(median), sort=median, badges=badges)
    ends = (row.get(f"{prefix}_ci_low_ms"), row.get(f"{prefix}_ci_high_ms"))
    return TableCell(*formatting.median_beside_interval(median, *ends), sort=median, badges=badges)


def _peak(row: dict, unit: Unit) -> TableCell:
    """What was reached when memory ran out is no peak of a step."""
    below = "f+b" if peak(row) and row.get("peak_mode") == "forward-backward" else ""
    is_reached = row["status"] == "oom" and peak(row) is not None and not kind(row)
    return unit.cell(peak(row), 3, below, ("oom",) * is_reached)


def _gain(ladder: Ladder, row: dict) -> TableCell:
    """How many times as fast it is as the rung before; which one that is, if not the neighbour."""
    value, other = row.get("gain_before"), ladder.at(row.get("compared_with"))
    if not formatting.known(value):
        return table.NOTHING
    is_named = other and (row not in ladder.rungs or ladder.is_passed_over(row))
    below = [_of(row.get("gain_of")), f"against {other['name']}" if is_named else ""]
    return _speed_cell(value, ladder.over_before.get(row["cell"]), " ".join(filter(None, below)))


def _of_start(ladder: Ladder, row: dict) -> TableCell:
    if not formatting.known(row.get("gain_start")):
        return table.NOTHING
    return _speed_cell(row["gain_start"], ladder.over_start.get(row["cell"]), _of(row.get("gain_start_of")))


def _of(what: object) -> str:
    return "f+b" if what == "forward+backward" else ""


def _speed_cell(gain: float, speed: Comparison | None, below: str = "", of: str = "") -> TableCell:
    """`× 1.60 f+b` over its interval, verdict and `below`."""

    def show(_: float) -> str:
        return " ".join(filter(None, [formatting.times(gain), of]))

    return table.times_as_fast(speed, below, show=show) if speed else TableCell(show(gain), below, gain)


def _four_digits(value: float) -> str:
    return formatting.significant(value, 4)


def _percent(share: object) -> float | None:
    return 100 * share if formatting.known(share) else None


def _count_column(name: str) -> Column:
    """A number of kernels, launches or operators, of forward and backward alone where the step did not run."""
    return Column(
        name,
        value=lambda row: table.count(row.get(name), "f+b" if row.get("counted") == "forward-backward" else ""),
        optional=True,
    )


def gains_table(hardware: str, found: list[Ladder]) -> Table | None:
    """What each change brings: a row a change, a column a ladder; None where no change brought anything to compare."""
    found = [one for one in found if any(formatting.known(row.get("gain_before")) for row in one.rows)]
    shown = found[:MOST_LADDERS]
    names = dict.fromkeys(str(row["name"]) for one in shown for row in one.rungs)
    names |= dict.fromkeys(str(row["name"]) for one in shown for row in one.wholes)
    if not names:
        return None
    left = len(found) - len(shown)
    speeds = [each for one in shown for each in _speeds(one, [*one.rungs, *one.wholes])]
    notes = [
        f"{_GAINS_NOTE} {table.verdict_note(speeds)}".rstrip(),
        f"{left:,} more in index.html's tables of single ladders." if left else "",
    ]
    caption = f"What each change brings, on {hardware}; by size and context."
    columns = [Column("change", number=False, value=lambda name: name), *map(_gains_column, shown)]
    return table.build(f"ladder-gains-{hardware}", caption, columns, [*names, _WHOLE], notes)


def _gains_column(ladder: Ladder) -> Column:
    return Column(
        f"{ladder.size} {ladder.context:,.0f}",
        value=lambda name: _whole_gain(ladder) if name == _WHOLE else _change(ladder, name),
    )


def _change(ladder: Ladder, name: str) -> TableCell:
    row = next((row for row in [*ladder.rungs, *ladder.wholes] if row["name"] == name), None)
    if row is None:
        return table.NOTHING
    median = time(row, "step")
    below = formatting.significant(median) if median else ""
    badges = () if median else table.lost(row)
    if agrees(row) is False:
        return TableCell("differs", below, badges=badges)
    if not formatting.known(row.get("gain_before")):
        is_first = bool(below) and row in ladder.climbed[:1]
        return TableCell("" if badges else below or "–", "first" if is_first and not badges else "", median, badges)
    other = ladder.at(row.get("compared_with"))
    below = ", ".join(filter(None, [below, f"against {other['name']}" if ladder.is_passed_over(row) else ""]))
    cell = _speed_cell(row["gain_before"], ladder.over_before.get(row["cell"]), below, _of(row.get("gain_of")))
    return replace(cell, badges=badges)


def _whole_gain(ladder: Ladder) -> TableCell:
    top = ladder.top
    if not top or not formatting.known(top.get("gain_start")):
        return table.NOTHING
    speed, of = ladder.over_start.get(top["cell"]), _of(top.get("gain_start_of"))
    return _speed_cell(top["gain_start"], speed, str(top["name"]), of)


def compiling_table(hardware: str, found: list[Ladder]) -> Table | None:
    """The whole model compiled beside its blocks; None where it was not tried."""
    tried = [(ladder, ladder.at(row.get("compared_with")), row) for ladder in found for row in ladder.wholes]
    columns = [
        Column("size", number=False, value=lambda each: each[0].size),
        Column("context", "tokens", value=lambda each: each[0].context, show=formatting.count),
        *_blocks_and_whole("compiling (s)", lambda row: table.number(row.get("compile_seconds"))),
        *_blocks_and_whole("step (ms)", lambda row: _time_cell(row, "step")),
        *_blocks_and_whole("peak memory", lambda row: size_cell(peak(row))),
        Column("whole over blocks", "times the speed", value=_whole_over_blocks),
    ]
    caption = f"The whole model compiled instead of block by block, on {hardware}."
    return table.build(f"ladder-compiling-{hardware}", caption, columns, tried, losses([row for *_, row in tried]))


def _blocks_and_whole(group: str, cell) -> list[Column]:
    """Two columns, `cell` of the rung that compiles block by block and of the cell that compiles all."""
    return [
        Column("blocks", group=group, value=lambda each: cell(each[1]) if each[1] else None),
        Column("whole", group=group, value=lambda each: cell(each[2])),
    ]


def _whole_over_blocks(each: tuple[Ladder, dict | None, dict]) -> TableCell:
    ladder, _, whole = each
    if not formatting.known(whole.get("gain_before")):
        return table.NOTHING
    return _speed_cell(whole["gain_before"], ladder.over_before.get(whole["cell"]))


def agreement_table(hardware: str, found: list[Ladder]) -> Table | None:
    """Loss and gradients of every cell against the first rung's; None where no cell has a loss."""
    rows = [row | {"place": ladder.place} for ladder in found for row in ladder.rows
            if formatting.known(row.get("loss")) or agrees(row) is not None]  # fmt: skip
    differences = {"loss": "loss", "gradients": "gradient", "norm": "gradient_norm"}
    columns = [
        Column("ladder", number=False, value="place"),
        Column("cell", number=False, value="name"),
        Column("loss", value="loss", show=lambda value: formatting.significant(value, 6)),
        Column("gradient norm", value="gradient_norm", show=_four_digits),
        *(Column(label, group="relative difference", value=f"{name}_difference", show=_scientific)
          for label, name in differences.items()),
        Column("cosine", value="gradient_cosine", show=lambda value: f"{value:.6f}"),
        Column("tolerance", value="tolerance", show=_scientific),
        Column("agrees", number=False, value=lambda row: {True: "yes", False: "no"}.get(agrees(row))),
    ]  # fmt: skip
    caption = f"Loss and gradients against those of the first rung that has them, on {hardware}."
    note = "Tolerance: of gradients and their norm; a tenth of it for the loss."
    return table.build(f"ladder-agreement-{hardware}", caption, columns, rows, [note], folded=True, grouped=True)


def _scientific(value: float) -> str:
    """A small number: `1.2e-05`, `0`."""
    return f"{value:.1e}".replace("-", "\N{MINUS SIGN}") if value else "0"
