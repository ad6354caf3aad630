"""Tables of the section: who published what, every figure beside ours, why some are not compared, and the slips."""

from collections.abc import Mapping, Sequence

from stepscope.report.data.published import Beside, Published, counts, in_our_unit, reasons
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import NOT_COMPARABLE, ratio_text
from stepscope.report.kit.order import label
from stepscope.tables.published import UNITS

MOST_LETTERS = 60  # of a reason beside a verdict


def cell_name(figure: Mapping) -> str:
    """`large at 256`, `d 64 at 4,096`, or what else the figure is of."""
    if formatting.known(figure["length"]):
        return f"d {formatting.count(figure['d_head'])} at {formatting.count(figure['length'])}"
    if figure["size"]:
        at = f" at {formatting.count(figure['context'])}" if formatting.known(figure["context"]) else ""
        return f"{figure['size']}{at}"
    return str(figure["name"] or figure["item"] or "")


def pass_of(figure: Mapping) -> str:
    """The phase of a step, or the direction of attention."""
    return label(figure["phase"] or figure["direction"] or "")


def what(figure: Mapping) -> str:
    """pass_of(), and the quantity unless it is the time."""
    quantity = "" if figure["quantity"] == "time" else str(figure["quantity"])
    return " ".join(filter(None, [pass_of(figure), quantity]))


def our_unit(figure: Mapping) -> str:
    """The unit that a figure is compared in."""
    return UNITS[figure["unit"] or ""][0]


def shown(value: float | None, figure: Mapping) -> str:
    """A value in our unit, bytes as GiB."""
    if not formatting.known(value):
        return figure["status"] if figure["status"] != "ok" else ""
    if our_unit(figure) == "bytes":
        return f"{formatting.gib(value)} GiB"
    return f"{formatting.significant(value, 4)} {our_unit(figure)}".strip()


def sources_table(published: Published, beside: Mapping[str, Sequence[Beside]]) -> Table | None:
    """A row a source and study: how many figures it gives, and how many of them meet ours and can be compared."""
    met = {id(each.figure) for found in beside.values() for each in found}
    compared = {id(each.figure) for found in beside.values() for each in found if each.verdict != NOT_COMPARABLE}
    rows: dict[tuple[str, str], list[dict]] = {}
    for figure in published.figures:
        rows.setdefault((figure["source"], figure["study"]), []).append(figure)
    columns = [
        Column("source", number=False, value=lambda own: own[0]["source"]),
        Column("study", number=False, value=lambda own: own[0]["study"]),
        Column("title", number=False, wrap=True, value=lambda own: own[0]["title"], optional=True),
        Column("GPU", number=False, wrap=True, value=_gpus),
        Column("figures", value=len, show=formatting.count),
        Column("measured here too", value=lambda own: sum(id(each) in met for each in own), show=formatting.count),
        Column("compared", value=lambda own: sum(id(each) in compared for each in own), show=formatting.count),
    ]
    caption = (
        "Who published what. Not compared are kernels and parts, since other generations of GPUs run other kernels, "
        "times under a profiler, and spreads."
    )
    return table.build("published-sources", caption, columns, rows.values(), legend=False, grouped=True)


def _gpus(figures: Sequence[dict]) -> str:
    return formatting.listing(list(dict.fromkeys(each["gpu"] or "not named" for each in figures)))


