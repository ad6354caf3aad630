"""Pages of a stranger's trace or memory snapshot: its summary, a picture, and its tables, in one file."""

import math
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
from stepscope.snapshot.table_names import CATEGORY_COLUMNS
from stepscope.trace import summary as trace_summary

ROWS = 30
OF_SNAPSHOT = {  # table → its heading and columns
    "grown": ("What grew", "category: category; module: module; line: frame; before: before_bytes; after: after_bytes; "
              "more: difference_bytes"),
    "peak": ("At the peak, by what it is for", "device: device; category: category; memory: bytes; blocks: blocks; "
             "share: share"),
    "peak_lines": ("At the peak, by line", "category: category; module: module; line: frame; memory: bytes; "
                   "blocks: blocks; share: share"),
    "phases": ("Phases", "step: step; phase: phase; at its start: start_bytes; most: peak_bytes; "
               "at its end: end_bytes; allocations: allocations; allocated: allocated_bytes"),
    "largest": ("The largest allocations", "each: bytes; how many: count; at the peak: alive_at_peak; "
                "category: category; module: module; line: frame; phase: step_phase"),
    "stacks": ("Whole stacks at the peak", "memory: bytes; blocks: blocks; share: share; category: category; "
               "stack: stack"),
    "segments": ("Segments at the end, those with the most unused memory first", "address: address; size: bytes; "
                 "in use: active_bytes; unused: unused_bytes; unused share: unused_share; blocks: blocks"),
}  # fmt: skip


def of_trace(tables: dict[str, pd.DataFrame], title: str, templates: Path) -> str:
    """The page of a trace, or of two that are compared, from the tables that analyze_nsys.py makes."""
    text = trace_summary.markdown(tables, plain(title))
    timeline = tables.get("timeline", pd.DataFrame())
    if timeline.empty:
        return _page(text, title, templates)
    rows = timeline.assign(start=timeline["start_us"] / 1e6, end=timeline["end_us"] / 1e6)
    drawn = theme.render(lambda frame: timeline_figures.of_recording(frame, plain(title)), rows)
    return _page(
        text, title, templates, drawn, "One step: ranges and calls of the host above, kernels of the GPU below."
    )


def of_snapshot(tables: dict[str, pd.DataFrame], title: str, templates: Path) -> str:
    """The page of a memory snapshot, from the tables that analyze_snapshot.py makes."""
    parts = [f"# {escaped(plain(title))}", *map(_device, tables["summary"].to_dict("records"))]
    for name, (heading, columns) in OF_SNAPSHOT.items():
        rows = tables.get(name, pd.DataFrame()).head(ROWS).to_dict("records")
        shown = table([_row(row) for row in rows], columns)
        parts += [f"## {heading}", shown] if shown else []
    return _page("\n\n".join(parts), title, templates, memory_picture(tables, title),
                 "What is active after each allocation and release, by what it is for.")  # fmt: skip


def memory_picture(tables: dict[str, pd.DataFrame], title: str) -> bytes | None:
    """The memory over time as SVG; None without a history."""
    timeline = tables["timeline"]
    if timeline.empty:
        return None
    rows = timeline.assign(time=timeline["time_ms"] / 1e3, reserved=timeline["reserved_bytes"])
    rows = rows[["time", "reserved", "phase", *CATEGORY_COLUMNS]]
    return theme.render(lambda frame: memory_figures.of_recording(frame, plain(title)), rows)


def _device(row: dict) -> str:
    """What a reader has to know first of a device."""
    made = _row(row)
    lines = [f"Device {row['device']}: at its peak {made['peak_bytes']} are active, of those that were asked for."]
    if made["peak_reserved_bytes"]:
        lines.append(f"At most {made['peak_reserved_bytes']} are reserved.")
    return "\n\n".join([" ".join(lines), *(f"**{escaped(plain(each))}**" for each in snapshot_summary.cautions(row))])


def _row(row: dict) -> dict:
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: object) -> object:
    """A number as a quantity, by the end of its column's name; anything else as harmless text."""
    if isinstance(value, str):
        return plain(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    unit = "B" if name.endswith("bytes") else "share" if name.endswith("share") else "count"
    return Quantity(float(value), unit)


def _page(text: str, title: str, templates: Path, drawn: bytes | None = None, caption: str = "") -> str:
    """One file; the picture stands below the first heading."""
    if drawn:
        heading, _, rest = text.partition("\n")
        text = f"{heading}\n\n![{caption}](picture)\n*{caption}*\n\n{rest.strip()}\n"
    return html.document(templates, text, {"picture": drawn.decode()} if drawn else {}, plain(title), [])
