"""What the timing table says, for the summary."""

import pandas as pd

from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.repeats import spreads, typical_spreads
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, SLOWER, UNCLEAR, by_fields, pairs, timed, verdict
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank

_BY_IMPORTANCE = ("step", "forward_backward", "forward", "inference")
_POINT = by_fields("size", "context", "batch", "mode", "options")


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


def _speed_ups(own: pd.DataFrame, phase: str, hardware: str) -> list[Finding]:
    """Each precision against fp32, at the same point."""
    first = own[own["repeat"] == 1]
    typical = typical_spreads(spreads(own), phase)
    both = [
        (row, reference)
        for row, reference in pairs(first.to_dict("records"), "precision", "fp32", _POINT)
        if timed(row, f"{phase}_") and timed(reference, f"{phase}_")
    ]
    found = []
    for precision in ordered([row["precision"] for row, _ in both], key=precision_rank):
        part = [pair for pair in both if pair[0]["precision"] == precision]
        known = [typical.get((hardware, one)) for one in ("fp32", precision)]
        found.append(_speed_up(part, precision, phase, hardware, None if None in known else known))
    return found


def _speed_up(
    both: list[tuple[dict, dict]], precision: str, phase: str, hardware: str, spread: list[float] | None
) -> Finding:
    """`both`: (cell, fp32's cell) of the same point. spread: what repeated runs of each differ by, if both have any."""
    series = [[timed(row, f"{phase}_") for row in pair] for pair in both]
    gains = [reference.median / one.median for one, reference in series]
    cells = tuple(row["cell"] for pair in both for row in pair)
    question = f"what does {precision} bring"
    if max(gains) < 1:
        numbers = {"gain": Number([1 / gain for gain in gains], cells, formatting.value_range)}
        change = "{gain} times as long"
    else:
        numbers = {"gain": Number(gains, cells, formatting.value_range)}
        change = "{gain} times the speed"
    start = f"{precision} against fp32, {_what(phase)}: {change}"
    if spread is None:
        more = f" in {formatting.cells(len(both))}. No verdict on faster or slower without repeated runs in both."
        return Finding(question, start + more, numbers, hardware)
    verdicts = [verdict(*pair, sum(spread), disjoint=False) for pair in series]
    numbers["spread"] = Number(max(spread), cells, formatting.percent)
    counted = _counted([row for row, _ in both], verdicts)
    return Finding(question, f"{start}; {counted}; repeated runs differ by up to {{spread}}.", numbers, hardware)


def _counted(rows: list[dict], verdicts: list[str]) -> str:
    """`faster in 12 of 18 cells, about equal in 6 (small at 128, …)`."""
    parts = []
    for kind, words in ((FASTER, "faster"), (UNCLEAR, "about equal"), (SLOWER, "slower")):
        own = [row for row, found in zip(rows, verdicts, strict=True) if found == kind]
        if not own:
            continue
        names = [f"{row['size']} at {row['context']:,.0f}" for row in own]
        where = "" if kind == FASTER else f" ({formatting.listing(names, 4)})"
        of = "" if parts else f" of {formatting.cells(len(rows))}"
        parts.append(f"{words} in {len(own):,}{of}{where}")
    return ", ".join(parts)


def _ceiling_share(first: pd.DataFrame, phase: str, ceilings: pd.DataFrame, hardware: str) -> Finding | None:
    """The share of the matmul ceiling of the same precision, a range a precision."""
    rates, numbers, exceeded = f"{phase}_tflops", {}, False
    for precision in ordered(first["precision"], key=precision_rank) if rates in first else []:
        ceiling = matmul_ceiling(ceilings, hardware, precision)
        own = first[first["precision"] == precision].dropna(subset=[rates])
        if ceiling and len(own):
            exceeded = exceeded or own[rates].max() > ceiling
            numbers[precision] = Number(list(100 * own[rates] / ceiling), tuple(own["cell"]), _percent_range)
    if not numbers:
        return None
    parts = formatting.listing([f"{{{precision}}} in {precision}" for precision in numbers])
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
        "throttled": own["throttle"].fillna("").astype(bool) if "throttle" in own else nowhere,
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
