"""Tables of one profiled cell: inside attention, time against floating-point operations."""

from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.occupation import SOFTMAX_OPERATIONS, parts_of_forward
from stepscope.report.data.profile import GPU, Profile, count, named, number, share
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table

# A part's name in the model's ranges -> its component in stepscope.model.flops.
_COMPONENTS = {
    "qkv projection": ("qkv",),
    "attention scores": ("scores",),
    "softmax": ("softmax",),
    "attention x v": ("attention x V",),
    "output projection": ("output",),
}
_LINEAR = ("qkv", "output")
_INSIDE = ("scores", "softmax", "attention x V")
_OUTSIDE = ("feed-forward", "head")
_PRODUCTS = ("attention scores", "attention x v")  # parts


def component(part: str) -> str:
    """A part's name in small letters, the sign of multiplication as an x."""
    return str(part or "").replace("×", "x").lower()


def flops_of(line: dict, parts: dict[str, float]) -> float | None:
    """Floating-point operations of a row of the attention table in a step; None where they are not counted."""
    kind, name = line["kind"], str(line["part"] or "")
    if kind == "part":
        names = _COMPONENTS.get(component(name), ())
    elif kind == "sum":
        names = _LINEAR if name.startswith("linear") else _INSIDE
    else:
        names = {"whole": _LINEAR + _INSIDE, "forward": _OUTSIDE}.get(kind, ())
    return sum(parts[name] for name in names) if names and all(name in parts for name in names) else None


def attention_table(profile: Profile, row: dict, name: str) -> Table | None:
    """The parts of attention in the forward pass: host and GPU time, shares, operations."""
    rows = profile.rows("attention", row["cell"])
    if rows.empty:
        return None
    words, parts = profile.words(row), parts_of_forward(row)
    keys = ("ms_per_step", "exclusive_ms_per_step")
    kinds = [_present(rows, keys, side) for side in ("host_", "gpu_")]
    columns = [Column("part", number=False, wrap=True)]
    for found, group in zip(kinds, ("host time (ms)", f"{words.time} (ms)"), strict=True):
        columns += [Column("exclusive" if "exclusive" in key else "inclusive", group=group) for key in found]
    columns += [Column(words.operations, "a step")]
    columns += [Column(word, group=f"share of {words.time} (%)") for word in ("attention", "forward")]
    columns += [Column("attention", group="share of host time (%)"), Column("forward", group="share of host time (%)")]
    columns += [Column("GFLOP", "a step"), Column("rate", "TFLOP/s" if words is GPU else "GFLOP/s")]
    lines = []
    for line in rows.to_dict("records"):
        cells = [named(line["part"], 80), *(number(line[key], 3) for found in kinds for key in found)]
        cells.append(count(line.get("kernels_per_step")))
        sides = [(side, whole) for side in ("gpu", "host") for whole in ("attention", "forward")]
        cells += [share(line.get(f"share_of_{whole}_{side}_time")) for side, whole in sides]
        lines.append(cells + _rate(line, parts, words is GPU))
    caption = f"{name}: inside attention, in the forward pass, a step (all layers)."
    notes = [
        "GFLOP: matrix products in closed form; the softmax at "
        f"{SOFTMAX_OPERATIONS} operations an element (maximum, subtraction, exp, sum, division), a convention. "
        "The mask and the rotation of Q and K are not counted. Rate: over all that the part runs, copies too."
    ]
    return Table(f"attention-{row['cell']}", caption, columns, lines, notes)


def _present(rows: pd.DataFrame, keys: tuple[str, ...], side: str) -> list[str]:
    """The columns that the table has; an exclusive one that is all zero tells nothing."""
    there = [side + key for key in keys if side + key in rows and rows[side + key].notna().any()]
    return [name for name in there if "exclusive" not in name or (rows[name].fillna(0) != 0).any()]


