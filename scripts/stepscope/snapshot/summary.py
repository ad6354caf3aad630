"""A memory snapshot, or two that are compared, as one Markdown page: the peak, when it was and what
was in it."""

import pandas as pd

from stepscope.recordings import text
from stepscope.recordings.page import Style

_MIB = 2**20
_MOST_WITHOUT_FRAMES = 0.9  # a backward pass, in a thread of its own, has none
STYLE = Style(
    sections={
        "compared": ("What grew: bytes at the peak", 45),
        "memory_peak": ("At the peak, by what it is for", 20),
        "memory_lines": ("At the peak, by line", 20),
        "memory_largest": ("The largest allocations", 5),
    },
    hidden="stack|rank",
    units=(
        (r"bytes|before|after|difference", ("MiB", 1 / _MIB, ",.1f")),
        (r".*", ("", 1.0, ".6g")),
    ),
    labels={"frame": "line", "alive": "at the peak", "bytes": "MiB"},
)


def markdown(tables: dict[str, pd.DataFrame], title: str) -> str:
    """The summary of all devices."""
    rows = tables.get("memory_summary", pd.DataFrame()).to_dict("records")
    said = "\n\n".join(map(_device, rows))
    if not rows and "compared" not in tables:
        said = "The snapshot holds neither events nor memory."
    peak = tables.get("memory_peak", pd.DataFrame(columns=["bytes"]))
    return STYLE.page(title, {"": said}, tables | {"memory_peak": peak[peak["bytes"] > 0]})


def _device(row: dict) -> str:
    """What a reader has to know first of a device, from its row of the summary's table."""
    event, time, step = row["peak_event"], row["peak_time"], row["peak_step"]
    when = f"after event {event + 1:,} of {row['events']:,}"
    when = when if row["events"] else "in a state without a history"
    when += f", {1e3 * time:,.1f} ms" if pd.notna(time) else ""
    where = [f"step {step}"] if pd.notna(step) else []
    place = _place([*where, *_told(row, "peak_phase", "peak_module")])
    least = "" if row["is_allocated_known"] else " at least"
    said = (
        f"Device {row['device']}: peak {_mib(row['peak'])} MiB {when}{place}."
        f" Active at the start are {_mib(row['start'])} MiB, at the end {_mib(row['end'])} MiB, in"
        f" requested bytes; the peak takes{least} {_mib(row['peak_allocated'])} MiB as allocated."
    )
    # On a processor without an allocator, or where it is unknown, it is never more.
    if row["peak_reserved"] > row["peak"]:
        then, most = _mib(row["reserved_at_peak"]), _mib(row["peak_reserved"])
        said += f" Reserved are {then} MiB then, at most {most} MiB."
    return "\n\n".join([said, *(f"**{each}**" for each in _cautions(row))])


def _cautions(row: dict) -> list[str]:
    """What a reader has to know before the numbers of a device, from its row of the summary's
    table."""
    told = []
    if row["cut"]:
        told.append("the history lacks its beginning: earlier peaks may be missing")
    if row["events"] and row["allocated"] and row["without_frames"] > _MOST_WITHOUT_FRAMES:
        told.append(
            f"{100 * row['without_frames']:.1f} % of the allocated bytes have no line of Python:"
            " categories and lines are partly unknown; record with"
            " `_record_memory_history(stacks='python')`"
        )
    if row["ooms"]:
        place = _place(_told(row, "oom_phase", "oom_module", "oom_frame"))
        told.append(
            f"out of memory {row['ooms']} times; first: {_mib(row['oom_requested'])} MiB wanted,"
            f" {_mib(row['oom_free'])} MiB free on the device{place}"
        )
    if row["unknown_before"]:
        before = _mib(row["unknown_before"])
        told.append(f"of what is unknown, {before} MiB were allocated before the recording began")
    return told


def _told(row: dict, *keys: str) -> list[str]:
    return [text.markdown(row[key]) for key in keys if row[key]]


def _place(told: list[str]) -> str:
    return f" ({', '.join(told)})" if told else ""


def _mib(number: float) -> str:
    return f"{number / _MIB:,.1f}"
