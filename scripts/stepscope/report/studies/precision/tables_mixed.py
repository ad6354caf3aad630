"""Tables of mixed precision across the timing grid: the speed-up over fp32, and where it is slower."""

from stepscope import axes
from stepscope.report.data.mixed import PHASES, REFERENCE, Mixed, MixedPair, bound
from stepscope.report.data.profile import Profile
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import SLOWER, ratio_and_interval
from stepscope.report.kit.order import ordered
from stepscope.report.kit.sizes import change_cell

_MEMORY = ("inference", "step")
_SIZE = Column("size", number=False, value="size")  # without a cell's marks: a row is of two cells


def speedup_tables(mixed: Mixed) -> list[Table]:
    """A table for each machine and precision: a row a size and context."""
    return [
        _speedup_table(mixed, hardware, precision)
        for hardware in mixed.hardware
        for precision in mixed.precisions(hardware)
    ]


def _speedup_table(mixed: Mixed, hardware: str, precision: str) -> Table:
    pairs = mixed.of(hardware, precision)
    extra = table.varying([pair.row for pair in pairs], ("batch", "mode", "options"))
    phases = [phase for phase in axes.PHASES if any(phase in pair.speeds for pair in pairs)] or ["step"]
    modes = [phase for phase in _MEMORY if any(None not in pair.peaks(phase) for pair in pairs)]
    columns = [
        _SIZE,
        *table.point("context", *extra),
        *(_speed_column(phase) for phase in phases),
        *(_peak_column(mode) for mode in modes),
    ]
    caption = f"{precision} against {REFERENCE} on {hardware}: how many times as fast, and the change of the peak"
    batches = ordered([pair.row.get("batch") for pair in pairs])
    if "batch" not in extra and batches:
        caption += f"; batch {formatting.count(batches[0])}"
    rows = [pair.row | {"pair": pair} for pair in pairs]
    notes = _notes(pairs, {*phases, *modes})
    name, about = f"mixed-{hardware}-{precision}", {"hardware": hardware, "precision": precision}
    return table.build(name, f"{caption}.", columns, rows, notes, grouped=True, about=about)


def _speed_column(phase: str) -> Column:
    return Column(axes.PHASES[phase], group="speed-up", value=lambda row: speed_cell(row["pair"], phase))


def _peak_column(mode: str) -> Column:
    return Column(mode, "%", group="peak memory", value=lambda row: _peak_cell(row["pair"], mode))


def speed_cell(pair: MixedPair, phase: str) -> TableCell:
    """`1.58` with its interval and verdict; badges of what ran out of memory."""
    speed = pair.speeds.get(phase)
    if speed is None:
        return _lost_cell(pair, phase)
    return table.times_as_fast(speed)


def _lost_cell(pair: MixedPair, phase: str) -> TableCell:
    before, after = pair.status(phase)
    if before == "oom" and after == "ok":
        return TableCell(REFERENCE, badges=("oom",))
    badges = tuple(dict.fromkeys(each for each in (before, after) if each in ("oom", "unsupported", "failed")))
    return TableCell(badges=badges) if badges else table.NOTHING


def _peak_cell(pair: MixedPair, mode: str) -> TableCell:
    before, after = pair.peaks(mode)
    return change_cell(after / before - 1) if before else _lost_cell(pair, mode)


def _notes(pairs: list[MixedPair], shown: set[str]) -> list[str]:
    """shown: the phases whose time or memory has a column."""
    speeds = [speed for pair in pairs for phase, speed in pair.speeds.items() if phase in shown]
    only_reference_lost = any(pair.status(phase) == ("oom", "ok") for pair in pairs for phase in shown)
    return [
        "Speed-up: fp32's median over that in 16 bits; forward, backward and optimizer of synchronised phases, "
        "forward+backward of free steps.",
        table.verdict_note(speeds),
        f"With the name {REFERENCE}: only {REFERENCE} ran out of memory there." if only_reference_lost else "",
    ]


def slower_table(mixed: Mixed, profile: Profile) -> Table | None:
    """Where 16 bits are slower in any phase, with kernel launches and idle time beside; None where they never are."""
    rows = []
    for pair in mixed.pairs:
        phases = [phase for phase in PHASES if pair.verdict(phase) == SLOWER]
        if phases:
            rows.append(pair.row | {"pair": pair, "phases": phases, "why": bound(profile, pair)})
    both = (REFERENCE, "16 bits")
    columns = [
        *table.point(*["hardware"] * (len(mixed.hardware) > 1)),
        _SIZE,
        *table.point("context", "precision"),
        Column("slower in", number=False, wrap=True, value=_slower_phases),
        _speed_column("step"),
        *(
            Column(name, group="kernels a step", value=lambda row, at=at: table.count(row["why"].kernels[at]))
            for at, name in enumerate(both)
        ),
        *(
            Column(name, "%", "GPU idle in a step", value=lambda row, at=at: row["why"].idle[at], show=_percent)
            for at, name in enumerate(both)
        ),
        Column("profiled at", number=False, value=lambda row: row["why"].where),
    ]
    caption = "Where mixed precision is slower than fp32, and what the profile says there."
    note = (
        "Idle: the share of the unprofiled step in which no kernel runs. A launch-bound step waits for the host; the "
        "casts of mixed precision are kernels more to launch. Profiled at: the profiled cells of the same size and "
        "precision nearest in context; bf16 stands in for fp16 where fp16 was not profiled."
    )
    return table.build("mixed-slower", caption, columns, rows, [note], folded=len(rows) > table.LONG)


def _slower_phases(row: dict) -> str:
    """`forward (0.80) and step (0.95)`."""
    speeds = row["pair"].speeds
    return formatting.listing([f"{PHASES[phase]} ({ratio_and_interval(speeds[phase])})" for phase in row["phases"]])


def _percent(share: float) -> str:
    return formatting.percent(share).removesuffix(" %")
