"""What a reader has to know before the numbers of a trace: what it lacks, and what is not in its
phases."""

import pandas as pd

from stepscope.trace import TraceError
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import SECOND, Trace

COVERED = 0.9  # of the GPU time: phases that hold less do not tell of the program
UNLINKED = 0.01  # of the GPU time
MOST_RANGES = 15
_RECORD = "record with `nsys profile --trace=cuda,nvtx`"


def require_operations(trace: Trace, named: str) -> None:
    """Raises TraceError where a trace has no work of a GPU, or of operators on a processor: no
    table would tell."""
    if not len(trace.operations):
        lacks = (
            "kernels, copies and graphs"
            if len(trace.calls) or len(trace.ranges)
            else "kernels, calls and ranges"
        )
        raise TraceError(
            f"{named}: it has no {lacks}; {_RECORD}, and see that the program uses the GPU while it"
            " is recorded"
        )


def warnings(found: Attribution) -> pd.DataFrame:
    """Rows `about, text`, the gravest first."""
    trace, rows = found.trace, [("profiler", text) for text in found.trace.diagnostics]
    total = found.durations.sum()
    if not trace.device_is_host and not len(trace.calls):
        rows.append(
            (
                "no CUDA calls",
                f"no kernel can be assigned to a range or a phase without them; {_RECORD}",
            )
        )
    if not len(trace.ranges):
        name = "torch.cuda.nvtx.range_push('forward') … range_pop()"
        rows.append(
            (
                "no named ranges",
                f"there are no phases; name them in the program with {name} and {_RECORD}",
            )
        )
    elif total and len(trace.calls) and (share := covered(found)) < COVERED:
        phases = ", ".join(found.phases) or "none"
        rows.append(
            (
                "phases",
                (
                    f"the phases ({phases}) hold {100 * share:.1f} % of the GPU time; the ranges"
                    " that are there are listed below, and --phase NAME chooses one (repeat it for"
                    " several)"
                ),
            )
        )
    if not trace.device_is_host and not (trace.operations["kind"] != 1).any():
        rows.append(("no kernels", f"only copies and fills are there; {_RECORD}"))
    unlinked = found.durations[found.launch < 0].sum()
    if total and len(trace.calls) and unlinked > UNLINKED * total:
        text = (
            f"{100 * unlinked / total:.1f} % of the GPU time belongs to no call, and thus to no"
            " range and no phase"
        )
        rows.append(("calls that are missing", text))
    cut = int(trace.ranges["cut"].sum())
    if cut:
        rows.append(
            (
                "ranges without an end",
                f"{cut:,} ranges had not ended when the recording did: they end with it",
            )
        )
    return pd.DataFrame(rows, columns=["about", "text"])


def covered(found: Attribution) -> float:
    """The share of the GPU time that lies in phases."""
    total = found.durations.sum()
    return float(found.durations[found.innermost_phase >= 0].sum() / total) if total else 1.0


def ranges(found: Attribution, modules: pd.DataFrame, phases: pd.DataFrame) -> pd.DataFrame:
    """The ranges with the most GPU time, launched by any thread while they were open; empty where
    phases hold all."""
    own = modules[modules["kind"] == "module"] if len(modules) else modules
    if covered(found) >= COVERED or (own.empty and phases.empty):
        return pd.DataFrame()
    whole = found.durations.sum() / SECOND / found.steps
    times = (
        [(own["module"], own["calls"] * found.steps, own["any_thread_gpu_time"])]
        if len(own)
        else []
    )
    times += [(phases["phase"], phases["count"], phases["gpu_time"])] if len(phases) else []
    rows = [
        pd.DataFrame({"range": name, "count": count, "share": time / whole})
        for name, count, time in times
    ]
    return pd.concat(rows).sort_values("share", ascending=False, kind="stable").head(MOST_RANGES)
