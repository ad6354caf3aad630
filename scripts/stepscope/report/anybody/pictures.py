"""The report's figures of one cell, drawn of a single trace or snapshot."""

import warnings

import pandas as pd

from stepscope.figures import theme
from stepscope.figures.memory import cell as memory
from stepscope.figures.profile import cell as profile
from stepscope.figures.profile.data import PHASES
from stepscope.recordings.text import plain

_CELL = "file"
# What a cell's row says of the grid; a stranger's file has no place in one.
_ROW = {"cell": _CELL, "hardware": "", "size": "", "context": 0.0, "precision": "", "options": "", "mode": "step"}
_ROW |= {"repeat": 1, "status": "ok", "device": "cuda", "parameters": float("nan")}
MOST_LABEL = 60


class _Tables(dict):
    """The tables of one file as those of a study; any other is empty."""

    def __missing__(self, name: str) -> pd.DataFrame:
        return pd.DataFrame()


Drawn = dict[str, bytes]  # by suffix, `svg` among them


def memory_over_time(tables: dict[str, pd.DataFrame]) -> Drawn | None:
    """What is active by category over a snapshot's events; None with nothing to draw."""
    if tables["timeline"].empty or not (tables["timeline"]["active_bytes"] > 0).any():
        return None
    row = pd.DataFrame([_ROW | {"capacity_total_bytes": None}])
    return _drawn(memory.draw_cell, _of_study("memory", row, tables, ("timeline", "summary")))


def one_step(tables: dict[str, pd.DataFrame]) -> Drawn | None:
    """Categories by phase and the timeline of a step of a trace; None if it has none of the phases of a step."""
    if not set(tables["categories"].get("phase", ())) & set(PHASES):
        return None
    checks = tables["checks"].set_index("quantity")["value"]
    on_host = str(checks.get("device_is_host")) == "True"
    row = pd.DataFrame([_ROW | {"profiler": plain(checks.get("tool")), "device": "cpu" if on_host else "cuda"}])
    return _drawn(profile.draw_cell, _of_study("profile", row, tables, ("categories", "timeline")))


def _of_study(study: str, row: pd.DataFrame, tables: dict[str, pd.DataFrame], names: tuple[str, ...]) -> _Tables:
    own = {f"{study}_{name}": _harmless(tables[name]).assign(cell=_CELL) for name in names}
    return _Tables({study: row, **own})


def _harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its texts as a figure can hold them."""
    texts = {
        name: table[name].map(lambda value: plain(value, MOST_LABEL) if isinstance(value, str) else value)
        for name in table.columns
        if table[name].dtype == object
    }
    return table.assign(**texts)


def _drawn(draw, tables: _Tables) -> Drawn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font does not have
        return theme.render(lambda given: draw(given, _CELL), tables)