def _rate(line: dict, parts: dict[str, float], tera: bool) -> list[Cell]:
    flops, time = flops_of(line, parts), line.get("gpu_ms_per_step")
    if flops is None:
        return [Cell("–"), Cell("–")]
    rate = flops / time / (1e9 if tera else 1e6) if formatting.known(time) and time > 0 else None
    return [number(flops / 1e9, 3), number(rate, 3)]


def layers_table(profile: Profile, row: dict, name: str) -> Table | None:
    """How each part of attention spreads over the layers, and its top kernel; None where the table has neither."""
    rows = profile.rows("attention", row["cell"])
    if rows.empty:
        return None
    words = profile.words(row)
    rows = rows[rows["kind"].isin(["whole", "part"])]
    gpu = [key for key in ("mean", "median", "min", "max", "std") if f"gpu_{key}_us" in rows]
    host = [key for key in ("mean", "median", "min", "max", "std") if f"host_{key}_us" in rows]
    if not gpu and not host and "top_kernel" not in rows:
        return None
    columns = [Column("part", number=False, wrap=True)]
    columns += [Column(key, group=f"{words.time}, one layer (µs)") for key in gpu]
    columns += [Column(key, group="host time, one layer (µs)") for key in host]
    tops = "top_kernel" in rows
    if tops:
        columns += [Column(f"top {words.operation}", number=False, wrap=True), Column("its share of the part", "%")]
    lines = []
    for line in rows.to_dict("records"):
        cells = [named(line["part"], 80), *(number(line[f"gpu_{key}_us"], 3) for key in gpu)]
        cells += [number(line[f"host_{key}_us"], 3) for key in host]
        top = line.get("top_kernel_share_of_range_gpu_time", line.get("top_kernel_share"))
        lines.append(cells + ([named(line["top_kernel"], 60), share(top)] if tops else []))
    caption = f"{name}: inside attention, one layer in one step. The spread is over layers and steps."
    return Table(f"layers-{row['cell']}", caption, columns, lines, [])


@dataclass(frozen=True)
class SoftmaxRatios:
    """Softmax over attention's two products: GPU time, that of their matmul kernels alone (None if unknown), FLOPs."""

    time: float
    kernels: float | None
    flops: float


def softmax_against_products(profile: Profile, row: dict) -> SoftmaxRatios | None:
    """Softmax against attention's two products; None if they are not known."""
    rows, parts = profile.rows("attention", row["cell"]), parts_of_forward(row)
    if rows.empty or not parts:
        return None
    lines = {component(line["part"]): line for line in rows[rows["kind"] == "part"].to_dict("records")}
    if not all(name in lines and formatting.known(lines[name]["gpu_ms_per_step"]) for name in ("softmax", *_PRODUCTS)):
        return None
    softmax = lines["softmax"]["gpu_ms_per_step"]
    whole, kernels = (
        sum(lines[name].get(key, float("nan")) for name in _PRODUCTS)
        for key in ("gpu_ms_per_step", "gpu_matmul_ms_per_step")
    )
    flops = parts["softmax"] / (parts["scores"] + parts["attention x V"])
    return SoftmaxRatios(softmax / whole, softmax / kernels if kernels > 0 else None, flops) if whole else None


def softmax_words(found: list[SoftmaxRatios], time: str) -> str:
    """`the softmax takes …`: a range over these cells. time: what the time is called, such as `GPU time`."""
    ratios, flops = (formatting.value_range([getattr(one, key) for one in found], 2) for key in ("time", "flops"))
    kernels = [one.kernels for one in found if one.kernels]
    alone = f", {formatting.value_range(kernels, 2)} times that of their matmul alone" if kernels else ""
    return (
        f"the softmax takes {ratios} times the {time} of the two products (scores, attention × V, with their copies "
        f"and scaling){alone}, for {flops} times their floating-point operations."
    )


def softmax_sentence(profile: Profile, row: dict) -> str:
    """Softmax against attention's two products, time beside operations; empty where not known."""
    found = softmax_against_products(profile, row)
    return "In attention " + softmax_words([found], profile.words(row).time) if found else ""
