"""Forward and backward: how long they take, why the one takes longer; whether phases add up; how much times vary."""

import math
from dataclasses import replace
from statistics import median

from stepscope.axes import STEP_PHASES
from stepscope.report.chapters.parts import percent_range, range_of_cells
from stepscope.report.data.bound import LAUNCH_BOUND, products
from stepscope.report.data.control import control_pairs, floors
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import StepParts
from stepscope.report.data.timing_grid import TimingGrid, cells_of, place
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import timed
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known

ABOUT_TWICE = 1.75, 2.25  # a median ratio in between is called about twice
TWOFOLD = "Each weight is multiplied twice: for its input's gradient and for its own."


def extremes(grid: TimingGrid) -> Finding | None:
    """Forward and backward of the quickest and of the slowest size, in the last precision that is shown, at the
    context that has most cells."""
    context = grid.fullest_context("backward")
    rows = grid.timed(grid.shown[-1], "backward", context) if context is not None else []
    rows = [row for row in rows if known(row.get("forward_median_ms"))]
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: row["forward_median_ms"] + row["backward_median_ms"])
    ends = list({row["size"]: row for row in (rows[0], rows[-1])}.values())
    numbers = {
        f"{phase}_{at}": Number(row[f"{phase}_median_ms"], cells_of([row]))
        for phase in ("forward", "backward")
        for at, row in enumerate(ends)
    }
    forward = " and ".join(f"{{forward_{at}}}{' ms' * (at == 0)} ({row['size']})" for at, row in enumerate(ends))
    backward = " and ".join(f"{{backward_{at}}}" for at in range(len(ends)))
    answer = f"At context {context:,.0f} in {grid.shown[-1]} forward takes {forward}, backward {backward}."
    return Finding("how long do the passes take", answer, numbers, grid.rows[0]["hardware"])


# Backward over forward ------------------------------------------------------------------------------------------------


def backwards(machine: Machine, grid: TimingGrid) -> list[Finding]:
    """backward() of each precision that is shown; the usual reason is given once."""
    found = [each for precision in grid.shown if (each := backward(machine, grid, precision))]
    usual = [each for each in found if each.cause.startswith(TWOFOLD)]
    return [
        replace(each, cause=each.cause.removeprefix(TWOFOLD).strip()) if each in usual[1:] else each for each in found
    ]


def backward(machine: Machine, grid: TimingGrid, precision: str) -> Finding | None:
    """How many times a forward pass the backward pass takes, and which kernels make it so."""
    rows = [row for row in grid.timed(precision, "backward") if known(row.get("forward_median_ms"))]
    if not rows:
        return None
    ratios = [row["backward_median_ms"] / row["forward_median_ms"] for row in rows]
    numbers = {
        "ratios": range_of_cells(ratios, [[row] for row in rows], ("forward", "backward")),
        "middle": Number(median(ratios), cells_of(rows)),
    }
    is_twice = _is_about_twice(ratios)
    middle = f" (median {{middle}}; {formatting.cells(len(rows))})" if len(rows) > 1 else ""
    answer = f"In {precision} it {'takes about twice as long' if is_twice else 'does not'}: {{ratios}} times{middle}."
    cause, more = _twofold_products(machine, precision) if is_twice else _other_kernels(machine, precision)
    return Finding(f"what does a backward pass take in {precision}", answer, numbers | more, machine.hardware, cause)


def _is_about_twice(ratios: list[float]) -> bool:
    low, high = ABOUT_TWICE
    return low <= median(ratios) <= high


def _twofold_products(machine: Machine, precision: str) -> tuple[str, dict[str, Number]]:
    """The reason that is usually given, where the profiled products do not speak against it."""
    pairs = _kernel_ratios(machine, precision)
    if not pairs:
        return TWOFOLD, {}
    ratios = [each["products"] for each in pairs]
    numbers = {"products": Number(ratios, _profiled(pairs), formatting.value_range)}
    if not _is_about_twice(ratios):
        return "Yet its products do not: they take {products} times forward's.", numbers
    return f"{TWOFOLD} Its products take {{products}} times forward's.", numbers


def _other_kernels(machine: Machine, precision: str) -> tuple[str, dict[str, Number]]:
    """That kernels which multiply nothing take most of the passes, and do not take twice as long backward."""
    pairs = _kernel_ratios(machine, precision)
    if not pairs or not median(each["share"] for each in pairs) > 0.5:
        return "", {}
    if not median(each["others"] for each in pairs) < min(ABOUT_TWICE[0], median(each["products"] for each in pairs)):
        return "", {}
    names = {"products": formatting.value_range, "others": formatting.value_range, "share": percent_range}
    numbers = {name: Number([each[name] for each in pairs], _profiled(pairs), show) for name, show in names.items()}
    cause = "Its products take {products} times forward's, but other kernels, {share} of the GPU's time, only {others}."
    waiting, more = _launched(machine, precision)
    return " ".join(filter(None, [cause, waiting])), numbers | more


