"""Tables of the precision study: normalisations under autocast, and forced into 16 bits."""

import math

from stepscope.report.data.precision import Precision, scientific, unsupported
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table

CAST = "_to_copy"
PLAIN, AUTOCAST = "all in the format", "under autocast"
OF_SQUARES = "variance as mean(x²) − mean(x)²"
# (operation, quantity) → what is varied, the column's heading and unit, and the name of the intermediate.
CASES = {
    ("RMSNorm", "largest |x|"): ("rows with a larger and larger element", "largest |x|", "", "mean of squares"),
    ("LayerNorm", "largest |x|"): ("rows with a larger and larger element", "largest |x|", "", "variance"),
    ("LayerNorm", "mean of x"): ("rows with a standard deviation of 1 and a large mean", "mean of x", "", "variance"),
    ("softmax", "equal logits"): ("rows of equal logits, longer and longer", "row", "elements", "sum"),
    ("softmax", "largest logit"): ("rows with a larger and larger logit", "largest logit", "", "sum"),
}


def operators_table(precision: Precision, hardware: str) -> Table | None:
    """Which operators run in fp32 and which in 16 bits, a row an operation, format and input; None without any."""
    rows = precision.rows("operators", hardware)
    keys = list(dict.fromkeys((row["operation"], row["autocast"], row["given"]) for row in rows))
    if not keys:
        return None
    operations = list(dict.fromkeys(operation for operation, *_ in keys))
    keys.sort(key=lambda key: operations.index(key[0]))
    lines = []
    for key in keys:
        own = [row for row in rows if (row["operation"], row["autocast"], row["given"]) == key]
        names = [Cell(text) for text in key]
        if own[0]["status"] == "unsupported":
            lines.append([*names[:2], Cell(key[2], badges=("unsupported",)), *[Cell("–")] * 4])
            continue
        wide = [row["operator"] for row in own if row["operator"] != CAST and _runs_in_fp32(row)]
        low = [row["operator"] for row in own if row["operator"] != CAST and not _runs_in_fp32(row)]
        casts = [f"{row['input_dtypes']} → {row['output_dtype']}" for row in own if row["operator"] == CAST]
        texts = [", ".join(wide), ", ".join(low), ", ".join(casts), _result(own[-1])]
        lines.append([*names, *(Cell(text or "–") for text in texts)])
    columns = [Column(name, number=False) for name in ("operation", "autocast", "input")]
    columns += [Column(name, number=False, wrap=True) for name in ("operators in fp32", "in 16 bits", "casts")]
    columns += [Column("result", number=False)]
    caption = f"Operators of normalisations and losses under autocast{precision.place(hardware)}."
    note = "In fp32 is what gives fp32. Casts are operators of their own."
    name = f"precision-operators-{hardware}"
    lost = unsupported(rows, "operation", "autocast", "given")
    return Table(name, caption, columns, lines, [note, *lost], grouped=True, folded=True, page_only=True)


def _result(row: dict) -> str:
    """The dtype of the operator's first result; further ones are statistics that backward needs."""
    return str(row["output_dtype"]).split(" + ")[0]


def _runs_in_fp32(row: dict) -> bool:
    return _result(row) in ("fp32", "fp64")


def summary_table(precision: Precision, hardware: str) -> Table | None:
    """The same in short: a row an operation, with the result's dtype and how many operators ran in fp32."""
    rows = precision.rows("operators", hardware)
    operations = list(dict.fromkeys(row["operation"] for row in rows))
    pairs = list(dict.fromkeys((row["autocast"], row["given"]) for row in rows))
    if not rows:
        return None
    lines = []
    for operation in operations:
        line = [Cell(operation)]
        for pair in pairs:
            own = [row for row in rows if (row["operation"], row["autocast"], row["given"]) == (operation, *pair)]
            line.append(_in_short(own))
        lines.append(line)
    columns = [Column("operation", number=False)]
    columns += [Column(f"input {given}", number=False, group=f"{name} autocast") for name, given in pairs]
    caption = f"What normalisations and losses run in under autocast{precision.place(hardware)}: the result's dtype."
    note = (
        "Below: operators that give fp32, of all but casts. Own: as in our model. A fused operator that takes and "
        "gives 16 bits, such as native_layer_norm or _softmax, may compute in fp32 inside; the errors below show it."
    )
    lost = unsupported(rows, "operation", "autocast", "given")
    return Table(f"precision-summary-{hardware}", caption, columns, lines, [note, *lost])


def _in_short(own: list[dict]) -> Cell:
    if not own:
        return Cell("–")
    if own[0]["status"] == "unsupported":
        return Cell(badges=("unsupported",))
    work = [row for row in own if row["operator"] != CAST]
    wide = sum(map(_runs_in_fp32, work))
    return Cell(_result(own[-1]), f"{wide} of {len(work)} in fp32")


def forced_tables(precision: Precision, hardware: str) -> list[Table]:
    """A table for each operation and what is varied: the error of each way and format."""
    return [table for case in CASES if (table := _forced(precision, hardware, *case))]


def _forced(precision: Precision, hardware: str, operation: str, quantity: str) -> Table | None:
    rows = precision.rows("forced", hardware, operation=operation, quantity=quantity)
    if not rows:
        return None
    found = {(row["value"], row["way"], row["format"]): row for row in rows}
    values = sorted({row["value"] for row in rows})
    shown = [row for row in rows if (quantity, row["way"]) != ("largest |x|", OF_SQUARES)]  # overflows in the same way
    ways = list(dict.fromkeys((row["way"], row["format"]) for row in shown))
    ways.sort(key=lambda pair: [PLAIN, AUTOCAST].index(pair[0]) if pair[0] in (PLAIN, AUTOCAST) else 2)
    what, heading, unit, inner = CASES[operation, quantity]
    columns = [Column(heading, unit), *(Column(name, group=way) for way, name in ways)]
    lines = []
    for value in values:
        line = [Cell(_value(value), sort=value)]
        lines.append(line + [outcome_cell(found.get((value, *pair))) for pair in ways])
    caption = f"{operation} of {what}{precision.place(hardware)}: largest error over the largest exact result."
    note = (
        f"Against float64, of the same input after rounding. Below: the {inner} on the way. "
        f"All but “{AUTOCAST}” round to the format after every operator; within one, PyTorch may add up in fp32."
    )
    name = f"precision-forced-{operation}-{quantity}-{hardware}".lower().replace(" ", "-").replace("|", "")
    return Table(name, caption, columns, lines, [note, *unsupported(rows, "way", "format")])


def _value(value: float) -> str:
    return formatting.count(value) if value >= 10 or value == int(value) else scientific(value)


def outcome_cell(row: dict | None) -> Cell:
    """An error, or in words what became of the result."""
    if row is None:
        return Cell("–")
    if row["status"] != "ok":
        return Cell(badges=(row["status"],))
    below = "" if row["inner"] is None or row["way"] == AUTOCAST else _inner(row["inner"])
    return Cell(outcome(row), below, sort=row["error"])


def outcome(row: dict) -> str:
    """`2.8e−3`, `all zero`, or `NaN`, `Inf` where any element is."""
    if row["nan"]:
        return "NaN"
    if row["infinite"]:
        return "Inf"
    if row["zero"] == row["elements"] and row["zero_exact"] < row["elements"]:
        return "all zero"
    return scientific(row["error"])


def _inner(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf"
    if value == int(value) and abs(value) < 1e7:
        return formatting.count(value)
    plain = 0.01 <= abs(value) < 1e7
    return f"{float(f'{value:.4g}'):,.6g}".replace("-", "\N{MINUS SIGN}") if plain else scientific(value)
