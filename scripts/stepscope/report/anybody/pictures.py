"""The report's figures of one cell, drawn of a single trace or snapshot."""

import warnings
from pathlib import Path

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


def memory_over_time(tables: dict[str, pd.DataFrame], folder: Path, name: str = "memory") -> bool:
    """Draw what is active by category over a snapshot's events as NAME.svg and .png; False with nothing to draw."""
    if tables["timeline"].empty or not (tables["timeline"]["active_bytes"] > 0).any():
        return False
    row = pd.DataFrame([_ROW | {"capacity_total_bytes": None}])
    _write(memory.draw_cell, _of_study("memory", row, tables, ("timeline", "summary")), folder, name)
    return True


def one_step(tables: dict[str, pd.DataFrame], folder: Path, name: str = "step") -> bool:
    """Draw categories by phase and the timeline of a step of a trace; False if it has none of the phases of a step."""
    if not set(tables["categories"].get("phase", ())) & set(PHASES):
        return False
    checks = tables["checks"].set_index("quantity")["value"]
    on_host = str(checks.get("device_is_host")) == "True"
    row = pd.DataFrame([_ROW | {"profiler": plain(checks.get("tool")), "device": "cpu" if on_host else "cuda"}])
    _write(profile.draw_cell, _of_study("profile", row, tables, ("categories", "timeline")), folder, name)
    return True


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


def _write(draw, tables: _Tables, folder: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font does not have
        theme.write(lambda given: draw(given, _CELL), tables, folder, name)
