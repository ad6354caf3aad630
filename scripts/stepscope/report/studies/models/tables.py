"""The tables of people's own models."""

from stepscope.report.data.own_models import OwnModel, longest
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.sizes import percent_change, size
from stepscope.report.kit.table import NOTHING, build, count, number
from stepscope.tables.models import BY_FORMULA, COUNTED

_USED = "used"  # for rates and MFU


def models_table(name: str, models: list[OwnModel], caption: str, most: int | None = None) -> Table | None:
    """A row a model: what was built, how inputs and loss were chosen, FLOP twice; below, why, and what is not known.

    most: of the largest alone, as narrow as a chapter is: with the context below the name, and without dropout.
    """
    rows = models[-most:] if most else models
    columns = [
        Column("hardware", number=False, value=lambda each: each.row["hardware"], optional=True),
        Column("size", number=False, value=_at_context if most else lambda each: each.name),
        Column("built", number=False, wrap=True, value=_built),
        Column("parameters", value=_parameters),
        Column("blocks", number=False, value=_blocks),
        Column("attention", number=False, value=lambda each: each.row.get("attention"), optional=True),
        Column("inputs", number=False, wrap=True, value=lambda each: each.row.get("inputs")),
        Column("loss", number=False, wrap=True, value=lambda each: each.row.get("loss")),
        Column("dropout", value=lambda each: number(max(each.dropout, default=0), lambda value: f"{value:g}")),
        Column("context", "tokens", value=lambda each: each.row["context"], show=formatting.count),
        Column("counted", group="FLOP of a step", value=_counted),
        Column("by formula", group="FLOP of a step", value=_by_formula),
    ]
    if len({each.row["hardware"] for each in rows}) < 2:
        columns = columns[1:]
    if most:
        columns = [column for column in columns if column.label not in ("dropout", "context")]
    notes = [*_tied(rows), *_attention(rows), *_reasons(rows), *_unknown(rows)]
    return build(name, caption, columns, rows, notes, legend=False)


def _at_context(each: OwnModel) -> TableCell:
    return TableCell(each.name, f"at {formatting.count(each.row['context'])}")


def _built(each: OwnModel) -> TableCell:
    keys = [f"{name}={value}" for name, value in each.keys.items()]
    below = [each.row.get("class"), *keys, each.row.get("packages")]
    return TableCell(str(each.row.get("model") or "–"), ", ".join(filter(None, below)))


def _parameters(each: OwnModel) -> TableCell:
    """All, and below what is tied and how many are trained, if not all are."""
    every, trained, tied = (each.row.get(name) for name in ("parameters", "trainable", "tied"))
    below = [f"{formatting.parameters(trained)} trained"] if formatting.known(trained) and trained != every else []
    below += ["tied once"] if tied else []
    return number(every, formatting.parameters, ", ".join(below))


def _blocks(each: OwnModel) -> TableCell:
    number_of, kind = each.row.get("blocks"), each.row.get("block_class") or "?"
    if not formatting.known(number_of):
        return NOTHING
    return TableCell(f"{number_of:,.0f} × {kind}", str(each.row.get("block_path") or ""), sort=float(number_of))


def _counted(each: OwnModel) -> TableCell:
    below = _USED if each.row.get("flops_from") == COUNTED else ""
    return number(each.row.get("flops_counter"), formatting.flop, below)


def _by_formula(each: OwnModel) -> TableCell:
    below = [_USED] * (each.row.get("flops_from") == BY_FORMULA)
    below += [f"counted {percent_change(each.apart)}"] * each.disagrees
    return number(each.row.get("flops_formula"), formatting.flop, ", ".join(below))


def _tied(rows: list[OwnModel]) -> list[str]:
    """Which weights are others' too, once for each model."""
    found = {each.name: each.row["tied"] for each in rows if each.row.get("tied")}
    return [f"Tied in {name}: {tied}." for name, tied in found.items()]


def _attention(rows: list[OwnModel]) -> list[str]:
    """What the column of attention says."""
    told = any(each.row.get("attention") for each in rows)
    return ["Attention: what transformers chose when it built the model; an option of a cell can replace it."] * told


def _reasons(rows: list[OwnModel]) -> list[str]:
    """Why the two numbers of FLOP differ, once for each reason."""
    found: dict[str, dict[str, None]] = {}
    for each in rows:
        if each.disagrees and each.row.get("flops_why"):
            found.setdefault(str(each.row["flops_why"]), {})[each.name] = None
    return [f"FLOP of {formatting.listing(list(names))}: {why.rstrip('.')}." for why, names in found.items()]


def _unknown(rows: list[OwnModel]) -> list[str]:
    """What could not be found out, once for all models of which it is the same."""
    found: dict[str, dict[str, None]] = {}
    for each in rows:
        if each.unknown:
            found.setdefault("; ".join(line.rstrip(".") for line in each.unknown), {})[each.name] = None
    return [f"Not found out of {formatting.listing(list(names))}: {lines}." for lines, names in found.items()]


def more_table(name: str, models: list[OwnModel], caption: str) -> Table | None:
    """A row a model: buffers, type, vocabulary and the ranges that its parts have."""
    columns = [
        Column("hardware", number=False, value=lambda each: each.row["hardware"]),
        Column("size", number=False, value=lambda each: each.name),
        Column("type", number=False, value=lambda each: each.row.get("dtype")),
        Column("buffers", value=lambda each: number(each.row.get("buffers_bytes"), size)),
        Column("vocabulary", value=lambda each: count(each.row.get("vocab_size"))),
        Column("ranges by", number=False, value=lambda each: each.row.get("ranges_by")),
        Column("ranges", number=False, wrap=True, value=lambda each: each.row.get("ranges")),
    ]
    return build(name, caption, columns, longest(models), legend=False)
