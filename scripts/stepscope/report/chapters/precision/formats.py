"""What tolerates 16 bits and why: sums, squares and normalisations, dtypes and gradients under autocast."""

import math

from stepscope.report.data.precision import AUTOCAST, PLAIN, Precision, outcome, scientific
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.finding import Finding, Number

# (bits of the significand with the implicit one, largest number): IEEE 754-2019 binary16, and bfloat16.
FORMATS = {"fp16": (11, 65_504.0), "bf16": (8, 2.0**128 - 2.0**120)}
# The most that rounding to nearest changes a number by, relative to it: half the spacing of the format just above 1.
ROUNDING = {name: 2.0**-bits for name, (bits, _) in FORMATS.items()}
WORSE = 2.0  # times as large an error, from which on it counts as worse
_LOST = ("all zero", "NaN", "Inf")
# Parts of the toy model, in their order: the role that the tables have, and what its result is called.
TOY = {
    "linear_1": "first linear layer",
    "relu": "ReLU",
    "layer_norm": "LayerNorm",
    "linear_2": "logits",
    "loss": "loss",
}


def sums(precision: Precision, hardware: str) -> Finding | None:
    """Where a sum of 0.01 in 16 bits ends, and why: its spacing there is wider than twice what is added."""
    rows = precision.rows("accumulation", hardware)
    own = [row for row in rows if row["sum_dtype"] == row["addend_dtype"] and row["sum_dtype"] in FORMATS]
    if not own:
        return None
    numbers = {row["sum_dtype"]: Number(row["sum"], (row["cell"],), _with_two_decimals) for row in own}
    numbers["exact"] = Number(own[0]["exact"], (own[0]["cell"],))
    told = formatting.listing([f"{{{row['sum_dtype']}}} in {row['sum_dtype']}" for row in own])
    stuck = next((row for row in own if row["last_change"] < row["times"]), None)
    cause = "Neither stops growing." if len(own) > 1 else "It does not stop growing."
    if stuck:
        name = stuck["sum_dtype"]
        cause = f"At {{{name}}} neighbours in {name} lie {{spacing}} apart: the addend rounds away."
        numbers["spacing"] = Number(spacing(stuck["sum_dtype"], stuck["sum"]), (stuck["cell"],), _two_digits)
    answer = f"0.01 added {own[0]['times']:,.0f} times gives {told}, not {{exact}}."
    return Finding("where does a sum in 16 bits stop", answer, numbers, hardware, cause)


def spacing(name: str, value: float) -> float:
    """The distance from a number to the next larger one of a 16-bit format: 2^(exponent - significand bits + 1)."""
    return 2.0 ** (math.floor(math.log2(abs(value))) - FORMATS[name][0] + 1)


def _with_two_decimals(value: float) -> str:
    return formatting.fixed(value, 2)


def _two_digits(value: float) -> str:
    return formatting.significant(value, 2)


def sums_in_fp32(precision: Precision, hardware: str) -> Finding | None:
    """The same addends rounded to 16 bits, added in fp32: off by their own rounding alone."""
    rows = precision.rows("accumulation", hardware, sum_dtype="fp32")
    own = next((row for row in rows if row["addend_dtype"] == "bf16"), None)
    if own is None or not own["exact"] or not own["addend"]:
        return None
    off = abs(own["sum"] / own["exact"] - 1)
    rounding = abs(own["addend"] * own["times"] / own["exact"] - 1)
    numbers = {"off": Number(off, (own["cell"],), formatting.percent)}
    numbers["rounding"] = Number(rounding, (own["cell"],), formatting.percent)
    answer = "Summed in fp32, addends rounded to bf16 are off by {off}; their rounding alone predicts {rounding}."
    cause = "Matrix products add in fp32 too, so they tolerate 16-bit inputs." if off < WORSE * rounding else ""
    return Finding("why do matrix products tolerate it", answer, numbers, hardware, cause)


def softmax_sums(precision: Precision, hardware: str) -> Finding | None:
    """Where a softmax that adds in the format itself stops, and that it does not under autocast."""
    rows = precision.rows("forced", hardware, operation="softmax", quantity="equal logits", status="ok")
    numbers = {}
    for name in FORMATS:
        own = [row for row in rows if (row["way"], row["format"]) == ("sum one by one", name)]
        short = [row for row in own if row["inner"] is not None and row["inner"] < row["inner_exact"]]
        if short:
            last = max(short, key=lambda row: row["inner"])
            numbers[name] = Number(last["inner"], (last["cell"],), formatting.count)
    if not numbers:
        return None
    kept = [row for row in rows if row["way"] == AUTOCAST]
    is_kept = kept and all(row["error"] == 0 for row in kept)
    stops = formatting.listing([f"{{{name}}} in {name}" for name in numbers])
    answer = f"A softmax that adds exponentials one by one stops counting at {stops}."
    cause = "Autocast computes it in fp32." if is_kept else ""
    return Finding("why is the softmax kept in fp32", answer, numbers, hardware, cause)


