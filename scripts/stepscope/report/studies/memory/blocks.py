"""What autograd keeps of one block, beside its formula; and parameters, gradients and moments beside theirs."""

from stepscope.report.data.memory import POINT, Memory, lead, leading, part
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.order import ordered, precision_rank
from stepscope.report.kit.sizes import MIB, change_cell, percent_change, size, size_cell

LARGEST = 5
_SAVED = ("saved by a block", "saved outside the blocks", "saved in all")
# What depends on the context or the workspace is told elsewhere, cell by cell.
_BY_CONTEXT = (*_SAVED, "buffers", "peak", "peak as requested")


def saved_rows(memory: Memory, row: dict) -> list[dict]:
    """What one block saves for backward, equal tensors together, the largest first; weights' copies are not counted."""
    found: dict[tuple, dict] = {}
    for each in memory.rows("saved", row):
        if each["part"] == "block" and each["category"] == "activations":
            key = (each["module"], each["op"], each["formula"] or each["shape"])
            if key in found:
                found[key] = found[key] | {name: found[key][name] + each[name] for name in ("tensors", "bytes")}
            else:
                found[key] = each
    return sorted(found.values(), key=lambda each: -each["bytes"])


def saved_bytes(memory: Memory, row: dict) -> float:
    """Bytes of activations that one block saves; 0 where they are not known."""
    return sum(each["bytes"] for each in saved_rows(memory, row))


def squared_share(memory: Memory, row: dict) -> float | None:
    """The share of a block's saved bytes that grows with the context squared; None where it is not known."""
    rows = saved_rows(memory, row)
    if not rows or any(not each["formula"] for each in rows if each["bytes"] >= 0.01 * saved_bytes(memory, row)):
        return None
    squared = sum(each["bytes"] for each in rows if str(each["formula"]).split(" × ").count("context") > 1)
    return squared / saved_bytes(memory, row)


def with_saved(memory: Memory) -> list[dict]:
    """The first runs whose saved tensors are known from a whole step."""
    known = [row for row in memory.recorded if row["status"] == "ok" or row["recorded"] == "measured steps"]
    return [row for row in memory.first_runs(known) if saved_rows(memory, row)]


def block_table(memory: Memory) -> Table | None:
    """A row a cell that runs backward: the residual stream, what a block and all blocks save, a block's gradients."""
    rows = with_saved(memory)
    if not rows:
        return None
    but = _but(rows)
    block, other = "saved by one block", "saved"
    columns = [*leading(memory, but), Column("residual stream", "MiB"), Column("measured", group=block)]
    columns += [Column("formula", "± %", group=block), Column(f"{LARGEST} largest", "%", group=block)]
    columns += [Column("context²", "%", group=block), Column("outside the blocks", group=other)]
    columns += [Column("in all", group=other), Column("one block's gradients")]
    lines = []
    for row in rows:
        whole, saved = saved_bytes(memory, row), saved_rows(memory, row)
        line = [*lead(row, memory, but), MIB.cell(row["residual_stream_bytes"], 3, _residual(row)), size_cell(whole)]
        line.append(_difference(memory.account(row, _SAVED[0])))
        line += [_percent(sum(each["bytes"] for each in saved[:LARGEST]) / whole), _percent(squared_share(memory, row))]
        line += [_measured(memory.account(row, item)) for item in _SAVED[1:]]
        lines.append([*line, _measured(memory.account(row, "gradients of a block"))])
    caption = "One tensor of the residual stream, what autograd keeps of one block for the backward pass, and in all."
    note = (
        "Residual stream: batch × context × d_model × 4 B, in fp32 in every precision; 1 MiB is 2²⁰ bytes. Measured in "
        "a block in the middle of the model; parameters and autocast's copies of weights are not in it. Formula: "
        "(formula − measured) / measured, also below each size. Context²: tensors whose size grows with the context "
        "squared."
    )
    return Table("memory-block", caption, columns, lines, [note], grouped=True)


