"""What the page fits.html is given: the table, the options' values, what is known of models and
cards, and how far predictions were from what was measured. Standard library only."""

import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from stepscope.model.losses import CHUNK

from . import fits
from .architecture import Architecture
from .footprint import OPTIONS, Setup
from .options import DTYPE_BYTES, TERMS, value, values


def data(published: Path, sizes: dict[str, dict[str, int]]) -> dict[str, Any]:
    """All of it, to be written as JSON. published: peaks of others. sizes: of the configuration."""
    of_others = tomllib.loads(published.read_text(encoding="utf-8"))
    return {
        "terms": TERMS,
        "options": {name: _of_option(name) for name in OPTIONS},
        "options_in_order": OPTIONS,
        "bytes": DTYPE_BYTES,
        "chunk": CHUNK,
        "known": {name: fits.KNOWN[name] for name in ("asked", "cards", "machines")},
        "models": _models(sizes),
        "usual_shape": {field.name: field.default for field in fields(Architecture)[4:]},
        "own": of_others["own"],
        "published": [beside(each) for each in of_others["peaks"]],
    }


def _models(sizes: dict[str, dict[str, int]]) -> dict[str, dict[str, Any]]:
    """Name -> its shape, and where that stands."""
    sources = {name: each["source"] for name, each in fits.KNOWN["models"].items()}
    sources |= dict.fromkeys(sizes, "config.yaml")
    return {
        name: asdict(fits.model(name, sizes)) | {"source": source}
        for name, source in sources.items()
    }


def _of_option(option: str) -> dict[str, dict[str, Any]]:
    """Its values; an optimizer that does not say what it keeps is left out."""
    found = {}
    for name in values(option):
        try:
            found[name] = asdict(value(option, name))
        except ValueError:
            continue
    return found


def beside(row: dict[str, Any]) -> dict[str, Any]:
    """A published peak with the predicted one. What it is: "asked" for, "allocated", or "reserved",
    which is held against the middle of what the allocator reserves, or what the driver shows of the
    "device", which has CUDA's context besides."""
    setup = Setup(fits.model(row["model"], {}), **row["setup"])
    size = float(fits.peak_of(setup).bytes)
    if row["quantity"] in ("reserved", "device"):
        size *= fits.CARD["middle"]
    if row["quantity"] == "device":
        size += fits.CARD["context"]
    stated = row["peak"] * {"GiB": 2**30, "GB": 1e9}[row["unit"]]
    return row | {"published": stated, "predicted": int(size), "error": size / stated - 1}
