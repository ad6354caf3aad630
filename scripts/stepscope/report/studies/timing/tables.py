"""The tables of the timing study."""

import math

import pandas as pd

from stepscope.axes import STEP_PHASES
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.control import control_pairs, floors
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import LEAST_MARGIN
from stepscope.report.kit.order import MODES, label, machine_labels, ordered, precision_rank

_EXTRA = ("batch", "mode", "options")
# What the columns of times stand under, and the phases there.
_KINDS = {
    "free steps (ms)": ("inference", "free_forward", "forward_backward", "step"),
    "phased steps (ms)": STEP_PHASES,
}
_RATIOS = {"forward_backward_over_forward": "f+b / f", "backward_over_forward": "b / f"}
_TIMES_NOTE = (
    "Each time: mean ± standard deviation within a process, and below it the median with its 95 % confidence interval "
    "between processes, if there are several, in ms. Columns sort by the median."
)
_RATIOS_NOTE = " f+b / f: forward+backward over forward, free steps; b / f: backward over forward, phased steps."
_FIRST_STEPS_NOTE = (
    "Inference comes first in each process, and so pays for loading kernels and libraries. The first of "
    "forward+backward and of step are phased steps."
)
_STATE = {
    "sm_clock_min_mhz": ("lowest SM clock", "MHz"),
    "sm_clock_median_mhz": ("median SM clock", "MHz"),
    "power_max_w": ("highest power", "W"),
    "temperature_max_c": ("highest temperature", "°C"),
    "other_processes": ("other processes", ""),
}
_CONTROL_NOTE = (
    "The medians of a cell and of the same cell at another time. Floor: what 19 of 20 of these pairs differ by at most "
    "that the same thing limits; nothing smaller is called a difference, nor anything below "
    f"{formatting.percent(math.expm1(LEAST_MARGIN), 1)}."
)


def times_and_rates(timing: pd.DataFrame, ceilings: pd.DataFrame) -> tuple[list[Table], list[Table]]:
    """(times, rates): a table of each for every hardware and precision; `timing` is ordered and has `options`."""
    times, rates = [], []
    first = timing[timing["repeat"] == 1] if len(timing) else timing
    for hardware in machine_labels(first["hardware"]) if len(first) else []:
        here = first[first["hardware"] == hardware]
        for precision in ordered(here["precision"], key=precision_rank):
            part = here[here["precision"] == precision]
            ceiling = matmul_ceiling(ceilings, hardware, precision)
            times.append(times_table(hardware, precision, part, timing))
            rates.append(rates_table(hardware, precision, part, timing, ceiling))
    return times, [each for each in rates if each]


def _leading(whole: pd.DataFrame) -> list[Column]:
    """What names a cell: size, parameters, context; batch, mode and options that vary in the whole grid."""
    extra = [name for name in _EXTRA if whole[name].nunique() > 1]
    return table.point("size", "parameters", "context", *extra)


def times_table(hardware: str, precision: str, part: pd.DataFrame, whole: pd.DataFrame) -> Table:
    """Time of each phase of the cells of one hardware and precision."""
    tried = {group: [phase for phase in phases if _any(part, f"{phase}_status")] for group, phases in _KINDS.items()}
    ratios = [name for name in _RATIOS if _any(part, name)]
    columns = [
        *_leading(whole),
        *(_time_column(phase, group) for group, phases in tried.items() for phase in phases),
        *(Column(_RATIOS[name], group="ratio of medians", value=name, show=lambda x: f"{x:.2f}") for name in ratios),
    ]
    notes = [_TIMES_NOTE + (_RATIOS_NOTE if ratios else ""), *_reasons(part)]
    caption = f"Time of each phase, {precision}, on {hardware}{_fixed(part, whole)}."
    about = {"hardware": hardware, "precision": precision}
    return table.build(f"times-{hardware}-{precision}", caption, columns, part.to_dict("records"), notes, about=about)


def _time_column(phase: str, group: str) -> Column:
    return Column(label(phase), group=group, value=lambda row: phase_cell(row, phase))


def phase_cell(row: dict, phase: str) -> TableCell:
    """Mean ± std over median [interval], or why there is none."""
    status, median = row.get(f"{phase}_status"), row.get(f"{phase}_median_ms", math.nan)
    if not formatting.known(median):
        return TableCell(badges=(status,)) if status in ("oom", "unsupported", "failed") else table.NOTHING
    return TableCell(
        formatting.mean_and_std(row[f"{phase}_mean_ms"], row.get(f"{phase}_std_ms", math.nan)),
        formatting.median_and_interval(median, row.get(f"{phase}_ci_low_ms"), row.get(f"{phase}_ci_high_ms")),
        sort=median,
        badges=table.unsure(row, f"{phase}_"),
    )


