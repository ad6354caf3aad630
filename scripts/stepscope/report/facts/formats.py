"""What formats do to numbers: operations forced into a format."""

from stepscope.report.kit.data import Data, Row, grouped, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe


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


def forced(data: Data) -> list[Forced]:
    """Each operation in each way and format."""
    rows = data.dicts("forced", status="ok")
    groups = grouped(rows, "operation", "way", "format").values()
    return list(map(_forced, groups))


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
