"""What the timing table says, for the summary."""

import math

import pandas as pd

from stepscope.axes import PHASES
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.control import control_pairs, floors
from stepscope.report.data.mixed import MixedPair, over_fp32
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import LEAST_MARGIN
from stepscope.report.kit.finding import Finding, Number, counted, speed, without_verdict
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank
from stepscope.tables.columns import GPU, LAUNCHES, PROCESSOR

_BY_IMPORTANCE = ("step", "forward_backward", "forward", "inference")
_LIMITS = {LAUNCHES: "where launches limit", GPU: "where the GPU limits", PROCESSOR: "on the processor"}


def findings(timing: pd.DataFrame, ceilings: pd.DataFrame) -> list[Finding]:
    """The findings, machine by machine; `timing` is ordered and has `options`."""
    if timing.empty:
        return [Finding("timing", "No timing cell is in the tables.")]
    found = []
    for hardware in machine_labels(timing["hardware"]):
        found += _of_one_machine(timing[timing["hardware"] == hardware], ceilings, hardware)
    return found


def _of_one_machine(own: pd.DataFrame, ceilings: pd.DataFrame, hardware: str) -> list[Finding]:
    first = own[own["repeat"] == 1]
    measured = [name for name in _BY_IMPORTANCE if first.get(f"{name}_median_ms", pd.Series()).notna().any()]
    if not measured:
        times = [Finding("how long does a step take", "No cell finished.", hardware=hardware)]
    else:
        times = [
            _extremes(first, measured[0], hardware),
            _ratio(first, hardware),
            *_control(own, hardware),
            *_speed_ups(own, measured[0], hardware),
            _ceiling_share(first, measured[0], ceilings, hardware),
        ]
    return [
        *filter(None, times),
        *_out_of_memory(first, hardware),
        *_unsupported(first, hardware),
        _marks(own, hardware),
    ]


def name(row: dict | pd.Series) -> str:
    """`xl, context 512, bf16`."""
    parts = [str(row["size"]), f"context {row['context']:,.0f}", str(row["precision"])]
    return ", ".join(parts + ([row["options"]] if row.get("options") else []))


def _what(phase: str) -> str:
    return "a training step" if phase == "step" else f"{label(phase)}"


def _extremes(first: pd.DataFrame, phase: str, hardware: str) -> Finding:
    done = first.dropna(subset=[f"{phase}_median_ms"])
    fast, slow = (done.loc[done[f"{phase}_median_ms"].agg(which)] for which in ("idxmin", "idxmax"))
    numbers = {
        which: Number(float(row[f"{phase}_median_ms"]), (row["cell"],))
        for which, row in (("least", fast), ("most", slow))
    }
    takes = f"{_what(phase).capitalize()} takes"
    if len(done) == 1:
        answer = f"{takes} {{least}} ms ({name(fast)}; median)."
    else:
        answer = f"{takes} from {{least}} ms ({name(fast)}) to {{most}} ms ({name(slow)}); medians."
    return Finding("how long does a step take", answer, numbers, hardware)


def _ratio(first: pd.DataFrame, hardware: str) -> Finding | None:
    column = "forward_backward_over_forward"
    done = first.dropna(subset=[column]) if column in first else first[:0]
    if done.empty:
        return None
    cells, ratios = tuple(done["cell"]), done[column]
    numbers = {
        "range": Number(list(ratios), cells, formatting.value_range),
        "median": Number(float(ratios.median()), cells),
    }
    answer = (
        "Forward and backward together take {range} times as long as forward alone "
        f"(median of {formatting.cells(len(done))}: {{median}})."
    )
    return Finding("what does backward cost", answer, numbers, hardware)


def _control(own: pd.DataFrame, hardware: str) -> list[Finding]:
    """How many processes a cell had, and what unchanged cells differ by."""
    processes = own[[name for name in own if name.endswith("_processes") and name.removesuffix("_processes") in PHASES]]
    many = processes.stack().dropna().astype(int)
    numbers, told = {}, []
    if len(many):
        numbers["processes"] = Number(list(many), tuple(own["cell"]), _counts)
        told.append(f"A cell was measured by {{processes}} fresh {'process' if many.max() == 1 else 'processes'}.")
    pairs = control_pairs(own)
    for (_, limited_by), floor in floors(own).by_class.items():
        key = limited_by or "floor"
        cells = tuple(dict.fromkeys(cell for pair in pairs if pair.limited_by == limited_by for cell in pair.cells))
        numbers[key] = Number(math.expm1(floor), cells, formatting.percent)
    parts = [f"{{{key}}} {_LIMITS.get(key, '')}".strip() for key in numbers if key != "processes"]
    least = formatting.percent(math.expm1(LEAST_MARGIN), 1)
    if parts:
        cells = tuple(dict.fromkeys(cell for pair in pairs for cell in pair.cells))
        numbers["pairs"] = Number(len(pairs), cells, formatting.count)
        told.append(
            f"Unchanged cells of this run differ by up to {formatting.listing(parts)} (19 in 20 of the {{pairs}} "
            f"phases that were measured twice); nothing smaller than that, or than {least}, is called a difference."
        )
    else:
        told.append(f"No cell was measured twice, so that no floor is known but {least}.")
    return [Finding("what do unchanged cells differ by", " ".join(told), numbers, hardware)]


def _counts(values: list[int]) -> str:
    """`3`, or `2 to 3`."""
    return " to ".join(dict.fromkeys(formatting.count(end(values)) for end in (min, max)))