def _launched(machine: Machine, precision: str) -> tuple[str, dict[str, Number]]:
    """Backward over forward of kernels and of times, where the GPU waits for launches; empty if nowhere."""
    bound = [each for each in machine.steps if each.precision == precision and each.busy / each.total < LAUNCH_BOUND]
    pairs = [found for each in bound if (found := _launch_ratios(machine, each))]
    if not pairs:
        return "", {}
    numbers = {
        name: Number([each[name] for each in pairs], _profiled(pairs), formatting.value_range)
        for name in ("launched", "lasting")
    }
    answer = f"Where launches limit ({formatting.cells(len(pairs))}), it launches {{launched}} times as many kernels"
    return f"{answer} and takes {{lasting}} times as long.", numbers


def _launch_ratios(machine: Machine, own: StepParts) -> dict | None:
    """Backward over forward of a step: of the kernels, and of the times without a profiler."""
    plain, cell = machine.profile.unprofiled(own.row), own.row["cell"]
    counts = [
        machine.profile.row("phases", cell, phase=name).get("kernels_per_step") for name in ("forward", "backward")
    ]
    times = [plain.get(f"{name}_median_ms") for name in ("forward", "backward")]
    if not all(known(each) and each > 0 for each in (*counts, *times)):
        return None
    return {"cell": cell, "launched": counts[1] / counts[0], "lasting": times[1] / times[0]}


def _kernel_ratios(machine: Machine, precision: str) -> list[dict]:
    """Of each profiled step: backward over forward of its products and of its other kernels, and the others' share."""
    return [found for each in machine.steps if each.precision == precision and (found := _ratios(machine, each))]


def _ratios(machine: Machine, own: StepParts) -> dict | None:
    cell, times = own.row["cell"], {}
    for phase in ("forward", "backward"):
        whole = machine.profile.row("phases", cell, phase=phase).get("gpu_ms_per_step")
        multiplied = products(machine.profile, own.row, phase).get("ms")
        if not (known(whole) and multiplied and whole > multiplied):
            return None
        times[phase] = multiplied, whole - multiplied
    (first, first_others), (second, second_others) = times["forward"], times["backward"]
    return {
        "cell": cell,
        "products": second / first,
        "others": second_others / first_others,
        "share": (first_others + second_others) / (first + second + first_others + second_others),
    }


def _profiled(pairs: list[dict]) -> tuple[str, ...]:
    return tuple(each["cell"] for each in pairs)


# Phases and the step, and how much it varies --------------------------------------------------------------------------


def phases_and_step(machine: Machine, grid: TimingGrid) -> Finding | None:
    """By how much the sum of the phases differs from a step that runs freely, over all precisions, and in how many
    cells that is more than what unchanged cells differ by."""
    rows = [row for row in grid.rows if known(row.get("phases_minus_step_ms")) and known(row.get("step_median_ms"))]
    if not rows:
        return None
    shares = [row["phases_minus_step_ms"] / row["step_median_ms"] for row in rows]
    margins = floors(machine.tables["timing"])
    beyond = [
        row
        for row, share in zip(rows, shares, strict=True)
        if abs(math.log1p(share)) > margins.margin(timed(row, "step_"))
    ]
    numbers = {
        "shares": range_of_cells(shares, [[row] for row in rows], (*STEP_PHASES, "step"), _signed, " %"),
        "beyond": Number(len(beyond), cells_of(rows), formatting.count),
    }
    answer = (
        f"The sum of the phases differs by {{shares}} from a freely running step, beyond the floor in {{beyond}} of "
        f"{formatting.cells(len(rows))}."
    )
    return Finding("do the phases add up", answer, numbers, rows[0]["hardware"])


def _signed(share: float) -> str:
    """`+5.9`, in per cent."""
    return f"{'+' if share > 0 else '−' if share < 0 else ''}{formatting.percentage(abs(share))}"


def variation(machine: Machine, grid: TimingGrid) -> Finding | None:
    """The standard deviation of a cell's steps; the floor, which the first chapter has, is what runs differ by."""
    rows = [row for row in grid.rows if known(row.get("step_std_ms")) and known(row.get("step_mean_ms"))]
    if not rows:
        return None
    shares = {row["cell"]: row["step_std_ms"] / row["step_mean_ms"] for row in rows}
    widest = max(rows, key=lambda row: shares[row["cell"]])
    numbers = {
        "middle": Number(median(shares.values()), cells_of(rows), formatting.percent),
        "most": Number(shares[widest["cell"]], cells_of([widest]), formatting.percent),
    }
    answer = (
        "A step's standard deviation is {middle} of its mean (median), at most {most} "
        f"({place(widest)}, {widest['precision']})."
    )
    again = [each for each in control_pairs(machine.tables["timing"]) if each.hardware == machine.hardware]
    advice = "" if again else "That says nothing of another run: no cell was measured twice."
    return Finding("do measurements vary", answer, numbers, machine.hardware, advice=advice)


def noise(grid: TimingGrid) -> Finding | None:
    """That most cells are noisy, so that nothing here is exact; None where most are not."""
    rows = [row for name in grid.shown for row in grid.timed(name)]
    noisy = [row for row in rows if row.get("step_noisy") is True]
    if 2 * len(noisy) <= len(rows):
        return None
    numbers = {"noisy": Number(len(noisy), cells_of(noisy), formatting.count)}
    answer = f"Take these ratios as rough: {{noisy}} of {formatting.cells(len(rows))} are noisy."
    return Finding("what not to trust", answer, numbers, rows[0]["hardware"])
