"""Tables of the precision study: sums, the dtypes under autocast, loss and gradients."""

from stepscope.report.data.precision import Precision, unsupported
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table

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


def accumulation_table(precision: Precision) -> Table | None:
    """The sum of each way to add, a row a machine and variant; None without any."""
    rows = []
    for hardware in precision.hardware:
        for row in precision.rows("accumulation", hardware):
            error = (row["sum"] - row["exact"]) / row["exact"]
            names = [Cell(hardware)] if precision.several else []
            names.append(Cell(row["variant"]))
            numbers = [Cell(formatting.fixed(row[key], 8), sort=row[key]) for key in ("addend", "sum")]
            stops = row["last_change"] < row["times"]
            last = Cell(f"addition {formatting.count(row['last_change'])}") if stops else Cell("–")
            rows.append([*names, *numbers, Cell(signed(100 * error), sort=error), last])
    if not rows:
        return None
    columns = [Column("hardware", number=False)] if precision.several else []
    columns += [Column("sum += addend", number=False), Column("addend as stored"), Column("sum")]
    columns += [Column("error", "%"), Column("nothing changes after", number=False)]
    note = (
        "The addend's own error stays in a sum of fp32; a sum of 16 bits rounds after each addition besides. An "
        "addition casts the addend to the sum's format; doing so beforehand does not bring back what it had lost."
    )
    exact = precision.frame("accumulation")["exact"].iloc[0]
    times = formatting.count(precision.frame("accumulation")["times"].iloc[0])
    caption = f"0.01 added {times} times; exactly it would be {exact:g}."
    return Table("precision-accumulation", caption, columns, rows, [note], grouped=precision.several)


def signed(value: float, digits: int = 2) -> str:
    """`+0.0013` or `−0.47`: the sign, and so many significant digits."""
    return "0" if value == 0 else f"{'+' * (value > 0)}{formatting.significant(value, digits)}"


def dtypes_table(precision: Precision, hardware: str, model: str) -> Table | None:
    """The dtypes of one model's parts under both autocast formats; None where none was probed."""
    rows = precision.rows("dtypes", hardware, model=model)
    names, done = (_TOY if model == "toy" else ROLES), [row for row in rows if row["status"] == "ok"]
    if not rows:
        return None
    order = {role: rank for rank, role in enumerate(names)}
    formats = list(dict.fromkeys(row["autocast"] for row in done))
    done.sort(key=lambda row: (formats.index(row["autocast"]), order.get(row["role"], len(order))))
    lines = [_dtypes_line(row, names) for row in done]
    lines += [[Cell(row["autocast"], badges=("unsupported",)), *[Cell("–")] * 7] for row in rows if row not in done]
    columns = [Column(name, number=False) for name in ("autocast", "part", "class", "parameters")]
    columns += [Column(name, number=False, group="activations") for name in ("input", "output")]
    columns += [Column(name, number=False, group="gradient of") for name in ("output", "parameters")]
    what = "a toy model (Linear, ReLU, LayerNorm, Linear, cross-entropy)" if model == "toy" else "our model"
    shape = precision.model(hardware) if model != "toy" else ""
    caption = f"Dtypes under autocast{precision.place(hardware)}: {what}{f'; {shape}' if shape else ''}."
    notes = ["Buffers, which are no parameters, are named as such."] if any(row["buffer"] for row in done) else []
    if precision.is_cpu(hardware):
        notes.append("Autocast has its own list of operators for each kind of device; that of CUDA differs.")
    name = f"precision-dtypes-{model}-{hardware}"
    return Table(name, caption, columns, lines, [*notes, *unsupported(rows, "autocast")], grouped=True)


def _dtypes_line(row: dict, names: dict[str, str]) -> list[Cell]:
    kind = f"{row['kind']} × {row['modules']:.0f}" if (row["modules"] or 0) > 1 else row["kind"]
    parameters = row["parameter"] or (f"{row['buffer']} (buffers)" if row["buffer"] else "–")
    texts = [row["autocast"], names.get(row["role"], row["role"]), kind, parameters]
    texts += [row[key] or "–" for key in ("input", "output", "output_gradient", "parameter_gradient")]
    return [Cell(text) for text in texts]


def gradients_table(precision: Precision) -> Table | None:
    """Loss and gradients of our model under autocast beside fp32; None without any."""
    rows = []
    for hardware in precision.hardware:
        for row in precision.rows("gradients", hardware):
            names = [Cell(hardware)] if precision.several else []
            loss = [Cell(formatting.fixed(row["loss"], 6), sort=row["loss"]) if row["loss"] is not None else Cell("–")]
            off = None if row["loss"] is None else row["loss"] / row["loss_fp32"] - 1
            shares = [_percent(off), _percent(row["error"]), _percent(row["zero_share"])]
            bad = Cell(formatting.count(row["not_finite"]), sort=row["not_finite"])
            rows.append([*names, Cell(row["autocast"]), *loss, *shares, bad])
    if not rows:
        return None
    columns = [Column("hardware", number=False)] if precision.several else []
    columns += [Column("autocast", number=False), Column("loss", "nats"), Column("loss against fp32", "%")]
    columns += [Column("error", "%", group="gradients"), Column("exactly zero", "%", group="gradients")]
    columns += [Column("not finite", group="gradients")]
    note = (
        "Of all parameters but the embedding. Error: norm of the difference to fp32's gradients over their norm. A "
        "gradient smaller than a format's smallest number becomes zero; fp16 runs without loss scaling, which is made "
        "against that. fp32: without autocast."
    )
    caption = f"One forward and backward pass of our model: {'; '.join(_models(precision))}."
    return Table("precision-gradients", caption, columns, rows, [note], grouped=precision.several)


def _models(precision: Precision) -> list[str]:
    return list(dict.fromkeys(model for each in precision.hardware if (model := precision.model(each))))


def _percent(share: float | None) -> Cell:
    if share is None:
        return Cell("–")
    return Cell(signed(100 * share), sort=share)


def attention_table(precision: Precision, hardware: str) -> Table | None:
    """Each operator of the attention core with its dtypes; for the page, closed."""
    rows = precision.rows("attention", hardware)
    if not rows:
        return None
    keys = ("autocast", "part", "operator", "input_dtypes", "output_dtype")
    columns = [Column(name, number=False) for name in ("autocast", "part", "operator", "inputs", "output")]
    lines = [[Cell(row[key] or "–") for key in keys] for row in rows]
    caption = f"The operators of the attention core, in their order{precision.place(hardware)}."
    name = f"precision-attention-{hardware}"
    return Table(name, caption, columns, lines, folded=True, grouped=True, page_only=True)
