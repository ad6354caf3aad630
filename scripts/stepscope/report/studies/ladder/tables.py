"""The ladder study's tables of rungs: times, rates, memory, kernels and gains."""

from stepscope.report.data.ladder import (
    TIMES,
    Ladder,
    agrees,
    disturbed,
    kind,
    lost,
    peak,
    rate,
    time,
    times,
    verdict,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import BADGES, Cell, Column, Table
from stepscope.report.kit.sizes import Unit, unit_of
from stepscope.report.studies.ladder import against_timing

PHASES = ("forward", "backward", "optimizer")
MOST_LADDERS = 8  # beside each other
_GAINS_NOTE = (
    "×: times the speed of the rung before, or of the one named below it where that has no result; below it ms of a "
    "step; in brackets where the two 95 % intervals overlap{doubt}. Cells after the last rung of the chain are "
    "compared with the rung that they vary."
)
_DOUBT = ", or where one of the two is noisy and the timing study's runs of cells of this ladder differ by as much"


def rungs_table(ladder: Ladder) -> Table:
    """A row a rung, then what was tried beside the chain, without checkpointing."""
    rows = [*ladder.rungs, *ladder.wholes]
    parts = [phase for phase in PHASES if any(time(row, phase) for row in rows)]
    both = any(kind(row) == "forward_backward" for row in rows)
    counts = [name for name in ("kernels", "launches", "operators") if any(_known(row, name) for row in rows)]
    compiled = any(_known(row, "compile_seconds") for row in rows)
    with_mfu = any(formatting.known(rate(row, "mfu")) for row in rows)
    unit = unit_of(peak(row) for row in rows)
    columns = [Column("rung", number=False), *(Column(phase, group="phased steps (ms)") for phase in parts)]
    columns += [Column("forward+backward", group="free steps (ms)")] * both + [Column("step", group="free steps (ms)")]
    columns += [Column("rung before", group="times the speed of"), Column("first rung", group="times the speed of")]
    columns += [Column("tokens/s"), Column("rate", "TFLOP/s"), *[Column("MFU", "%")] * with_mfu]
    columns += [Column("peak memory", unit.name), *map(Column, counts), *[Column("compiling", "s")] * compiled]
    lines = []
    for row in rows:
        line = [_name(row), *(time_cell(row, phase) for phase in parts)]
        line += [time_cell(row, "forward_backward")] * both + [
            time_cell(row, "step"),
            _gain(ladder, row),
            _of_start(row),
        ]
        line += [number_cell(rate(row, "tokens_per_s"), 4), number_cell(rate(row, "tflops"))]
        line += [number_cell(_percent(rate(row, "mfu")))] * with_mfu + [_peak(row, unit)]
        line += [_count(row, name) for name in counts]
        lines.append(line + [number_cell(row.get("compile_seconds"))] * compiled)
    caption = f"The ladder of {ladder.place}, batch {ladder.batch:,.0f}, on {ladder.hardware}."
    return Table(f"ladder-{ladder.hardware}-{ladder.size}-{ladder.context:.0f}-{ladder.batch:.0f}", caption, columns,
                 lines, [*_times_note(both, ladder), *notes(rows, lines)])  # fmt: skip


def _times_note(both: bool, ladder: Ladder) -> list[str]:
    note = (
        "Times are medians; below the step its 95 % interval. Phased steps wait for the device after each phase, free "
        f"ones do not. Gains in brackets: the two intervals overlap{_DOUBT * bool(ladder.again)}."
    )
    more = " f+b: the gain is that of forward+backward, where not both have a step."
    return [note + more * both, *against_timing.note(ladder)]


def notes(rows: list[dict], lines: list[list[Cell]]) -> list[str]:
    """Why cells have no result, which are no rungs, and what the badges mean."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["status"] in ("unsupported", "failed"):
            reason = str(row["reason"] or "no reason was recorded").rstrip(".")
            found.setdefault((row["status"], reason), []).append(str(row["name"]))
    told = [
        f"{BADGES[status][0]} ({formatting.listing(names, 8, '; ')}): {reason}."
        for (status, reason), names in found.items()
    ][:6]
    wrong = [str(row["name"]) for row in rows if agrees(row) is False]
    told += [f"Loss or gradients are not those of the first rung, so no gain is given: {formatting.listing(wrong)}."
             ] if wrong else []  # fmt: skip
    used = {key for line in lines for cell in line for key in cell.badges}
    meanings = [f"{text}: {meaning}" for key, (text, meaning) in BADGES.items() if key in used]
    return [*told, *(["; ".join(meanings) + "."] if meanings else [])]


def _name(row: dict) -> Cell:
    below = "differs: no rung" if agrees(row) is False else ""
    return Cell(str(row["name"]), below, badges=disturbed(row))


def time_cell(row: dict, prefix: str) -> Cell:
    """Median, and for whole steps its interval below; a badge where the mode has no time."""
    median = time(row, prefix)
    if not median:
        status = row.get(f"{prefix}_status") or row["status"]
        badges = (status,) if prefix in TIMES and status in BADGES and status != "ok" else ()
        return Cell("" if badges else "–", badges=badges)
    low, high = row.get(f"{prefix}_ci_low_ms"), row.get(f"{prefix}_ci_high_ms")
    noisy = ("noisy",) if row.get(f"{prefix}_noisy") else ()
    text = formatting.median_and_interval(median, low, high)
    number, _, interval = text.partition(" ")
    if prefix in TIMES:
        return Cell(number, interval, median, noisy)
    return Cell(formatting.significant(median, 3), sort=median, badges=noisy)


def _peak(row: dict, unit: Unit) -> Cell:
    """What was reached when memory ran out is no peak of a step."""
    below = "f+b" if peak(row) and row.get("peak_mode") == "forward-backward" else ""
    return unit.cell(
        peak(row), 3, below, ("oom",) * (row["status"] == "oom" and peak(row) is not None and not kind(row))
    )


def _gain(ladder: Ladder, row: dict) -> Cell:
    value, other = row.get("gain_before"), ladder.at(row.get("compared_with"))
    if not formatting.known(value):
        return Cell("–")
    below = _of(row.get("gain_of"))
    if other and (row not in ladder.rungs or ladder.is_passed_over(row)):
        below = " ".join(filter(None, [below, f"against {other['name']}"]))
    return Cell(bracketed(times(value), row, other, ladder.doubt), below, value)


def _of_start(row: dict) -> Cell:
    value = row.get("gain_start")
    return Cell(times(value), _of(row.get("gain_start_of")), value) if formatting.known(value) else Cell("–")


def _of(what: object) -> str:
    return "f+b" if what == "forward+backward" else ""


def bracketed(text: str, row: dict, other: dict | None, doubt: float = 1.0) -> str:
    return f"({text})" if other and verdict(row, other, doubt) == "unclear" else text


def number_cell(value: object, digits: int = 3) -> Cell:
    return Cell(formatting.significant(value, digits), sort=value) if formatting.known(value) else Cell("–")


def _percent(share: object) -> float | None:
    return 100 * share if formatting.known(share) else None


def _known(row: dict, name: str) -> bool:
    return formatting.known(row.get(name))


def _count(row: dict, name: str) -> Cell:
    """A number of kernels, launches or operators, of forward and backward alone where the step did not run."""
    if not _known(row, name):
        return Cell("–")
    below = "f+b" if row.get("counted") == "forward-backward" else ""
    return Cell(formatting.count(row[name]), below, row[name])


def gains_table(hardware: str, found: list[Ladder]) -> Table | None:
    """What each change brings: a row a change, a column a ladder; None where no change brought anything to compare."""
    found = [one for one in found if any(formatting.known(row.get("gain_before")) for row in one.rows)]
    shown = found[:MOST_LADDERS]
    names = dict.fromkeys(str(row["name"]) for one in shown for row in one.rungs)
    names |= dict.fromkeys(str(row["name"]) for one in shown for row in one.wholes)
    if not names:
        return None
    lines = [[Cell(name), *(_change(one, name) for one in shown)] for name in names]
    lines.append([Cell("fastest over first rung"), *(_whole_gain(one) for one in shown)])
    columns = [Column("change", number=False), *(Column(f"{one.size} {one.context:,.0f}") for one in shown)]
    left = len(found) - len(shown)
    doubt = _DOUBT * any(bool(one.again) for one in shown)
    more = [f"{left:,} more in index.html's tables of single ladders."] if left else []
    told = [_GAINS_NOTE.format(doubt=doubt), *more]
    told += notes([], lines)
    return Table(f"ladder-gains-{hardware}", f"What each change brings, on {hardware}; by size and context.", columns,
                 lines, told)  # fmt: skip


def _change(ladder: Ladder, name: str) -> Cell:
    row = next((row for row in [*ladder.rungs, *ladder.wholes] if row["name"] == name), None)
    if row is None:
        return Cell("–")
    value, median = row.get("gain_before"), time(row, "step")
    below = formatting.significant(median, 3) if median else ""
    badges = lost(row) if not median else ()
    if agrees(row) is False:
        return Cell("differs", below, badges=badges)
    if not formatting.known(value):
        is_first = bool(below) and row in ladder.climbed[:1]
        return Cell("" if badges else below or "–", "first" if is_first and not badges else "", median, badges)
    of = " f+b" if row.get("gain_of") == "forward+backward" else ""
    other = ladder.at(row.get("compared_with"))
    text = bracketed(times(value), row, other, ladder.doubt)
    below = ", ".join(filter(None, [below, f"against {other['name']}" if ladder.is_passed_over(row) else ""]))
    return Cell(f"{text}{of}", below, value, badges)


def _whole_gain(ladder: Ladder) -> Cell:
    top = ladder.top
    if not top or not formatting.known(top.get("gain_start")):
        return Cell("–")
    of = " f+b" if top.get("gain_start_of") == "forward+backward" else ""
    return Cell(times(top["gain_start"]) + of, str(top["name"]), top["gain_start"])
