"""The memory study's tables of what a model is made of: what autograd keeps of one block beside its formula; and
parameters, gradients and moments beside theirs."""

import math
from dataclasses import dataclass

from stepscope.report.data.memory import (
    Memory,
    Saved,
    apart,
    by_context,
    part,
    saved_by_block,
    saved_by_blocks,
    tensor_key,
    title,
)
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import by_fields
from stepscope.report.kit.order import ordered, precision_rank
from stepscope.report.kit.sizes import MIB, bare_percent, bare_percent_change, percent_change, size, size_cell
from stepscope.report.studies.memory.tables import leading

_LARGEST = 5
_SAVED = ("saved by a block", "saved outside the blocks", "saved in all")
# What depends on the context or the workspace is told elsewhere, cell by cell.
_BY_CONTEXT = (*_SAVED, "buffers", "peak", "peak as requested")
_model = by_fields("hardware", "size", "batch", "options")
_BLOCK_NOTE = (
    "Residual stream: batch × context × d_model × 4 B, in fp32 in every precision; 1 MiB is 2²⁰ bytes. Measured in a "
    "block in the middle of the model; parameters and autocast's copies of weights are not in it. Formula: (formula − "
    "measured) / measured, also below each size. Context²: tensors whose size grows with the context squared."
)


def block_table(memory: Memory) -> Table | None:
    """A row a cell that runs backward: the residual stream, what a block and all blocks save, a block's gradients."""
    found = saved_by_blocks(memory)
    block, other = "saved by one block", "saved"
    by_block, outside, in_all = _SAVED
    columns = [
        *table.about(_row, leading(memory, _but(found))),
        Column("residual stream", "MiB", value=lambda each: _residual_stream(each.row)),
        Column("measured", group=block, value=lambda each: each.bytes, show=size),
        Column(
            "formula",
            "± %",
            block,
            value=lambda each: _apart(memory.account(each.row, by_block)),
            show=bare_percent_change,
        ),
        Column(f"{_LARGEST} largest", "%", block, value=_share_of_largest, show=bare_percent),
        Column("context²", "%", block, value=lambda each: each.squared_share, show=bare_percent),
        Column("outside the blocks", group=other, value=lambda each: _measured(memory.account(each.row, outside))),
        Column("in all", group=other, value=lambda each: _measured(memory.account(each.row, in_all))),
        Column("one block's gradients", value=lambda each: _measured(memory.account(each.row, "gradients of a block"))),
    ]
    caption = "One tensor of the residual stream, what autograd keeps of one block for the backward pass, and in all."
    return table.build("memory-block", caption, columns, found, [_BLOCK_NOTE], legend=False, grouped=True)


def _row(found: Saved) -> dict:
    return found.row


def _but(found: list[Saved]) -> tuple[str, ...]:
    """Leading columns that say nothing here: the run, since there is one, and the mode if it is the same in all."""
    return ("repeat", "mode") if len({each.row["mode"] for each in found}) == 1 else ("repeat",)


def _residual_stream(row: dict) -> TableCell:
    """The bytes of one tensor, and below them `4 × 512 × 1,024 × 4 B` where that is the size."""
    factors = [row.get(name) for name in ("batch", "context", "d_model")]
    as_shape = all(map(formatting.known, factors)) and math.prod(factors) * 4 == row["residual_stream_bytes"]
    product = " × ".join([*map(formatting.count, factors), "4 B"]) if as_shape else ""
    return MIB.cell(row["residual_stream_bytes"], 3, product)


def _share_of_largest(found: Saved) -> float:
    return sum(each["bytes"] for each in found.tensors[:_LARGEST]) / found.bytes


def _apart(account: dict) -> float | None:
    return apart(account.get("predicted_bytes"), account.get("measured_bytes"))


def _measured(account: dict) -> TableCell:
    """Measured bytes, and below them by how much the formula differs; the formula's where nothing was measured."""
    measured = account.get("measured_bytes")
    if formatting.known(measured):
        return size_cell(measured, percent_change(_apart(account)))
    return size_cell(account.get("predicted_bytes"), "formula")


@dataclass(frozen=True)
class _Contributor:
    """A tensor that a block saves, in cells that differ only in the context."""

    row: dict  # one of the cells
    tensor: dict
    found: dict[float, tuple[float, float]]  # context -> (bytes, share of what the block saves)


def contributors_table(memory: Memory) -> Table | None:
    """What a block's saved bytes consist of: a row a tensor, a column a context, for each size and precision."""
    found = saved_by_blocks(memory)
    contexts = ordered([each.row["context"] for each in found])
    if not contexts:
        return None
    columns = [
        *table.about(_row, leading(memory, ("context", *_but(found)), marked=False)),
        *table.about(lambda each: each.tensor, _TENSOR),
        *(
            Column(
                f"{context:,.0f}",
                "MiB, %",
                "context (tokens)",
                value=lambda each, context=context: _contribution(each.found.get(context)),
            )
            for context in contexts
        ),
    ]
    caption = f"The tensors that one block saves for backward: those among the {_LARGEST} largest at any context."
    note = "Below each size: its share of what the block saves. The others are in memory_saved.csv."
    return table.build("memory-contributors", caption, columns, _contributors(found), [note], grouped=True)


