"""The precision study's tables as rows of text and numbers, a hardware at a time."""

import math
from collections.abc import Callable

import pandas as pd

from stepscope.report.kit import formatting
from stepscope.report.kit.order import machine_labels
from stepscope.tables.reader import Tables

# Ways to compute a normalisation; there are more, which only some operations have.
PLAIN, AUTOCAST = "all in the format", "under autocast"
OF_SQUARES = "variance as mean(x²) − mean(x)²"
_MAYBE_NAN = frozenset({"inner", "sum"})  # columns in which nan is a value, and not one that is missing


class Precision:
    """The study's tables: `probes` is a row a cell, rows() gives what the probes found."""

    def __init__(self, tables: Tables):
        self.probes = tables["precision"]
        self._tables = tables

    @property
    def hardware(self) -> list[str]:
        """The machines that any probe was planned for."""
        return machine_labels(self.probes["hardware"]) if len(self.probes) else []

    @property
    def several(self) -> bool:
        """Whether there is more than one machine."""
        return len(self.hardware) > 1

    def frame(self, name: str) -> pd.DataFrame:
        """precision_<name>.csv; empty where it is not there."""
        return self._tables[f"precision_{name}"]

    def rows(self, name: str, hardware: str, **where) -> list[dict]:
        """A machine's rows of a table with these values, in their order; what is missing is None."""
        frame = self.frame(name)
        rows = frame[frame["hardware"] == hardware].to_dict("records") if "hardware" in frame else []
        rows = [{key: None if pd.isna(value) and key not in _MAYBE_NAN else value for key, value in row.items()}
                for row in rows]  # fmt: skip
        return [row for row in rows if all(row.get(key) == value for key, value in where.items())]

    def is_cpu(self, hardware: str) -> bool:
        """Whether the machine's probes ran on its CPU."""
        own = self.probes[self.probes["hardware"] == hardware] if len(self.probes) else self.probes
        return "device" in own and (own["device"] == "cpu").any()

    def model(self, hardware: str) -> str:
        """The model that was probed: `d_model = 128, …, context 64, batch 2`; empty where there was none."""
        row = next(iter(self.rows("gradients", hardware)), None)
        if row is None or any(row.get(name) is None for name in ("d_model", "context", "batch")):
            return ""
        shape = ", ".join(f"{name} = {row[name]:,.0f}" for name in ("d_model", "d_ff", "num_layers", "num_heads"))
        return f"{shape}, context {row['context']:,.0f}, batch {row['batch']:,.0f}"


def outcome(row: dict) -> str:
    """What became of a forced normalisation: `2.8e−3`, its error; `all zero`; or `NaN`, `Inf` where any element is."""
    if row["nan"]:
        return "NaN"
    if row["infinite"]:
        return "Inf"
    if row["zero"] == row["elements"] and row["zero_exact"] < row["elements"]:
        return "all zero"
    return scientific(row["error"])


def worded(value: float, show: Callable[[float], str]) -> str:
    """A number that may be none: `NaN`, `Inf`, or as `show` prints it."""
    if math.isnan(value):
        return "NaN"
    return "Inf" if math.isinf(value) else show(value)


def scientific(value: float) -> str:
    """Two significant digits, with a power of ten where it is far from 1: `2.8e−3`, `31`; 0 is `0`."""
    if value == 0:
        return "0"
    if 0.1 <= abs(value) < 1000:
        return formatting.significant(float(f"{value:.2g}"), 2)
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits}e{int(exponent)}".replace("-", "\N{MINUS SIGN}")
