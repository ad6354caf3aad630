"""What of ours a published figure may stand beside: values by all that must be the same."""

from collections.abc import Iterator, Mapping

import pandas as pd
from pandas import DataFrame

from stepscope.axes import IMPLEMENTATIONS

from .tables import where

OF_PLAIN = ("warmup", "kernels", "modules", "categories", "phases")  # cells without options
READ = ("series", "sums", *OF_PLAIN)
OF_LAUNCH = ("mean", "median", "min", "max", "std")
OTHERS = "others"  # whatever implementation of attention
WARM_UP = "after {:.0f} steps of warm-up"
OF_TIMES = {"mean": "mean", "median": "median", "std": "std"}
OF_PEAKS = {"value": "median", "max": "median"}
# Our quantity: the published one, and the columns of its statistics.
QUANTITIES = {
    "time": ("time", OF_TIMES),
    "rate": ("rate", OF_TIMES),
    "tokens_per_second": ("tokens per second", OF_TIMES),
    "peak_allocated": ("peak allocated", OF_PEAKS),
    "peak_reserved": ("peak reserved", OF_PEAKS),
    "before_backward": ("memory before backward", OF_PEAKS),
}
# What write-ups call a module or a kind of kernels, where we do not: ours.
PARTS = {
    "masking": "mask",
    "attention-weighted values": "attention × V",
    "scaled_dot_product_attention": "attention",
    "softmax (fwd)": "softmax forward",
    "softmax (bwd)": "softmax backward",
    "optimizer/multi_tensor": "optimizer",
}


# What two numbers must have in common: its value where it is not said. context: positions of a
# sequence; part: a kernel, module, kind of kernels or warm-up; options: sorted.
LIKE: dict[str, str | float] = {
    **dict.fromkeys(("machine", "quantity", "statistic", "size", "precision"), ""),
    **dict.fromkeys(("phase", "mode", "part", "implementation", "options"), ""),
    "context": 0.0,
    "batch": 0.0,
}
# A value, its cell, and the implementation that it is of.
OURS = ["measured", "cell", "beside"]


def known(tables: Mapping[str, DataFrame]) -> DataFrame:
    """OURS of all values, by LIKE. tables: those that are read here, with the places of their
    cells."""
    plain = {name: where(tables[name], options="") for name in OF_PLAIN}
    kernels = plain["kernels"]
    # Under both of their names, by the call.
    kernels = pd.concat([kernels.assign(part=kernels[name]) for name in ("full_name", "name")])
    kernels["mean"] = kernels["time"] / kernels["calls"]
    modules = plain["modules"].rename(columns={"module": "part"}).assign(phase="forward")
    of_calls = ["host_time", "gpu_time", "kernels"]
    modules[of_calls] = modules[of_calls].div(modules["calls"], axis=0)
    kinds = plain["categories"].rename(columns={"category": "part"})
    warmup = plain["warmup"]
    # By how many steps of a process are left out.
    warmup = warmup.assign(part=warmup["skipped"].map(WARM_UP.format))
    sums = tables["sums"][["machine", "cell", "variant", "sum"]].rename(columns={"variant": "part"})
    told = [
        _told(sums, "sum", value="sum"),
        *_of_series(tables["series"]),
        _told(warmup, "time", mean="mean", std="std"),
        _told(kernels, "time per instance", **{name: name for name in OF_LAUNCH}),
        _told(kernels, "instances", value="calls"),
        _told(kernels, "share of GPU time", value="share"),
        _told(modules, "time per call", mean="host_time"),
        _told(modules, "GPU time per call", mean="gpu_time"),
        _told(modules, "launches per call", value="kernels"),
        _told(kinds, "share of GPU", value="share"),
        _told(plain["phases"], "launches", value="kernels"),
    ]
    found = pd.concat(told, ignore_index=True).drop_duplicates([*LIKE])
    return found.dropna(subset="measured").set_index([*LIKE])


def _told(rows: DataFrame, quantity: str, **statistics: str) -> DataFrame:
    """The places of rows with a number for each statistic, from the column that has it; what is not
    said is "" or 0."""
    parts = [
        rows.assign(quantity=quantity, statistic=name, measured=rows[column])
        for name, column in statistics.items()
    ]
    told = pd.concat(parts).reindex(columns=[*LIKE, *OURS])
    unsaid = LIKE | {"beside": ""}
    # A column that nobody has is one of numbers, which text cannot fill.
    types = {name: type(value) for name, value in unsaid.items()}
    return told.astype(types).fillna(unsaid)


def _of_series(frame: DataFrame) -> Iterator[DataFrame]:
    """Steps of plain timing cells, and passes of attention: of their own implementation, and of
    whichever is the fastest."""
    # The fastest first, which is what an implementation that is not ours is set beside.
    cost = frame["median"].where(frame["quantity"] != "rate", -frame["median"])
    frame = frame.loc[cost.sort_values(kind="stable").index]
    steps = where(frame, study="timing", options="")
    passes = where(frame, study="attention")
    options = passes["options"].str.replace(r"tokens=\S+", "", regex=True).str.split().map(sorted)
    passes = passes.assign(
        context=passes["length"],
        options=options.str.join(" "),
        implementation=passes["variant"],
        beside=passes["variant"],
    )
    both = pd.concat([steps, passes, passes.assign(implementation=OTHERS)], ignore_index=True)
    for ours, (theirs, statistics) in QUANTITIES.items():
        yield _told(where(both, quantity=ours, status="ok"), theirs, **statistics)


def implementation_of(name: str) -> str:
    """Ours of that name, or whatever implementation of ours is the fastest."""
    ours = {"cudnn": "sdpa-cudnn", "flash-attention-2": "sdpa-flash"}.get(name, name)
    return ours if ours in IMPLEMENTATIONS else OTHERS
