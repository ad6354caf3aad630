"""Tables from columns that each say where their value comes from and how it is printed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import BADGES, Column, Table, TableCell
from stepscope.report.kit.compare import (
    NOT_COMPARABLE,
    SAME,
    SLOWER,
    UNCLEAR,
    Comparison,
    interval_text,
    ratio_text,
)
from stepscope.tables.columns import GPU

NOTHING = TableCell("–")
LOST = ("oom", "unsupported", "failed", "missing")  # statuses of what has no result
# What badges mean in tables that give no peak of what ran out of memory, and no reasons below.
PLAIN_MEANINGS = {"oom": "out of memory", "unsupported": "not possible with this model on this machine"}
LONG = 40  # rows; a longer table is folded, where build() is told so


def build(
    name: str,
    caption: str,
    columns: Iterable[Column],
    rows: Iterable,
    notes: Iterable[str] = (),
    *,
    legend: bool = True,
    meanings: Mapping[str, str] | None = None,
    folded: bool = False,
    grouped: bool = False,
    about: Mapping[str, str] = MappingProxyType({}),
) -> Table | None:
    """The table of these columns with a line for each row; None without rows.

    Optional columns without any value are omitted. Below come the notes that are not empty and, with `legend`, what
    the badges mean; `meanings` replaces that of some badges.
    """
    rows = list(rows)
    if not rows:
        return None
    filled = [(column, [cell_of(column, row) for row in rows]) for column in columns]
    kept = [(column, cells) for column, cells in filled if not (column.optional and all(map(is_empty, cells)))]
    lines = [list(line) for line in zip(*(cells for _, cells in kept), strict=True)]
    told = [*filter(None, notes), *(badge_legend(lines, meanings) if legend else [])]
    return Table(name, caption, [column for column, _ in kept], lines, told, folded, grouped, about)


def cell_of(column: Column, row: object) -> TableCell:
    """A column's cell in a row."""
    value = column.value(row) if callable(column.value) else row.get(column.value)
    if isinstance(value, TableCell):
        return value
    return number(value, column.show or formatting.significant) if column.number else text(value, column.show)


def number(
    value: object, show: Callable[[float], str] = formatting.significant, below: str = "", badges: Sequence[str] = ()
) -> TableCell:
    """A number and its text; without one its badges, or a dash."""
    if not formatting.known(value):
        return TableCell("" if badges else "–", badges=tuple(badges))
    return TableCell(show(value), below, sort=float(value), badges=tuple(badges))


def text(value: object, show: Callable[[object], str] | None = None) -> TableCell:
    """A text; a dash where it is missing or empty."""
    is_missing = value is None or value == "" or value != value
    return NOTHING if is_missing else TableCell(show(value) if show else str(value))


def count(value: object, below: str = "") -> TableCell:
    """A whole number."""
    return number(value, formatting.count, below)


def times_as_fast(
    found: Comparison,
    below: str = "",
    badges: Sequence[str] = (),
    show: Callable[[float], str] = ratio_text,
    between: str = ", ",
) -> TableCell:
    """`1.43` over `[1.40, 1.46]`: how many times as fast; verdict_note() says what the rest means.

    below: more to stand there. show: prints the ratio.
    """
    text = f"({show(found.ratio)})" if is_bracketed(found) else show(found.ratio)
    return TableCell(text, judged_below(found, below, between), found.ratio, tuple(badges))


def judged_below(found: Comparison, more: str = "", between: str = ", ") -> str:
    """`[1.40, 1.46] same, more`: interval and verdict; faster is told by the ratio itself."""
    word = found.verdict if found.verdict in (SLOWER, SAME, NOT_COMPARABLE) else ""
    return between.join(filter(None, [" ".join(filter(None, [interval_text(found), word])), more]))


def is_bracketed(found: Comparison) -> bool:
    """Whether nothing may be said, though several processes measured both, or since hosts differ."""
    return found.verdict == NOT_COMPARABLE or (found.verdict == UNCLEAR and found.has_interval)


def verdict_note(found: Iterable[Comparison | None]) -> str:
    """What judged_below() and is_bracketed() mean in a table with these comparisons; empty without any."""
    found = [each for each in found if each]
    judged = [each for each in found if each.has_interval]
    words = {each.verdict for each in found if each.has_interval or each.verdict == NOT_COMPARABLE}
    margins = [each.margin - 1 for each in judged if each.verdict == SAME]
    told = []
    if judged:
        told.append("Below a ratio: its 95 % confidence interval, between processes.")
    if margins:
        told.append(f"Same: within ± {formatting.value_range([100 * each for each in margins], 2)} %, sure to 95 %.")
    if UNCLEAR in words:
        told.append("In brackets: not sure to differ by more than unchanged cells do, and not sure to be the same.")
    if NOT_COMPARABLE in words:
        told.append("Not comparable: the host's launches fill the time, and the hosts are not known to be as fast.")
    if found and not judged and NOT_COMPARABLE not in words:
        told.append("Single process, or two that disagree: no verdict.")
    elif len(judged) < len(found):
        told.append("Without an interval: a single process, or two that disagree; no verdict.")
    return " ".join(told)


