"""What the profile study's figures draw: its cells in order, and what each cell's trace tells of a phase."""

import pandas as pd

from stepscope.figures import colours, theme
from stepscope.report.kit.order import column, machine_places, precision_rank, with_order

NOTHING = "No cell has been profiled: nothing to draw."
MOST_ROWS = 30
PHASES = ("inference", "forward", "backward", "optimizer")
"""The phases that make up a step; in a table, `forward` holds the loss."""


def profiled(tables) -> pd.DataFrame:
    """The study's cells by hardware, parameters, size, context, options and precision, in one order for all figures.

    `mode` is never missing; `options` also tells a batch size that is not the usual one. Repeated cells stand once.
    """
    cells = tables["profile"]
    if cells.empty:
        return cells
    cells = with_order(cells)
    cells = cells.assign(mode=column(cells, "mode").fillna("step").str.replace("_", "-"))
    if "batch" in cells and cells["batch"].notna().any():
        usual = cells["batch"].mode()[0]
        other = cells["batch"].map(lambda batch: "" if batch == usual or pd.isna(batch) else f"batch={batch:.0f}")
        cells["options"] = (cells["options"] + " " + other).str.strip()
    alike = ["hardware", "size", "context", "precision", "mode", "options"]
    cells = cells[cells["repeat"] == cells.groupby(alike)["repeat"].transform("min")]
    cells = cells.assign(
        _machine=machine_places(cells["hardware"]),
        _rank=cells["precision"].map(precision_rank),
        _size=cells.groupby("size")["parameters"].transform("max").fillna(float("inf")),
        _mode=cells["mode"] == "step",
    )
    order = ["_machine", "_size", "size", "context", "options", "_mode", "mode", "_rank"]
    cells = cells.sort_values(order, kind="stable").reset_index(drop=True)
    return cells.drop(columns=["_machine", "_rank", "_size", "_mode"])


def rows_of(tables, name: str, cell: str | None = None) -> pd.DataFrame:
    """Rows of `profile_NAME`, of one cell if given; without a table, a frame without rows that has the key."""
    table = tables[f"profile_{name}"]
    if "cell" not in table:
        return pd.DataFrame(columns=["cell", "phase", "category", "view", "lane"])
    return table if cell is None else table[table["cell"] == cell]


def by_phase(tables, name: str, value: str) -> dict[tuple[str, str], float]:
    """(cell, phase) → a column of `profile_NAME`, summed where there are several rows, as for several devices."""
    table = rows_of(tables, name)
    if table.empty or value not in table:
        return {}
    return table.dropna(subset=[value]).groupby(["cell", "phase"])[value].sum().to_dict()


def by_category(tables) -> dict[tuple[str, str], dict[str, float]]:
    """(cell, phase) → category → its time in ms a step."""
    table = rows_of(tables, "categories")
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in table.to_dict("records"):
        times = found.setdefault((row["cell"], row["phase"]), {})
        name = row["category"] if row["category"] in colours.CATEGORY else "other"
        times[name] = times.get(name, 0.0) + row["ms_per_step"]
    return found


def traced(tables) -> tuple[pd.DataFrame, dict]:
    """The cells in order, and `by_category`; no cells if not one has a trace."""
    cells, times = profiled(tables), by_category(tables)
    return (cells, times) if times and len(cells) else (cells[:0], {})


def on_host(cells: pd.DataFrame) -> bool:
    """Whether operators stand for kernels in all cells: they ran on a CPU."""
    return set(column(cells, "device").dropna()) == {"cpu"}


def words(cells: pd.DataFrame, gpu: str, cpu: str) -> str:
    """What is drawn, in words: `gpu`, or `cpu` where operators stand for kernels, or both."""
    if on_host(cells):
        return cpu
    devices = set(column(cells, "device").dropna())
    return f"{gpu}; on a CPU, {cpu}" if "cpu" in devices else gpu


def tick(value: float, _position=None) -> str:
    """Tick label of a linear axis, as exact as the tick: 2.5, 12.5, 1,000."""
    return f"{value:,.6g}"


def left_out(count: int) -> str:
    """`; 3 more are in the tables`, if a figure could not show all."""
    return f"; {count} more are in the tables" if count > 0 else ""


def trouble(cell: dict | pd.Series) -> str:
    """Why a cell has no trace, in a word: `OOM`, `failed`, `missing`, `unsupported`; empty if it has one."""
    status = cell["status"] or "missing"
    return {"ok": "", "oom": "OOM"}.get(status, str(status))


def marks(cell: dict | pd.Series, noisy: bool = False) -> str:
    """` (throttled, noisy)` for a cell whose clock was held down, or what stands beside it is noisy."""
    found = [word for word, is_so in (("throttled", bool(cell.get("throttle"))), ("noisy", noisy)) if is_so]
    return f" ({', '.join(found)})" if found else ""


def size_name(cell: dict | pd.Series, parameters: bool = False) -> str:
    """`medium`, or `medium · 423M`."""
    count = cell.get("parameters")
    return theme.short(cell["size"], 14) + (
        f" · {theme.parameter_number(count)}" if parameters and pd.notna(count) else ""
    )


def more(cell: dict | pd.Series) -> str:
    """What is not usual of a cell: `, inference, attention=sdpa`."""
    parts = [cell["mode"]] if cell["mode"] != "step" else []
    parts += [theme.short(cell["options"], 34)] if cell["options"] else []
    return "".join(f", {part}" for part in parts)
