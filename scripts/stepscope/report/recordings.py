"""Pages of a stranger's trace or memory snapshot: its summary, a picture, and its tables, in one
file."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from stepscope.figures import memory as memory_figures
from stepscope.figures import theme
from stepscope.figures import timeline as timeline_figures
from stepscope.recordings.text import plain
from stepscope.report.kit import html
from stepscope.report.kit.quantity import Quantity
from stepscope.report.kit.view import escaped, table
from stepscope.snapshot import summary as snapshot_summary
from stepscope.trace import summary as trace_summary

ROWS = 30
OF_SNAPSHOT = {  # table → its heading and columns
    "compared": (
        "What grew",
        "kind: kind; category: category; line: name;"
        " before: before; after: after; more: difference",
    ),
    "memory_peak": (
        "At the peak, by what it is for",
        "device: device; category: category; memory: bytes; blocks: blocks",
    ),
    "memory_lines": (
        "At the peak, by line",
        "category: category; module: module; line: frame; memory: bytes; blocks: blocks",
    ),
    "memory_largest": (
        "The largest allocations",
        "each: bytes; how many: count; at the peak: alive;"
        " category: category; module: module; line: frame; phase: phase",
    ),
}
BYTES = ("bytes", "before", "after", "difference", "peak", "peak_reserved")


def of_trace(tables: dict[str, pd.DataFrame], title: str, templates: Path) -> str:
    """The page of a trace, or of two that are compared, from the tables that analyze_nsys.py
    makes."""
    text = trace_summary.markdown(tables, plain(title))
    rows = tables.get("timeline", pd.DataFrame())
    drawn = _drawn(timeline_figures.of_recording, rows, title)
    caption = (
        "One step: ranges and calls of the host above; below kernels of the GPU, without one"
        " operators."
    )
    return _page(text, title, templates, drawn, caption)


def of_snapshot(tables: dict[str, pd.DataFrame], title: str, templates: Path) -> str:
    """The page of a memory snapshot, or of two that are compared, from the tables that
    analyze_snapshot.py makes."""
    summary = tables.get("memory_summary", pd.DataFrame())
    parts = [f"# {escaped(plain(title))}", *map(_device, summary.to_dict("records"))]
    for name, (heading, columns) in OF_SNAPSHOT.items():
        every = tables.get(name, pd.DataFrame()).to_dict("records")
        rows = [row for row in every if _says(row)]
        shown = table([_row(row) for row in rows[:ROWS]], columns)
        if shown:
            parts += [f"## {heading}", shown]
    caption = "What is active after each allocation and release, by what it is for."
    return _page("\n\n".join(parts), title, templates, memory_picture(tables, title), caption)


def _says(row: dict) -> bool:
    """Whether there is anything in a row: bytes, or of two files a difference; their peak in any
    case."""
    return row.get("kind") == "peak" or bool(row.get("difference", row.get("bytes")))


def memory_picture(tables: dict[str, pd.DataFrame], title: str) -> bytes | None:
    """The memory over time as SVG; None without a history, or its times."""
    rows = tables.get("memory_timeline", pd.DataFrame(columns=["time"])).dropna(subset="time")
    is_line = rows["time"].nunique() > 1
    return _drawn(memory_figures.of_recording, rows, title) if is_line else None


def _drawn(draw: Callable, rows: pd.DataFrame, title: str) -> bytes | None:
    """A picture of these rows; None without any."""
    if rows.empty:
        return None
    return theme.render(lambda own: draw(own, plain(title)), rows)


def _device(row: dict) -> str:
    """What a reader has to know first of a device."""
    made = _row(row)
    said = f"Device {row['device']}: at its peak {made['peak']} of what was asked for are active."
    reserved = made["peak_reserved"]
    if reserved and reserved.value > made["peak"].value:
        said += f" At most {reserved} are reserved."
    cautions = [f"**{escaped(plain(each))}**" for each in snapshot_summary.cautions(row)]
    return "\n\n".join([said, *cautions])


def _row(row: dict) -> dict:
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: object) -> object:
    """A number as a quantity, anything else as harmless text."""
    if isinstance(value, str):
        return plain(value)
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return Quantity(float(value), "B" if name in BYTES else "count")


def _page(text: str, title: str, templates: Path, drawn: bytes | None, caption: str) -> str:
    """One file; the picture stands below the first heading."""
    if drawn:
        heading, _, rest = text.partition("\n")
        text = f"{heading}\n\n![{caption}](picture)\n*{caption}*\n\n{rest.strip()}\n"
    pictures = {"picture": drawn.decode()} if drawn else {}
    return html.document(templates, text, pictures, plain(title), [])
