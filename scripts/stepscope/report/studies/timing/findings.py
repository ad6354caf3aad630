"""Sentences that the timing table supports, for the summary."""

import pandas as pd

from stepscope.report.data.repeats import spreads, typical_spreads, verdict
from stepscope.report.kit import formatting
from stepscope.report.studies.timing.tables import ceiling_of
from stepscope.report.tables import label, machine_labels, ordered, precision_rank

_BY_IMPORTANCE = ("step", "forward_backward", "forward", "inference")


def findings(timing: pd.DataFrame, ceilings: pd.DataFrame) -> list[str]:
    """The findings, hardware by hardware; `timing` is ordered and has `options`."""
    if timing.empty:
        return ["No timing cell is in the tables."]
    sentences = []
    several = timing["hardware"].nunique() > 1
    for hardware in machine_labels(timing["hardware"]):
        own = timing[timing["hardware"] == hardware]
        place = f"On {hardware}: " if several else ""
        sentences += [place + sentence for sentence in _of_one_machine(own, ceilings, hardware)]
    return sentences


def _of_one_machine(own: pd.DataFrame, ceilings: pd.DataFrame, hardware: str) -> list[str]:
    first = own[own["repeat"] == 1]
    measured = [name for name in _BY_IMPORTANCE if first.get(f"{name}_median_ms", pd.Series()).notna().any()]
    phase = measured[0] if measured else None
    if phase is None:
        return ["No cell finished.", *_out_of_memory(first), *_unsupported(first), *_marks(own)]
    parts = [
        _extremes(first, phase),
        _ratio(first),
        *_speed_ups(own, phase),
        _ceiling_share(first, phase, ceilings, hardware),
    ]
    return [sentence for sentence in parts if sentence] + _out_of_memory(first) + _unsupported(first) + _marks(own)


def name(row: pd.Series) -> str:
    """`xl, context 512, bf16`."""
    parts = [str(row["size"]), f"context {row['context']:,.0f}", str(row["precision"])]
    return ", ".join(parts + ([row["options"]] if row.get("options") else []))


def _what(phase: str) -> str:
    return "a training step" if phase == "step" else f"{label(phase)}"


def _extremes(first: pd.DataFrame, phase: str) -> str:
    done = first.dropna(subset=[f"{phase}_median_ms"])
    fast, slow = (done.loc[done[f"{phase}_median_ms"].agg(which)] for which in ("idxmin", "idxmax"))
    times = [formatting.significant(float(row[f"{phase}_median_ms"]), 3) for row in (fast, slow)]
    if len(done) == 1:
        return f"{_what(phase).capitalize()} takes {times[0]} ms ({name(fast)}; median)."
    return (
        f"{_what(phase).capitalize()} takes from {times[0]} ms ({name(fast)}) to {times[1]} ms ({name(slow)}); medians."
    )


def _ratio(first: pd.DataFrame) -> str:
    column = "forward_backward_over_forward"
    ratios = first[column].dropna() if column in first else pd.Series(dtype=float)
    if ratios.empty:
        return ""
    return (
        f"Forward and backward together take {formatting.value_range(ratios)} times as long as forward alone "
        f"(median of {_cells(ratios)}: {formatting.significant(float(ratios.median()))})."
    )


def _speed_ups(own: pd.DataFrame, phase: str) -> list[str]:
    """Each precision against fp32, at the same point."""
    first = own[own["repeat"] == 1]
    found = spreads(own)
    typical = typical_spreads(found, phase)
    hardware = first["hardware"].iloc[0]
    keys = ["size", "context", "batch", "mode", "options"]
    times = first.pivot_table(index=keys, columns="precision", values=f"{phase}_median_ms", sort=False)
    if "fp32" not in times:
        return []
    sentences = []
    for precision in (name for name in ordered(times.columns, key=precision_rank) if name != "fp32"):
        pair = times[["fp32", precision]].dropna()
        if pair.empty:
            continue
        gains = pair["fp32"] / pair[precision]
        known = [typical.get((hardware, one)) for one in ("fp32", precision)]
        change = f"{formatting.value_range(gains)} times the speed"
        if gains.max() < 1:
            change = f"{formatting.value_range(1 / gains)} times as long"
        start = f"{precision} against fp32, {_what(phase)}: {change}"
        if None in known:
            sentences.append(
                f"{start} in {_cells(pair)}. No verdict on faster or slower without repeated runs in both."
            )
            continue
        verdicts = pd.Series([verdict(a, b, sum(known)) for a, b in pair.itertuples(index=False)], index=pair.index)
        runs = f"repeated runs differ by up to {formatting.percent(max(known))}"
        sentences.append(f"{start}; {_counted(verdicts)}; {runs}.")
    return sentences