def _but(rows: list[dict]) -> tuple[str, ...]:
    """Leading columns that say nothing here: the run, since there is one, and the mode if it is the same in all."""
    return ("repeat", "mode") if len({row["mode"] for row in rows}) == 1 else ("repeat",)


def _residual(row: dict) -> str:
    """`4 × 512 × 1,024 × 4 B`, where that is the size."""
    factors = [row.get(name) for name in ("batch", "context", "d_model")]
    if not all(map(formatting.known, factors)):
        return ""
    if factors[0] * factors[1] * factors[2] * 4 != row["residual_stream_bytes"]:
        return ""
    return f"{' × '.join(formatting.count(factor) for factor in factors)} × 4 B"


def _percent(share: float | None) -> Cell:
    return Cell(formatting.fixed(100 * share, 1), sort=float(share)) if formatting.known(share) else Cell("–")


def apart(account: dict) -> float | None:
    """(predicted − measured) / measured of an item of the accounting."""
    predicted, measured = account.get("predicted_bytes"), account.get("measured_bytes")
    if not (formatting.known(predicted) and formatting.known(measured)) or (predicted and not measured):
        return None
    return (predicted - measured) / measured if measured else 0.0


def _difference(account: dict) -> Cell:
    return change_cell(apart(account))


def _measured(account: dict) -> Cell:
    """Measured bytes, and below them by how much the formula differs; the formula's where nothing was measured."""
    measured = account.get("measured_bytes")
    if formatting.known(measured):
        return size_cell(measured, percent_change(apart(account)))
    return size_cell(account.get("predicted_bytes"), "formula") if account else Cell("–")


def contributors_table(memory: Memory) -> Table | None:
    """What a block's saved bytes consist of: a row a tensor, a column a context, for each size and precision."""
    rows = with_saved(memory)
    contexts = ordered([row["context"] for row in rows])
    if not rows or not contexts:
        return None
    but = ("context", *_but(rows))
    columns = [*leading(memory, but), Column("part of the block", number=False), Column("made by", number=False)]
    columns.append(Column("size of one", number=False, wrap=True))
    columns += [Column(f"{context:,.0f}", "MiB, %", group="context (tokens)") for context in contexts]
    lines = []
    for own in _groups(rows):
        saved = {row["context"]: {_key(each): each for each in saved_rows(memory, row)} for row in own}
        wholes = {row["context"]: saved_bytes(memory, row) for row in own}
        names = lead(own[0], memory, but)
        first = [Cell(names[0].text), *names[1:]]
        for key in _largest(saved):
            of_key = {context: found[key] for context, found in saved.items() if key in found}
            lines.append([*first, *_named(next(iter(of_key.values())))])
            lines[-1] += [_contribution(of_key.get(context), wholes.get(context)) for context in contexts]
    caption = f"The tensors that one block saves for backward: those among the {LARGEST} largest at any context."
    note = "Below each size: its share of what the block saves. The others are in memory_saved.csv."
    return Table("memory-contributors", caption, columns, lines, [note], grouped=True)


def _groups(rows: list[dict]) -> list[list[dict]]:
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((*(row[name] for name in POINT), row["precision"]), []).append(row)
    return list(groups.values())


def _key(each: dict) -> tuple:
    """What one tensor of a block has in common at all contexts."""
    return (each["module"], each["op"], each["formula"] or each["shape"])


def _largest(saved: dict[float, dict[tuple, dict]]) -> list[tuple]:
    """The tensors among the largest at any context, the largest at the longest context first."""
    wanted = {key for found in saved.values() for key in list(found)[:LARGEST]}
    longest = saved[max(saved)]
    return sorted(wanted, key=lambda key: (-longest.get(key, {"bytes": 0})["bytes"], str(key)))


def _named(each: dict) -> list[Cell]:
    text = each["formula"] or f"{each['shape'] or '?'}, {each['dtype'] or '?'}"
    several = f"{each['tensors']:,.0f} times " if each["tensors"] > 1 else ""
    return [Cell(part(each["module"]).removeprefix("blocks.*: ")), Cell(str(each["op"] or "–")), Cell(several + text)]


