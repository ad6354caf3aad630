"""What the precision study's probes found, for the summary."""

from dataclasses import replace

from stepscope.report.data.precision import AUTOCAST, PLAIN, Precision, outcome, worded
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number

_NORMALISATION = "what do 16 bits do to a normalisation"
_LOST = 0.5  # an error, relative to the largest exact result, from which on the result is of no use


def findings(precision: Precision) -> list[Finding]:
    """The findings; what several machines have in common is said once."""
    if not len(precision.probes):
        return [Finding("precision", "No probe of precision is in the tables.")]
    found = []
    for make in (_sums, _layer_norm, _overflow, _cancellation, _sum_one_by_one, _gradients):
        found += filter(None, (make(precision, hardware) for hardware in precision.hardware))
    return _said_once(found) or [Finding("precision", "No probe of precision finished.")]


def _said_once(found: list[Finding]) -> list[Finding]:
    """Findings that read the same for several machines become one, which names these."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for each in found:
        alike.setdefault((each.answer, each.text), []).append(each)
    return [own[0] if len(own) == 1 else _of_several_machines(own) for own in alike.values()]


def _of_several_machines(own: list[Finding]) -> Finding:
    machines = formatting.listing([each.hardware for each in own], 3)
    numbers = {
        name: replace(number, cells=tuple(cell for each in own for cell in each.numbers[name].cells))
        for name, number in own[0].numbers.items()
    }
    return replace(own[0], answer=f"On {machines}: {own[0].answer}", numbers=numbers, hardware="")


def _cells(*rows: dict) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["cell"] for row in rows))


def _formats(rows: list[dict]) -> list[str]:
    """The 16-bit formats of these rows, in their order."""
    return list(dict.fromkeys(row["format"] for row in rows if row["format"] != "fp32"))


def _sums(precision: Precision, hardware: str) -> Finding | None:
    """What 0.01 adds up to in each format of its own, and where a sum stops growing."""
    rows = precision.rows("accumulation", hardware)
    own = [row for row in rows if row["sum_dtype"] == row["addend_dtype"]]
    if not own:
        return None
    numbers = {"times": Number(own[0]["times"], _cells(own[0]), formatting.count)}
    numbers |= {row["sum_dtype"]: Number(row["sum"], _cells(row), _with_four_decimals) for row in own}
    sums = formatting.listing([f"{{{row['sum_dtype']}}} in {row['sum_dtype']}" for row in own])
    answer = f"0.01 added {{times}} times gives {sums}"
    stuck = next((row for row in own if row["last_change"] < row["times"]), None)
    if stuck:
        numbers["last_change"] = Number(stuck["last_change"], _cells(stuck), formatting.count)
        which = "which" if stuck is own[-1] else f"of which {stuck['sum_dtype']}"
        answer += f", {which} stops growing after {{last_change}} additions"
    return Finding("where does a sum in 16 bits stop", f"{answer}.", numbers, hardware)


def _with_four_decimals(value: float) -> str:
    return formatting.fixed(value, 4)


def _layer_norm(precision: Precision, hardware: str) -> Finding | None:
    """What autocast gives out of the toy model's LayerNorm, which differs between kinds of devices."""
    rows = precision.rows("dtypes", hardware, model="toy", role="layer_norm", status="ok")
    if not rows:
        return None
    given: dict[str, list[str]] = {}
    for row in rows:
        given.setdefault(row["output"], []).append(row["autocast"])
    parts = [f"{dtype} under {formatting.listing(formats)} autocast" for dtype, formats in given.items()]
    where = "a CPU" if precision.is_cpu(hardware) else "this device"
    kept = all(row["output"] == "fp32" for row in rows)
    end = "autocast runs it in fp32" if kept else "autocast does not cast its input"
    answer = f"LayerNorm after a linear layer gives {formatting.listing(parts)} on {where}: {end}."
    return Finding("what does autocast do to LayerNorm", answer, hardware=hardware)


