"""Tables of the precision study: sums, dtypes under autocast, gradients, normalisations forced into 16 bits."""

from collections.abc import Callable

from stepscope.report.data.precision import AUTOCAST, OF_SQUARES, PLAIN, Precision, outcome, scientific, worded
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell

# What the parts of our model stand for, in the order of a forward pass.
ROLES = {
    "embedding": "embedding",
    "blocks.*.attention_norm": "attention norm",
    "blocks.*.attention.qkv": "QKV projection",
    "blocks.*.attention.rotary": "RoPE of Q and of K",
    "blocks.*.attention.attend": "attention core",
    "blocks.*.attention.output": "output projection",
    "blocks.*.attention": "attention as a whole",
    "blocks.*.feed_forward_norm": "FFN norm",
    "blocks.*.feed_forward.gate": "gate projection",
    "blocks.*.feed_forward.up": "up projection",
    "blocks.*.feed_forward.down": "down projection",
    "blocks.*.feed_forward": "FFN as a whole",
    "blocks.*": "block (residual stream)",
    "final_norm": "final norm",
    "head": "LM head",
    "loss": "loss",
}
_TOY = {"linear_1": "Linear 1", "relu": "ReLU", "layer_norm": "LayerNorm", "linear_2": "Linear 2", "loss": "loss"}
_CAST = "_to_copy"
# (operation, quantity) → what is varied, the column's heading and unit, and the name of the intermediate.
_CASES = {
    ("RMSNorm", "largest |x|"): ("rows with a larger and larger element", "largest |x|", "", "mean of squares"),
    ("LayerNorm", "largest |x|"): ("rows with a larger and larger element", "largest |x|", "", "variance"),
    ("LayerNorm", "mean of x"): ("rows with a standard deviation of 1 and a large mean", "mean of x", "", "variance"),
    ("softmax", "equal logits"): ("rows of equal logits, longer and longer", "row", "elements", "sum"),
    ("softmax", "largest logit"): ("rows with a larger and larger logit", "largest logit", "", "sum"),
}


def _of_all_machines(precision: Precision, name: str) -> list[dict]:
    return [row for hardware in precision.hardware for row in precision.rows(name, hardware)]


def _machine(precision: Precision) -> list[Column]:
    """The column of the machine where there are several."""
    return table.point("hardware") if precision.several else []


def _text_column(label: str, value: str | Callable | None = None, group: str = "", wrap: bool = False) -> Column:
    return Column(label, group=group, number=False, wrap=wrap, value=value or label)


def _place(precision: Precision, hardware: str) -> str:
    """` on <hardware>`; on a CPU that says so, since its autocast has other rules than that of CUDA."""
    return f" on {hardware}{' (a CPU)' if precision.is_cpu(hardware) else ''}"


def _unsupported(rows: list[dict], *names: str) -> list[str]:
    """What could not be run and why; `names` are the columns that say what it was."""
    return table.reasons(
        rows,
        lambda row: ", ".join(str(row[name]) for name in names),
        "{names}: not possible: {reason}",
        statuses=("unsupported",),
        between="; ",
    )


def _number(value: float | None, show: Callable[[float], str], below: str = "") -> TableCell:
    """A number that may be NaN or infinite, which sorts by itself."""
    return table.NOTHING if value is None else TableCell(worded(value, show), below, sort=value)


def signed(value: float, digits: int = 2) -> str:
    """`+0.0013` or `−0.47`: the sign, and so many significant digits."""
    return f"{'+' * (value > 0)}{formatting.rounded(value, digits)}"


def _percent(share: float) -> str:
    return signed(100 * share)


def accumulation_table(precision: Precision) -> Table | None:
    """The sum of each way to add, a row a machine and variant; None without any."""
    rows = _of_all_machines(precision, "accumulation")
    if not rows:
        return None
    columns = [
        *_machine(precision),
        _text_column("sum += addend", "variant"),
        Column("addend as stored", value=lambda row: _number(row["addend"], _with_eight_decimals)),
        Column("sum", value=lambda row: _number(row["sum"], _with_eight_decimals)),
        Column("error", "%", value=lambda row: (row["sum"] - row["exact"]) / row["exact"], show=_percent),
        _text_column("nothing changes after", _last_change),
    ]
    note = (
        "The addend's own error stays in a sum of fp32; a sum of 16 bits rounds after each addition besides. An "
        "addition casts the addend to the sum's format; doing so beforehand does not bring back what it had lost."
    )
    exact, times = rows[0]["exact"], formatting.count(rows[0]["times"])
    caption = f"0.01 added {times} times; exactly it would be {exact:g}."
    return table.build("precision-accumulation", caption, columns, rows, [note], grouped=precision.several)


def _with_eight_decimals(value: float) -> str:
    return formatting.fixed(value, 8)


def _last_change(row: dict) -> str:
    return f"addition {formatting.count(row['last_change'])}" if row["last_change"] < row["times"] else ""