def _contribution(each: dict | None, whole: float | None) -> Cell:
    if each is None or not whole:
        return Cell("–")
    return MIB.cell(each["bytes"], 3, f"{formatting.fixed(100 * each['bytes'] / whole, 1)} %")


def accounting_table(memory: Memory) -> Table | None:
    """What does not depend on the context: parameters, gradients, moments, copies of weights; equal rows of cells once.

    None without a recorded cell.
    """
    found: dict[tuple, list[dict]] = {}
    for row in memory.first_runs(memory.recorded):
        for each in memory.rows("accounting", row):
            if each["item"] not in _BY_CONTEXT and formatting.known(each["measured_bytes"]):
                numbers = (each["predicted_bytes"], each["measured_bytes"], each["formula"])
                key = (*(row[name] for name in ("hardware", "size", "batch", "options")), each["item"], *numbers)
                found.setdefault(key, []).append(row)
    if not found:
        return None
    but = ("mode", "precision", "context", "repeat")
    columns = [*leading(memory, but), Column("item", number=False), Column("formula", number=False, wrap=True)]
    columns += [
        Column("predicted"),
        Column("measured"),
        Column("difference", "%"),
        Column("in", number=False, wrap=True),
    ]
    entries = sorted(found.items(), key=lambda entry: (memory.all.index(_of_size(memory, entry[1][0])), -entry[0][5]))
    lines = []
    for (*_, item, predicted, measured, formula), rows in entries:
        first, *rest = lead(rows[0], memory, but)
        line = [Cell(first.text), *rest, Cell(str(item)), Cell(str(formula or "–"))]
        line += [size_cell(predicted), size_cell(measured)]
        line.append(change_cell(apart({"predicted_bytes": predicted, "measured_bytes": measured})))
        lines.append([*line, Cell(_cells(rows))])
    caption = "What does not grow with the context, in closed form beside what was measured."
    note = "Measured: the bytes of these tensors, found by their addresses. Gradients of a block: one in the middle."
    return Table("memory-accounting", caption, columns, lines, [note], grouped=True)


def _of_size(memory: Memory, row: dict) -> dict:
    """The first cell of the same hardware, size, batch and options, which gives all of them one place."""
    same = ("hardware", "size", "batch", "options")
    return next(each for each in memory.all if all(each[name] == row[name] for name in same))


def _cells(rows: list[dict]) -> str:
    """`bf16 and fp32; inference and step; 4 cells`: in which cells a row of the accounting was found alike."""
    precisions = formatting.listing(ordered([row["precision"] for row in rows], key=precision_rank))
    modes = formatting.listing(ordered([row["mode"] for row in rows]))
    return f"{precisions}; {modes}; {len(rows):,} cell{'s' * (len(rows) != 1)}"


def saved_table(memory: Memory, row: dict, name: str) -> Table | None:
    """All that one block of a cell saves."""
    rows = saved_rows(memory, row)
    if not rows:
        return None
    whole = saved_bytes(memory, row)
    columns = [Column("part of the block", number=False), Column("made by", number=False)]
    columns += [Column("size of one", number=False, wrap=True), Column("shape", number=False)]
    columns += [Column("tensors"), Column("bytes"), Column("share", "%")]
    lines = []
    for each in rows:
        line = [*_named(each | {"tensors": 1}), Cell(str(each["shape"] or "–"), str(each["dtype"] or ""))]
        line += [Cell(formatting.count(each["tensors"]), sort=each["tensors"]), size_cell(each["bytes"])]
        lines.append([*line, _percent(each["bytes"] / whole)])
    caption = f"{name}: what one block saves for backward, {size(whole)}."
    notes = ["Parameters and autocast's copies of weights are not in it."]
    notes += ["Memory ran out before the whole step was seen."] if row["recorded"] == "warm-up" else []
    return Table(f"saved-{row['cell']}", caption, columns, lines, notes)
