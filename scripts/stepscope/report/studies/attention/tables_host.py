"""The attention study's table of how long a call keeps the host busy."""

from collections.abc import Callable
from functools import partial

from stepscope.report.data.attention import Group
from stepscope.report.data.attention_host import HostTime, host_times
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.studies.attention.tables_series import SERIES

_NOTE = (
    "By the host's clock: calls are issued one after another without waiting for the GPU, at the shortest length. "
    "A pass that the GPU finishes sooner takes as long as its call."
)
_PARTS: dict[str, Callable[[HostTime], float]] = {
    "forward": lambda each: each.forward,
    "forward + backward": lambda each: each.both,
}


def host_table(group: Group) -> Table | None:
    """A row for each precision and implementation: µs of a call, the least and the most over d; None without any."""
    rows: dict[tuple[str, str], dict] = {}
    for each in host_times(group):
        row = {"precision": each.precision, "implementation": each.implementation, "times": []}
        rows.setdefault((each.precision, each.implementation), row)["times"].append(each)
    columns = [
        Column(label, "µs", group=name, value=partial(_end, end, value))
        for name, value in _PARTS.items()
        for label, end in (("least", min), ("most", max))
    ]
    caption = f"How long a call keeps the host busy, over d, {group.place}."
    name = f"attention-host-{group.hardware}"
    return table.build(name, caption, [*SERIES, *columns], list(rows.values()), [_NOTE], grouped=True) if rows else None


def _end(end: Callable, value: Callable[[HostTime], float], row: dict) -> TableCell:
    found = end(row["times"], key=value)
    return TableCell(
        formatting.fixed(value(found), 1), sort=value(found), badges=("slow_host",) if found.slow_host else ()
    )
