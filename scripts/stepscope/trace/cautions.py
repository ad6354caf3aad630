"""What a reader has to know before the numbers of a trace: what it lacks, and what is not in its
phases."""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from . import TraceError
from .attribution import Attribution
from .events import MEMORY, Trace

COVERED = 0.9  # of the GPU time: phases that hold less do not tell of the program
UNLINKED = 0.01  # of the GPU time
MOST_RANGES = 15
YEAR = 3.2e16  # ns
ON_HOST = "processor"  # the warning of a trace whose rows are a processor's operators
_LAUNCH = re.compile(r"launch", re.IGNORECASE)
# Profiler → how to record, and how to name a range, with it.
_RECORD = {
    "nsys": "record with `nsys profile --trace=cuda,nvtx`",
    "torch": "record with torch.profiler.profile(activities=[CPU, CUDA]), or what your device is",
}
_NAME = {
    "nsys": "torch.cuda.nvtx.range_push('forward') … range_pop()",
    "torch": "with torch.profiler.record_function('forward'): …",
}


def require_operations(trace: Trace, named: str) -> None:
    """Raises TraceError where a trace has no work of a GPU, or of operators on a processor, nor
    calls that launch any in named ranges: no table would tell; and where it lasts for years."""
    first, last = trace.extent
    if last - first > YEAR:
        raise TraceError(f"{named}: it is damaged: its events lie more than a year apart")
    if len(trace.operations) or (len(trace.calls) and len(trace.ranges)):
        return
    has_any = len(trace.calls) or len(trace.ranges)
    lacks = "kernels, copies and graphs" if has_any else "kernels, calls and ranges"
    raise TraceError(
        f"{named}: it has no {lacks}; {_RECORD[trace.profiler]}, and see that the program uses the"
        " GPU while it is recorded"
    )


def warnings(found: Attribution, are_listed: bool) -> pd.DataFrame:
    """Rows `about, text`, the gravest first. are_listed: whether a table lists the ranges."""
    return pd.DataFrame(_warnings(found, are_listed), columns=["about", "text"])


def _warnings(found: Attribution, are_listed: bool) -> Iterator[tuple[str, str]]:
    trace, record = found.trace, _RECORD[found.trace.profiler]
    total = found.durations.sum()
    share = covered(found)
    unlinked = found.durations[found.launch < 0].sum()
    cut = int(trace.ranges["cut"].sum())
    has_calls = len(trace.calls) > 0
    if not len(trace.operations):
        yield "GPU time unknown", f"{_launches(found)}; {record}, where the profiler may see"
    if trace.device_is_host:
        yield (
            ON_HOST,
            "no GPU was recorded: where kernels would stand are operators of the processor",
        )
    for text in trace.diagnostics:
        yield "profiler", text
    if not trace.device_is_host and not has_calls:
        yield (
            "no CUDA calls",
            f"no kernel can be assigned to a range or a phase without them; {record}",
        )
    if not len(trace.ranges):
        name = _NAME[trace.profiler]
        yield (
            "no named ranges",
            f"there are no phases; name them in the program ({name}) and {record}",
        )
    elif total and has_calls and share < COVERED:
        listed = "; the ranges that are there are listed below, and" if are_listed else ";"
        phases = ", ".join(found.phases) or "none"
        whose = "operators'" if trace.device_is_host else "GPU"
        yield (
            "phases",
            f"the phases ({phases}) hold {100 * share:.1f} % of the {whose} time{listed} --phase"
            " NAME chooses one (repeat it for several)",
        )
    if counts := _counts(found):
        yield "steps", counts
    if total and not trace.device_is_host and (trace.operations["kind"] == MEMORY).all():
        yield "no kernels", f"only copies and fills are there; {record}"
    if total and has_calls and unlinked > UNLINKED * total:
        yield (
            "calls that are missing",
            f"{100 * unlinked / total:.1f} % of the GPU time belongs to no call, and thus to no"
            " range and no phase",
        )
    if cut:
        yield (
            "ranges without an end",
            f"{cut:,} ranges had not ended when the recording did: they end with it",
        )


def _launches(found: Attribution) -> str:
    """Of a trace without kernels how many calls should have launched one."""
    trace = found.trace
    names = [trace.names[code] for code in trace.calls["name"]]
    launches = list(filter(_LAUNCH.search, names)) or names
    what = f"{len(launches) / found.steps:g} calls a step"
    what += f" ({Counter(launches).most_common(1)[0][0]} most of all)" if launches else ""
    return f"{what}, and no kernel, copy or fill is in the file"


def _counts(found: Attribution) -> str:
    """Of phases that occur different numbers of times: which counts as a step."""
    counts = found.counts
    if all(count == found.steps for count in counts.values()):
        return ""
    if counts.get("step") == found.steps:  # phases of a step come as often as they do
        return ""
    each = ", ".join(f"{phase} {count}" for phase, count in counts.items())
    by = "as --steps says" if found.given_steps else "--steps N says otherwise"
    return (
        f"phases occur different numbers of times ({each}): what stands as a step's is the whole by"
        f" {found.steps} ({by}); the columns of each occurrence are beside it"
    )


def covered(found: Attribution) -> float:
    """The share of the GPU time that lies in phases."""
    total = found.durations.sum()
    any_phase = np.max([np.full_like(found.launch, -1), *found.occurrence.values()], axis=0)
    return float(found.durations[any_phase >= 0].sum() / total) if total else 1.0


def ranges(found: Attribution, modules: pd.DataFrame, phases: pd.DataFrame) -> pd.DataFrame:
    """The ranges with the most GPU time, launched by any thread while they were open; empty where
    phases hold all."""
    if covered(found) >= COVERED:
        return pd.DataFrame()
    columns = ["range", "count", "share"]
    inner = modules.reindex(columns=["kind", "module", "calls", "any_thread_gpu_time"])
    inner = inner[inner["kind"] == "module"].drop(columns="kind").set_axis(columns, axis=1)
    outer = phases.reindex(columns=["phase", "count", "gpu_time"]).set_axis(columns, axis=1)
    table = pd.concat([inner.assign(count=inner["count"] * found.steps), outer])
    table["share"] /= found.a_step(found.durations.sum())
    return table.nlargest(MOST_RANGES, "share")
