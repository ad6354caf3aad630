"""The tables of the timing study."""

import math

import pandas as pd

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import BADGES, Cell, Column, Table
from stepscope.report.tables import MODES, label, machine_labels, ordered, precision_rank

_TIMES_NOTE = (
    "Each time: mean ± sample standard deviation, and below it the median with its 95 % bootstrap confidence interval, "
    "in ms. Columns sort by the median."
)
_RATIOS_NOTE = " f+b / f: forward+backward over forward, free steps; b / f: backward over forward, phased steps."
# What the columns of times stand under, and the phases there.
_KINDS = {
    "free steps (ms)": ("inference", "free_forward", "forward_backward", "step"),
    "phased steps (ms)": ("forward", "backward", "optimizer"),
}


def groups(timing: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """(hardware, precision, first runs) in their order, a table each."""
    if timing.empty:
        return []
    first = timing[timing["repeat"] == 1]
    return [
        (hardware, precision, first[(first["hardware"] == hardware) & (first["precision"] == precision)])
        for hardware in machine_labels(first["hardware"])
        for precision in ordered(first.loc[first["hardware"] == hardware, "precision"], key=precision_rank)
    ]


def leading(part: pd.DataFrame, whole: pd.DataFrame) -> tuple[list[Column], list[list[Cell]]]:
    """What names a cell: size with the row's marks, parameters, context; batch, mode and options that vary."""
    columns = [Column("size", number=False), Column("parameters"), Column("context", "tokens")]
    extra = [name for name in ("batch", "mode", "options") if whole[name].nunique() > 1]
    columns += [Column(name, number=name == "batch") for name in extra]
    rows = []
    for row in part.to_dict("records"):
        cells = [
            Cell(str(row["size"] or ""), badges=marks(row)),
            number(row["parameters"], formatting.parameters),
            number(row["context"], formatting.count),
        ]
        cells += [number(row[name], formatting.count) if name == "batch" else Cell(row[name] or "–") for name in extra]
        rows.append(cells)
    return columns, rows


def marks(row: dict) -> tuple[str, ...]:
    """The marks of a whole cell."""
    found = [row["status"]] if row.get("status") in ("failed", "missing") else []
    found += ["throttled"] if row.get("throttle") else []
    found += ["shared"] if formatting.known(row.get("other_processes")) and row["other_processes"] > 0 else []
    return tuple(found)


def number(value: object, shown) -> Cell:
    """A number and its text; a dash where there is none."""
    return Cell(shown(value), sort=float(value)) if formatting.known(value) else Cell("–")


def phase_cell(row: dict, phase: str) -> Cell:
    """Mean ± std over median [interval], or why there is none."""
    status, median = row.get(f"{phase}_status"), row.get(f"{phase}_median_ms", math.nan)
    if not formatting.known(median):
        return Cell(badges=(status,)) if status in ("oom", "unsupported", "failed") else Cell("–")
    return Cell(
        formatting.mean_and_std(row[f"{phase}_mean_ms"], row.get(f"{phase}_std_ms", math.nan)),
        formatting.median_and_interval(median, row.get(f"{phase}_ci_low_ms"), row.get(f"{phase}_ci_high_ms")),
        sort=median,
        badges=("noisy",) if row.get(f"{phase}_noisy") else (),
    )


def ratio_cell(row: dict, name: str) -> Cell:
    """A ratio of two times."""
    return number(row.get(name), lambda value: f"{value:.2f}")


def times_table(hardware: str, precision: str, part: pd.DataFrame, whole: pd.DataFrame) -> Table:
    """Time of each phase of the cells of one hardware and precision."""
    columns, rows = leading(part, whole)
    measured = [(phase, group) for group, phases in _KINDS.items() for phase in phases if _measured(part, phase)]
    columns += [Column(label(phase), group=group) for phase, group in measured]
    ratios = [("forward_backward_over_forward", "f+b / f"), ("backward_over_forward", "b / f")]
    ratios = [(name, title) for name, title in ratios if name in part and part[name].notna().any()]
    columns += [Column(title, group="ratio of medians") for _, title in ratios]
    for cells, row in zip(rows, part.to_dict("records"), strict=True):
        cells += [phase_cell(row, phase) for phase, _ in measured]
        cells += [ratio_cell(row, name) for name, _ in ratios]
    caption = f"Time of each phase, {precision}, on {hardware}{_fixed(part, whole)}."
    notes = [_TIMES_NOTE + (_RATIOS_NOTE if ratios else "")]
    return Table(f"times-{hardware}-{precision}", caption, columns, rows, notes + reasons(part) + legend(rows))


def _measured(part: pd.DataFrame, phase: str) -> bool:
    """Was the phase tried in any cell?"""
    return f"{phase}_status" in part and part[f"{phase}_status"].notna().any()


def _fixed(part: pd.DataFrame, whole: pd.DataFrame) -> str:
    """The parameters that do not vary, for a caption."""
    batch = (
        f"; batch {part['batch'].iloc[0]:,.0f}" if whole["batch"].nunique() == 1 and part["batch"].notna().any() else ""
    )
    constant = whole["options"].nunique() == 1 and part["options"].iloc[0]
    return batch + (f"; {part['options'].iloc[0]}" if constant else "")


def reasons(part: pd.DataFrame) -> list[str]:
    """Why cells are unsupported, each reason once."""
    found = part[part["status"].isin(["unsupported", "failed"])]
    notes = []
    for reason, cells in found.groupby(found["reason"].fillna("no reason was recorded"), sort=True):
        names = [f"{row['size']} at {row['context']:,.0f}" for row in cells.to_dict("records")]
        notes.append(f"n/a ({formatting.listing(names, 4)}): {reason.rstrip('.')}.")
    return notes[:8]


def legend(rows: list[list[Cell]]) -> list[str]:
    """What the badges in these rows mean."""
    used = {key for row in rows for cell in row for key in cell.badges}
    meanings = [f"{text}: {meaning}" for key, (text, meaning) in BADGES.items() if key in used]
    return ["; ".join(meanings) + "."] if meanings else []


def rates_table(
    hardware: str, precision: str, part: pd.DataFrame, whole: pd.DataFrame, ceiling: float | None
) -> Table | None:
    """Tokens per second, arithmetic rate, its share of the ceiling and MFU, peak memory; None where no cell ran."""
    columns, rows = leading(part, whole)
    tokens = [mode for mode in MODES if _any(part, f"{mode}_tokens_per_s")]
    flops = [mode for mode in MODES if _any(part, f"{mode}_tflops")]
    allocated = [mode for mode in MODES if _any(part, f"{mode}_peak_allocated_bytes")]
    resident = [mode for mode in MODES if _any(part, f"{mode}_peak_resident_bytes")]
    if not (tokens or allocated or resident):
        return None
    columns += [Column(label(mode), group="tokens/s") for mode in tokens]
    peak = _peak_rate(part) if any(_any(part, f"{mode}_mfu") for mode in flops) else None
    shares = ["share of the measured ceiling"] * bool(ceiling) + ["MFU"] * bool(peak)
    columns += [Column(label(mode), group=", ".join(["TFLOP/s", *shares])) for mode in flops]
    columns += [Column(label(mode), group="peak memory allocated, reserved (GiB)") for mode in allocated]
    columns += [Column(label(mode), group="peak resident memory (GiB)") for mode in resident]
    difference = _any(part, "phases_minus_step_ms")
    columns += [Column("phases − step", "ms")] if difference else []
    for cells, row in zip(rows, part.to_dict("records"), strict=True):
        cells += [_rate(row, mode, "tokens_per_s", lambda value: formatting.significant(value, 4)) for mode in tokens]
        cells += [_arithmetic(row, mode, ceiling) for mode in flops]
        cells += [_peak(row, mode, "allocated", "reserved") for mode in allocated]
        cells += [_peak(row, mode, "resident", "") for mode in resident]
        cells += (
            [number(row["phases_minus_step_ms"], lambda value: formatting.significant(value, 2))] if difference else []
        )
    caption = f"Throughput and memory, {precision}, on {hardware}{_fixed(part, whole)}."
    of_peak = _mfu_note(part, precision, peak) if flops else ""
    notes = _rate_notes(precision, ceiling, of_peak, bool(flops), difference)
    return Table(f"rates-{hardware}-{precision}", caption, columns, rows, notes + legend(rows))


def _any(part: pd.DataFrame, name: str) -> bool:
    return name in part and part[name].notna().any()


def _rate(row: dict, mode: str, name: str, shown) -> Cell:
    """A rate of a mode, or why there is none."""
    value, status = row.get(f"{mode}_{name}"), row.get(f"{mode}_status")
    if formatting.known(value):
        return Cell(shown(value), sort=value)
    return Cell(badges=(status,)) if status in ("oom", "unsupported", "failed") else Cell("–")


def _arithmetic(row: dict, mode: str, ceiling: float | None) -> Cell:
    """TFLOP/s over its share of the ceiling and the MFU."""
    cell = _rate(row, mode, "tflops", formatting.significant)
    if cell.sort is None:
        return cell
    shares = [cell.sort / ceiling if ceiling else None, row.get(f"{mode}_mfu")]
    return Cell(
        cell.text, ", ".join(formatting.percent(share) for share in shares if formatting.known(share)), cell.sort
    )


def _peak_rate(part: pd.DataFrame) -> float | None:
    """The data sheet's rate (TFLOP/s) that the MFU of these cells is of."""
    rates = part["peak_tflops"].dropna() if "peak_tflops" in part else pd.Series(dtype=float)
    return float(rates.iloc[0]) if len(rates) else None


def _peak(row: dict, mode: str, first: str, second: str) -> Cell:
    """Peak memory in GiB, the second kind below the first; what was reached before running out is shown too."""
    value = row.get(f"{mode}_peak_{first}_bytes")
    if not formatting.known(value):
        return Cell("–")
    badges = ("oom",) if row.get(f"{mode}_status") == "oom" else ()
    return Cell(formatting.gib(value), formatting.gib(row.get(f"{mode}_peak_{second}_bytes")), value, badges)


def _mfu_note(part: pd.DataFrame, precision: str, peak: float | None) -> str:
    if peak:
        return f"MFU is the share of the data sheet's {formatting.significant(peak)} TFLOP/s in {precision}."
    return (
        f"No data sheet in the list gives this device's rate in {precision}: no MFU." if "peak_tflops" in part else ""
    )


def _rate_notes(precision: str, ceiling: float | None, of_peak: str, flops: bool, difference: bool) -> list[str]:
    notes = []
    if flops and ceiling:
        rate = formatting.significant(ceiling)
        notes.append(
            f"Shares are of the matrix product's rate measured in {precision} on this machine: {rate} TFLOP/s."
        )
    elif flops:
        notes.append(f"No matrix product in {precision} was measured on this hardware: no shares.")
    notes += [of_peak] if of_peak else []
    if difference:
        notes.append(
            "phases − step: the sum of the synchronised phases' medians minus the free step's; what overlap saves, "
            "less what zero_grad adds."
        )
    return [" ".join(notes)] if notes else []


def first_steps_table(timing: pd.DataFrame) -> Table | None:
    """Time of each mode's first step, over how many times its median that is; None where none was recorded."""
    modes = [mode for mode in MODES if _any(timing, f"{mode}_first_step_ms")]
    if not modes:
        return None
    rows = []
    for row in timing.to_dict("records"):
        rows.append([Cell(row["cell"] or "", badges=marks(row)), *(_first_step(row, mode) for mode in modes)])
    columns = [Column("cell", number=False), *(Column(label(mode), "ms") for mode in modes)]
    caption = "The first step of each mode, and how many times the median of its later free steps it took."
    note = (
        "Inference comes first in each process, and so pays for loading kernels and libraries. The first of "
        "forward+backward and of step are phased steps."
    )
    return Table("first-steps", caption, columns, rows, [note, *legend(rows)], folded=True)


def _first_step(row: dict, mode: str) -> Cell:
    first = row.get(f"{mode}_first_step_ms")
    median = row.get(f"{'free_forward' if mode == 'forward' else mode}_median_ms")
    if not formatting.known(first):
        return Cell("–")
    ratio = f"× {formatting.significant(first / median, 2)}" if formatting.known(median) else ""
    return Cell(formatting.significant(first, 3), ratio, first)


def ceiling_of(ceilings: pd.DataFrame, hardware: str, precision: str) -> float | None:
    """The measured matmul rate (TFLOP/s) of a hardware in exactly this precision."""
    if ceilings.empty:
        return None
    own = ceilings[(ceilings["operation"] == "matmul") & (ceilings["hardware"] == hardware)]
    rates = own.loc[own["precision"] == precision, "tflops"].dropna()
    return float(rates.max()) if len(rates) else None


def machine_state_table(timing: pd.DataFrame) -> Table | None:
    """Clocks, power and temperature during each cell."""
    shown = {
        "sm_clock_min_mhz": ("lowest SM clock", "MHz"),
        "sm_clock_median_mhz": ("median SM clock", "MHz"),
        "power_max_w": ("highest power", "W"),
        "temperature_max_c": ("highest temperature", "°C"),
        "other_processes": ("other processes", ""),
    }
    shown = {name: words for name, words in shown.items() if _any(timing, name)}
    if not shown:
        return None
    rows = []
    for row in timing.to_dict("records"):
        cells = [Cell(row["cell"] or "", badges=marks(row)), *(number(row[name], formatting.count) for name in shown)]
        rows.append([*cells, Cell(row.get("throttle") or "none")])
    columns = [Column("cell", number=False), *(Column(*words) for words in shown.values())]
    columns.append(Column("throttle reasons", number=False))
    return Table("state", "The machine's state during each cell.", columns, rows, legend(rows), folded=True)
