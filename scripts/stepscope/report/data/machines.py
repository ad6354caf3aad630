"""The machines of a report, the first of which is the baseline, and all their cells; their rates, and the ratios of
those to the baseline's."""

import math
from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.roofline import ROOFS, device_name
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import column, machine_labels, merged_labels
from stepscope.tables import peaks
from stepscope.tables.reader import Tables

NEAR = 0.8  # of a ratio, from which on a speed-up reaches it
ROUNDING = 1.0  # seconds: a start may be given in whole ones
# What all studies say of a cell, and of the machine that it ran on.
_OF_CELLS = (
    *("cell", "hardware", "status", "reason", "log", "command", "started", "duration_s"),
    *("batch", "vocab_size", "warmup", "noise_mark", "seed"),
)
_OF_MACHINES = (
    *("device_name", "device_memory_bytes", "device_uuid", "driver", "power_limit_w", "threads", "cpus"),
    *("python", "torch", "cuda", "triton", "profiler_version", "git_commit"),
)
# The status of a cell that has several rows is the first of these that any of them has.
_MOST_TELLING = ("missing", "failed", "oom", "ok", "unsupported")


def labels(tables: Tables) -> list[str]:
    """The hardware labels in the order of the configuration, which every table has: the baseline first."""
    return merged_labels(machine_labels(column(tables[study], "hardware")) for study in tables.studies)


def every_cell(tables: Tables) -> pd.DataFrame:
    """The columns that all studies share, a row a cell, for all cells of all studies; `study` says which."""
    shared = [*_OF_CELLS, *_OF_MACHINES]
    frames = []
    for study in tables.studies:
        frame = tables[study]
        if not frame.empty:
            frames.append(_one_row_a_cell({"study": study, **{name: column(frame, name) for name in shared}}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["study", *shared])


def at_once(cells: pd.DataFrame) -> dict[str, list[str]]:
    """Hardware → its cells that ran while another of its cells ran, by `started` and `duration_s`.

    An overlap of less than ROUNDING does not count.
    """
    found = {}
    for hardware, own in cells.dropna(subset=["started", "duration_s"]).groupby("hardware", sort=False):
        starts = pd.to_datetime(own["started"], utc=True, format="ISO8601")
        spans = sorted(zip(starts, starts + pd.to_timedelta(own["duration_s"], unit="s"), own["cell"], strict=True))
        both, last = set(), None  # the span that ends last of those before
        for span in spans:
            if last and (min(last[1], span[1]) - span[0]).total_seconds() >= ROUNDING:
                both |= {last[2], span[2]}
            last = span if last is None or span[1] > last[1] else last
        found[hardware] = [cell for cell in own["cell"] if cell in both]
    return found


def processes(tables: Tables) -> dict[str, list[int]]:
    """Study → how many processes measured a series of it, each number once, ascending."""
    found = {}
    for study in tables.studies:
        frame = tables[study]
        names = [name for name in frame if name == "processes" or name.endswith("_processes")]
        names = [name for name in names if name not in ("other_processes", "steady_processes")]
        values = {int(value) for name in names for value in frame[name].astype(float).dropna() if value}
        found |= {study: sorted(values)} if values else {}
    return found


def _one_row_a_cell(columns: dict) -> pd.DataFrame:
    """Of the rows of each cell the one that says most of the whole cell: see _MOST_TELLING."""
    frame = pd.DataFrame(columns)
    ranks = frame["status"].map({name: rank for rank, name in enumerate(_MOST_TELLING)})
    return frame.loc[ranks.sort_values(kind="stable").index].drop_duplicates("cell").sort_index()


def rate(tables: Tables, hardware: str, precision: str, source: str) -> float | None:
    """TFLOP/s of matrix products in a precision, by one of ROOFS: measured, or by the data sheet."""
    if source == "measured":
        return matmul_ceiling(tables["ceilings"], hardware, precision)
    return peaks.tflops(device_name(tables, hardware), precision)


def bandwidth(tables: Tables, hardware: str, source: str) -> float | None:
    """GB/s of the memory, by one of ROOFS."""
    if source != "measured":
        return peaks.bandwidth(device_name(tables, hardware))
    ceilings = tables["ceilings"]
    own = column(ceilings, "gb_per_s")[column(ceilings, "hardware") == hardware].astype(float).dropna()
    return float(own.max()) if len(own) else None


def facts(tables: Tables, hardware: str) -> dict:
    """Columns of a machine that its cells record: device_memory_bytes, driver, torch …; several values as a list."""
    cells = every_cell(tables)
    own = cells[cells["hardware"] == hardware]
    return {name: list(dict.fromkeys(own[name].dropna())) for name in own}


@dataclass(frozen=True)
class Limits:
    """A machine's rates over the baseline's: of arithmetic in a precision and of memory; None where one is not known.

    sources: `data sheet` or `measured`, of either ratio.
    """

    arithmetic: float | None
    memory: float | None
    sources: tuple[str, str] = ("", "")

    def reached(self, name: str, speed: float) -> bool | None:
        """Is a speed-up at least NEAR of the ratio of this name? None where it is not known."""
        ratio = getattr(self, name)
        return None if ratio is None else speed >= NEAR * ratio

    def follows(self, speed: float) -> str:
        """Which ratio a speed-up is near to: arithmetic, memory or both; else where it lies.

        between: both ratios; neither: nearer to 1 than both; beyond: outside both, and no nearer to 1 than the nearer
        of them, on either side of 1. Nearer is by the logarithm. Empty where not both ratios are known.
        """
        if self.arithmetic is None or self.memory is None:
            return ""
        near = [name for name in ("arithmetic", "memory") if NEAR <= speed / getattr(self, name) <= 1 / NEAR]
        if near:
            return " or ".join(near)
        low, high = sorted(math.log(each) for each in (self.arithmetic, self.memory))
        place = math.log(speed)
        if low < place < high:
            return "between"
        return "neither" if abs(place) < min(abs(low), abs(high)) else "beyond"


def limits(tables: Tables, hardware: str, baseline: str, precision: str) -> Limits:
    """Ratios of the data sheets, or of measured ceilings where a data sheet of either machine is not known."""
    arithmetic = _first((rate(tables, each, precision, source) for each in (hardware, baseline)) for source in _SOURCES)
    memory = _first((bandwidth(tables, each, source) for each in (hardware, baseline)) for source in _SOURCES)
    return Limits(arithmetic[0], memory[0], (arithmetic[1], memory[1]))


_SOURCES = tuple(reversed(ROOFS))


def _first(pairs) -> tuple[float | None, str]:
    """The ratio of the first pair of which both numbers are known, and its source."""
    for source, (own, other) in zip(_SOURCES, pairs, strict=True):
        if known(own) and known(other) and own > 0 and other > 0:
            return own / other, source
    return None, ""
