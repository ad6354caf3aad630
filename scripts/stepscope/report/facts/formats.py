"""What formats do to numbers: sums, operations forced into a format, products, and the types that
autocast chooses."""

import math

from stepscope.report.kit.data import Data, Row, grouped, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, count, gap, scaled

LAYER = "layer"  # what is varied where products of linear layers are forced


@frozen
class Sum:
    """A sum of equal addends."""

    name: Name
    addends: Maybe
    sum: Maybe
    exact: Maybe
    last: Maybe
    error: Maybe


@frozen
class Forced:
    """An operation in a format: its largest error over the inputs, and the first input at which it
    breaks down."""

    operation: Name
    way: Name
    format: Name
    error: Maybe
    breaks: Maybe
    varied: Name | None


@frozen
class Product:
    """A product of linear layers, and the largest error of the worst layer in each format."""

    name: Name
    bf16: Maybe
    fp16: Maybe
    fp8: Maybe


@frozen
class Type:
    """A module under autocast."""

    part: Name
    operator: Name
    parameter: Name
    input: Name
    output: Name
    gradient: Name


def sums(data: Data) -> tuple[Sum, ...]:
    """Each sum of equal addends."""
    return tuple(map(_sum, data.dicts("sums")))


def _sum(row: Row) -> Sum:
    total = number(row, "sum", "exact")
    return Sum(
        name=Name(row["variant"]),
        addends=count(row["times"]),
        sum=total,
        exact=number(row, "exact", "exact"),
        last=count(row["last_change"]),
        error=scaled(gap(total, number(row, "exact", "exact")), 1, "off"),
    )


def forced(data: Data) -> tuple[Forced, ...]:
    """Each operation in each way and format, but for products of linear layers."""
    rows = [row for row in data.dicts("forced", status="ok") if row["quantity"] != LAYER]
    groups = grouped(rows, "operation", "way", "format").values()
    return tuple(map(_forced, groups))


def _forced(rows: list[Row]) -> Forced:
    """Over its inputs."""
    broken = [row for row in rows if _is_broken(row)]
    whole = [row for row in rows if not _is_broken(row)]
    worst = max(whole, key=lambda row: row["error"], default={})
    first = min(broken, key=lambda row: row["value"], default={})
    one = rows[0]
    return Forced(
        operation=Name(one["operation"]),
        way=Name(one["way"]),
        format=Name(one["format"]),
        error=number(worst, "error", "error"),
        breaks=number(first, "value", "exact"),
        varied=Name(first["quantity"]) if first else None,
    )


def _is_broken(row: Row) -> bool:
    """An error of all of it, or one that is no number; or what is not finite."""
    is_small = row["error"] < 1
    return not is_small or row["infinite"] > 0 or row["nan"] > 0


def products(data: Data) -> tuple[Product, ...]:
    """Each product of linear layers, by its worst layer in each format."""
    rows = data.dicts("forced", status="ok", quantity=LAYER)
    finite = [row for row in rows if not math.isnan(row["error"])]
    return tuple(_product(name, own) for (name,), own in grouped(finite, "operation").items())


def _product(name: str, rows: list[Row]) -> Product:
    errors = {}
    for (precision,), own in grouped(rows, "format").items():
        worst = max(own, key=lambda row: row["error"])
        errors[precision] = number(worst, "error", "error")
    return Product(
        name=Name(name),
        bf16=errors.get("bf16"),
        fp16=errors.get("fp16"),
        fp8=errors.get("fp8"),
    )


def types(data: Data) -> tuple[Type, ...]:
    """Of the toy model in bf16, else in fp16."""
    for precision in ("bf16", "fp16"):
        rows = data.dicts("dtypes", model="toy", autocast=precision)
        if rows:
            return tuple(map(_type, rows))
    return ()


def _type(row: Row) -> Type:
    return Type(
        part=Name(row["part"]),
        operator=Name(row["operator"]),
        parameter=Name(row["parameter"]),
        input=Name(row["input"]),
        output=Name(row["output"]),
        gradient=Name(row["parameter_gradient"]),
    )
