"""The profiled cells, their analyses, and the unprofiled time of the same point."""

from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.unprofiled import mode, same_point
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import with_order
from stepscope.tables.profile import PHASES as TIMED_PHASES
from stepscope.tables.reader import Tables

# In the order in which they are shown; the loss is a part of forward, and every phase a part of step.
PHASES = ("inference", "forward", "loss", "backward", "optimizer", "step")


def is_detailed(row: dict) -> bool:
    """Was more recorded of the cell than kernels, calls and ranges? That slows it further."""
    return row.get("detail") not in (None, "kernels")


@dataclass(frozen=True)
class Words:
    """What an operation is called: a kernel of a GPU, or on a CPU an operator of PyTorch."""

    operation: str
    device: str
    time: str

    @property
    def operations(self) -> str:
        return f"{self.operation}s"


GPU = Words("kernel", "GPU", "GPU time")
HOST = Words("operator", "operators", "time in operators")


class Profile:
    """The profile study's tables, a cell's rows at a time, and the timing and ceilings tables beside them."""

    def __init__(self, tables: Tables):
        self.cells = with_order(tables["profile"])
        self.timing = with_order(tables["timing"])
        self.ceilings = tables["ceilings"]
        self._tables = tables
        self._parts: dict[str, dict[str, pd.DataFrame]] = {}
        self._records: dict[tuple[str, str], list[dict]] = {}
        self._unprofiled: dict[str, dict] = {}
        self._profiled: list[dict] | None = None

    def rows(self, name: str, cell: str) -> pd.DataFrame:
        """A cell's rows of profile_<name>.csv; empty where there are none."""
        if name not in self._parts:
            frame = self._tables[f"profile_{name}"]
            parts = frame.groupby("cell", sort=False) if len(frame) else ()
            self._parts[name] = {key: part.reset_index(drop=True) for key, part in parts}
        return self._parts[name].get(cell, pd.DataFrame())

    def row(self, name: str, cell: str, **where) -> dict:
        """The first row of a cell's table with these values; empty where there is none."""
        if (name, cell) not in self._records:
            self._records[name, cell] = self.rows(name, cell).to_dict("records")
        found = (row for row in self._records[name, cell] if all(row.get(key) == where[key] for key in where))
        return next(found, {})

    def profiled(self) -> list[dict]:
        """The cells that have an analysis, in their order."""
        if self._profiled is None:
            rows = self.cells.to_dict("records")
            self._profiled = [row for row in rows if len(self.rows("phases", row["cell"]))]
        return self._profiled

    def check(self, cell: str, quantity: str) -> str | None:
        """A value of the cell's checks as text."""
        return self.row("checks", cell, quantity=quantity).get("value")

    def number_of(self, cell: str, quantity: str) -> float:
        """A number of the cell's checks; not a number where there is none."""
        return float(pd.to_numeric(self.check(cell, quantity), errors="coerce"))

    def words(self, row: dict) -> Words:
        """What the operations of a cell are called."""
        told = self.check(row["cell"], "device_is_host")
        return HOST if told == "True" or (told is None and row.get("device") == "cpu") else GPU

    def words_of(self, rows: list[dict]) -> Words:
        """What to call the operations of several cells: operators only if none of them ran on a GPU."""
        return HOST if rows and all(self.words(row) is HOST for row in rows) else GPU

    def unprofiled(self, row: dict) -> dict:
        """The timing study's row of the same point: the same run if there is one; empty where it was not measured."""
        if row["cell"] not in self._unprofiled:
            self._unprofiled[row["cell"]] = same_point(self.timing, row)
        return self._unprofiled[row["cell"]]

    def top_kernel(self, cell: str, phase: str) -> dict:
        """The kernel that takes the most GPU time in a phase; empty without one."""
        own = self._kernels(cell, phase)
        return own.loc[own["total_ms"].idxmax()].to_dict() if len(own) else {}

    def kernel_mean(self, cell: str, phase: str) -> float | None:
        """Mean length of the kernels of a phase, microseconds, without copies and fills of memory."""
        own = self._kernels(cell, phase)
        instances = own["instances"].sum() if len(own) else 0
        return float(1e3 * own["total_ms"].sum() / instances) if instances else None

    def _kernels(self, cell: str, phase: str) -> pd.DataFrame:
        rows = self.rows("kernels", cell)
        return rows[rows["phase"] == phase] if len(rows) else rows

    def varying(self, hardware: str = "") -> list[str]:
        """Which fields, besides size, context and precision, tell the cells apart; of one machine if it is given."""
        cells = self.cells[self.cells["hardware"] == hardware] if hardware else self.cells
        names = ("mode", "batch", "options", "repeat", "hardware")
        return [name for name in names if name in cells and cells[name].nunique() > 1]

    def title(self, row: dict, on_its_machine: bool = False) -> str:
        """`xl, context 512, bf16, inference`: a cell's point, with what varies among all cells.

        on_its_machine: the machine is not named, and only its own cells count.
        """
        varying = self.varying(row["hardware"] if on_its_machine else "")
        parts = [
            str(row["size"] or "?"),
            f"context {row['context']:,.0f}" if known(row["context"]) else "",
            str(row["precision"] or "?"),
            str(row["mode"]) if mode(row) != "step" else "",
            f"batch {row['batch']:,.0f}" if "batch" in varying and known(row["batch"]) else "",
            row["options"],
            f"run {row['repeat']}" if row["repeat"] > 1 else "",
            f"on {row['hardware']}" if "hardware" in varying else "",
        ]
        return ", ".join(part for part in parts if part)


def costs(profile: Profile) -> list[dict]:
    """A row for each profiled cell and phase: the cell's own row with these fields, times in ms.

    `without`, `with`: medians of the host's clock in the timing study and in the profiled run; `ratio` their quotient;
    `without_std`, `with_std`: sample standard deviations between the steps of both.
    `range`, `clock`: means of the phase's range and of the clock in the profiled run; `difference` = range / clock - 1.
    """
    found = []
    for row in profile.profiled():
        for phase in TIMED_PHASES:
            profiled, clock = row.get(f"{phase}_median_ms"), row.get(f"{phase}_mean_ms")
            if not known(profiled):
                continue
            plain, plain_std = (profile.unprofiled(row).get(f"{phase}_{key}_ms") for key in ("median", "std"))
            own = profile.row("phases", row["cell"], phase=phase)
            around = own["host_ms_total"] / own["count"] if own.get("count") else None
            agreement = around / clock - 1 if known(around) and known(clock) else None
            found.append(
                {**row, "phase": phase, "without": plain, "with": profiled, "range": around, "clock": clock}
                | {"without_std": plain_std, "with_std": row.get(f"{phase}_std_ms")}
                | {"ratio": profiled / plain if known(plain) else None, "difference": agreement}
            )
    return found
