"""What of ours a published figure may stand beside: values by all that must be the same."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from stepscope.axes import IMPLEMENTATIONS

READ = ("series", "sums", "warmup", "kernels", "modules", "categories", "phases")
OTHERS = "others"  # whatever implementation of attention
ONE_NUMBER = ("value", "max")  # how a peak is given, which does not vary from step to step
WARM_UP = "after {:.0f} steps of warm-up"
# Our quantity: the published one.
OF_SERIES = {
    "time": "time",
    "rate": "rate",
    "tokens_per_second": "tokens per second",
    "peak_allocated": "peak allocated",
    "peak_reserved": "peak reserved",
    "before_backward": "memory before backward",
}
# Our module or kind of kernels: what the write-ups call it.
PARTS = {
    "attention scores": ("attention scores",),
    "mask": ("masking",),
    "softmax": ("softmax",),
    "attention × V": ("attention-weighted values",),
    "attention": ("attention", "scaled_dot_product_attention"),
    "softmax forward": ("softmax (fwd)",),
    "softmax backward": ("softmax (bwd)",),
    "optimizer": ("optimizer/multi_tensor",),
}


class Like(NamedTuple):
    """What two numbers must have in common. at: positions of a sequence; part: a kernel, module,
    kind of kernels or warm-up."""

    quantity: str
    statistic: str
    size: str = ""
    at: float | None = None
    batch: float | None = None
    precision: str = ""
    phase: str = ""
    mode: str = ""
    part: str = ""
    implementation: str = ""
    options: frozenset[str] = frozenset()


class Ours(NamedTuple):
    """A value, its cell, and the implementation that it is of."""

    value: float
    cell: str
    implementation: str = ""


Found = Iterator[tuple[Like, Ours]]


def known(tables: Mapping[str, pd.DataFrame], machine: str) -> dict[Like, Ours]:
    """All values of a machine. tables: those that are read here, with the places of their cells."""
    found: dict[Like, Ours] = {}
    own = {name: frame[frame["machine"] == machine] for name, frame in tables.items()}
    for source in (_sums, _series, _warmup, _kernels, _parts, _launches):
        for like, ours in source(own):
            found.setdefault(like, ours)
    return {like: ours for like, ours in found.items() if ours.value == ours.value}


def _rows(tables: Mapping[str, pd.DataFrame], name: str) -> list[dict]:
    """The rows of plain cells, in which nothing was changed."""
    frame = tables[name]
    return frame[frame["options"] == ""].to_dict("records")


def _place(row: dict, **more: str) -> dict:
    return {
        "size": row["size"],
        "at": row["context"],
        "batch": row["batch"],
        "precision": row["precision"],
        "mode": row["mode"],
        "phase": row["phase"],
    } | more


def _sums(tables: Mapping[str, pd.DataFrame]) -> Found:
    for row in tables["sums"].to_dict("records"):
        yield Like("sum", "value", part=row["variant"]), Ours(row["sum"], row["cell"])


def _series(tables: Mapping[str, pd.DataFrame]) -> Found:
    frame = tables["series"]
    is_known = frame["quantity"].isin(OF_SERIES) & (frame["status"] == "ok")
    rows = frame[is_known].to_dict("records")
    # The fastest first, which is what an implementation that is not ours is set beside.
    rows.sort(key=lambda row: -row["median"] if row["quantity"] == "rate" else row["median"])
    for row in rows:
        is_pass = row["study"] == "attention"
        if not is_pass and (row["study"] != "timing" or row["options"]):
            continue
        words = [word for word in row["options"].split() if not word.startswith("tokens=")]
        place = _place(row, implementation=row["variant"] if is_pass else "")
        if is_pass:
            place |= {"at": row["length"], "options": frozenset(words)}
        numbers = {name: row[name] for name in ("mean", "median", "std")}
        if row["unit"] == "B":
            numbers = dict.fromkeys(ONE_NUMBER, row["median"])
        for statistic, value in numbers.items():
            like = Like(OF_SERIES[row["quantity"]], statistic, **place)
            ours = Ours(value, row["cell"], row["variant"] if is_pass else "")
            yield like, ours
            if is_pass:
                yield like._replace(implementation=OTHERS), ours


def _warmup(tables: Mapping[str, pd.DataFrame]) -> Found:
    for row in _rows(tables, "warmup"):
        place = _place(row, part=WARM_UP.format(row["skipped"]))
        for statistic in ("mean", "std"):
            yield Like("time", statistic, **place), Ours(row[statistic], row["cell"])


def _kernels(tables: Mapping[str, pd.DataFrame]) -> Found:
    for row in _rows(tables, "kernels"):
        numbers = {
            ("time per instance", each): row[each] for each in ("median", "min", "max", "std")
        }
        numbers |= {
            ("time per instance", "mean"): row["time"] / row["calls"],
            ("instances", "value"): row["calls"],
            ("share of GPU time", "value"): row["share"],
        }
        for name in dict.fromkeys([row["full_name"], row["name"]]):
            for (quantity, statistic), value in numbers.items():
                yield Like(quantity, statistic, **_place(row, part=name)), Ours(value, row["cell"])


def _parts(tables: Mapping[str, pd.DataFrame]) -> Found:
    """Modules of a forward pass by the call, and kinds of kernels by their share of a phase."""
    for row in _rows(tables, "modules"):
        row["phase"] = "forward"  # whose ranges they are
        numbers = {
            ("time per call", "mean"): row["host_time"] / row["calls"],
            ("GPU time per call", "mean"): row["gpu_time"] / row["calls"],
            ("launches per call", "value"): row["kernels"] / row["calls"],
        }
        for name in PARTS.get(row["module"], ()):
            for (quantity, statistic), value in numbers.items():
                yield Like(quantity, statistic, **_place(row, part=name)), Ours(value, row["cell"])
    for row in _rows(tables, "categories"):
        for name in PARTS.get(row["category"], (row["category"],)):
            yield (
                Like("share of GPU", "value", **_place(row, part=name)),
                Ours(row["share"], row["cell"]),
            )


def _launches(tables: Mapping[str, pd.DataFrame]) -> Found:
    for row in _rows(tables, "phases"):
        yield Like("launches", "value", **_place(row)), Ours(row["kernels"], row["cell"])


def implementation_of(name: str) -> str:
    """Ours of that name, or whatever implementation of ours is the fastest."""
    ours = {"cudnn": "sdpa-cudnn", "flash-attention-2": "sdpa-flash"}.get(name, name)
    return ours if ours in IMPLEMENTATIONS else OTHERS
