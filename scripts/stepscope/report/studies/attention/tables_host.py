"""The attention study's table of how long a call keeps the host busy."""

from collections.abc import Callable
from functools import partial

from stepscope.report.data.attention import Group
from stepscope.report.data.attention_host import host_times
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.studies.attention.tables_series import SERIES

_NOTE = (
    "By the host's clock: calls are issued one after another without waiting for the GPU, at the shortest length. "
    "A pass that the GPU finishes sooner takes as long as its call."
)
_RATIOS = "forward_over_sdpa", "both_over_sdpa"
_RATIO_NOTE = (
    "SDPA's: over a call of PyTorch's scaled_dot_product_attention, in turns with it in one process; a host that is "
    "slow is so for both."
)


def host_table(group: Group) -> Table | None:
    """A row for each precision and implementation: µs of a call, and that over SDPA's, the least and the most over
    d; None without any."""
    rows: dict[tuple[str, str], dict] = {}
    for each in host_times(group):
        row = {"precision": each.precision, "implementation": each.implementation, "times": []}
        rows.setdefault((each.precision, each.implementation), row)["times"].append(each)
    columns = [
        Column(label, unit, name, value=partial(_end, end, field, decimals), optional=field in _RATIOS)
        for name, fields in (("forward", ("forward", _RATIOS[0])), ("forward + backward", ("both", _RATIOS[1])))
        for field, unit, decimals in zip(fields, ("µs", "×\u00a0SDPA's"), (1, 2), strict=True)
        for label, end in (("least", min), ("most", max))
    ]
    caption = f"How long a call keeps the host busy, over d, {group.place}."
    name = f"attention-host-{group.hardware}"
    if not rows:
        return None
    has_ratio = any(each.forward_over_sdpa for row in rows.values() for each in row["times"])
    notes = [_NOTE, *[_RATIO_NOTE] * has_ratio]
    return table.build(name, caption, [*SERIES, *columns], list(rows.values()), notes, grouped=True)


def _end(end: Callable, field: str, decimals: int, row: dict) -> TableCell:
    found = [(value, each) for each in row["times"] if (value := getattr(each, field)) is not None]
    if not found:
        return table.number(None)
    value, each = end(found, key=lambda one: one[0])
    is_slow = each.slow_host and field not in _RATIOS
    return table.number(value, partial(formatting.fixed, decimals=decimals), badges=("slow_host",) * is_slow)
