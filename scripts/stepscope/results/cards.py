"""cards.csv: what a GPU reaches beside other cards of its type, of which the project has records.

What they reached is in REFERENCE, which `report/reference/cards.sh` makes of committed records:
the ceilings, and what the GPU works in plain steps. A card is *slower* or *faster* than they where
it is beyond all of them by more than FAR, else *like them*.
"""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
from pandas import DataFrame

from .cells import beside
from .tables import where

REFERENCE = Path(__file__).with_name("cards.csv")
FAR = 0.05
# A size may be another model elsewhere: parameters tell, of which an operation has none.
LIKE = ["gpu", "quantity", "size", "parameters", "context", "batch", "precision"]


def measured(series: DataFrame, cells: DataFrame, models: DataFrame) -> DataFrame:
    """LIKE, machine, cell, card, unit and value: the rates of bursts, and times of plain steps'
    kernels. series, cells, models: the tables. card: a digest of its UUID."""
    rates = where(series, study="ceilings", quantity="rate", variant="burst")
    plain = where(
        series, quantity="busy_time", study="timing", mode="step", phase="step", options=""
    )
    both = pd.concat([rates, plain], ignore_index=True)
    cards = cells[["cell", "gpu"]].assign(
        card=[hashlib.sha256(uuid.encode()).hexdigest()[:8] for uuid in cells["gpu_uuid"]]
    )
    found = both.rename(columns={"median": "value"}).merge(cards[cards["gpu"] != ""], on="cell")
    parameters = beside(found, models, ["size"], "parameters")
    found["parameters"] = parameters.where(found["study"] == "timing")
    return found[[*LIKE, "machine", "cell", "card", "unit", "value"]].dropna(subset="value")


def rows(series: DataFrame, cells: DataFrame, models: DataFrame) -> DataFrame:
    """Those of them that another card's is known of, with the least and the most of the others."""
    # Where no cell has a context, the column has no type.
    numbers = dict.fromkeys(("parameters", "context", "batch"), "float64")
    texts = dict.fromkeys(("gpu", "quantity", "size", "precision", "card"), "object")
    known = pd.read_csv(REFERENCE, dtype=numbers | texts)
    own = measured(series, cells, models).astype(numbers)
    both = own.merge(known[[*LIKE, "card", "value"]], on=LIKE, suffixes=("", "_of_other"))
    of_others = both[both["card"] != both["card_of_other"]]
    found = of_others.groupby([*own], sort=False, dropna=False, as_index=False).agg(
        low=("value_of_other", "min"),
        high=("value_of_other", "max"),
        cards=("card_of_other", "nunique"),
    )
    is_below = found["value"] < found["low"] / (1 + FAR)
    is_above = found["value"] > found["high"] * (1 + FAR)
    # The more the faster, but for times.
    is_rate = found["unit"] != "s"
    standing = np.where(is_below == is_rate, "slower", "faster")
    standing = np.where(is_below | is_above, standing, "like them")
    return found.assign(standing=standing)