def overflow(precision: Precision, hardware: str) -> Finding | None:
    """The smallest |x| that spoils a normalisation in fp16, beside that whose square exceeds the largest number."""
    rows = [row for row in _normalised(precision, hardware, "fp16") if outcome(row) in _LOST]
    if not rows:
        return None
    first = min(rows, key=lambda row: row["value"])
    names = [row["operation"] for row in rows if row["value"] == first["value"]]
    cells = tuple(dict.fromkeys(row["cell"] for row in rows))
    numbers = {"lost": Number(first["value"], cells, formatting.count)}
    numbers["root"] = Number(math.sqrt(FORMATS["fp16"][1]), cells, _whole)
    gives = "gives" if len(set(names)) == 1 else "give"
    what = "nothing but zeros" if outcome(first) == "all zero" else outcome(first)
    answer = (
        f"In fp16 {formatting.listing(list(dict.fromkeys(names)))} {gives} {what} from |x| = {{lost}} on; "
        "squares overflow above {root}."
    )
    return Finding("what does fp16 do to a normalisation", answer, numbers, hardware)


def _whole(value: float) -> str:
    return f"{math.floor(value):,}"


def _normalised(precision: Precision, hardware: str, name: str, way: str = PLAIN) -> list[dict]:
    rows = precision.rows("forced", hardware, quantity="largest |x|", format=name, way=way, status="ok")
    return [row for row in rows if row["operation"] in ("RMSNorm", "LayerNorm")]


def layer_norm_in_bf16(precision: Precision, hardware: str) -> Finding | None:
    """Whether bf16 overflows where fp16 does, and LayerNorm's largest error beside that under autocast."""
    own, kept = (
        [row for row in _normalised(precision, hardware, "bf16", way) if row["operation"] == "LayerNorm"]
        for way in (PLAIN, AUTOCAST)
    )
    if not own:
        return None
    cells = tuple(dict.fromkeys(row["cell"] for row in (*own, *kept)))
    lost = [row for row in own if outcome(row) in _LOST]
    if lost:
        numbers = {"lost": Number(min(row["value"] for row in lost), cells, formatting.count)}
        answer = "In bf16 too LayerNorm loses its result, from |x| = {lost} on: treat it apart."
        return Finding("does bf16 still need LayerNorm apart", answer, numbers, hardware)
    numbers = {
        "largest": Number(max(row["value"] for row in own), cells, formatting.count),
        "error": Number(max(row["error"] for row in own), cells, scientific),
    }
    answer = "In bf16 nothing overflows up to |x| = {largest}, but LayerNorm's largest error is {error}"
    cause = "Range no longer asks for fp32, accuracy does."
    if numbers["error"].value < WORSE * ROUNDING["bf16"]:
        cause = "Neither range nor accuracy asks for fp32: one rounding gives up to {rounding}."
        numbers["rounding"] = Number(ROUNDING["bf16"], cells, scientific)
    errors = [row["error"] for row in kept if row["error"] is not None]
    if not errors:
        return Finding("does bf16 still need LayerNorm apart", f"{answer}.", numbers, hardware, cause)
    numbers["kept"] = Number(max(errors), cells, scientific)
    if numbers["error"].value < WORSE * numbers["kept"].value:
        cause = "Autocast does little better here."
        numbers.pop("rounding", None)
    return Finding(
        "does bf16 still need LayerNorm apart", f"{answer}, under autocast {{kept}}.", numbers, hardware, cause
    )


