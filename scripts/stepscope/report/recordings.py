"""Pages of a stranger's trace or memory snapshot: its summary, a picture, and its tables, in one
file."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from stepscope.figures import memory as memory_figures
from stepscope.figures import theme
from stepscope.figures import timeline as timeline_figures
from stepscope.recordings.text import plain
from stepscope.snapshot import summary as snapshot_summary
from stepscope.trace import summary as trace_summary

from .kit import html


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
    text = snapshot_summary.markdown(tables, plain(title))
    caption = "What is active after each allocation and release, by what it is for."
    return _page(text, title, templates, memory_picture(tables, title), caption)


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


def _page(text: str, title: str, templates: Path, drawn: bytes | None, caption: str) -> str:
    """One file; the picture stands below the first heading."""
    if drawn:
        heading, _, rest = text.partition("\n")
        text = f"{heading}\n\n![{caption}](picture)\n*{caption}*\n\n{rest.strip()}\n"
    pictures = {"picture": drawn.decode()} if drawn else {}
    return html.document(templates, text, pictures, plain(title), [])
