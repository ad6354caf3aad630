"""The tables of a trace as one Markdown page, for a terminal and for GitHub."""

import math

import pandas as pd

from stepscope.recordings.text import markdown as markdown_text

# Table → (heading, rows at most (of each phase)).
_SECTIONS: dict[str, tuple[str, int]] = {
    "warnings": ("Warnings", 40),
    "ranges": ("Ranges that are there", 20),
    "compared": ("Before and after", 25),
    "phases": ("Phases", 40),
    "kernels": ("Kernels by phase", 8),
    "categories": ("Categories by phase", 40),
    "modules": ("Ranges and calls", 30),
    "gaps": ("Devices: busy and idle", 8),
    "processes": ("Phases of each process and device", 8),
    "communication": ("Communication: how much of it is hidden behind other kernels", 40),
    "transfers": ("Copies, fills, and calls that wait", 40),
}
# Columns for which a page is too narrow, or which another one says better.
_HIDDEN = {"device_name", "attention", "matmul_time", "memory_operations", "full_name", "tile"}
_HIDDEN |= {"data_type", "arithmetic", "layers", "per_layer", "layer_modules", "remainder_modules"}
_HIDDEN |= {"backward_elementwise", "backward_elementwise_time", "min", "max", "std"}
_MICROSECONDS = {"median", "min", "max", "std", "gap_median", "gap_max", "queue_delay_median"}
_MICROSECONDS |= {"host_gap_median", "host_gap_max"}
_SECONDS = (
    "time",
    "wall",
    "busy",
    "idle",
    "hidden",
    "exposed",
    "before",
    "after",
    "difference",
    "host_exclusive",
)
_WHOLE = ("process", "device", "count", "bytes")


def markdown(tables: dict[str, pd.DataFrame], title: str) -> str:
    """The summary of all tables that have rows."""
    parts = [f"# {markdown_text(title)}"]
    for name, (heading, most) in _SECTIONS.items():
        table = _chosen(name, tables.get(name, pd.DataFrame()))
        if table.empty:
            continue
        table = (
            table.groupby("phase", sort=False) if "phase" in table and name != "phases" else table
        ).head(most)
        shown = [
            column for column in table if column not in _HIDDEN and not table[column].isna().all()
        ]
        sides = (
            "---:" if pd.api.types.is_numeric_dtype(table[column]) else "---" for column in shown
        )
        lines = [" | ".join(map(_label, shown)), " | ".join(sides)]
        lines += [
            " | ".join(markdown_text(value_text(column, row[column])) for column in shown)
            for row in table[shown].to_dict("records")
        ]
        parts += [f"## {heading}", "\n".join(f"| {line} |" for line in lines)]
    return "\n\n".join(parts) + "\n"


def _chosen(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table that are shown."""
    if table.empty:
        return table
    if name == "modules":
        return table[table["kind"] != "operator"]
    if name == "kernels":
        return table.drop(columns="calls").assign(
            composition=[_composition(row) for row in table.to_dict("records")]
        )
    if name == "processes" and len(table[["process", "device"]].drop_duplicates()) == 1:
        return table[:0]  # the table of phases says the same
    return table


def _composition(row: dict) -> str:
    """How a kernel's calls in a step come about, such as "217 = 36 × 6 + 1 (1 LM head)"."""
    if not row["layers"] or math.isnan(row["layers"]):
        return f"{row['calls']:g}"
    rest = row["calls"] - row["layers"] * row["per_layer"]
    text = f"{row['calls']:g} = {row['layers']:g} × {row['per_layer']:g}" + (
        f" + {rest:g}" if rest else ""
    )
    return text + (f" ({row['remainder_modules']})" if row["remainder_modules"] else "")


def _label(column: str) -> str:
    """A column's name with its unit; all but counts of the whole trace are of a step."""
    words = column.replace("_", " ").replace("gpu", "kernel").replace("composition", "calls a step")
    if column in _MICROSECONDS:
        return f"{words}, µs"
    if column.endswith("_time") or column in _SECONDS:
        return f"{words}, ms a step"
    return {"bytes": "B a step", "rate": "GB/s"}.get(column, words)


def value_text(column: str, value: object) -> str:
    """A value of a column as text; a dash for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if column in _MICROSECONDS:
        return f"{1e6 * value:,.2f}"
    if column.endswith("_time") or column in _SECONDS:
        return f"{1e3 * value:,.3f}"
    if column.endswith("share"):
        return f"{100 * value:.1f} %"
    if column == "rate":
        return f"{value / 1e9:,.2f}"
    return (
        f"{value:,.0f}"
        if column in _WHOLE
        else f"{value:.6g}"
        if isinstance(value, float)
        else str(value)
    )
