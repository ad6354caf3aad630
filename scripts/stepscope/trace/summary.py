"""The tables of a trace as one Markdown page, for a terminal and for GitHub."""

import math
import re

import pandas as pd

from stepscope.recordings.text import markdown as markdown_text
from stepscope.trace.cautions import ON_HOST

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
    "ranks": ("Ranks: what a step goes to", 64),
    "rank_kernels": ("Kernels in which ranks differ", 15),
    "processes": ("Phases of each process and device", 8),
    "communication": ("Collectives of each rank, and what computes beside them", 64),
    "transfers": ("Copies, fills, and calls that wait", 40),
}
# Columns for which a page is too narrow, or which another one says better.
_HIDDEN = re.compile(
    r"attention|memory_operations|full_name|tile|arithmetic"
    r"|layers|per_layer|(layer|remainder)_modules|backward_elementwise(_time)?|min|max|std"
    r"|gpu_(min|max|std)|top_calls"
)
# Columns → (unit, how many of it the table's unit is, how a number is written); the first that
# fits.
_UNITS = (
    (r".*(median|max|min|std|_each)|(fast|slow)est", ("µs", 1e6, ",.2f")),
    (
        r"time|.*_time|host_exclusive|idle_with_host|wall|busy|idle|hidden|exposed|before|after"
        r"|difference|step|compute|waiting|transfer|waited_for|slowed",
        ("ms a step", 1e3, ",.3f"),
    ),
    (r"(bus_)?rate", ("GB/s", 1e-9, ",.2f")),
    (r".*share", ("%", 1e2, ",.1f")),
    (r"process|device", ("", 1.0, ".0f")),
    (r"count|bytes|elements|(.*_)?rank", ("", 1.0, ",.0f")),
    (r".*", ("", 1.0, ".6g")),
)
_LABELS = {
    "composition": "calls a step",
    "waited_for": "others wait for it, ms a step",
    "bus_rate": "bus bandwidth, GB/s",
    "bytes": "B a step",
    "rate": "GB/s",
}


def markdown(tables: dict[str, pd.DataFrame], title: str) -> str:
    """The summary of all tables that have rows."""
    parts = [f"# {markdown_text(title)}"]
    warnings = tables.get("warnings", pd.DataFrame()).reindex(columns=["about"])
    is_host = ON_HOST in set(warnings["about"])  # the rows are a processor's operators
    for name, (heading, most) in _SECTIONS.items():
        table = _chosen(name, tables.get(name, pd.DataFrame()))
        if table.empty:
            continue
        if name == "ranks":
            parts.append(_waited_for(table))
        by_phase = "phase" in table and name != "phases"
        table = table.groupby("phase", sort=False).head(most) if by_phase else table.head(most)
        shown = [
            each
            for each in table.columns.astype(str)
            if not _HIDDEN.fullmatch(each) and not table[each].isna().all()
        ]
        heading, *labels = (_of_host(each, is_host) for each in (heading, *map(_label, shown)))
        sides = ["---:" if pd.api.types.is_numeric_dtype(table[each]) else "---" for each in shown]
        lines = [" | ".join(labels), " | ".join(sides)]
        for row in table[shown].to_dict("records"):
            texts = [markdown_text(value_text(str(key), value)) for key, value in row.items()]
            lines.append(" | ".join(texts))
        parts += [f"## {heading}", "\n".join(f"| {line} |" for line in lines)]
    return "\n\n".join(parts) + "\n"


def _of_host(text: str, is_host: bool) -> str:
    if not is_host:
        return text
    return text.replace("Kernel", "Operator").replace("kernel", "operator")


def _waited_for(ranks: pd.DataFrame) -> str:
    """Which rank all wait for, in a sentence."""
    latest = ranks.iloc[int(ranks["waited_for"].argmax())]
    if not latest["waited_for"]:
        return "No rank waits for another in a collective that the trace knows of several."
    rank, seconds = latest["rank"], value_text("waited_for", float(latest["waited_for"]))
    return (
        f"The others wait longest for rank {rank:g}: {seconds} ms a step, all together, in"
        " collectives that it was the last to start."
    )


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


def _unit(column: str) -> tuple[str, float, str]:
    """A column's row of _UNITS; the unit of one without is ""."""
    return next(unit for pattern, unit in _UNITS if re.fullmatch(pattern, column))


def _label(column: str) -> str:
    """A column's name with its unit; all but counts of the whole trace are of a step."""
    if column in _LABELS:
        return _LABELS[column]
    words = column.replace("_", " ").replace("gpu", "kernel")
    unit, _, _ = _unit(column)
    return f"{words}, {unit}" if unit.strip("%") else words


def value_text(column: str, value: object) -> str:
    """A value of a column as text; a dash for none."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, int | float):
        return str(value)
    unit, factor, form = _unit(column)
    return f"{factor * value:{form}}" + " %" * (unit == "%")