def compared_table(hardware: str, found: Sequence[Beside]) -> Table | None:
    """Every published figure of a cell that the machine measured too."""
    rates = {"matrix products": "arithmetic", "memory": "memory"}
    columns = [
        Column("source", number=False, value=lambda each: _beside(each.figure["source"], each.figure["gpu"])),
        Column("cell", number=False, value=lambda each: _beside(cell_name(each.figure), each.figure["precision"])),
        Column("of", number=False, value=lambda each: _beside(pass_of(each.figure), _measure(each.figure))),
        Column("published", number=False, value=lambda each: shown(each.published, each.figure)),
        Column("here", number=False, value=_here),
        Column("theirs over ours", value=lambda each: each.ratio, show=ratio_text),
        *(
            Column(
                words,
                group="ratio of rates",
                value=lambda each, name=name: getattr(each, name) if each.has_time else None,
                show=ratio_text,
            )
            for words, name in rates.items()
        ),
        Column("verdict", number=False, value=_verdict),
    ]
    caption = (
        f"Published figures beside {hardware}'s. Theirs over ours: how many times the time or memory; of a rate its "
        "inverse. Ratio of rates: ours over theirs, by the data sheets."
    )
    return table.build(f"published-{hardware}", caption, columns, found, folded=len(found) > table.LONG)


def _here(each: Beside) -> TableCell:
    badges = table.disturbed(each.partner.row) if each.has_time else ()
    return TableCell(_ours(each) or "–", each.partner.name, badges=badges)


def _beside(text: str | None, below: str | None) -> TableCell:
    return TableCell(text or "–", below=below or "")


def _measure(figure: Mapping) -> str:
    """`peak allocated, max`."""
    return f"{figure['quantity']}, {figure['statistic']}"


def _verdict(each: Beside) -> TableCell:
    """The whole reason stands in the table of reasons."""
    return TableCell(each.verdict, below=formatting.shortened(each.reason, MOST_LETTERS), title=each.reason)


def _ours(each: Beside) -> str:
    return shown(each.partner.value, each.figure) if each.partner.value else "oom"


def reasons_table(hardware: str, found: Sequence[Beside]) -> Table | None:
    """Why figures are not compared, and of which sources they are."""
    columns = [
        Column("figures", value=lambda row: len(row[1]), show=formatting.count),
        Column("source", number=False, value=lambda row: _sources(row[1])),
        Column("why it is not compared", number=False, wrap=True, value=lambda row: row[0]),
    ]
    told = ", ".join(f"{word} {formatting.count(number)}" for word, number in counts(found).items())
    caption = f"What cannot be compared with {hardware}, and why. All verdicts: {told}."
    return table.build(f"published-reasons-{hardware}", caption, columns, reasons(found).items(), legend=False)


def _sources(found: Sequence[Beside]) -> str:
    return formatting.listing(list(dict.fromkeys(each.figure["source"] for each in found)))


def untrue_table(published: Published) -> Table | None:
    """Figures that cannot be true, with the reason."""
    columns = [
        *_printed(lambda row: row[0]),
        Column("why it cannot be true", number=False, wrap=True, value=lambda row: row[1]),
    ]
    rows = published.untrue
    caption = "Published figures that cannot be true."
    return table.build("published-untrue", caption, columns, rows, legend=False, folded=len(rows) > table.LONG)


def slips_table(published: Published) -> Table | None:
    """Figures beside which a slip of the text stands, quoted."""
    columns = [*_printed(lambda row: row), Column("note", number=False, wrap=True, value="note")]
    rows = published.slips
    caption = "Slips of the published texts: kept as they were printed, and quoted."
    return table.build("published-slips", caption, columns, rows, legend=False, folded=len(rows) > table.LONG)


def _printed(of) -> list[Column]:
    """Columns of a figure as it was printed; `of` gives it of a row."""
    return [
        Column("source", number=False, value=lambda row: of(row)["source"]),
        Column("item", number=False, wrap=True, value=lambda row: of(row)["item"]),
        Column("cell", number=False, value=lambda row: cell_name(of(row))),
        Column("of", number=False, value=lambda row: what(of(row))),
        Column("statistic", number=False, value=lambda row: of(row)["statistic"]),
        Column("printed", number=False, value=lambda row: _as_printed(of(row))),
    ]


def _as_printed(figure: Mapping) -> str:
    value = in_our_unit(figure)
    return f"{figure['value']:g} {figure['unit'] or ''}".strip() if value is not None else figure["status"]