def dtypes_table(precision: Precision, hardware: str, model: str) -> Table | None:
    """The dtypes of one model's parts under both autocast formats; None where none was probed."""
    rows = precision.rows("dtypes", hardware, model=model)
    names = _TOY if model == "toy" else ROLES
    done = [row for row in rows if row["status"] == "ok"]
    order = {role: rank for rank, role in enumerate(names)}
    formats = list(dict.fromkeys(row["autocast"] for row in done))
    done.sort(key=lambda row: (formats.index(row["autocast"]), order.get(row["role"], len(order))))
    columns = [
        _text_column("autocast", lambda row: TableCell(row["autocast"], badges=table.lost(row))),
        _text_column("part", lambda row: names.get(row["role"], row["role"])),
        _text_column("class", _kind),
        _text_column("parameters", lambda row: row["parameter"] or (row["buffer"] and f"{row['buffer']} (buffers)")),
        *(_text_column(name, name, "activations") for name in ("input", "output")),
        *(_text_column(name, f"{name.removesuffix('s')}_gradient", "gradient of") for name in ("output", "parameters")),
    ]
    what = "a toy model (Linear, ReLU, LayerNorm, Linear, cross-entropy)" if model == "toy" else "our model"
    shape = precision.model(hardware) if model != "toy" else ""
    caption = f"Dtypes under autocast{_place(precision, hardware)}: {what}{f'; {shape}' if shape else ''}."
    other_rules = "Autocast has its own list of operators for each kind of device; that of CUDA differs."
    notes = [
        "Buffers, which are no parameters, are named as such." if any(row["buffer"] for row in done) else "",
        other_rules if precision.is_cpu(hardware) else "",
        *_unsupported(rows, "autocast"),
    ]
    name = f"precision-dtypes-{model}-{hardware}"
    lost = [row for row in rows if row["status"] != "ok"]
    return table.build(name, caption, columns, [*done, *lost], notes, legend=False, grouped=True)


def _kind(row: dict) -> str | None:
    """`Linear × 4`."""
    return f"{row['kind']} × {row['modules']:.0f}" if (row["modules"] or 0) > 1 else row["kind"]


def gradients_table(precision: Precision) -> Table | None:
    """Loss and gradients of our model under autocast beside fp32; None without any."""
    columns = [
        *_machine(precision),
        _text_column("autocast"),
        Column("loss", "nats", value=lambda row: _number(row["loss"], lambda loss: formatting.fixed(loss, 6))),
        Column("loss against fp32", "%", value=_loss_change, show=_percent),
        Column("error", "%", group="gradients", value="error", show=_percent),
        Column("exactly zero", "%", group="gradients", value="zero_share", show=_percent),
        Column("not finite", group="gradients", value="not_finite", show=formatting.count),
    ]
    note = (
        "Of all parameters but the embedding. Error: norm of the difference to fp32's gradients over their norm. A "
        "gradient smaller than a format's smallest number becomes zero; fp16 runs without loss scaling, which is made "
        "against that. fp32: without autocast."
    )
    models = dict.fromkeys(filter(None, map(precision.model, precision.hardware)))
    caption = f"One forward and backward pass of our model: {'; '.join(models)}."
    rows = _of_all_machines(precision, "gradients")
    return table.build("precision-gradients", caption, columns, rows, [note], grouped=precision.several)


def _loss_change(row: dict) -> float | None:
    return None if row["loss"] is None else row["loss"] / row["loss_fp32"] - 1


def attention_table(precision: Precision, hardware: str) -> Table | None:
    """Each operator of the attention core with its dtypes; for the page, closed."""
    columns = [
        *map(_text_column, ("autocast", "part", "operator")),
        _text_column("inputs", "input_dtypes"),
        _text_column("output", "output_dtype"),
    ]
    caption = f"The operators of the attention core, in their order{_place(precision, hardware)}."
    name, rows = f"precision-attention-{hardware}", precision.rows("attention", hardware)
    return table.build(name, caption, columns, rows, folded=True, grouped=True)


def _operations(rows: list[dict]) -> list[dict]:
    """A row an operation, format and input, sorted by operation: the first operator's row with what all of them gave.

    `wide`, `low`: operators that give fp32, and 16 bits; `casts`: operators of their own; `result`: the last dtype.
    """
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault((row["operation"], row["autocast"], row["given"]), []).append(row)
    operations = list(dict.fromkeys(operation for operation, *_ in found))
    return [found[key][0] | _ran(found[key]) for key in sorted(found, key=lambda key: operations.index(key[0]))]


def _ran(own: list[dict]) -> dict:
    if own[0]["status"] != "ok":
        return {"wide": [], "low": [], "casts": [], "result": None}
    work = [row for row in own if row["operator"] != _CAST]
    return {
        "wide": [row["operator"] for row in work if _runs_in_fp32(row)],
        "low": [row["operator"] for row in work if not _runs_in_fp32(row)],
        "casts": [f"{row['input_dtypes']} → {row['output_dtype']}" for row in own if row["operator"] == _CAST],
        "result": _result(own[-1]),
    }


def _result(row: dict) -> str:
    """The dtype of the operator's first result; further ones are statistics that backward needs."""
    return str(row["output_dtype"]).split(" + ")[0]


def _runs_in_fp32(row: dict) -> bool:
    return _result(row) in ("fp32", "fp64")


