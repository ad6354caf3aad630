"""Sentences that the precision study's probes support, for the summary."""

from stepscope.report.data.precision import FORMATS, Precision
from stepscope.report.kit import formatting
from stepscope.report.studies.precision.norms import AUTOCAST, PLAIN, outcome
from stepscope.report.studies.precision.tables import signed


def findings(precision: Precision) -> list[str]:
    """The findings; what several machines have in common is said once."""
    if not len(precision.probes):
        return ["No probe of precision is in the tables."]
    alike: dict[str, list[str]] = {}
    for make in (_sums, _layer_norm, _overflow, _cancellation, _sum_one_by_one, _gradients):
        for hardware in precision.hardware:
            if text := make(precision, hardware):
                alike.setdefault(text, []).append(hardware)
    sentences = [
        f"On {formatting.listing(machines, 3)}: {text}" if precision.several else text
        for text, machines in alike.items()
    ]
    return sentences or ["No probe of precision finished."]


def _sums(precision: Precision, hardware: str) -> str:
    """What 0.01 adds up to in each format of its own, and where a sum stops growing."""
    rows = precision.rows("accumulation", hardware)
    own = [row for row in rows if row["sum_dtype"] == row["addend_dtype"]]
    if not own:
        return ""
    parts = [f"{formatting.fixed(row['sum'], 4)} in {row['sum_dtype']}" for row in own]
    start = f"0.01 added {formatting.count(own[0]['times'])} times gives {formatting.listing(parts)}"
    stuck = [row for row in own if row["last_change"] < row["times"]]
    if stuck:
        row = stuck[0]
        start += f", which stops growing after {formatting.count(row['last_change'])} additions"
        start = start if own[-1] is row else start.replace("which stops", f"of which {row['sum_dtype']} stops")
    return f"{start}."


def _layer_norm(precision: Precision, hardware: str) -> str:
    """What autocast gives out of the toy model's LayerNorm, which differs between kinds of devices."""
    rows = precision.rows("dtypes", hardware, model="toy", role="layer_norm", status="ok")
    if not rows:
        return ""
    given: dict[str, list[str]] = {}
    for row in rows:
        given.setdefault(row["output"], []).append(row["autocast"])
    parts = [f"{dtype} under {formatting.listing(formats)} autocast" for dtype, formats in given.items()]
    where = "a CPU" if precision.is_cpu(hardware) else "this device"
    kept = all(row["output"] == "fp32" for row in rows)
    end = "autocast runs it in fp32" if kept else "autocast does not cast its input"
    return f"LayerNorm after a linear layer gives {formatting.listing(parts)} on {where}: {end}."


def _overflow(precision: Precision, hardware: str) -> str:
    """The smallest |x| at which a normalisation forced into a format loses its result."""
    found: dict[str, list[str]] = {}
    for operation in ("RMSNorm", "LayerNorm"):
        for name in FORMATS:
            rows = precision.rows("forced", hardware, operation=operation, quantity="largest |x|", way=PLAIN)
            lost = [row for row in rows if row["format"] == name and row["status"] == "ok"
                    and outcome(row) in ("all zero", "NaN", "Inf")]  # fmt: skip
            if lost:
                first = min(lost, key=lambda row: row["value"])
                became = {"all zero": "nothing but zeros"}.get(outcome(first), outcome(first))
                text = f"in {name} {{}} {became} from |x| = {formatting.count(first['value'])} on"
                found.setdefault(text, []).append(operation)
    if not found:
        return ""
    parts = [f"{formatting.listing(names)} {text.format('give' if len(names) > 1 else 'gives')}"
             for text, names in found.items()]  # fmt: skip
    kept = precision.rows("forced", hardware, quantity="largest |x|", way=AUTOCAST, status="ok")
    fine = kept and all(row["error"] is not None and row["error"] < 0.5 for row in kept)
    return f"{formatting.listing(parts)}, where squares overflow{'; not so under autocast' if fine else ''}."


def _cancellation(precision: Precision, hardware: str) -> str:
    """A variance as a difference of two large numbers, at the smallest mean that spoils it."""
    rows = precision.rows("forced", hardware, operation="LayerNorm", quantity="mean of x", status="ok")
    parts = []
    for name in FORMATS:
        own = [row for row in rows if row["format"] == name and row["way"] not in (PLAIN, AUTOCAST)]
        lost = [row for row in own if row["error"] is None or row["error"] > 0.5]
        if lost:
            row = min(lost, key=lambda row: row["value"])
            inner = "NaN" if row["inner"] != row["inner"] else formatting.significant(row["inner"], 3) or "0"
            inner = "0" if row["inner"] == 0 else inner
            exact = formatting.significant(row["inner_exact"], 3)
            parts.append(f"{inner} in {name} instead of {exact} at a mean of {formatting.count(row['value'])}")
    return f"A variance as mean(x²) − mean(x)² becomes {formatting.listing(parts)}." if parts else ""


def _sum_one_by_one(precision: Precision, hardware: str) -> str:
    """Where a sum of ones in the format itself stops."""
    rows = precision.rows("forced", hardware, operation="softmax", way="sum one by one", status="ok")
    parts = []
    for name in FORMATS:
        own = [row for row in rows if row["format"] == name and row["inner"] != row["inner_exact"]]
        if own:
            stop = max(row["inner"] for row in own)
            parts.append(f"{formatting.count(stop)} in {name}")
    if not parts:
        return ""
    return (
        f"A softmax that adds equal exponentials one by one in the format itself stops at {formatting.listing(parts)}."
    )


def _gradients(precision: Precision, hardware: str) -> str:
    """How far gradients under autocast are from those in fp32."""
    rows = [row for row in precision.rows("gradients", hardware) if row["autocast"] != "fp32"]
    parts = []
    for row in (row for row in rows if row["error"] is not None):
        zeros = f" ({formatting.percent(row['zero_share'])} of them exactly zero)" if row["zero_share"] else ""
        parts.append(f"{signed(100 * row['error']).removeprefix('+')} % in {row['autocast']}{zeros}")
    return f"Gradients of the probed model differ from those in fp32 by {formatting.listing(parts)}." if parts else ""