def _contributors(found: list[Saved]) -> list[_Contributor]:
    """Those among the largest at any context, the largest at the longest context first, group by group."""
    by_cell = {each.row["cell"]: each for each in found}
    contributors = []
    for rows in by_context([each.row for each in found]):
        saved = {row["context"]: by_cell[row["cell"]] for row in rows}
        tensors = {context: {tensor_key(each): each for each in own.tensors} for context, own in saved.items()}
        wanted = {key for own in tensors.values() for key in list(own)[:_LARGEST]}
        longest = tensors[max(tensors)]
        for key in sorted(wanted, key=lambda key: (-longest.get(key, {"bytes": 0})["bytes"], str(key))):
            own = {context: of_one[key] for context, of_one in tensors.items() if key in of_one}
            parts = {context: (each["bytes"], each["bytes"] / saved[context].bytes) for context, each in own.items()}
            contributors.append(_Contributor(rows[0], next(iter(own.values())), parts))
    return contributors


def _contribution(found: tuple[float, float] | None) -> TableCell:
    return MIB.cell(found[0], 3, f"{bare_percent(found[1])} %") if found else table.NOTHING


def _size_of_one(each: dict) -> str:
    """The formula of one tensor, else its shape and type."""
    return each["formula"] or f"{each['shape'] or '?'}, {each['dtype'] or '?'}"


def _times_size(each: dict) -> str:
    return (f"{each['tensors']:,.0f} times " if each["tensors"] > 1 else "") + _size_of_one(each)


_PART = [
    Column(
        "part of the block", number=False, value=lambda each: TableCell(part(each["module"]).removeprefix("blocks.*: "))
    ),
    Column("made by", number=False, value="op"),
]
_TENSOR = [*_PART, Column("size of one", number=False, wrap=True, value=_times_size)]


@dataclass(frozen=True)
class _Account:
    """An item of the accounting that is alike in some cells."""

    item: str
    predicted: float | None
    measured: float
    formula: str | None
    rows: list[dict]


def accounting_table(memory: Memory) -> Table | None:
    """What does not depend on the context: parameters, gradients, moments, copies of weights; equal rows of cells once.

    None without a recorded cell.
    """
    but = ("mode", "precision", "context", "repeat")
    columns = [
        *table.about(lambda each: each.rows[0], leading(memory, but, marked=False)),
        Column("item", number=False, value=lambda each: each.item),
        Column("formula", number=False, wrap=True, value=lambda each: each.formula),
        Column("predicted", value=lambda each: each.predicted, show=size),
        Column("measured", value=lambda each: each.measured, show=size),
        Column("difference", "%", value=lambda each: apart(each.predicted, each.measured), show=bare_percent_change),
        Column("in", number=False, wrap=True, value=_cells),
    ]
    caption = "What does not grow with the context, in closed form beside what was measured."
    note = "Measured: the bytes of these tensors, found by their addresses. Gradients of a block: one in the middle."
    return table.build("memory-accounting", caption, columns, _accounts(memory), [note], grouped=True)


def _accounts(memory: Memory) -> list[_Account]:
    """By hardware, size, batch and options as in the study; there by bytes, the most first."""
    found: dict[tuple, list[dict]] = {}
    for row in memory.first_runs(memory.recorded):
        for each in memory.rows("accounting", row):
            if each["item"] not in _BY_CONTEXT and formatting.known(each["measured_bytes"]):
                numbers = (each["predicted_bytes"], each["measured_bytes"], each["formula"])
                found.setdefault((_model(row), each["item"], *numbers), []).append(row)
    places = list(dict.fromkeys(_model(row) for row in memory.all))
    ordered_keys = sorted(found, key=lambda key: (places.index(key[0]), -key[3]))
    return [_Account(*key[1:], found[key]) for key in ordered_keys]


def _cells(account: _Account) -> str:
    """`bf16 and fp32; inference and step; 4 cells`: in which cells a row of the accounting was found alike."""
    precisions = formatting.listing(ordered([row["precision"] for row in account.rows], key=precision_rank))
    modes = formatting.listing(ordered([row["mode"] for row in account.rows]))
    return f"{precisions}; {modes}; {formatting.cells(len(account.rows))}"


def saved_table(memory: Memory, row: dict) -> Table | None:
    """All that one block of a cell saves."""
    found = saved_by_block(memory, row)
    columns = [
        *_PART,
        Column("size of one", number=False, wrap=True, value=_size_of_one),
        Column(
            "shape", number=False, value=lambda each: TableCell(str(each["shape"] or "–"), str(each["dtype"] or ""))
        ),
        Column("tensors", value="tensors", show=formatting.count),
        Column("bytes", value="bytes", show=size),
        Column("share", "%", value=lambda each: each["bytes"] / found.bytes, show=bare_percent),
    ]
    caption = f"{title(row, memory)}: what one block saves for backward, {size(found.bytes)}."
    notes = [
        "Parameters and autocast's copies of weights are not in it.",
        "Memory ran out before the whole step was seen." if row["recorded"] == "warm-up" else "",
    ]
    return table.build(f"saved-{row['cell']}", caption, columns, found.tensors, notes)
