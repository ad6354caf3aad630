"""What of ours a published figure may stand beside: values by all that must be the same."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from stepscope.axes import IMPLEMENTATIONS
from stepscope.results.tables import where

READ = ("series", "sums", "warmup", "kernels", "modules", "categories", "phases")
OTHERS = "others"  # whatever implementation of attention
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
    """What two numbers must have in common. context: positions of a sequence; part: a kernel,
    module, kind of kernels or warm-up."""

    quantity: str
    statistic: str
    size: str = ""
    context: float = 0
    batch: float = 0
    precision: str = ""
    phase: str = ""
    mode: str = ""
    part: str = ""
    implementation: str = ""
    options: str = ""  # sorted


class Ours(NamedTuple):
    """A value, its cell, and the implementation that it is of."""

    value: float
    cell: str
    beside: str = ""


LIKE, OURS = list(Like._fields), list(Ours._fields)


def known(tables: Mapping[str, pd.DataFrame], machine: str) -> dict[Like, Ours]:
    """All values of a machine. tables: those that are read here, with the places of their cells."""
    own = {name: where(frame, machine=machine) for name, frame in tables.items()}
    plain = {name: where(frame, options="") for name, frame in own.items()}
    sums = own["sums"][["cell", "variant", "sum"]].rename(columns={"variant": "part"})
    told = [
        *_told(sums, "sum", value=sums["sum"]),
        *_of_series(own["series"]),
        *_of_warmup(plain["warmup"]),
        *_of_kernels(plain["kernels"]),
        *_of_modules(plain["modules"]),
        *_of_categories(plain["categories"]),
        *_told(plain["phases"], "launches", value=plain["phases"]["kernels"]),
    ]
    found = pd.concat(told, ignore_index=True)
    found = found.drop_duplicates(LIKE).dropna(subset="value")
    likes = found[LIKE].itertuples(index=False, name=None)
    ours = found[OURS].itertuples(index=False, name=None)
    return {Like(*like): Ours(*each) for like, each in zip(likes, ours, strict=True)}


def _told(
    rows: pd.DataFrame, quantity: str | pd.Series, **numbers: pd.Series
) -> Iterator[pd.DataFrame]:
    """The places of rows with a number, for each statistic; what is not said is "" or 0."""
    for statistic, value in numbers.items():
        said = rows.assign(quantity=quantity, statistic=statistic, value=value)
        said = said.reindex(columns=[*LIKE, *OURS])
        yield said.fillna(Like._field_defaults | Ours._field_defaults)


def _of_series(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Steps of plain timing cells, and passes of attention: of their own implementation, and of
    whichever is the fastest."""
    frame = where(frame, quantity=[*OF_SERIES], status="ok")
    # The fastest first, which is what an implementation that is not ours is set beside.
    cost = frame["median"].where(frame["quantity"] != "rate", -frame["median"])
    frame = frame.loc[cost.sort_values(kind="stable").index]
    steps = where(frame, study="timing", options="")
    passes = where(frame, study="attention")
    options = passes["options"].str.replace(r"tokens=\S+", "", regex=True).str.split().map(sorted)
    variant = passes["variant"]
    passes = passes.assign(
        context=passes["length"],
        options=options.str.join(" "),
        implementation=variant,
        beside=variant,
    )
    both = pd.concat([steps, passes, passes.assign(implementation=OTHERS)], ignore_index=True)
    quantity, median = both["quantity"].map(OF_SERIES), both["median"]
    is_peak = both["unit"] == "B"
    times, peaks = both[~is_peak], both[is_peak]
    yield from _told(times, quantity, mean=times["mean"], median=median, std=times["std"])
    yield from _told(peaks, quantity, value=median, max=median)


def _of_warmup(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Means over the first steps of a process, by how many are left out."""
    rows = rows.assign(part=rows["skipped"].map(WARM_UP.format))
    yield from _told(rows, "time", mean=rows["mean"], std=rows["std"])


def _of_kernels(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Kernels by the call, under both of their names."""
    for name in ("full_name", "name"):
        own = rows.assign(part=rows[name])
        mean = own["time"] / own["calls"]
        others = {each: own[each] for each in ("median", "min", "max", "std")}
        yield from _told(own, "time per instance", mean=mean, **others)
        yield from _told(own, "instances", value=own["calls"])
        yield from _told(own, "share of GPU time", value=own["share"])


def _of_modules(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Modules of a forward pass by the call, whose ranges they are."""
    rows = rows.assign(part=rows["module"].map(PARTS), phase="forward").explode("part")
    rows = rows[rows["part"].notna()]
    calls = rows["calls"]
    yield from _told(rows, "time per call", mean=rows["host_time"] / calls)
    yield from _told(rows, "GPU time per call", mean=rows["gpu_time"] / calls)
    yield from _told(rows, "launches per call", value=rows["kernels"] / calls)


def _of_categories(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Kinds of kernels by their share of a phase."""
    parts = rows["category"].map(PARTS).fillna(rows["category"])
    rows = rows.assign(part=parts).explode("part").reset_index(drop=True)
    yield from _told(rows, "share of GPU", value=rows["share"])


def implementation_of(name: str) -> str:
    """Ours of that name, or whatever implementation of ours is the fastest."""
    ours = {"cudnn": "sdpa-cudnn", "flash-attention-2": "sdpa-flash"}.get(name, name)
    return ours if ours in IMPLEMENTATIONS else OTHERS