def _any(part: pd.DataFrame, name: str) -> bool:
    """Whether any cell has a value in the column."""
    return name in part and part[name].notna().any()


def _fixed(part: pd.DataFrame, whole: pd.DataFrame) -> str:
    """The parameters that do not vary, for a caption."""
    batch = (
        f"; batch {part['batch'].iloc[0]:,.0f}" if whole["batch"].nunique() == 1 and part["batch"].notna().any() else ""
    )
    constant = whole["options"].nunique() == 1 and part["options"].iloc[0]
    return batch + (f"; {part['options'].iloc[0]}" if constant else "")


def _reasons(part: pd.DataFrame) -> list[str]:
    """Why cells are unsupported, each reason once."""
    return table.reasons(
        part.to_dict("records"),
        lambda row: f"{row['size']} at {row['context']:,.0f}",
        pattern="n/a ({names}): {reason}.",
    )


def rates_table(
    hardware: str, precision: str, part: pd.DataFrame, whole: pd.DataFrame, ceiling: float | None
) -> Table | None:
    """Tokens per second, arithmetic rate, its share of the ceiling and MFU, peak memory; None where no cell ran."""
    tokens, flops, allocated, resident = (
        [mode for mode in MODES if _any(part, f"{mode}_{name}")]
        for name in ("tokens_per_s", "tflops", "peak_allocated_bytes", "peak_resident_bytes")
    )
    if not (tokens or allocated or resident):
        return None
    peak = _peak_rate(part) if any(_any(part, f"{mode}_mfu") for mode in flops) else None
    shares = ["share of the measured ceiling"] * bool(ceiling) + ["MFU"] * bool(peak)
    difference = _any(part, "phases_minus_step_ms")
    columns = [
        *_leading(whole),
        *(_mode_column(mode, "tokens/s", _tokens) for mode in tokens),
        *(_mode_column(mode, ", ".join(["TFLOP/s", *shares]), _arithmetic, ceiling) for mode in flops),
        *(_mode_column(mode, "peak memory allocated, reserved (GiB)", _peak, "allocated") for mode in allocated),
        *(_mode_column(mode, "peak resident memory (GiB)", _peak, "resident") for mode in resident),
    ]
    if difference:
        columns.append(
            Column(
                "phases − step", "ms", value="phases_minus_step_ms", show=lambda value: formatting.significant(value, 2)
            )
        )
    caption = f"Throughput and memory, {precision}, on {hardware}{_fixed(part, whole)}."
    of_peak = _mfu_note(part, precision, peak) if flops else ""
    notes = _rate_notes(precision, ceiling, of_peak, bool(flops), difference)
    about = {"hardware": hardware, "precision": precision}
    return table.build(f"rates-{hardware}-{precision}", caption, columns, part.to_dict("records"), [notes], about=about)


def _mode_column(mode: str, group: str, cell, *more, unit: str = "") -> Column:
    return Column(label(mode), unit, group, value=lambda row: cell(row, mode, *more))


def _rate(row: dict, mode: str, name: str, show) -> TableCell:
    """A rate of a mode, or why there is none."""
    value, status = row.get(f"{mode}_{name}"), row.get(f"{mode}_status")
    return table.number(value, show, badges=() if formatting.known(value) or status not in table.LOST[:3] else [status])


def _tokens(row: dict, mode: str) -> TableCell:
    return _rate(row, mode, "tokens_per_s", lambda value: formatting.significant(value, 4))


def _arithmetic(row: dict, mode: str, ceiling: float | None) -> TableCell:
    """TFLOP/s over its share of the ceiling and the MFU."""
    cell = _rate(row, mode, "tflops", formatting.significant)
    if cell.sort is None:
        return cell
    shares = [cell.sort / ceiling if ceiling else None, row.get(f"{mode}_mfu")]
    below = ", ".join(formatting.percent(share) for share in shares if formatting.known(share))
    return TableCell(cell.text, below, cell.sort)


def _peak_rate(part: pd.DataFrame) -> float | None:
    """The data sheet's rate (TFLOP/s) that the MFU of these cells is of."""
    rates = part["peak_tflops"].dropna() if "peak_tflops" in part else pd.Series(dtype=float)
    return float(rates.iloc[0]) if len(rates) else None