def lost_of(statuses: Iterable[str | None], below: str = "") -> TableCell:
    """In place of a comparison: the badges of those that have no result, each once; a dash without any."""
    badges = tuple(dict.fromkeys(each for each in statuses if each in LOST))
    return TableCell("" if badges else "–", below, badges=badges)


def named(name: object, most: int = 60, below: str = "") -> TableCell:
    """A name from a trace or a snapshot, shortened if need be, the whole as the cell's title."""
    whole = str(name or "–")
    return TableCell(formatting.shortened(whole, most), below, title=whole if len(whole) > most else "")


def is_empty(cell: TableCell) -> bool:
    """Whether a cell says nothing."""
    return cell.text in ("", "–") and not cell.badges and not cell.below


def badge_legend(lines: Iterable[Iterable[TableCell]], meanings: Mapping[str, str] | None = None) -> list[str]:
    """One note on what the badges in these lines mean; none without badges. `meanings` replaces that of some."""
    used = {key for line in lines for cell in line for key in cell.badges}
    told = [f"{word}: {(meanings or {}).get(key, meaning)}" for key, (word, meaning) in BADGES.items() if key in used]
    return ["; ".join(told) + "."] if told else []


def lost(row: Mapping) -> tuple[str, ...]:
    """The badge of a row that has no result."""
    return (row["status"],) if row.get("status") in LOST else ()


def unsure(row: Mapping, prefix: str = "") -> tuple[str, ...]:
    """The badge of a series whose columns begin with `prefix`: unsteady, which is always noisy, else noisy."""
    is_so = {name: row.get(f"{prefix}{name}") is True for name in ("unsteady", "noisy")}
    return tuple(name for name in is_so if is_so[name])[:1]


def disturbed(row: Mapping) -> tuple[str, ...]:
    """The badges of a cell that was measured on a GPU that throttled or was not its own, or while the host was slow,
    which does not disturb a pass that waited in the GPU's queue: what the GPU limits, where the row is of one series.
    """
    others = row.get("other_processes")
    found = {
        "throttled": bool(row.get("throttle")),
        "slow_host": row.get("slow_host") is True and row.get("limited_by") != GPU,
        "shared": formatting.known(others) and others > 0,
    }
    return tuple(badge for badge, is_so in found.items() if is_so)


def marks(row: Mapping) -> tuple[str, ...]:
    """The badges of a whole cell: failed or missing, throttled, on a slow host, shared."""
    return (row.get("status"),) * (row.get("status") in ("failed", "missing")) + disturbed(row)


def reasons(
    rows: Iterable[Mapping],
    name: Callable[[Mapping], str],
    pattern: str = "{badge} ({names}): {reason}.",
    *,
    statuses: Sequence[str] = ("unsupported", "failed"),
    most_names: int = 4,
    between: str = ", ",
    most: int = 8,
) -> list[str]:
    """Why rows have no result: a note for each status and reason, sorted, which names the rows that it is about."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row["status"] in statuses:
            reason = str(row.get("reason") or "no reason was recorded")
            found.setdefault((str(row["status"]), reason), {})[name(row)] = None
    return [
        pattern.format(
            badge=BADGES[status][0],
            names=formatting.listing(list(names), most_names, between),
            reason=reason.rstrip("."),
        )
        for (status, reason), names in sorted(found.items())
    ][:most]


def varying(rows: Iterable[Mapping], names: Iterable[str]) -> list[str]:
    """Those of the fields in which the rows differ."""
    rows = list(rows)
    return [name for name in names if len({str(row.get(name)) for row in rows}) > 1]


# The columns that say which point of a grid a row is.
POINT = {
    "hardware": Column("hardware", value="hardware", number=False),
    "size": Column("size", value=lambda row: TableCell(str(row["size"] or ""), badges=marks(row)), number=False),
    "parameters": Column("parameters", value="parameters", show=formatting.parameters),
    "context": Column("context", "tokens", value="context", show=formatting.count),
    "batch": Column("batch", value="batch", show=formatting.count),
    "precision": Column("precision", value="precision", number=False),
    "mode": Column("mode", value="mode", number=False),
    "options": Column("options", value="options", number=False),
    "repeat": Column("repeat", value="repeat", show=formatting.count),
}


def place_of(row: Mapping) -> dict[str, str]:
    """A cell's size, context, precision and machine, as tables show them: what all that is shown of it is about."""
    shown = {"size": str, "context": formatting.count, "precision": str, "hardware": str}
    return {name: show(row[name]) for name, show in shown.items() if row.get(name) is not None}


def point(*names: str) -> list[Column]:
    """The columns of POINT with these names; that of the size holds the row's marks."""
    return [POINT[name] for name in names]


def about(get: Callable[[Any], Any], columns: Iterable[Column]) -> list[Column]:
    """The same columns for rows of another kind, of which `get` gives the row that the columns are made for."""
    return [replace(column, value=lambda row, column=column: cell_of(column, get(row))) for column in columns]
