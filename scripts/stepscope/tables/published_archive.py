"""An archive of results as published figures: the times in its tables, as text with the columns of published.csv.

Of training the cells with all options neutral, since published figures have none; of attention every cell. Standard
library only.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from stepscope.archive import opened
from stepscope.axes import PHASES

_SAME = ("size", "d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "context", "batch", "precision", "warmup")
_SAME_OF_ATTENTION = ("implementation", "d_head", "heads", "batch", "length", "direction", "precision", "warmup")
_NEUTRAL_PARTS = 5  # of a cell's name: hardware, study, size, context, precision
_CAUSAL = {"True": "yes", "False": "no"}


def figures(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(line of the table, row) of each time and peak in an archive. Raises ArchiveError, and csv.Error for a table."""
    with opened(path) as results:
        for line, row in _rows(results / "tables/timing.csv"):
            if row.get("cell", "").count("/") == _NEUTRAL_PARTS - 1:
                for figure in _of_training(row):
                    yield line, _described(path, row, "timing", _SAME) | {"mode": "step"} | figure
        for line, row in _rows(results / "tables/attention.csv"):
            of_attention = {"causal": _CAUSAL.get(row.get("causal", ""), "")}
            for figure in _times(row, ""):
                yield line, _described(path, row, "attention", _SAME_OF_ATTENTION) | of_attention | figure


def _rows(table: Path) -> Iterator[tuple[int, dict[str, str]]]:
    if table.is_file():
        with table.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            for row in reader:
                yield reader.line_num, {key: value or "" for key, value in row.items() if key is not None}


def _of_training(row: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for phase in PHASES:
        for figure in _times(row, f"{phase}_"):
            yield figure | {"phase": phase}
        if row.get(f"{phase}_status") == "ok" and row.get(f"{phase}_peak_allocated_bytes"):
            peak = {"quantity": "peak allocated", "statistic": "max", "status": "ok", "unit": "bytes"}
            yield peak | {"phase": phase, "value": row[f"{phase}_peak_allocated_bytes"]}


def _times(row: Mapping[str, str], prefix: str) -> Iterator[dict[str, str]]:
    """Mean and median of a series; that it ran out of memory is a result, too."""
    status = row.get(f"{prefix}status", "")
    for statistic in ("mean", "median"):
        value = row.get(f"{prefix}{statistic}_ms", "") if status == "ok" else ""
        if value or status == "oom":
            common = {"quantity": "time", "statistic": statistic, "status": status, "unit": "ms", "value": value}
            yield common | {"samples": row.get(f"{prefix}samples", "")}


def _described(path: Path, row: Mapping[str, str], study: str, same: tuple[str, ...]) -> dict[str, str]:
    return {
        "source": path.stem,
        "title": "an archive of results",
        "item": row.get("cell", ""),
        "date": row.get("started", "")[:10],
        "gpu": row.get("device_name", "").removeprefix("NVIDIA "),
        "framework": f"torch {row['torch']}" if row.get("torch") else "",
        "study": study,
        **{name: row.get(name, "") for name in same},
    }