def _peak(row: dict, mode: str, kind: str) -> TableCell:
    """Peak memory in GiB, below the allocated the reserved; what was reached before running out is shown too."""
    value = row.get(f"{mode}_peak_{kind}_bytes")
    if not formatting.known(value):
        return table.NOTHING
    below = formatting.gib(row.get(f"{mode}_peak_reserved_bytes")) if kind == "allocated" else ""
    return TableCell(formatting.gib(value), below, value, ("oom",) if row.get(f"{mode}_status") == "oom" else ())


def _mfu_note(part: pd.DataFrame, precision: str, peak: float | None) -> str:
    if peak:
        return f"MFU is the share of the data sheet's {formatting.significant(peak)} TFLOP/s in {precision}."
    return (
        f"No data sheet in the list gives this device's rate in {precision}: no MFU." if "peak_tflops" in part else ""
    )


def _rate_notes(precision: str, ceiling: float | None, of_peak: str, flops: bool, difference: bool) -> str:
    notes = []
    if flops and ceiling:
        rate = formatting.significant(ceiling)
        notes.append(
            f"Shares are of the matrix product's rate measured in {precision} on this machine: {rate} TFLOP/s."
        )
    elif flops:
        notes.append(f"No matrix product in {precision} was measured on this hardware: no shares.")
    notes.append(of_peak)
    if difference:
        notes.append(
            "phases − step: the sum of the synchronised phases' medians minus the free step's; what overlap saves, "
            "less what zero_grad adds."
        )
    return " ".join(filter(None, notes))


def control_table(timing: pd.DataFrame) -> Table | None:
    """A row a repeated cell and phase: both medians, by how much they differ, and the floor of what limits them."""
    known = floors(timing).by_class
    places = {row["cell"]: row for row in timing.to_dict("records")} if len(timing) else {}
    rows = [
        places[pair.cells[1]] | {"pair": pair, "floor": known[pair.hardware, pair.limited_by]}
        for pair in control_pairs(timing)
    ]
    extra = table.varying(rows, ["hardware"]), table.varying(rows, ["batch", "mode", "options"])
    columns = [
        *table.point(*extra[0], "size", "context", "precision", *extra[1]),
        Column("phase", number=False, value=lambda row: label(row["pair"].phase)),
        Column("limited by", number=False, value=lambda row: row["pair"].limited_by, optional=True),
        Column("first", "ms", group="median", value=lambda row: row["pair"].medians[0], show=_four_digits),
        Column("again", "ms", group="median", value=lambda row: row["pair"].medians[1], show=_four_digits),
        Column("difference", "%", value=lambda row: _share(math.expm1(row["pair"].difference))),
        Column("floor", "%", value=lambda row: _share(math.expm1(row["floor"]))),
    ]
    caption = "The control: the same cells measured again, at another time."
    return table.build("control", caption, columns, rows, [_CONTROL_NOTE], folded=len(rows) > table.LONG)


def _four_digits(value: float) -> str:
    return formatting.significant(value, 4)


def _share(value: float) -> TableCell:
    return table.number(value, lambda share: formatting.rounded(share * 100, 2))


def first_steps_table(timing: pd.DataFrame) -> Table | None:
    """Time of each mode's first step, over how many times its median that is; None where none was recorded."""
    modes = [mode for mode in MODES if _any(timing, f"{mode}_first_step_ms")]
    if not modes:
        return None
    columns = [
        _CELL,
        *(Column(label(mode), "ms", value=lambda row, mode=mode: _first_step(row, mode)) for mode in modes),
    ]
    caption = "The first step of each mode, and how many times the median of its later free steps it took."
    return table.build("first-steps", caption, columns, timing.to_dict("records"), [_FIRST_STEPS_NOTE], folded=True)


def _first_step(row: dict, mode: str) -> TableCell:
    first = row.get(f"{mode}_first_step_ms")
    median = row.get(f"{'free_forward' if mode == 'forward' else mode}_median_ms")
    ratio = (
        f"× {formatting.significant(first / median, 2)}" if formatting.known(first) and formatting.known(median) else ""
    )
    return table.number(first, below=ratio)


def machine_state_table(timing: pd.DataFrame) -> Table | None:
    """Clocks, power and temperature during each cell."""
    shown = [name for name in _STATE if _any(timing, name)]
    if not shown:
        return None
    columns = [
        _CELL,
        *(Column(*_STATE[name], value=name, show=formatting.count) for name in shown),
        Column("throttle reasons", number=False, value=lambda row: TableCell(row.get("throttle") or "none")),
    ]
    return table.build(
        "state", "The machine's state during each cell.", columns, timing.to_dict("records"), folded=True
    )


_CELL = Column("cell", number=False, value=lambda row: TableCell(row["cell"] or "", badges=table.marks(row)))