def operators_table(precision: Precision, hardware: str) -> Table | None:
    """Which operators run in fp32 and which in 16 bits, a row an operation, format and input; None without any."""
    rows = precision.rows("operators", hardware)
    columns = [
        *map(_text_column, ("operation", "autocast")),
        _text_column("input", lambda row: TableCell(row["given"], badges=table.lost(row))),
        _text_column("operators in fp32", lambda row: ", ".join(row["wide"]), wrap=True),
        _text_column("in 16 bits", lambda row: ", ".join(row["low"]), wrap=True),
        _text_column("casts", lambda row: ", ".join(row["casts"]), wrap=True),
        _text_column("result"),
    ]
    caption = f"Operators of normalisations and losses under autocast{_place(precision, hardware)}."
    note = "In fp32 is what gives fp32. Casts are operators of their own."
    notes = [note, *_unsupported(rows, "operation", "autocast", "given")]
    name = f"precision-operators-{hardware}"
    look = {"legend": False, "grouped": True, "folded": True}
    return table.build(name, caption, columns, _operations(rows), notes, **look)


def summary_table(precision: Precision, hardware: str) -> Table | None:
    """The same in short: a row an operation, with the result's dtype and how many operators ran in fp32."""
    rows = precision.rows("operators", hardware)
    found = {(row["operation"], row["autocast"], row["given"]): row for row in _operations(rows)}
    inputs = list(dict.fromkeys((row["autocast"], row["given"]) for row in rows))
    columns = [
        _text_column("operation", str),
        *(
            _text_column(
                f"input {given}",
                lambda operation, key=(name, given): _in_short(found.get((operation, *key))),
                f"{name} autocast",
            )
            for name, given in inputs
        ),
    ]
    caption = f"What normalisations and losses run in under autocast{_place(precision, hardware)}: the result's dtype."
    note = (
        "Below: operators that give fp32, of all but casts. Own: as in our model. A fused operator that takes and "
        "gives 16 bits, such as native_layer_norm or _softmax, may compute in fp32 inside; the errors below show it."
    )
    notes = [note, *_unsupported(rows, "operation", "autocast", "given")]
    operations = dict.fromkeys(row["operation"] for row in rows)
    return table.build(f"precision-summary-{hardware}", caption, columns, operations, notes, legend=False)


def _in_short(row: dict | None) -> TableCell:
    if row is None:
        return table.NOTHING
    if badges := table.lost(row):
        return TableCell(badges=badges)
    return TableCell(row["result"], f"{len(row['wide'])} of {len(row['wide'] + row['low'])} in fp32")


def forced_tables(precision: Precision, hardware: str) -> list[Table]:
    """A table for each operation and what is varied: the error of each way and format."""
    return list(filter(None, (_forced(precision, hardware, *case) for case in _CASES)))


def _forced(precision: Precision, hardware: str, operation: str, quantity: str) -> Table | None:
    rows = precision.rows("forced", hardware, operation=operation, quantity=quantity)
    found = {(row["value"], row["way"], row["format"]): row for row in rows}
    shown = [row for row in rows if (quantity, row["way"]) != ("largest |x|", OF_SQUARES)]  # overflows in the same way
    ways = list(dict.fromkeys((row["way"], row["format"]) for row in shown))
    ways.sort(key=lambda pair: [PLAIN, AUTOCAST].index(pair[0]) if pair[0] in (PLAIN, AUTOCAST) else 2)
    what, heading, unit, inner = _CASES[operation, quantity]
    columns = [
        Column(heading, unit, value=lambda value: value, show=_value),
        *(
            Column(name, group=way, value=lambda value, key=(way, name): _outcome_cell(found.get((value, *key))))
            for way, name in ways
        ),
    ]
    caption = f"{operation} of {what}{_place(precision, hardware)}: largest error over the largest exact result."
    note = (
        f"Against float64, of the same input after rounding. Below: the {inner} on the way. "
        f"All but “{AUTOCAST}” round to the format after every operator; within one, PyTorch may add up in fp32."
    )
    name = f"precision-forced-{operation}-{quantity}-{hardware}".lower().replace(" ", "-").replace("|", "")
    values = sorted({row["value"] for row in rows})
    return table.build(name, caption, columns, values, [note, *_unsupported(rows, "way", "format")], legend=False)


def _value(value: float) -> str:
    return formatting.count(value) if value >= 10 or value == int(value) else scientific(value)


def _outcome_cell(row: dict | None) -> TableCell:
    """An error, or in words what became of the result; below it the intermediate."""
    if row is None:
        return table.NOTHING
    if badges := table.lost(row):
        return TableCell(badges=badges)
    has_inner = row["inner"] is not None and row["way"] != AUTOCAST
    return TableCell(outcome(row), worded(row["inner"], _inner) if has_inner else "", sort=row["error"])


def _inner(value: float) -> str:
    if value == int(value) and abs(value) < 1e7:
        return formatting.count(value)
    plain = 0.01 <= abs(value) < 1e7
    return f"{float(f'{value:.4g}'):,.6g}".replace("-", "\N{MINUS SIGN}") if plain else scientific(value)
