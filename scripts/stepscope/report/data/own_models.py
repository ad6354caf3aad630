"""People's own models: which rows are of one, and what models.csv says of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import column, machine_places
from stepscope.tables.reader import Tables


def is_own(row: Mapping) -> bool:
    """Is a row of a cell of a model of one's own, not of a size?"""
    return isinstance(row.get("model"), str) and row["model"] != ""


def of_own(frame: pd.DataFrame) -> pd.Series:
    """The same for each row of a frame."""
    return column(frame, "model").map(lambda value: isinstance(value, str) and value != "").astype(bool)


@dataclass(frozen=True)
class OwnModel:
    """A row of models.csv: a model on a machine at a context and a batch."""

    row: dict

    @property
    def name(self) -> str:
        """As the configuration calls it."""
        return str(self.row["size"])

    @property
    def keys(self) -> dict:
        """What else the configuration gave to build it."""
        return json.loads(self.row["keys"]) if self.row.get("keys") else {}

    @property
    def apart(self) -> float | None:
        """(counted FLOP - those by formula) / those by formula; None unless both are known."""
        counted, formula = self.row.get("flops_counter"), self.row.get("flops_formula")
        return counted / formula - 1 if known(counted) and known(formula) and formula else None

    @property
    def disagrees(self) -> bool:
        """Are the two numbers of FLOP farther apart than is usual?"""
        return self.row.get("flops_disagree") is True and self.apart is not None

    @property
    def flop(self) -> float | None:
        """FLOP of a step that rates are made of."""
        return self.row.get(f"flops_{self.row.get('flops_from')}")

    @property
    def dropout(self) -> list[float]:
        """Probabilities above 0."""
        return [float(each) for each in str(self.row.get("dropout") or "").split() if float(each)]

    @property
    def unknown(self) -> list[str]:
        """What could not be found out, a line each."""
        return [each for each in str(self.row.get("unknown") or "").split("; ") if each]


def own_models(tables: Tables) -> list[OwnModel]:
    """All rows of models.csv, by machine, parameters, name and context."""
    frame = tables["models"]
    if frame.empty:
        return []
    ranks = frame.assign(_machine=machine_places(frame["hardware"]))
    order = ["_machine", "parameters", "size", "context", "batch"]
    return [OwnModel(row) for row in frame.loc[ranks.sort_values(order, kind="stable").index].to_dict("records")]


def longest(models: list[OwnModel]) -> list[OwnModel]:
    """Of each model on a machine the row of the longest context, in their order."""
    found: dict[tuple, OwnModel] = {}
    for each in models:
        key = each.row["hardware"], each.name
        if key not in found or each.row["context"] >= found[key].row["context"]:
            found[key] = each
    return list(found.values())