def variance(precision: Precision, hardware: str) -> Finding | None:
    """The smallest mean at which a variance as a difference of two means is lost in bf16."""
    rows = precision.rows("forced", hardware, operation="LayerNorm", quantity="mean of x", format="bf16", status="ok")
    own = [row for row in rows if row["way"] not in (PLAIN, AUTOCAST) and formatting.known(row["inner"])]
    lost = [row for row in own if abs(row["inner"] / row["inner_exact"] - 1) > 0.5]
    if not lost:
        return None
    first = min(lost, key=lambda row: row["value"])
    numbers = {
        "mean": Number(first["value"], (first["cell"],), formatting.count),
        "inner": Number(first["inner"], (first["cell"],), _rounded),
        "exact": Number(first["inner_exact"], (first["cell"],)),
    }
    answer = "At a mean of {mean} a variance as mean(x²) − mean(x)² becomes {inner} in bf16 instead of {exact}."
    cause = "Two large numbers cancel."
    return Finding("what part of it is sensitive", answer, numbers, hardware, cause)


def _rounded(value: float) -> str:
    return formatting.rounded(value)


def _toy(precision: Precision, hardware: str) -> dict[str, dict[str, dict]]:
    """Role → autocast's format → the row."""
    rows = precision.rows("dtypes", hardware, model="toy", status="ok")
    return {role: {row["autocast"]: row for row in rows if row["role"] == role} for role in TOY}


def dtypes(precision: Precision, hardware: str) -> Finding | None:
    """Which parts give results in 16 bits and which in fp32."""
    found = _toy(precision, hardware)
    name = next((name for name in ("fp16", "bf16") if any(name in own for own in found.values())), None)
    if name is None:
        return None
    rows = {role: own[name] for role, own in found.items() if name in own}
    given: dict[str, list[str]] = {}
    for role, row in rows.items():
        given.setdefault(row["output"], []).append(f"{'the ' * (role == 'linear_1')}{TOY[role]}")
    parts = [
        f"{formatting.listing(names)} {'give' if len(names) > 1 else 'gives'} {dtype}" for dtype, names in given.items()
    ]
    answer = f"Under {name} autocast {', '.join(parts)}."
    return Finding("which dtypes does autocast give", answer, hardware=hardware)


def dtypes_table(precision: Precision, hardware: str) -> Table | None:
    """A row a part of the toy model, a column for each format that autocast was set to."""
    found = {role: own for role, own in _toy(precision, hardware).items() if own}
    names = [name for name in FORMATS if any(name in own for own in found.values())]
    columns = [
        Column("part", value=lambda each: TOY[each[0]], number=False),
        *(_dtype(f"result, {name}", name, "output") for name in names),
        *(_dtype("parameters", name, "parameter") for name in names[:1]),
        *(_dtype("their gradients", name, "parameter_gradient") for name in names[:1]),
    ]
    caption = (
        "Dtypes under autocast in a model of two linear layers with a LayerNorm between them, whose parameters are in "
        f"fp32. On {hardware}."
    )
    return table.build(f"chapter-precision-dtypes-{hardware}", caption, columns, found.items())


def _dtype(label: str, name: str, field: str) -> Column:
    """A field of the rows under autocast to the format `name`."""
    return Column(label, value=lambda each: each[1].get(name, {}).get(field), number=False)


def gradients(precision: Precision, hardware: str) -> Finding | None:
    """Which gradients fp16 loses without loss scaling, beside bf16's; errors of both against fp32."""
    rows = {row["autocast"]: row for row in precision.rows("gradients", hardware) if row["error"] is not None}
    if "fp16" not in rows:
        return None
    low, other = rows["fp16"], rows.get("bf16")
    cells = tuple(row["cell"] for row in rows.values())
    numbers = {"zero": Number(low["zero_share"], cells, _share), "error": Number(low["error"], cells, _share)}
    if low["not_finite"]:
        numbers["lost"] = Number(low["not_finite"], cells, formatting.count)
        answer = "Without loss scaling {lost} gradients of a small model overflow in fp16, and {zero} are exactly zero."
    else:
        answer = "Without loss scaling {zero} of a small model's gradients are exactly zero in fp16."
    plain = rows.get("fp32", {}).get("zero_share") or 0.0
    is_lost = low["zero_share"] > plain or low["not_finite"]
    cause = "" if is_lost else "None is lost that fp32 has."
    if other and is_lost and other["zero_share"] <= plain and not other["not_finite"]:
        cause = "bf16, whose range is fp32's, loses none but is off by {other}, fp16 by {error}."
        numbers["other"] = Number(other["error"], cells, _share)
        if other["error"] <= low["error"]:
            cause = "bf16, whose range is fp32's, loses none."
    text = "Scale the loss in fp16." if is_lost else ""
    return Finding("what does fp16 lose without loss scaling", answer, numbers, hardware, cause, text)


def _share(share: float) -> str:
    return f"{formatting.rounded(100 * share, 2)} %"
