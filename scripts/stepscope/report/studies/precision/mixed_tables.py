"""Tables of mixed precision across the timing grid: the speed-up over fp32, and where it is slower."""

from stepscope.report.data.mixed import PHASES, REFERENCE, Mixed, Pair
from stepscope.report.data.profile import Profile
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.compare import UNCLEAR
from stepscope.report.kit.order import ordered
from stepscope.report.kit.sizes import percent_change
from stepscope.report.kit.table import badge_legend
from stepscope.report.studies.precision.mixed_bound import Bound, bound

_MEMORY = ("inference", "step")


def speedup_tables(mixed: Mixed) -> list[Table]:
    """A table for each machine and precision: a row a size and context."""
    return [
        _speedup_table(mixed, hardware, precision)
        for hardware in mixed.hardware
        for precision in mixed.precisions(hardware)
    ]


def _speedup_table(mixed: Mixed, hardware: str, precision: str) -> Table:
    pairs = mixed.of(hardware, precision)
    more = [name for name in ("batch", "mode", "options") if len({str(pair.row.get(name)) for pair in pairs}) > 1]
    phases = [phase for phase in PHASES if any(phase in pair.speeds for pair in pairs)] or ["step"]
    modes = [phase for phase in _MEMORY if any(None not in pair.peaks(phase) for pair in pairs)]
    columns = [Column("size", number=False), Column("context", "tokens")]
    columns += [Column(name, number=False) for name in more]
    columns += [Column(PHASES[phase], group="speed-up") for phase in phases]
    columns += [Column(mode, "%", group="peak memory") for mode in modes]
    rows = []
    for pair in pairs:
        line = [Cell(pair.row["size"] or ""), Cell(formatting.count(pair.row["context"]), sort=pair.row["context"])]
        line += [Cell(_text(pair.row.get(name))) for name in more]
        line += [speed_cell(pair, phase) for phase in phases]
        rows.append(line + [_peak_cell(pair, mode) for mode in modes])
    caption = f"{precision} against {REFERENCE} on {hardware}: how many times as fast, and the change of the peak."
    batches = ordered([pair.row.get("batch") for pair in pairs])
    if "batch" not in more and batches:
        caption = f"{caption[:-1]}; batch {formatting.count(batches[0])}."
    return Table(f"mixed-{hardware}-{precision}", caption, columns, rows, _notes(pairs, rows), grouped=True)


def _text(value: object) -> str:
    return formatting.count(value) if formatting.known(value) else str(value or "–")


def speed_cell(pair: Pair, phase: str) -> Cell:
    """`1.58`, with `slower` below it, or in brackets where nothing may be said; badges of what ran out of memory."""
    speed = pair.speeds.get(phase)
    if speed is None:
        return _lost_cell(pair, phase)
    text = f"({speed.ratio:.2f})" if speed.verdict == UNCLEAR else ratio_text(speed.ratio)
    return Cell(text, "slower" if speed.verdict == "slower" else "", sort=speed.ratio)


def ratio_text(ratio: float) -> str:
    """Two decimals; three where two would read as no difference."""
    return f"{ratio:.2f}" if f"{ratio:.2f}" != "1.00" else f"{ratio:.3f}"


def _lost_cell(pair: Pair, phase: str) -> Cell:
    before, after = pair.status(phase)
    if before == "oom" and after == "ok":
        return Cell(REFERENCE, badges=("oom",))
    badges = tuple(dict.fromkeys(each for each in (before, after) if each in ("oom", "unsupported", "failed")))
    return Cell("" if badges else "–", badges=badges)


def _peak_cell(pair: Pair, mode: str) -> Cell:
    before, after = pair.peaks(mode)
    if before is None or not before:
        return _lost_cell(pair, mode)
    share = after / before - 1
    return Cell(percent_change(share).removesuffix(" %"), sort=share)


def _notes(pairs: list[Pair], rows: list[list[Cell]]) -> list[str]:
    repeats = {speed.by_repeats for pair in pairs for speed in pair.speeds.values()}
    rule = {
        frozenset({True}): "no more than repeated runs of both precisions do",
        frozenset({False}): "by less than their 95 % intervals, or repeated runs of one of them, tell apart",
    }.get(frozenset(repeats), "no more than repeated runs do, or, where there are none, within the 95 % intervals")
    notes = ["Speed-up: fp32's median over that in 16 bits; forward, backward and optimizer of synchronised phases."]
    if repeats:
        notes.append(f"In brackets: the two differ {rule}.")
    if any(cell.text == REFERENCE for row in rows for cell in row):
        notes.append(f"With the name {REFERENCE}: only {REFERENCE} ran out of memory there.")
    return notes + badge_legend(rows)


def slower_table(mixed: Mixed, profile: Profile) -> Table | None:
    """Where 16 bits are slower in any phase, with kernel launches and idle time beside; None where they never are."""
    found = [(pair, [phase for phase in PHASES if _is(pair, phase, "slower")]) for pair in mixed.pairs]
    found = [(pair, phases) for pair, phases in found if phases]
    if not found:
        return None
    several = len(mixed.hardware) > 1
    columns = [Column("hardware", number=False)] if several else []
    columns += [Column("size", number=False), Column("context", "tokens"), Column("precision", number=False)]
    columns += [Column("slower in", number=False, wrap=True), Column("step", group="speed-up")]
    columns += [Column(name, group="kernels a step") for name in (REFERENCE, "16 bits")]
    columns += [Column(name, "%", group="GPU idle in a step") for name in (REFERENCE, "16 bits")]
    columns += [Column("profiled at", number=False)]
    rows = [_slower_line(pair, phases, bound(profile, pair), several) for pair, phases in found]
    caption = "Where mixed precision is slower than fp32, and what the profile says there."
    note = (
        "Idle: the share of the unprofiled step in which no kernel runs. A launch-bound step waits for the host; the "
        "casts of mixed precision are kernels more to launch. Profiled at: the profiled cells of the same size and "
        "precision nearest in context; bf16 stands in for fp16 where fp16 was not profiled."
    )
    folded = len(rows) > 40
    return Table("mixed-slower", caption, columns, rows, [note, *badge_legend(rows)], folded=folded, page_only=folded)


def _is(pair: Pair, phase: str, word: str) -> bool:
    return phase in pair.speeds and pair.speeds[phase].verdict == word


def _slower_line(pair: Pair, phases: list[str], why: Bound, several: bool) -> list[Cell]:
    line = [Cell(pair.row["hardware"])] if several else []
    line += [Cell(pair.row["size"] or ""), Cell(formatting.count(pair.row["context"]), sort=pair.row["context"])]
    texts = [f"{PHASES[phase]} ({ratio_text(pair.speeds[phase].ratio)})" for phase in phases]
    line += [Cell(pair.precision), Cell(formatting.listing(texts)), speed_cell(pair, "step")]
    for value in why.kernels:
        line.append(Cell(formatting.count(value), sort=value) if formatting.known(value) else Cell("–"))
    for value in why.idle:
        text = formatting.percent(value).removesuffix(" %") if formatting.known(value) else "–"
        line.append(Cell(text, sort=value if formatting.known(value) else None))
    return [*line, Cell(why.where or "–")]
