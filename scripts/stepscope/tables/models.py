"""The table of people's own models: what was built, how inputs and loss were chosen, and how many operations it is.

A row is made from what the cells' records say under `model`; the columns that need it in other tables come from here
too. Standard library only: the workflow's rules import it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stepscope.axes import NEUTRAL
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import CELL, HARDWARE
from stepscope.tables.schema import Table, count, flag, number, text
from stepscope.tables.writer import write_table

APART = 0.05  # the counted operations and those by formula disagree beyond this share of the larger
COUNTED, BY_FORMULA = "counter", "formula"

TABLE = Table(
    "models",
    "a model of one's own, on a machine, at a context and a batch",
    (
        CELL,
        HARDWARE,
        text("size", "name of the model in the configuration, where tables and folders of cells have that of a size"),
        count("context", "tokens of a sequence"),
        count("batch", "sequences of a batch"),
        text("model", "what was built: `FILE:FUNCTION`, or `hf:` and a name or a folder"),
        text("keys", "what else the configuration gave to build it, as JSON"),
        text("class", "class of the module"),
        text("packages", "versions of the packages that its file imports beside torch", is_optional=True),
        text(
            "attention",
            "what transformers chose as the model was built, before any option of a cell: `eager`, `sdpa` …",
            is_optional=True,
        ),
        count("parameters", "parameters of the model, tied weights once"),
        count("trainable", "of them, those that are trained"),
        text("tied", "weights that are others' too, as `head.weight = tokens.weight`, separated by commas"),
        number("buffers_bytes", "bytes", "memory of the model's buffers"),
        text("dtype", "type of the parameters before any autocast"),
        text("inputs", "what the forward pass is given, and how that was chosen"),
        text("loss", "what is trained on, and how that was chosen"),
        count("vocab_size", "tokens of the vocabulary; empty for inputs that are no tokens"),
        count("blocks", "modules of one class that repeat"),
        text("block_class", "their class"),
        text("block_path", "where they stand in the model"),
        text(
            "ranges_by",
            "`hooks`: put around modules by type and name; `own`: by the model, or by the key `ranges`",
        ),
        text("ranges", "names of these ranges, separated by commas"),
        text("dropout", "probabilities of dropout, separated by spaces"),
        count("flops_counter", "operations of a forward and a backward pass over the batch as PyTorch counts them"),
        count("flops_formula", "the same by formula: six a parameter that is multiplied and token, and attention"),
        flag("flops_disagree", "the two differ by more than 5 %"),
        text("flops_why", "why they differ, as far as known"),
        text("flops_from", "which of the two rates and MFU are made of: `counter` or `formula`"),
        text("unknown", "what could not be found out, one after the other, separated by `; `"),
    ),
)


def write(cells: Iterable[CellResult], folder: Path) -> None:
    """Write models.csv from the cells of all studies; those of sizes and those without a record make no row."""
    write_table(folder, TABLE, rows_of(cells))


def own_cells(plan: dict) -> dict:
    """The plan with no other cells than those of people's own models."""
    parts = {
        study: part | {"cells": [entry for entry in part["cells"] if "model" in entry["spec"]]}
        for study, part in plan["studies"].items()
    }
    return plan | {"studies": parts}


def rows_of(cells: Iterable[CellResult]) -> list[dict]:
    """A row for each machine, model, context and batch, in the cells' order; from a cell at neutral options if any."""
    found: dict[tuple, list[CellResult]] = {}
    for cell in cells:
        if description(cell):
            spec = cell.entry["spec"]
            found.setdefault((cell.hardware, cell.entry["size"], spec["context"], spec["batch"]), []).append(cell)
    return [_row(min(own, key=_options)) for own in found.values()]


def description(cell: CellResult) -> dict:
    """What the cell's record says of a model of one's own; empty for a size, and without a record."""
    return cell.record.get("summary", {}).get("model") or {}


def chosen_flops(flops: Mapping) -> tuple[int | None, str]:
    """(operations of a forward and a backward pass over the batch, where they are from: COUNTED or BY_FORMULA).

    PyTorch's count knows what the model really multiplies, but nothing of kernels that are not PyTorch's: where it did
    not see attention, the record has the formula under `from`. (None, "") where neither is known.
    """
    order = (BY_FORMULA, COUNTED) if flops.get("from") == BY_FORMULA else (COUNTED, BY_FORMULA)
    return next(((flops[name], name) for name in order if flops.get(name)), (None, ""))


def _options(cell: CellResult) -> int:
    """How many options the cell has beside the neutral ones."""
    return sum(cell.entry["spec"].get(name, neutral) != neutral for name, neutral in NEUTRAL.items())


def _row(cell: CellResult) -> dict:
    about, spec = description(cell), cell.entry["spec"]
    blocks, flops, ranges = about.get("blocks") or {}, about.get("flops") or {}, about.get("ranges") or {}
    return {
        "cell": cell.name,
        "hardware": cell.hardware,
        "size": cell.entry["size"],
        "context": spec["context"],
        "batch": spec["batch"],
        "model": about.get("reference"),
        "keys": json.dumps(about["keys"], sort_keys=True) if about.get("keys") else None,
        "class": about.get("class"),
        "packages": _joined(_versions(cell), ", "),
        "attention": about.get("attention"),
        "parameters": about.get("parameters"),
        "trainable": about.get("trainable_parameters"),
        "tied": _joined(about.get("tied"), ", "),
        "buffers_bytes": about.get("buffers_bytes"),
        "dtype": about.get("dtype"),
        "inputs": about.get("inputs"),
        "loss": about.get("loss"),
        "vocab_size": about.get("vocab_size"),
        "blocks": blocks.get("count"),
        "block_class": blocks.get("class"),
        "block_path": blocks.get("path"),
        "ranges_by": ranges.get("by"),
        "ranges": _joined(ranges.get("names"), ", "),
        "dropout": _joined(about.get("dropout"), " "),
        "flops_counter": flops.get("counter"),
        "flops_formula": flops.get("formula"),
        "flops_disagree": bool(flops.get("disagree")),
        "flops_why": flops.get("why"),
        "flops_from": chosen_flops(flops)[1] or None,
        "unknown": _joined(about.get("unknown"), "; "),
    }


def _versions(cell: CellResult) -> list[str]:
    """`name version` of each package that counts for the model."""
    packages = cell.record.get("machine", {}).get("packages", {})
    return [f"{name} {version}" for name, version in packages.items() if version]


def _joined(values: Sequence | None, between: str) -> str | None:
    return between.join(map(str, values)) if values else None