def _cells(frame) -> str:
    return "1 cell" if len(frame) == 1 else f"{len(frame):,} cells"


def _counted(verdicts: pd.Series) -> str:
    """`faster in 12 of 18 cells, about equal in 6 (small at 128, …)`."""
    parts = []
    for kind, words in (("faster", "faster"), ("equal", "about equal"), ("slower", "slower")):
        own = verdicts[verdicts == kind]
        if own.empty:
            continue
        names = [f"{size} at {context:,.0f}" for size, context, *_ in own.index]
        where = "" if kind == "faster" else f" ({formatting.listing(names, 4)})"
        of = "" if parts else f" of {_cells(verdicts)}"
        parts.append(f"{words} in {len(own):,}{of}{where}")
    return ", ".join(parts)


def _ceiling_share(first: pd.DataFrame, phase: str, ceilings: pd.DataFrame, hardware: str) -> str:
    """The share of the matmul ceiling of the same precision, a range a precision."""
    parts, exceeded = [], False
    rates = f"{phase}_tflops"
    for precision in ordered(first["precision"], key=precision_rank) if rates in first else []:
        ceiling = ceiling_of(ceilings, hardware, precision)
        own = first.loc[first["precision"] == precision, rates].dropna()
        if ceiling and len(own):
            exceeded = exceeded or own.max() > ceiling
            parts.append(f"{formatting.value_range(100 * own / ceiling, 2, ' %')} in {precision}")
    if not parts:
        return ""
    share = "this share of the measured matrix-product rate of its precision"
    above = " Above 100 % the large product ran slower than the step's own, and is no ceiling." if exceeded else ""
    return f"{_what(phase).capitalize()} reaches {share}: {formatting.listing(parts)}.{above}"


def _out_of_memory(first: pd.DataFrame) -> list[str]:
    lost = first[first["status"] == "oom"]
    if lost.empty:
        return []
    points = lost.groupby(["size", "context"], sort=False)["precision"]
    places = points.agg(lambda names: ", ".join(dict.fromkeys(names)))
    texts = [f"{size} at context {context:,.0f} ({names})" for (size, context), names in places.items()]
    shown = "; ".join(texts[:8]) + (f"; and {len(texts) - 8:,} more points" if len(texts) > 8 else "")
    return [f"Out of memory in {len(lost):,} of {_cells(first)}, before the last phase was measured: {shown}."]


def _unsupported(first: pd.DataFrame) -> list[str]:
    lost = first[first["status"] == "unsupported"]
    return [
        f"Not possible in {len(cells):,} of {_cells(first)} ({formatting.listing(ordered(cells['precision']), 4)}): "
        f"{reason.rstrip('.')}."
        for reason, cells in lost.groupby(lost["reason"].fillna("no reason was recorded"), sort=True)
    ]


def _marks(own: pd.DataFrame) -> list[str]:
    """Cells to be careful with."""
    noisy = own[[column for column in own if column.endswith("_noisy")]].any(axis=1)
    counts = {
        "noisy (an interval wider than the mark)": noisy.sum(),
        "throttled": own["throttle"].fillna("").astype(bool).sum() if "throttle" in own else 0,
        "shared with another process": (own["other_processes"].fillna(0) > 0).sum() if "other_processes" in own else 0,
    }
    found = [f"{count:,} {words}" for words, count in counts.items() if count]
    if not found:
        return [f"None of the {len(own):,} cells was noisy, throttled or shared."]
    return [f"Of {len(own):,} cells: {formatting.listing(found)}."]
