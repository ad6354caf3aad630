"""Writing a folder of tables, each whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd


def write_tables(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write NAME.csv for each table; a table without rows is its header."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        _whole(
            folder / f"{name}.csv",
            lambda path, table=table: table.to_csv(path, index=False, float_format="%.9g", lineterminator="\n"),
        )


def write_text(text: str, path: Path) -> None:
    """Write a file of text; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _whole(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def write_bytes(content: bytes, path: Path) -> None:
    """Write a file; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _whole(path, lambda beside: beside.write_bytes(content))


def _whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside, then rename; nothing is left behind where that fails, as on a full disk."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
