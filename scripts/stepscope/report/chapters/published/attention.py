"""Our fastest attention beside the rates that the makers of attention kernels publish."""

from collections.abc import Sequence

from stepscope.report.data.published import EXPLAINED, Beside
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.compare import NOT_COMPARABLE, ratio_range, ratio_text
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.studies.published.findings import cells_of

MOST_SENTENCES = 2


def references(found: Sequence[Beside]) -> list[Beside]:
    """Published rates of attention that stand beside ours, in the order of the files."""
    return [each for each in found if each.figure["quantity"] == "rate" and each.ratio is not None]


def beside_references(found: Sequence[Beside]) -> list[Finding]:
    """A sentence a source: its rates and ours at the same points, and whether they are comparable."""
    of: dict[tuple[str, str], list[Beside]] = {}
    for each in references(found):
        of.setdefault((each.figure["framework"] or each.figure["source"], each.figure["gpu"] or ""), []).append(each)
    return [_of_source(*key, own) for key, own in list(of.items())[:MOST_SENTENCES]]


def _of_source(framework: str, gpu: str, own: list[Beside]) -> Finding:
    cells = cells_of(own)
    numbers = {
        "framework": Number(formatting.shortened(framework, 60), show=str),
        "gpu": Number(formatting.shortened(gpu or "GPU that is not named", 40), show=str),
        "theirs": Number([each.published for each in own], (), formatting.value_range),
        "ours": Number([each.partner.value for each in own], cells, formatting.value_range),
        "range": Number([each.ratio for each in own], cells, ratio_range),
    }
    answer = "{framework} gives {theirs} TFLOP/s on the {gpu}; our fastest reach {ours} at the same lengths and d."
    lost = [each for each in own if each.verdict == NOT_COMPARABLE]
    if lost:
        numbers["reason"] = Number(formatting.shortened(lost[0].reason, 100), show=str)
        return Finding(f"how far is attention from {framework}", answer, numbers, cause="Not comparable: {reason}.")
    cause = "That is {range} times the published rate."
    return Finding(f"how far is attention from {framework}", answer, numbers, cause=cause)


def references_table(found: Sequence[Beside]) -> Table | None:
    """A row a published rate: dated, with its version and shape, beside our fastest at that length and d."""
    columns = [
        Column("published by", number=False, wrap=True, value=lambda each: _who(each.figure)),
        Column("GPU", number=False, value=lambda each: _gpu(each.figure)),
        Column("direction", number=False, value=lambda each: each.figure["direction"]),
        Column("d", value=lambda each: each.figure["d_head"], show=formatting.count),
        Column("heads", number=False, value=lambda each: _heads(each.figure)),
        Column("length", value=lambda each: each.figure["length"], show=formatting.count),
        Column("published", "TFLOP/s", value=lambda each: each.published),
        Column("ours", "TFLOP/s", value=_ours),
        Column("rate", group="ours over theirs", value=_compared),
        Column("peak", group="ours over theirs", value=lambda each: each.arithmetic, show=ratio_text),
    ]
    rows = references(found)
    left = f" {len(rows) - MOST_ROWS:,} more rows stand with the data." if len(rows) > MOST_ROWS else ""
    caption = (
        "Published rates of attention beside our fastest implementation at the same length and d. Peak: by the GPUs' "
        f"data sheets.{left}"
    )
    return table.build("chapter-published-attention", caption, columns, rows[:MOST_ROWS])


def _ours(each: Beside) -> TableCell:
    return table.number(each.partner.value, below=each.partner.name, badges=table.disturbed(each.partner.row))


def _compared(each: Beside) -> TableCell:
    """The ratio of the rates, and the verdict where the GPUs' peak rates do not explain it."""
    return table.number(each.ratio, ratio_text, "" if each.verdict == EXPLAINED else each.verdict)


def _who(figure: dict) -> str:
    return ", ".join(filter(None, [figure["framework"] or figure["source"], figure["date"]]))


def _gpu(figure: dict) -> TableCell:
    return TableCell(figure["gpu"] or "not named", below=figure["precision"] or "")


def _heads(figure: dict) -> str:
    if not formatting.known(figure["heads"]):
        return ""
    shared = f" on {formatting.count(figure['kv_heads'])}" if formatting.known(figure["kv_heads"]) else ""
    return f"{formatting.count(figure['heads'])}{shared}"
