"""A memory snapshot in a few lines for a terminal: its peak, when it was and what was in it."""

import pandas as pd

from stepscope.recordings.text import plain
from stepscope.snapshot import MEMORY_CATEGORIES

LINES = 5
MOST_COMPARED = 15
_MIB = 2**20
_MOST_WITHOUT_FRAMES = 0.9  # a backward pass, in a thread of its own, has none


def text(tables: dict[str, pd.DataFrame]) -> str:
    """The summary of all devices."""
    rows = tables["memory_summary"].to_dict("records")
    if not rows:
        return "The snapshot holds neither events nor memory.\n"
    return "\n".join(_device(row, tables) for row in rows)


def _device(row: dict, tables: dict[str, pd.DataFrame]) -> str:
    found = {name: tables[f"memory_{name}"] for name in ("peak", "lines", "timeline")}
    own = {name: table[table["device"] == row["device"]] for name, table in found.items()}
    when = (
        f"after event {row['peak_event'] + 1:,} of {row['events']:,}"
        if row["events"]
        else "in a state without a history"
    )
    when += f", {1e3 * row['peak_time']:,.1f} ms" if pd.notna(row["peak_time"]) else ""
    where = [f"step {row['peak_step']}"] if pd.notna(row["peak_step"]) else []
    where += _told(row, "peak_phase", "peak_module")
    lines = [
        f"Device {row['device']}: peak {_mib(row['peak'])} MiB {when}"
        + (f" ({', '.join(where)})" if where else ""),
        (
            f"  {_reserved(row, own['timeline'])}"
            f"active at the start {_mib(row['start'])} MiB, at the end {_mib(row['end'])} MiB"
        ),
        (
            "  active is in requested bytes; the peak takes"
            f"{'' if row['is_allocated_known'] else ' at least'} {_mib(row['peak_allocated'])}"
            " MiB as allocated"
        ),
    ]
    lines += [f"  {line}" for line in cautions(row)]
    lines.append("  at the peak, MiB:")
    for each in own["peak"].to_dict("records"):
        if each["bytes"]:
            share = _percent(each["bytes"] / row["peak"])
            lines.append(
                f"  {_mib(each['bytes']):>14}  {share}  {each['category']}{_why(each, row)}"
            )
    lines.append("  the largest lines of it, MiB:")
    for each in own["lines"].head(LINES).to_dict("records"):
        place = "  ".join(_told(each, "category", "module", "frame"))
        lines.append(
            f"  {_mib(each['bytes']):>14}  {_percent(each['bytes'] / row['peak'])}  {place}"
        )
    return "\n".join(lines) + "\n"


def compared(table: pd.DataFrame) -> str:
    """The difference of two snapshots in a few lines."""
    lines = ["Bytes at the peak, MiB: before, after, difference"]
    for each in table.groupby("kind", sort=False).head(MOST_COMPARED).to_dict("records"):
        place = "  ".join(_told(each, "category", "name"))
        numbers = "".join(f"{_mib(each[key]):>14}" for key in ("before", "after", "difference"))
        lines.append(f"{numbers}  device {each['device']}: {each['kind']}  {place}".rstrip())
    return "\n".join(lines) + "\n"


def cautions(row: dict) -> list[str]:
    """What a reader has to know before the numbers of a device, from its row of the summary's
    table."""
    told = []
    if row["cut"]:
        told.append("the history lacks its beginning: earlier peaks may be missing")
    if row["events"] and row["allocated"] and row["without_frames"] > _MOST_WITHOUT_FRAMES:
        told.append(
            f"{100 * row['without_frames']:.1f} % of the allocated bytes have no line of Python:"
            " categories and lines are partly unknown; record with"
            " _record_memory_history(stacks='python')"
        )
    if row["ooms"]:
        place = ", ".join(_told(row, "oom_phase", "oom_module", "oom_frame"))
        sizes = (
            f"{_mib(row['oom_requested'])} MiB wanted, {_mib(row['oom_free'])} MiB free on the"
            " device"
        )
        told.append(
            f"out of memory {row['ooms']} times; first: {sizes}" + (f" ({place})" if place else "")
        )
    return told


def _told(row: dict, *keys: str) -> list[str]:
    return [plain(row[key]) for key in keys if row[key]]


def _why(each: dict, row: dict) -> str:
    """What is known of the unknown."""
    before = row["unknown_before"]
    if each["category"] != MEMORY_CATEGORIES[-1] or not before:
        return ""
    return f", {_mib(before)} MiB of it allocated before the recording began"


def _reserved(row: dict, timeline: pd.DataFrame) -> str:
    """What was reserved; empty if that is never more than the peak, as on a CPU without an
    allocator, or unknown."""
    if not timeline["reserved"].max() > timeline["active"].max():
        return ""
    then = _mib(row["reserved_at_peak"])
    most = _mib(row["peak_reserved"])
    return f"reserved then {then} MiB, at most {most} MiB; "


def _mib(number: float) -> str:
    return f"{number / _MIB:,.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:5.1f} %"