def _overflow(precision: Precision, hardware: str) -> Finding | None:
    """The smallest |x| at which a normalisation forced into a format loses its result."""
    alike: dict[tuple, list[dict]] = {}
    for operation in ("RMSNorm", "LayerNorm"):
        rows = precision.rows("forced", hardware, operation=operation, quantity="largest |x|", way=PLAIN, status="ok")
        for name in _formats(rows):
            lost = [row for row in rows if row["format"] == name and outcome(row) in ("all zero", "NaN", "Inf")]
            if lost:
                first = min(lost, key=lambda row: row["value"])
                alike.setdefault((name, outcome(first), first["value"]), []).append(first)
    if not alike:
        return None
    numbers, parts = {}, []
    for (name, became, value), rows in alike.items():
        operations = [row["operation"] for row in rows]
        key = f"{operations[0]}_{name}"
        numbers[key] = Number(value, _cells(*rows), formatting.count)
        give = "give" if len(rows) > 1 else "gives"
        what = "nothing but zeros" if became == "all zero" else became
        parts.append(f"{formatting.listing(operations)} in {name} {give} {what} from |x| = {{{key}}} on")
    kept = precision.rows("forced", hardware, quantity="largest |x|", way=AUTOCAST, status="ok")
    is_fine = kept and all(row["error"] is not None and row["error"] < _LOST for row in kept)
    end = "; not so under autocast" if is_fine else ""
    answer = f"{formatting.listing(parts)}, where squares overflow{end}."
    return Finding(_NORMALISATION, answer, numbers, hardware)


def _cancellation(precision: Precision, hardware: str) -> Finding | None:
    """A variance as a difference of two large numbers, at the smallest mean that spoils it."""
    rows = precision.rows("forced", hardware, operation="LayerNorm", quantity="mean of x", status="ok")
    numbers, parts = {}, []
    for name in _formats(rows):
        own = [row for row in rows if row["format"] == name and row["way"] not in (PLAIN, AUTOCAST)]
        lost = [row for row in own if row["error"] is None or row["error"] > _LOST]
        if lost:
            row = min(lost, key=lambda row: row["value"])
            numbers[f"{name}_inner"] = Number(row["inner"], _cells(row), _rounded)
            numbers[f"{name}_exact"] = Number(row["inner_exact"], _cells(row))
            numbers[f"{name}_mean"] = Number(row["value"], _cells(row), formatting.count)
            parts.append(f"{{{name}_inner}} in {name} instead of {{{name}_exact}} at a mean of {{{name}_mean}}")
    if not parts:
        return None
    answer = f"A variance as mean(x²) − mean(x)² becomes {formatting.listing(parts)}."
    return Finding(_NORMALISATION, answer, numbers, hardware)


def _rounded(value: float) -> str:
    return worded(value, formatting.rounded)


def _sum_one_by_one(precision: Precision, hardware: str) -> Finding | None:
    """Where a sum of ones in the format itself stops."""
    rows = precision.rows("forced", hardware, operation="softmax", way="sum one by one", status="ok")
    numbers = {}
    for name in _formats(rows):
        own = [row for row in rows if row["format"] == name and formatting.known(row["inner"])]
        short = [row for row in own if row["inner"] != row["inner_exact"]]
        if short:
            last = max(short, key=lambda row: row["inner"])
            numbers[name] = Number(last["inner"], _cells(last), formatting.count)
    if not numbers:
        return None
    stops = formatting.listing([f"{{{name}}} in {name}" for name in numbers])
    answer = f"A softmax that adds equal exponentials one by one in the format itself stops at {stops}."
    return Finding(_NORMALISATION, answer, numbers, hardware)


def _gradients(precision: Precision, hardware: str) -> Finding | None:
    """How far gradients under autocast are from those in fp32."""
    numbers, parts = {}, []
    for row in precision.rows("gradients", hardware):
        name = row["autocast"]
        if name == "fp32" or row["error"] is None:
            continue
        numbers[f"{name}_error"] = Number(row["error"], _cells(row), _percent)
        part = f"{{{name}_error}} in {name}"
        if row["zero_share"]:
            numbers[f"{name}_zeros"] = Number(row["zero_share"], _cells(row), _percent)
            part += f" ({{{name}_zeros}} of them exactly zero)"
        parts.append(part)
    if not parts:
        return None
    answer = f"Gradients of the probed model differ from those in fp32 by {formatting.listing(parts)}."
    return Finding("what does autocast do to gradients", answer, numbers, hardware)


def _percent(share: float) -> str:
    return f"{formatting.rounded(100 * share, 2)} %"
