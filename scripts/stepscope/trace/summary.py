"""The tables of a trace as one Markdown page."""

from dataclasses import replace

import pandas as pd

from stepscope.recordings.page import Style

from .cautions import ON_HOST

STYLE = Style(
    sections={
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
    },
    hidden=(
        r"attention|memory_operations|full_name|tile|arithmetic|layers|per_layer"
        r"|(layer|remainder)_modules|backward_elementwise(_time)?|min|max|std|gpu_(min|max|std)"
        r"|top_calls"
    ),
    units=(
        (r".*(median|max|min|std|_each)|(fast|slow)est", ("µs", 1e6, ",.2f")),
        (
            r"time|.*_time|host_exclusive|idle_with_host|wall|busy|idle|hidden|exposed|before"
            r"|after|difference|step|compute|waiting|transfer|waited_for|slowed",
            ("ms a step", 1e3, ",.3f"),
        ),
        (r"(bus_)?rate", ("GB/s", 1e-9, ",.2f")),
        (r".*share", ("%", 1e2, ",.1f")),
        (r"process|device", ("", 1.0, ".0f")),
        (r"count|bytes|elements|(.*_)?rank", ("", 1.0, ",.0f")),
        (r".*", ("", 1.0, ".6g")),
    ),
    labels={
        "waited_for": "others wait for it, ms a step",
        "bus_rate": "bus bandwidth, GB/s",
        "bytes": "B a step",
        "rate": "GB/s",
    },
    words={"gpu": "kernel"},
)


def markdown(tables: dict[str, pd.DataFrame], title: str) -> str:
    """The summary of all tables that have rows."""
    warnings = tables.get("warnings", pd.DataFrame()).reindex(columns=["about"])
    style = STYLE
    if ON_HOST in set(warnings["about"]):  # the rows are a processor's operators
        words = {"Kernel": "Operator", "kernel": "operator"}
        style = replace(style, words=style.words | words)
    ranks = tables.get("ranks", pd.DataFrame())
    said = {} if ranks.empty else {"ranks": _waited_for(ranks)}
    shown = {name: _chosen(name, table) for name, table in tables.items()}
    return style.page(title, said, shown)


def _waited_for(ranks: pd.DataFrame) -> str:
    """Which rank all wait for, in a sentence."""
    latest = ranks.iloc[int(ranks["waited_for"].argmax())]
    if not latest["waited_for"]:
        return "No rank waits for another in a collective that the trace knows of several."
    rank, seconds = latest["rank"], STYLE.value("waited_for", float(latest["waited_for"]))
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
    if name == "processes" and len(table[["process", "device"]].drop_duplicates()) == 1:
        return table[:0]  # the table of phases says the same
    return table