def _speed_ups(own: pd.DataFrame, phase: str, hardware: str) -> list[Finding]:
    """Each precision against fp32, at the same point; with what none of these comparisons says."""
    pairs = over_fp32(own, floors(own))
    timed = [pair for pair in pairs if phase in pair.speeds]
    found = []
    for precision in ordered([pair.precision for pair in timed], key=precision_rank):
        part = [pair for pair in timed if pair.precision == precision]
        every = sum(pair.precision == precision for pair in pairs)
        found.append(_speed_up(part, every, precision, phase, hardware))
    return found + without_verdict([pair.speeds[phase] for pair in timed], hardware)


def _speed_up(pairs: list[MixedPair], every: int, precision: str, phase: str, hardware: str) -> Finding:
    """pairs: those that have a time in both, of `every` pair."""
    speeds = [pair.speeds[phase] for pair in pairs]
    gains = [each.ratio for each in speeds]
    cells = tuple(cell for pair in pairs for cell in pair.cells)
    if len(speeds) == 1:
        gain, change = speed(speeds[0], cells), "{gain} times the speed"
    elif max(gains) < 1:
        gain, change = Number([1 / each for each in gains], cells, formatting.value_range), "{gain} times as long"
    else:
        gain, change = Number(gains, cells, formatting.value_range), "{gain} times the speed"
    scope = f" in the {len(pairs):,} of {every:,} cells that have a time in both" if len(pairs) < every else ""
    told, _ = counted([(pair.point, each) for pair, each in zip(pairs, speeds, strict=True)])
    told = f"; {told}" if told else "" if scope else f" in {formatting.cells(len(pairs))}"
    answer = f"{precision} against fp32, {_what(phase)}: {change}{scope}{told}."
    return Finding(f"what does {precision} bring", answer, {"gain": gain}, hardware)


def _ceiling_share(first: pd.DataFrame, phase: str, ceilings: pd.DataFrame, hardware: str) -> Finding | None:
    """The share of the matmul ceiling of the same precision, a range a precision."""
    rates, numbers, scopes, exceeded = f"{phase}_tflops", {}, {}, False
    for precision in ordered(first["precision"], key=precision_rank) if rates in first else []:
        ceiling = matmul_ceiling(ceilings, hardware, precision)
        every = first[first["precision"] == precision]
        own = every.dropna(subset=[rates])
        if ceiling and len(own):
            exceeded = exceeded or own[rates].max() > ceiling
            scopes[precision] = f" ({len(own):,} of {formatting.cells(len(every))})" * (len(own) < len(every))
            numbers[precision] = Number(list(100 * own[rates] / ceiling), tuple(own["cell"]), _percent_range)
    if not numbers:
        return None
    parts = formatting.listing([f"{{{precision}}} in {precision}{scopes[precision]}" for precision in numbers])
    share = "this share of the measured matrix-product rate of its precision"
    above = " Above 100 % the large product ran slower than the step's own, and is no ceiling." if exceeded else ""
    answer = f"{_what(phase).capitalize()} reaches {share}: {parts}.{above}"
    return Finding("how near is it to the machine's ceiling", answer, numbers, hardware)


def _percent_range(values: list[float]) -> str:
    return formatting.value_range(values, 2, " %")


def _out_of_memory(first: pd.DataFrame, hardware: str) -> list[Finding]:
    lost = first[first["status"] == "oom"]
    if lost.empty:
        return []
    points = lost.groupby(["size", "context"], sort=False)["precision"]
    places = points.agg(lambda names: ", ".join(dict.fromkeys(names)))
    texts = [f"{size} at context {context:,.0f} ({names})" for (size, context), names in places.items()]
    shown = "; ".join(texts[:8]) + (f"; and {len(texts) - 8:,} more points" if len(texts) > 8 else "")
    numbers = {"lost": Number(len(lost), tuple(lost["cell"]), formatting.count)}
    answer = (
        f"Out of memory in {{lost}} of {formatting.cells(len(first))}, before the last phase was measured: {shown}."
    )
    return [Finding("what does not fit", answer, numbers, hardware)]


def _unsupported(first: pd.DataFrame, hardware: str) -> list[Finding]:
    lost = first[first["status"] == "unsupported"]
    found = []
    for reason, cells in lost.groupby(lost["reason"].fillna("no reason was recorded"), sort=True):
        numbers = {"lost": Number(len(cells), tuple(cells["cell"]), formatting.count)}
        precisions = formatting.listing(ordered(cells["precision"]), 4)
        answer = f"Not possible in {{lost}} of {formatting.cells(len(first))} ({precisions}): {reason.rstrip('.')}."
        found.append(Finding("what is not possible", answer, numbers, hardware))
    return found


def _marks(own: pd.DataFrame, hardware: str) -> Finding:
    """Cells to be careful with."""
    nowhere = pd.Series(False, index=own.index)
    marked = {
        "noisy (an interval wider than the mark)": own[[name for name in own if name.endswith("_noisy")]].any(axis=1),
        "unsteady (processes that differ by more than chance allows among their like)": own[
            [name for name in own if name.endswith("_unsteady")]
        ].any(axis=1),
        "throttled": own["throttle"].fillna("").astype(bool) if "throttle" in own else nowhere,
        "measured while the host was slow": own["slow_host"].fillna(False).astype(bool)
        if "slow_host" in own
        else nowhere,
        "shared with another process": own["other_processes"].fillna(0) > 0 if "other_processes" in own else nowhere,
    }
    numbers, parts = {}, []
    for words, which in marked.items():
        if which.any():
            key = words.split()[0]
            numbers[key] = Number(int(which.sum()), tuple(own.loc[which, "cell"]), formatting.count)
            parts.append(f"{{{key}}} {words}")
    answer = f"None of the {len(own):,} cells was noisy, throttled or shared."
    if parts:
        answer = f"Of {len(own):,} cells: {formatting.listing(parts)}."
    return Finding("what not to trust", answer, numbers, hardware)
