"""The orders in which things are shown."""

from collections.abc import Iterable

import pandas as pd

from stepscope import axes
from stepscope.config import recordings

PRECISIONS = tuple(axes.PRECISIONS)
PHASES = tuple(axes.PHASES)
MODES = tuple(mode.column for mode in axes.MODES.values())
NEUTRAL = {name: str(axes.NEUTRAL[name]) for name in axes.WAYS}


def label(phase: str) -> str:
    """`forward_backward` in columns is `forward+backward` in prose, `free_forward` the forward of a free step."""
    return phase.removeprefix("free_").replace("_backward", "+backward")


def precision_rank(precision: str) -> tuple[int, str]:
    """Sort key: the known precisions in their order, then any other by name."""
    return (PRECISIONS.index(precision) if precision in PRECISIONS else len(PRECISIONS), str(precision))


def ordered(values, key=None) -> list:
    """Distinct values without the missing ones, sorted."""
    return sorted(pd.Series(values).dropna().unique(), key=key)


def machine_labels(values) -> list[str]:
    """Distinct hardware labels of one table in its order, which is that of the configuration; it may lack some."""
    return [str(each) for each in pd.Series(values, dtype="object").dropna().unique()]


def merged_labels(orders: Iterable[list[str]]) -> list[str]:
    """The labels of several tables in one order: whichever stands before another in any table comes before it.

    A table may lack a machine, the baseline too. Labels that no table orders stay as they appear first.
    """
    before: dict[str, set[str]] = {}
    for order in orders:
        for at, label in enumerate(order):
            before.setdefault(label, set()).update(order[:at])
    found: list[str] = []
    while left := [label for label in before if label not in found]:
        free = [label for label in left if before[label] <= set(found)]
        found.append((free or left)[0])
    return found


def machine_places(labels: pd.Series) -> pd.Series:
    """The place of each hardware label among those of the table."""
    return labels.map({label: place for place, label in enumerate(machine_labels(labels))})


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column, all missing where the table does not have it."""
    return frame[name] if name in frame else pd.Series([None] * len(frame), index=frame.index, dtype="object")


def options(frame: pd.DataFrame) -> pd.Series:
    """The options of each cell that are not at their neutral value, as `attention=sdpa compile=block`; else empty.

    What was recorded is one of them: cells that differ in it are not compared with each other.
    """
    text = pd.Series([""] * len(frame), index=frame.index, dtype="object")
    for name, neutral in {**NEUTRAL, **recordings.NEUTRAL}.items():
        values = column(frame, name).fillna(neutral).astype(str).str.removesuffix(".0")
        text = text + values.map(
            lambda value, name=name, neutral=neutral: "" if value == neutral else f"{name}={value} "
        )
    return text.str.strip()


def with_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by hardware as in the table, then sorted by precision, parameters, size, context, batch, options and repeat;
    `options` added."""
    if frame.empty:
        return frame
    frame = frame.assign(options=options(frame), repeat=column(frame, "repeat").astype(float).fillna(1).astype(int))
    frame["_precision"] = column(frame, "precision").map(precision_rank)
    known = frame.groupby("size")["parameters"].transform("max") if "parameters" in frame else 0
    frame["_parameters"] = pd.Series(known, index=frame.index).fillna(float("inf"))
    frame["_hardware"] = machine_places(frame["hardware"]) if "hardware" in frame else 0
    keys = ["_hardware", "_precision", "_parameters", "size", "context", "batch", "options", "repeat"]
    keys = [key for key in keys if key in frame]
    frame = frame.sort_values(keys, kind="stable").reset_index(drop=True)
    return frame.drop(columns=["_hardware", "_precision", "_parameters"])


def way_of(options: str) -> str:
    """The options that change what runs: those of options() without what was recorded."""
    return " ".join(word for word in options.split() if word.partition("=")[0] not in recordings.NEUTRAL)


def plainly_recorded(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells at which nothing but the usual was recorded: those that figures of a whole study show."""
    for name, neutral in recordings.NEUTRAL.items():
        frame = frame[column(frame, name).fillna(neutral) == neutral]
    return frame


def main_grid(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells that figures draw: the first run of each, at one batch size and one set of options.

    The neutral options where there are any, else the most frequent ones; the most frequent batch size.
    """
    if frame.empty:
        return frame
    frame = with_order(frame)
    frame = frame[frame["repeat"] == frame["repeat"].min()]
    plain = frame["options"] == ""
    frame = frame[plain if plain.any() else frame["options"] == frame["options"].mode()[0]]
    batches = frame["batch"].dropna() if "batch" in frame else pd.Series(dtype=float)
    return frame[frame["batch"] == batches.mode()[0]] if len(batches) else frame
