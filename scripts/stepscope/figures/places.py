"""Which rows a figure is of: plain whole steps, the largest place, and the order of sizes and
precisions."""

import pandas as pd

from stepscope.model.formats import PRECISIONS
from stepscope.results.tables import Tables, where

from .words import short

PLACE = ["size", "context", "batch"]
USUAL = ("", "float32")  # types in which a model is built, so that a precision says what it runs in
# Of the GPU's allocator, of the process on a CPU.
PEAKS = {"peak_reserved": "reserved", "peak_resident": "resident"}


def parameters(tables: Tables) -> dict[str, float]:
    """Size → its parameters."""
    of_size = tables["models"].groupby("size")["parameters"].max()
    return {str(size): float(number) for size, number in of_size.items()}


def as_built(tables: Tables, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with `built`, what figures call their type of numbers: the precision, but of a model
    that its file builds in another type than fp32 that type."""
    models = tables["models"][["machine", "size", "dtype"]].drop_duplicates(["machine", "size"])
    found = frame[["machine", "size"]].merge(models, how="left")["dtype"]
    dtype = found.fillna("").set_axis(frame.index)
    return frame.assign(built=dtype.mask(dtype.isin(USUAL), frame["precision"]))


def with_lines(frame: pd.DataFrame) -> list[str]:
    """The types of numbers in which a size is known at two contexts; all where none is. The widest
    precision first, then other types."""
    counts = frame.dropna(subset="median").groupby(["built", "size"])["context"].nunique()
    drawn = set(counts[counts > 1].index.get_level_values("built"))
    kinds = drawn or set(frame["built"])
    return [*(each for each in PRECISIONS if each in kinds), *sorted(kinds - PRECISIONS.keys())]


def in_order(tables: Tables, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by parameters, those without any last, then by context, batch and precision; see
    as_built."""
    ranks = {name: rank for rank, name in enumerate(PRECISIONS)}
    ranked = frame.reset_index(drop=True)
    ranked["precision"] = ranked["precision"].map(ranks)
    ranked["parameters"] = ranked["size"].map(parameters(tables))
    by = ["parameters", *PLACE, "precision"]
    order = ranked.sort_values(by, kind="stable").index
    return as_built(tables, frame.iloc[order])


def largest(tables: Tables, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows at the place with most parameters × tokens; of several the one with the longest
    context."""
    if frame.empty:
        return frame
    known = parameters(tables)
    work = frame["size"].map(known).fillna(0) * frame["context"] * frame["batch"]
    best = frame.assign(_work=work).sort_values(["_work", "context"]).iloc[-1]
    return alike(frame, best)


def main_step(tables: Tables, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of one step at the largest place: in bf16, or in the first precision that is
    there; see as_built."""
    at_largest = largest(tables, frame)
    precisions = at_largest["precision"].unique()
    chosen = min(precisions, key=lambda precision: precision != "bf16", default="")
    return as_built(tables, at_largest[at_largest["precision"] == chosen])


def on_ladders(tables: Tables, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows at places of ladders, if there are any; else all."""
    climbed = tables.rows("series", study="ladder")[PLACE].drop_duplicates()
    rows = frame.merge(climbed, on=PLACE)
    return frame if rows.empty else rows


def best_rates(tables: Tables, size: str) -> pd.Series:
    """Precision → the best rate of a large product (`matmul`, FLOP/s) or copy (`copy`, B/s)."""
    rows = tables.rows(
        "series",
        study="ceilings",
        size=size,
        quantity="rate",
        variant="burst",
    )
    return rows.groupby("precision")["median"].first().dropna()


def alike(frame: pd.DataFrame, row: dict | pd.Series, columns: list[str] = PLACE) -> pd.DataFrame:
    """The rows that have the same in these columns: by default the size, context and batch."""
    same = frame[columns] == pd.Series(row)[columns]
    return frame[same.all(axis=1)]


def usual_batch(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of each size at the batch that most rows of it have; of as frequent ones the
    largest."""
    if frame.empty:
        return frame
    usual = frame.groupby("size")["batch"].agg(lambda batches: batches.mode().max())
    return frame[frame["batch"] == frame["size"].map(usual)]


def plain_steps(
    tables: Tables,
    quantity: object = "time",
    study: str = "timing",
    phase: object = "step",
) -> pd.DataFrame:
    """The series of whole training steps at neutral options, a row a place and precision; in a
    ladder a variant. Those of a phase are synchronised around it."""
    chosen = {"study": study, "quantity": quantity, "phase": phase}
    return tables.rows("series", options="", mode="step", **chosen)


def peaks(tables: Tables) -> tuple[pd.DataFrame, str]:
    """(rows, word) of their peaks: reserved, without a GPU resident bytes."""
    rows = plain_steps(tables, set(PEAKS)).dropna(subset="median")
    quantity = min(rows["quantity"], default="peak_resident", key=list(PEAKS).index)
    return where(rows, quantity=quantity), PEAKS[quantity]


def tried_steps(tables: Tables) -> pd.DataFrame:
    """The times of whole training steps at each size's usual batch, and those that ran out of
    memory; not what the machine cannot do."""
    steps = plain_steps(tables)
    return usual_batch(steps[steps["status"] != "unsupported"])


def name(row: dict) -> str:
    """`medium 512 bf16`: a row, as in_order() gives it, of a figure in which cells differ."""
    return f"{short(row['size'], 12)} {row['context']:,.0f} {row['built']}"


def names(frame: pd.DataFrame) -> list[str]:
    """That of each row."""
    return [name(row) for row in frame.to_dict("records")]
